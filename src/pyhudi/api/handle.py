"""What the calls of a table share: how it is reached, the options of its handle, and a writer's turn at it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pyhudi.api import frames
from pyhudi.api.access import commit_participants, locked_access
from pyhudi.api.own_names import load_named
from pyhudi.executor import Executor
from pyhudi.metrics.measuring import told
from pyhudi.options.resolve import check_table_facts, merge_options
from pyhudi.services.clean.settings import CleanSettings, FailedWrites
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.session import TableAccess, WriteSession, refuse_unwritable, write_session
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def prepare_call(
    access: TableAccess, opened: Mapping[str, object], options: Mapping[str, object] | None
) -> tuple[Snapshot, Mapping[str, str], WriteSettings]:
    """The table as it is, and the options and settings of a call that changes it, checked.

    `opened`: the options of the handle. `options`: those of the call.
    """
    load_named(opened, options)
    snapshot = access.snapshot()
    refuse_unwritable(snapshot.config, access.location.uri)

    merged = merge_options(write=options, opened=opened, table=snapshot.config.properties)
    check_table_facts(merged, snapshot.config.facts())
    callers = merge_options(write=options, opened=opened, table={})
    lock = LockSettings.from_options(callers, snapshot.config.properties)
    return snapshot, merged, replace(WriteSettings.from_options(merged), lock=lock)


@dataclass(frozen=True)
class TableHandle:
    """A table that somebody opened.

    `options`: the defaults of this handle's calls. `executor`: carries out work in this process. `name`: the table's
    when it was opened, for messages.
    """

    access: TableAccess
    options: Mapping[str, object]
    executor: Executor
    name: str

    def prepare(self, options: Mapping[str, object] | None) -> tuple[Snapshot, Mapping[str, str], WriteSettings]:
        """As `prepare_call`, with this handle's options."""
        return prepare_call(self.access, self.options, options)

    def callers_options(self, options: Mapping[str, object] | None) -> Mapping[str, str]:
        """The options of the call and the handle. The table's properties have no say: anybody may have written them."""
        return merge_options(write=options, opened=self.options, table={})

    def session(
        self,
        settings: WriteSettings,
        clean: CleanSettings,
        what: str,
        *,
        access: TableAccess | None = None,
        is_write: bool = True,
        takes_over: str | None = None,
        takes_back: str | None = None,
        undoes_dead: bool | None = None,
        readers: Executor | None = None,
        goes_on: bool = False,
        wait_ms: int | None = None,
    ) -> AbstractContextManager[WriteSession]:
        """A writer's turn at the table. `what`: the operation, for messages. Otherwise as `write_session`.

        `access`: how the table is reached where a Spark session reaches it otherwise than this process; None: as the
        handle does. `undoes_dead`: whether writes that died are rolled back; None: as the policy of `clean` has it for
        writes. `readers`: read the data files where the turn builds an index; None: the handle's executor.
        `wait_ms`: how long to wait for the table; None: as the settings say.
        """
        access = locked_access(access or self.access, settings.lock)
        return write_session(
            access,
            purpose=f"{what} of table '{self.name}'",
            heartbeat=settings.heartbeat,
            participants=lambda snapshot, issue, hold: commit_participants(
                access, snapshot, issue, settings, clean, hold, self.executor, readers
            ),
            is_write=is_write,
            takes_over=takes_over,
            takes_back=takes_back,
            undoes_dead=clean.failed_writes is FailedWrites.EAGER if undoes_dead is None else undoes_dead,
            wait_ms=settings.lock_wait_ms if wait_ms is None else wait_ms,
            goes_on=goes_on,
        )

    def told(self, service: str, run: Callable[[], T]) -> T:
        """Run a service, and tell listeners if it does something, or fails."""
        return told(self.access.location.uri, service, run)()

    def access_through(self, spark: "SparkSession | None") -> TableAccess:
        """How the table is reached by a call that runs on this Spark session; None: in this process."""
        return self.access if spark is None else frames.spark_engine().session_access(self.access, spark)

    def readers(self, cluster: Any | None) -> Executor:
        """What reads data files: tasks of a Spark cluster (`frames.as_cluster`), or this process without one."""
        return self.executor if cluster is None else frames.spark_engine().SparkExecutor(cluster)
