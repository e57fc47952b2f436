"""Repairs that procedures ask for: markers that nobody needs, files that mark folders as partitions."""

from pyhudi.api.handle import TableHandle
from pyhudi.errors import Conflict
from pyhudi.format.names import PARTITION_METAFILE, marker_folder
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.markers import remove_markers
from pyhudi.write.handles.partition_metafile import put_partition_metafile


def delete_markers(handle: TableHandle, requested: str) -> None:
    """Delete the markers of an instant that is not pending, while no other writer holds the table.

    Raises: Conflict for a pending instant: its markers name the files that its rollback deletes.
    """
    _, merged, settings = handle.prepare(None)
    clean = CleanSettings.from_options(merged)
    with handle.session(settings, clean, "delete markers", is_write=False, undoes_dead=False) as session:
        if any(one.requested == requested for one in session.snapshot.timeline.pending):
            raise Conflict(
                f"instant '{requested}': is pending, and its markers name the files that a rollback deletes: expected "
                "one that has ended; the next write rolls back what dead writers left"
            )
        if next(iter(session.access.storage.list(marker_folder(requested), recursive=True)), None) is not None:
            remove_markers(session.access.storage, requested)


def partitions_marked(snapshot: Snapshot) -> dict[str, tuple[bool, bool]]:
    """Partitions of the listing and of active commits: whether each has the mark as text, and as a base file.

    Requests: one listing of each partition's folder, and one get for each commit.
    """
    names = set(snapshot.listing.partitions())
    for instant in snapshot.timeline.completed_writes:
        names |= set(read_commit(snapshot.storage, snapshot.timeline, instant).partition_to_write_stats)
    return {name: _marks(snapshot.storage, name) for name in sorted(names)}


def add_partition_marks(handle: TableHandle) -> tuple[str, ...]:
    """Put the file that marks a partition where it is missing, in the table's form. Returns these partitions.

    Files are only added, and they say what a write to the partition would put there.
    """
    snapshot, merged, settings = handle.prepare(None)
    clean = CleanSettings.from_options(merged)
    with handle.session(settings, clean, "add partition metadata", is_write=False, undoes_dead=False) as session:
        snapshot, storage = session.snapshot, session.access.storage
        newest = snapshot.timeline.completed_writes[-1].requested if snapshot.timeline.completed_writes else ""
        missing = [name for name, marks in partitions_marked(snapshot).items() if not any(marks)]
        for partition in missing:
            put_partition_metafile(
                storage, partition, requested=newest, epoch_ms=session.access.clock.now_ms(),
                is_parquet=snapshot.config.has_parquet_metafiles,
            )  # fmt: skip
    return tuple(missing)


def _marks(storage: Storage, partition: str) -> tuple[bool, bool]:
    names = [file.path.rpartition("/")[2] for file in storage.list(partition)]
    return PARTITION_METAFILE in names, any(name.startswith(f"{PARTITION_METAFILE}.") for name in names)
