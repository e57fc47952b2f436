"""Partition metadata files that stand in the way: above another partition, in a folder that holds no data file.

Apache Hudi's listing of the storage goes no deeper than the folder of such a file: it would find no row of `a/b` below
`a`. A write puts the file into a new partition before its first data file there, and may die in between.

Who removes one holds the guard: a write to `a/b` that is about to complete, or the rollback of a write to `a`. So it is
not removed from under rows: a write to `a` that would complete later is refused beside `a/b`.
"""

from collections import Counter
from collections.abc import Collection, Iterator

from pyhudi.errors import Conflict, CorruptFile, NotFound
from pyhudi.format.names import HOODIE, is_partition_metafile
from pyhudi.format.timeline.action_files import decode_commit
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import RollbackPlan
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.txn.action.markers import read_markers
from pyhudi.txn.undo.rollback_plan import bare_name, written_at

_ASKED_ONE_BY_ONE_MAX = 16
"""So many folders within one are asked for one by one: that one may have very many others."""


def find_marks(storage: Storage, timeline: Timeline, folders: Collection[str]) -> list[str]:
    """The partition metadata files of those of these folders that hold no committed file.

    Requests: as `stored_folders`, and one list for each folder that is stored.
    """
    stored = sorted(stored_folders(storage, folders))
    return [path for folder in stored for path in _marks_and_files(storage, timeline, folder)[0]]


def find_idle_marks(
    storage: Storage, timeline: Timeline, folders: Collection[str], *, own: str = "", dead: Collection[str] = ()
) -> list[str]:
    """As `find_marks`, of folders in which no write is under way. `own`: the write that asks. `dead`: pending writes
    that nobody runs: their files are never committed, and count as little as those of writes that were rolled back.

    Requests: as `find_marks`; if such a file is found, one list for each living write that is pending.
    Raises: Conflict for a folder in which another write is under way.
    """
    writes = [i for i in timeline.pending if i.action in WRITE_ACTIONS and i.requested not in {own, *dead}]
    living = {instant.requested: instant for instant in writes}
    marked: dict[str, list[str]] = {}
    for folder in sorted(stored_folders(storage, folders)):
        marks, files = _marks_and_files(storage, timeline, folder)
        if marks and (busy := next((at for at in files if at in living), None)):
            raise _not_idle(storage, folder, f"'{files[busy]}' of {living[busy].action} '{busy}'")
        if marks:
            marked[folder] = marks

    for instant in living.values() if marked else ():
        busy_folders = {
            marker.data_path.rpartition("/")[0] for marker in read_markers(storage, instant.requested) or ()
        }
        if at := min(busy_folders & marked.keys(), default=None):
            raise _not_idle(storage, at, f"{instant.action} '{instant.requested}' under way in it")
    return [path for found in marked.values() for path in found]


def stored_folders(storage: Storage, folders: Collection[str]) -> Collection[str]:
    """Those of these folders that may be stored. One list request for each folder that many of them lie in, else none.

    Example: of 10,000 new folders in one, one request tells that none is stored.
    """
    within = Counter(folder.rpartition("/")[0] for folder in folders)
    many = {parent for parent, count in within.items() if count > _ASKED_ONE_BY_ONE_MAX}
    there = {folder for parent in many for folder in storage.list_folders(parent)}
    return [folder for folder in folders if folder in there or folder.rpartition("/")[0] not in many]


def _marks_and_files(storage: Storage, timeline: Timeline, folder: str) -> tuple[list[str], dict[str, str]]:
    """The partition metadata files of a folder, and a data file of each instant; none if one is committed."""
    paths = [file.path for file in storage.list(folder)]
    marks = [path for path in paths if is_partition_metafile(path)]
    named = ((written_at(bare_name(path)), path) for path in paths) if marks else ()
    files = {at: path for at, path in named if at is not None}
    return ([], {}) if any(map(timeline.is_committed, files)) else (marks, files)


def _not_idle(storage: Storage, folder: str, found: str) -> Conflict:
    return Conflict(
        f"{storage.location.uri}: a partition below '{folder}' was to get rows: expected no write in '{folder}', for "
        f"Apache Hudi looks for no partition within another one; found {found}; retry when that write has ended"
    )


def remove_marks_above_rows(storage: Storage, timeline: Timeline, target: Instant, plan: RollbackPlan) -> None:
    """Remove what a write that is rolled back left above partitions that hold rows. Can be repeated.

    `plan`: its rollback, whose files are deleted by now. The caller holds the guard, and `target` is still pending.
    Requests: one get, and one for each of its partitions to tell whether a folder lies below.
    """
    partitions = {request.partition_path for request in plan.rollback_requests or ()}
    partitions |= set(_planned_partitions(storage, timeline.layout, target))
    for partition in sorted(partitions - {""}):
        if partition.split("/")[0] == HOODIE or next(iter(storage.list_folders(partition)), None) is None:
            continue
        below = (file.path for file in storage.list(partition, recursive=True))
        instants = (written_at(bare_name(path)) for path in below if path.rpartition("/")[0] != partition)
        if any(at is not None and timeline.is_committed(at) for at in instants):
            try:
                storage.delete_many(find_idle_marks(storage, timeline, [partition], own=target.requested))
            except Conflict:  # another write is under way in the folder; its own end decides
                continue


def _planned_partitions(storage: Storage, layout: TimelineLayout, target: Instant) -> Iterator[str]:
    """The partitions in which a write was about to put files, as its inflight file says.

    None where that file is torn, or is another tool's and of another form: a rollback must not fail for it.
    """
    path = layout.path(Instant(target.requested, target.action, "INFLIGHT"))
    try:
        yield from decode_commit(storage.get(path), path=path).partition_to_write_stats
    except (NotFound, CorruptFile):
        return
