"""Whether a data file is there, or which action deleted it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid
from pyhudi.format.names import join
from pyhudi.format.timeline.records import CleanPartitionMetadata, RollbackPartitionMetadata
from pyhudi.inspect.services import read_cleans, read_rollbacks
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.table.view.undoings import read_restore


@dataclass(frozen=True, slots=True)
class FileStatus:
    """`status`: exist, deleted or unknown. `action`, `instant`: what deleted it. Texts are empty where nothing is."""

    status: str
    action: str = ""
    instant: str = ""
    timeline: str = ""
    full_path: str = ""


def find_file_status(table: HudiTable, partition: str | None, name: str) -> FileStatus:
    """What has become of a file: cleans are looked at first, archived ones too, then rollbacks, then restores.

    One get for each of these, and one head. Raises: Invalid without the partition of a partitioned table.
    """
    if partition is None and table.partition_by:
        raise Invalid(f"file '{name}': expected its partition, found none: table '{table.name}' is partitioned")
    snapshot = table._access.snapshot()
    for action, requested, names in _deletions(table, snapshot):
        if name in names:
            is_active = any(one.requested == requested for one in snapshot.timeline.instants)
            return FileStatus("deleted", action, requested, "active" if is_active else "archived")

    path = join(partition or "", name)
    if snapshot.storage.head(path) is None:
        return FileStatus("unknown")
    return FileStatus("exist", timeline="active", full_path=f"{table.path.rstrip('/')}/{path}")


def _deletions(table: HudiTable, snapshot: Snapshot) -> Iterator[tuple[str, str, set[str]]]:
    """Action, requested time and the names of the files that it deleted."""
    for instant, cleaned in read_cleans(table, archived=True):
        yield "clean", instant.requested, _names(cleaned.partition_metadata)
    for instant, undone in read_rollbacks(table):
        yield "rollback", instant.requested, _names(undone.partition_metadata)
    for instant in reversed(snapshot.timeline.instants):
        if instant.action == "restore" and instant.is_completed:
            rollbacks = read_restore(snapshot.storage, snapshot.timeline, instant)
            yield "restore", instant.requested, {name for one in rollbacks for name in _names(one.partition_metadata)}


def _names(by_partition: Mapping[str, RollbackPartitionMetadata] | Mapping[str, CleanPartitionMetadata]) -> set[str]:
    """The names of deleted files. Metadata has names or whole paths."""
    return {path.rpartition("/")[2] for of in by_partition.values() for path in of.success_delete_files}
