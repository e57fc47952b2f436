"""The metadata table's writer: it takes each action of the data table over into the metadata table."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import tzinfo

from pyhudi.format.timeline.records import RollbackMetadata
from pyhudi.metadata.derive.changes import PartitionChange
from pyhudi.metadata.derive.changes_files import files_change, listing_records
from pyhudi.metadata.store.table import MetadataTable, open_metadata_table
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline
from pyhudi.txn.locks.hold import Hold
from pyhudi.versions import Rollback
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.deltacommit import Spreading, undo_deltacommit, undo_log_compactions, write_deltacommit
from pyhudi.write.metadata.rollback import roll_back_deltacommit


@dataclass(frozen=True)
class MetadataTableWriter:
    """Keeps the metadata table true to its data table.

    `issue_instant`: gives new times, later than any on the data table's timeline. `come_after`: makes them later than
    any on another timeline, too. The caller holds the guard `hold`. It is confirmed before files are deleted, and
    before a deltacommit or a rollback completes.
    """

    storage: Storage
    zone: tzinfo
    issue_instant: Callable[[], str]
    come_after: Callable[[Timeline], None]
    hold: Hold
    spreading: Spreading

    def apply(self, requested: str, changes: Iterable[PartitionChange]) -> None:
        """Write one deltacommit at the action's own time. It is complete before the action is.

        A compaction or a clean that dies after this is done anew under its time, a compaction with other files. Then
        the deltacommit under that time is written anew, too. While the action is pending, nobody reads the deltacommit,
        and no compaction takes it in. Spec: format/metadata-table.md section 8.

        While the action worked, another writer may have begun a compaction here by a clock that is ahead. A deltacommit
        that completed before that began would belong to the slice that the compaction has left behind.
        """
        table = open_metadata_table(self.storage, self.zone)
        self.come_after(table.timeline)
        confirm = self.hold.confirm
        undo_deltacommit(table, requested, confirm=confirm)
        write_deltacommit(table, requested, changes, self.spreading, issue_instant=self.issue_instant, confirm=confirm)

    def roll_back(self, target: str, rollback: str, metadata: RollbackMetadata) -> None:
        """Roll back the target's deltacommit, at the same time as the data table's rollback. Then take in the logs that
        this rollback leaves.
        """
        table = open_metadata_table(self.storage, self.zone)
        self.come_after(table.timeline)
        if any(i.requested == target and i.is_completed for i in table.timeline) and undo_log_compactions(
            table, since=target, confirm=self.hold.confirm
        ):
            table = open_metadata_table(self.storage, self.zone)

        if table.timeline.layout.kind.rollback is Rollback.COMMAND_BLOCKS:
            self._roll_back_by_blocks(table, target, rollback, metadata)
            return

        theirs = [i for i in table.timeline if i.requested == target and i.action == "deltacommit"]
        if theirs:
            roll_back_deltacommit(
                table, theirs[0], rollback, issue_instant=self.issue_instant, confirm=self.hold.confirm
            )

    def _roll_back_by_blocks(
        self, table: MetadataTable, target: str, rollback: str, metadata: RollbackMetadata
    ) -> None:
        confirm = self.hold.confirm
        theirs = next((i for i in table.timeline if i.requested == target and i.action == "deltacommit"), None)
        if theirs is not None:
            by_name.void_deltacommit(table, theirs, rollback, issue_instant=self.issue_instant, confirm=confirm)

        logs = by_name.logs_of_rollback(metadata)
        if logs:
            change = files_change(listing_records(logs), schema_text=table.record_schema)
            self.apply(rollback, [change])
