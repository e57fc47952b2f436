"""Where each row of a write goes. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyhudi.format.names import file_group_id
from pyhudi.format.timeline.instant import Instant
from pyhudi.index.bucket import BucketRule, unbucketed_uuid
from pyhudi.table.view.file_system_view import FileSlice, NewLog, SourceFile
from pyhudi.table.view.pending import FileGroup

FILE_OVERHEAD_BYTES = 16_000
"""What a base file weighs beside its rows: the footer. The size of the Bloom filter depends on the rows."""


@dataclass(frozen=True, slots=True)
class WorkloadProfile:
    """What a write brings: rows to insert by partition, rows to update or delete by file group."""

    inserts: Mapping[str, int]
    updates: Mapping[tuple[str, str], int]


class TaskKind(Enum):
    """What becomes of a file group: it is made, its base file is rewritten, or rows are appended to its log."""

    CREATE = "create"
    REWRITE = "rewrite"
    APPEND = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroupTask:
    """One file group to write. `number`: from 0.

    `base_file`, `base_instant`: of the group's newest slice. Both are None for a new group; a slice of logs only has no
    base file. `inserts`: rows planned to be new in the group. `updates`: rows tagged with it.
    `bucket_id`: the bucket of the index whose group it is. All rows of the bucket belong to the group, new
    or not, however many. None where keys are looked up.
    `log`: the name of its new log; None where logs are named after their write. `searched`: the slice whose keys tell
    which rows are new, where that is found out while they are written. `file_slice`: the slice that rows are appended
    to, if it has logs. `merging`: a pending service of the group beside which no base file of it may be written.
    `compaction`: the requested time of a pending compaction of the group, which will merge the logs of the writes that
    completed before it.
    `source`: as in `FileSlice`.
    `doubled`: where a pending resizing is about to move the bucket's rows; they are logged there, too.
    """

    number: int
    kind: TaskKind
    partition: str
    file_id: str
    base_file: str | None = None
    base_instant: str | None = None
    inserts: int = 0
    updates: int = 0
    is_new_partition: bool = False
    bucket_id: int | None = None
    log: NewLog | None = None
    searched: FileSlice | None = None
    file_slice: FileSlice | None = None
    merging: Instant | None = None
    compaction: str | None = None
    source: SourceFile | None = None
    doubled: "DoubledRows | None" = None

    @property
    def slice_logs(self) -> tuple[str, ...]:
        """The names of the logs of the slice that rows are appended to, oldest first."""
        return () if self.file_slice is None else tuple(log.name.format() for log in self.file_slice.log_files)


@dataclass(frozen=True, slots=True)
class DoubledRows:
    """The file groups to whose logs rows go a second time. `rule`: of the ring after the resizing. `tasks`: by bucket
    of that ring.
    """

    rule: BucketRule
    tasks: Mapping[int, FileGroupTask]


@dataclass(frozen=True, slots=True)
class Sizing:
    """How large file groups become, in bytes, and which existing groups take new rows.

    `small_file_limit_bytes`: base files below this limit take new rows; 0: none does. `small_groups_max`: at most so
    many groups of a partition; None: all. `new_rows_max`: a group takes at most so many new rows; None: no limit. The
    limit is for writes that may not hold more rows at a time.
    """

    record_size_bytes: int
    file_size_max_bytes: int
    small_file_limit_bytes: int
    small_groups_max: int | None = None
    new_rows_max: int | None = None


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The file groups of a write, by task number."""

    tasks: tuple[FileGroupTask, ...]

    @property
    def doubled(self) -> list[FileGroupTask]:
        """What the tasks log a second time, for a pending resizing."""
        return [own for task in self.tasks if task.doubled is not None for own in task.doubled.tasks.values()]

    def update_tasks(self) -> dict[tuple[str, str], int]:
        """(partition, file id) -> task number, for the file groups in which rows are updated or deleted."""
        return {(t.partition, t.file_id): t.number for t in self.tasks if t.updates}

    def insert_tasks(self) -> dict[str, list[tuple[int, int]]]:
        """Partition -> (task number, planned rows), for the file groups that take new rows."""
        bins: dict[str, list[tuple[int, int]]] = {}
        for task in self.tasks:
            if task.inserts:
                bins.setdefault(task.partition, []).append((task.number, task.inserts))
        return bins


def plan_write(
    profile: WorkloadProfile,
    slices: Mapping[str, Sequence[FileSlice]],
    *,
    sizing: Sizing,
    appends: bool,
    new_uuid: Callable[[], str],
    closed: Collection[FileGroup] = (),
) -> WritePlan:
    """Rewrite the file groups that hold updates, or append to their logs. Inserts go to small files first, then to new
    groups.

    `slices`: the newest slices, by existing partition. `closed`: file groups that take no new rows. `appends`: updates
    go to logs. Then only small file groups without logs are rewritten, to take new rows. New groups of a partition get
    equal shares, and there are as many as the target size asks for. Pure but for `new_uuid`. Ties are broken by
    (partition, file id).
    """
    assert sizing.record_size_bytes >= 1
    assert sizing.file_size_max_bytes >= 1
    assert sizing.new_rows_max is None or sizing.new_rows_max >= 1

    tasks: list[FileGroupTask] = []
    partitions = sorted(set(profile.inserts) | {partition for partition, _ in profile.updates})
    for partition in partitions:
        existing = slices.get(partition, ())
        left = profile.inserts.get(partition, 0)
        filled = _fill_small_files([s for s in existing if (partition, s.file_id) not in closed], left, sizing)
        left -= sum(filled.values())

        for file_slice in sorted(existing, key=lambda file_slice: file_slice.file_id):
            updates = profile.updates.get((partition, file_slice.file_id), 0)
            if updates or file_slice.file_id in filled:
                kind = TaskKind.APPEND if appends and file_slice.file_id not in filled else TaskKind.REWRITE
                inserts = filled.get(file_slice.file_id, 0)
                tasks.append(group_task(len(tasks), kind, file_slice, inserts=inserts, updates=updates))

        rows_max = _new_group_rows_max(sizing)
        for rows in equal_shares(left, -(-left // rows_max)):
            file_id, is_new = file_group_id(unbucketed_uuid(new_uuid), 0), partition not in slices
            tasks.append(
                FileGroupTask(
                    number=len(tasks),
                    kind=TaskKind.CREATE,
                    partition=partition,
                    file_id=file_id,
                    inserts=rows,
                    is_new_partition=is_new,
                )
            )
    assert sum(task.updates for task in tasks) == sum(profile.updates.values()), "each update has a file group"
    return WritePlan(tuple(tasks))


def group_task(
    number: int,
    kind: TaskKind,
    file_slice: FileSlice,
    *,
    inserts: int = 0,
    updates: int,
    bucket_id: int | None = None,
    searched: FileSlice | None = None,
) -> FileGroupTask:
    """The task of a file group that is there."""
    return FileGroupTask(
        number=number,
        kind=kind,
        partition=file_slice.partition,
        file_id=file_slice.file_id,
        base_file=file_slice.base_file.name.format() if file_slice.base_file is not None else None,
        base_instant=file_slice.base_instant,
        inserts=inserts,
        updates=updates,
        bucket_id=bucket_id,
        searched=searched,
        file_slice=file_slice if kind is TaskKind.APPEND and file_slice.log_files else None,
        source=file_slice.source,
    )


def _new_group_rows_max(sizing: Sizing) -> int:
    overhead = min(FILE_OVERHEAD_BYTES, sizing.file_size_max_bytes // 2)  # or small sizes mean a file a row
    rows_max = max(1, (sizing.file_size_max_bytes - overhead) // sizing.record_size_bytes)
    return rows_max if sizing.new_rows_max is None else min(rows_max, sizing.new_rows_max)


def _fill_small_files(existing: Sequence[FileSlice], rows: int, sizing: Sizing) -> dict[str, int]:
    """File id -> new rows, for the existing groups that take some."""
    filled: dict[str, int] = {}
    for file_slice in _small_files(existing, sizing.small_file_limit_bytes)[: sizing.small_groups_max]:
        room = (sizing.file_size_max_bytes - file_slice.base_bytes) // sizing.record_size_bytes
        take = min(rows, max(0, room), rows if sizing.new_rows_max is None else sizing.new_rows_max)
        if take:
            filled[file_slice.file_id] = take
            rows -= take
    return filled


def equal_shares(total: int, count: int) -> list[int]:
    """`total` in `count` shares that differ by at most one, the larger ones first.

    Example: 5 in 2 shares is 3 and 2.
    """
    if count == 0:
        return []
    share, rest = divmod(total, count)
    return [share + (at < rest) for at in range(count)]


def _small_files(existing: Sequence[FileSlice], limit_bytes: int) -> list[FileSlice]:
    """Groups with logs do not count: the size of their base file does not tell how many rows they hold."""
    small = [p for p in existing if p.base_file is not None and p.base_bytes < limit_bytes and not p.log_files]
    return sorted(small, key=lambda p: (p.base_bytes, p.file_id))


def record_size(rows: int, size_bytes: int, files: int, *, default_bytes: int) -> int:
    """Bytes of a row, as an earlier write measured them, without the fixed weight of its files.

    `default_bytes` if that write was too small to tell: fewer than 1,000 rows.
    """
    if rows < 1_000:
        return default_bytes
    return max(1, (size_bytes - files * FILE_OVERHEAD_BYTES) // rows, size_bytes // rows // 20)
