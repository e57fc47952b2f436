"""Partitions within partitions: a write makes none.

Apache Hudi's listing of the storage goes no deeper once a folder is a partition. It finds no row of the partition `a/b`
in a table that has the partition `a`, too. Two writes that run at the same time are judged when they complete
(`txn/conflicts/writes.py`).
"""

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import Conflict, Invalid
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.names import folders_above, is_partition_metafile, nested_folders
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.undo.partition_marks import find_idle_marks, find_marks, stored_folders
from pyhudi.txn.undo.rollback import find_dead_writes
from pyhudi.txn.undo.rollback_plan import written_at
from pyhudi.write.place.plan import WritePlan

_WAY_OUT = (
    "change the values, or create the table with properties={'hoodie.datasource.write.partitionpath.urlencode': 'true'}"
)


@dataclass(frozen=True, slots=True)
class Nesting:
    """What lies above the partitions that a write makes. `above`: the folders that may be partitions.

    `is_marked`: one of them has a partition metadata file, and no data file.
    """

    above: frozenset[str] = frozenset()
    is_marked: bool = False


def new_partitions(plan: WritePlan) -> frozenset[str]:
    """The partitions without file groups that get rows."""
    return frozenset(task.partition for task in plan.tasks if task.is_new_partition)


def refuse_nested_partitions(snapshot: Snapshot, paths: Collection[str], keys: KeySpec, schema: pa.Schema) -> Nesting:
    """Refuse new partitions that lie above or below others. `paths`: of partitions without file groups, which rows are
    about to get. `schema`: the columns of `keys`. A partition counts that holds a committed file.

    Partitions that lie so already stay as they are. Requests: none where the values of the columns cannot have a `/`;
    else what the snapshot's listing needs to tell its partitions, and a list for each folder above a path. Without a
    metadata table another one for each path, and a listing of all partitions only where these find a folder above or
    below.
    Raises: Invalid, naming both paths.
    """
    if not paths or not snapshot.config.may_nest_partitions or not _may_have_slash(keys, schema):
        return Nesting()
    new, depth_min = set(paths), len(keys.partition_by) if not keys.own_generator else 1
    above = frozenset(folder for path in new for folder in folders_above(path) if folder.count("/") + 1 >= depth_min)
    is_listed_by_storage = snapshot.listing.source == StorageListing.source
    if is_listed_by_storage and not _is_doubtful(snapshot.storage, new, above):
        return Nesting(above)

    known = set(snapshot.listing.partitions())
    if "" in new - known:
        raise Invalid(
            f"table '{snapshot.config.name}': expected a partition path for each row, as the table has the partition "
            f"columns {', '.join(snapshot.config.partition_by)}; found the empty path, the table's own folder; "
            "mend the key generator"
        )
    new = {path for path in new if path not in known or not snapshot.listing.files(path)}
    known -= new
    for outer, inner in nested_folders(new, known):
        if {outer, inner} <= new or _has_rows(snapshot, inner if outer in new else outer):
            raise Invalid(
                f"table '{snapshot.config.name}': partition path '{inner}' lies below partition '{outer}': expected "
                "folders apart from one another, for Apache Hudi looks for no partition within another one, and would "
                f"lose the rows; {'mend the key generator' if keys.own_generator else _WAY_OUT}"
            )
    return Nesting(above, is_marked=bool(find_marks(snapshot.storage, snapshot.timeline, above)))


def clear_folders_above(nesting: Nesting, upon: Timeline, requested: str, session: WriteSession) -> None:
    """Remove partition metadata files above the partitions that a write makes, in folders without data files.

    Called in the turn in which the write completes. `upon`: the timeline on which it was planned. `requested`: its own
    instant. Requests: none where none was found when the write was planned, and nobody else wrote since; else as
    `find_idle_marks`. Raises: Conflict as that does.
    """
    now = session.snapshot.timeline
    if not nesting.above or not (nesting.is_marked or _has_company(upon, now, requested)):
        return
    storage = session.access.storage
    marks = find_idle_marks(storage, now, nesting.above, own=requested, dead=_dead_writes(session))
    if marks:
        session.hold.confirm()
        storage.delete_many(marks)


def _dead_writes(session: WriteSession) -> set[str]:
    """The requested times of the pending writes that nobody runs. None are known while another tool's write lives."""
    try:
        dead = find_dead_writes(session.access.storage, session.snapshot.timeline, session.life())
    except Conflict:
        return set()
    return {instant.requested for instant in dead}


def _has_company(upon: Timeline, now: Timeline, requested: str) -> bool:
    """Whether others write, or have begun or ended an action since."""
    others = [instant for instant in now if instant.requested != requested]
    return set(others) != {i for i in upon if i.requested != requested} or any(not i.is_completed for i in others)


def _has_rows(snapshot: Snapshot, partition: str) -> bool:
    """Whether a partition holds a committed file."""
    instants = (written_at(file.name) for file in snapshot.listing.files(partition))
    return any(at is not None and snapshot.timeline.is_committed(at) for at in instants)


def _may_have_slash(keys: KeySpec, schema: pa.Schema) -> bool:
    """Whether paths differ in their number of folders."""
    if keys.own_generator or keys.has_slashed_dates:
        return True
    return not keys.is_url_encoded and any(
        _is_text(schema.field(name).type) for name in keys.partition_by if name not in keys.time_based
    )


def _is_doubtful(storage: Storage, paths: set[str], above: frozenset[str]) -> bool:
    """Whether a path is the table's own folder, has a folder below it, or is below a partition. `above`: all paths."""
    if "" in paths or any(next(iter(storage.list_folders(path)), None) is not None for path in paths):
        return True
    return not above.isdisjoint(paths) or any(
        is_partition_metafile(file.path) for folder in stored_folders(storage, above) for file in storage.list(folder)
    )


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))
