"""Keeps an index of the user's own true to its table, as a participant of each commit.

Before a write looks keys up, the index is told what it missed: commits of writers that died before they told it, of
services, and of other tools. Right after a commit it is told of that. Both happen under the guard, so states follow one
another as commits do.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from pyhudi.executor import Executor
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata, RollbackMetadata
from pyhudi.index.own.known import Known
from pyhudi.index.own.opening import opened
from pyhudi.index.own.protocol import IndexOf, RegisteredIndex
from pyhudi.index.own.telling import bring_up_to_date
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import Operation

log = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class OwnIndexKeeper:
    """Tells an index what became of its table. `read_snapshot`: the table as it is now. `confirm`: raises LockLost when
    the table is no longer ours. `executor`, `readers`: as of `bring_up_to_date`.
    """

    registered: RegisteredIndex
    table: IndexOf
    read_snapshot: Callable[[], Snapshot]
    confirm: Callable[[], None]
    executor: Executor
    readers: Executor

    def begin(self, snapshot: Snapshot) -> bool:
        with opened(self.registered, self.table) as index:
            bring_up_to_date(index, snapshot, self.executor, self.readers)
        return False

    def after_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """An index that knows nothing is built by the next write. A failure is only logged: the write has landed, and
        the next one tells the index once more.
        """
        looked_up = metadata.operation_type in (Operation.UPSERT, Operation.DELETE)
        try:
            with opened(self.registered, self.table) as index:
                if Known.parse(index.state()) is not None:
                    own = requested if looked_up else None
                    self.confirm()
                    bring_up_to_date(index, self.read_snapshot(), self.executor, self.readers, own=own)
        except Exception as error:
            log.warning(
                "%s: '%s' landed, but index '%s' could not be told of it, and will be by the next write: %s",
                self.table.uri, requested, self.registered.name, error,
            )  # fmt: skip

    def before_rollback(self, target: str, rollback: str) -> None:
        self._clear()

    def restore(self, to: str, restore: str) -> None:
        self._clear()

    def _clear(self) -> None:
        self.confirm()
        with opened(self.registered, self.table) as index:
            index.clear()

    def roll_back(self, target: str, rollback: str, metadata: RollbackMetadata) -> None:
        """Nothing: an index is told of completed writes only."""

    def before_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Nothing: the index is told once the write is complete."""

    def before_clean(self, requested: str, metadata: CleanMetadata) -> None:
        """Nothing: a clean takes no keys."""
