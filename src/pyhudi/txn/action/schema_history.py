"""Carries the history of a table's schema on, as a participant of each commit.

A commit that states a numbered schema gets a file of `.hoodie/.schema` with the whole history, before it completes. The
file counts from the moment when its commit is complete. A crash between the two leaves a file that nobody reads.
Spec: format/layout.md section 8.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from pyhudi.format.schema.history_text import history_text, schema_json
from pyhudi.format.schema.numbering import first_numbers
from pyhudi.format.timeline.instant import STATES, Instant
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata, RollbackMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.schema_on_read import (
    LATEST_SCHEMA,
    SCHEMA_FOLDER,
    find_history,
    list_history,
    parse_latest,
    parse_stored,
)
from pyhudi.table.view.snapshot import Snapshot

_ACTION: Final = "schemacommit"


@dataclass(frozen=True)
class SchemaHistoryKeeper:
    """Writes the history of a table's columns. `read_snapshot`: the table as it is now; asked for only where a commit
    states a numbered schema. `confirm`: raises LockLost when the table is no longer ours.
    """

    storage: Storage
    read_snapshot: Callable[[], Snapshot]
    issue_instant: Callable[[], str]
    confirm: Callable[[], None]

    def before_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Put the history that is true once the write at `requested` is complete.

        Requests: a list and two gets, and three small puts; one delete for each file that an archived write left.
        """
        latest = metadata.extra_metadata.get(LATEST_SCHEMA)
        if latest is None:
            return

        snapshot = self.read_snapshot()
        content = self._history(snapshot, latest, requested)
        self.confirm()
        self._remove_outdated(snapshot, requested)
        layout = replace(snapshot.config.layout, folder=SCHEMA_FOLDER)
        for state in STATES:
            completed = self.issue_instant() if state == STATES[-1] else None
            put = content if state == STATES[-1] else b""
            self.storage.put_new(layout.path(Instant(requested, _ACTION, state, completed)), put)

    def after_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Nothing: the history was put before."""

    def _history(self, snapshot: Snapshot, latest: str, requested: str) -> bytes:
        """The history with the schema that a commit states, if that is new.

        Seen: Apache Hudi adds the schema of the beginning to the first history (`commitTableChange`).
        """
        stated, older = snapshot.stated_numbers, None
        if stated is not None:
            path = find_history(self.storage, snapshot.timeline)
            older = None if path is None else self.storage.get(path)
            newest = None if path is None or older is None else parse_stored(path, older).schemas[0].since
            if newest is None or newest < parse_latest(stated).since:
                older = history_text(stated, older)
        elif snapshot.schema_text is not None:
            older = history_text(schema_json(first_numbers(snapshot.schema_text)), None)
        is_new = parse_latest(latest).since == requested
        return history_text(latest, older) if is_new or older is None else older

    def _remove_outdated(self, snapshot: Snapshot, requested: str) -> None:
        """Delete the files of writes that are no longer on the timeline, but for the newest history.

        Seen: Apache Hudi does so before each history that it writes (`cleanResidualFiles`).
        """
        known = {instant.requested for instant in snapshot.timeline} | {requested}
        newest = find_history(self.storage, snapshot.timeline)
        for file in list_history(self.storage):
            if file.requested not in known and file.path != newest:
                self.storage.delete(file.path)

    def roll_back(self, target: str, rollback: str, metadata: RollbackMetadata) -> None:
        """Nothing: a history counts by its write alone."""

    def before_rollback(self, target: str, rollback: str) -> None:
        """Nothing, as in `roll_back`."""

    def restore(self, to: str, restore: str) -> None:
        """Nothing, as in `roll_back`."""

    def begin(self, snapshot: Snapshot) -> bool:
        return False

    def before_clean(self, requested: str, metadata: CleanMetadata) -> None:
        """Nothing: a clean leaves columns as they are."""
