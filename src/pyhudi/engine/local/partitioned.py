"""An input whose rows lie by partition: tagging them with this process's threads, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pyhudi.engine.local.code_order import stable_order
from pyhudi.engine.local.key_order import split_by_key
from pyhudi.engine.local.partition_rows import PartitionRows
from pyhudi.engine.local.row_memory import RowMemory
from pyhudi.engine.local.sent_groups import SentGroup, write_sent_group
from pyhudi.engine.local.tagging import settle_partitions, tag_partitions
from pyhudi.executor import Executor
from pyhudi.index.bucket import BucketRule
from pyhudi.index.moves import Tagged
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.write.handles.file_group import run_file_group
from pyhudi.write.handles.slice_work import SliceWork
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import LEAVES, POSITION, Tagging
from pyhudi.write.place.plan import FileGroupTask, TaskKind, WorkloadProfile, WritePlan


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows of one partition of the input that go to one file group. `leaves`: only to have their keys deleted there.

    `positions`: of each row its position in the group's base file, -1 where that is not known; None: of none.
    """

    partition: str
    rows: range | np.ndarray
    leaves: bool = False
    positions: np.ndarray | None = None


def _nowhere_else(plan: WritePlan) -> SliceWork | None:
    return None


@dataclass(frozen=True, slots=True)
class PartitionedInput:
    """Rows by partition path, looked up and written by threads of this process.

    `splits_by_key`: the file groups of a partition get ranges of keys, not of rows as they arrived. `is_sorted`: the
    rows of each partition lie by key. `memory`: of rows that lie in files; None where they are in memory anyhow.
    `elsewhere`: what carries a plan out in other processes, to which rows are sent; None for one to carry out here.
    `attempt`: different in each attempt at a plan that is carried out here; it names the files.

    Memory: beside the rows, the keys and a few numbers a row where keys are looked up; two numbers a row by bucket,
    and the keys of a partition a worker; nothing a row where rows are only appended, unless by key.
    """

    partitions: Mapping[str, PartitionRows]
    storage: Storage
    executor: Executor
    splits_by_key: bool = False
    is_sorted: bool = False
    memory: RowMemory | None = None
    elsewhere: Callable[[WritePlan], SliceWork | None] = _nowhere_else
    attempt: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        return {path: len(rows) for path, rows in self.partitions.items()}

    @property
    def group_rows_max(self) -> int | None:
        return None if self.memory is None else self.memory.group_rows_max

    def tag(self, stored: SliceCatalog, tagging: Tagging) -> TaggedPartitions:
        settled = self
        if tagging.settles:
            settled = replace(self, partitions=settle_partitions(self.partitions, tagging.ordering))
        tagged = tag_partitions(settled.partitions, stored, tagging, self.storage, self.executor)
        counts = settled.counts
        self.pass_by(self._size_bytes(sum(counts.values())))
        slices = stored[:]
        return TaggedPartitions(settled, tagged, slices, _profile(counts, tagged, slices))

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> BucketedPartitions:
        def numbers(path: str) -> np.ndarray:
            keys = self.partitions[path].key_chunks()
            found = rules[path].bucket_of(keys)
            self.pass_by(keys.nbytes)
            return found

        paths = list(self.partitions)
        bucketed = dict(zip(paths, self.executor.run(numbers, paths), strict=True))
        counts: dict[tuple[str, int], int] = {}
        for path, of in bucketed.items():
            buckets, rows = np.unique(of, return_counts=True)
            counts |= {(path, bucket): n for bucket, n in zip(buckets.tolist(), rows.tolist(), strict=True)}
        return BucketedPartitions(self, bucketed, counts)

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        return self.write_segments(target, plan, self.segments(plan, {}, (), keys_meet=target.combines))

    def segments(
        self, plan: WritePlan, tagged: Mapping[str, Tagged], slices: Sequence[FileSlice], *, keys_meet: bool
    ) -> dict[int, list[Segment]]:
        """Task number -> which rows go there; rows of no task (deletes of absent keys) go nowhere.

        New rows of a partition fill its tasks one after the other, by the planned counts. `tagged`: where rows of
        stored keys go, by the numbers of `slices`. `keys_meet`: rows of one key go to one task, where they are
        settled.
        """
        segments: dict[int, list[Segment]] = {}
        of_slice, bins_of = plan.update_tasks(), plan.insert_tasks()
        to_task = np.array([*(of_slice.get((s.partition, s.file_id), -1) for s in slices), -1], np.int64)
        for path, rows in self.partitions.items():
            of, bins = tagged.get(path), bins_of.get(path, [])
            if self.splits_by_key and len(bins) > 1:
                assert of is None
                for number, its_rows in split_by_key(rows.keys(), bins):
                    segments.setdefault(number, []).append(Segment(path, its_rows))
                continue
            if of is None and (len(bins) <= 1 or not keys_meet):
                start = 0
                for number, count in bins:
                    segments.setdefault(number, []).append(Segment(path, range(start, start + count)))
                    start += count
                continue
            for number, segment in _placed(path, rows, of, to_task, bins, keys_meet=keys_meet):
                segments.setdefault(number, []).append(segment)
        return segments

    def write_segments(
        self, target: WriteTarget, plan: WritePlan, segments: Mapping[int, Sequence[Segment]]
    ) -> list[WriteStatus]:
        """Carry out the tasks that get rows."""
        target = replace(target, sorts_rows=False) if self.is_sorted else target

        def batches_of(task: FileGroupTask) -> Iterator[pa.RecordBatch]:
            is_tagged = task.bucket_id is None
            wants_positions = is_tagged and task.kind is TaskKind.APPEND and target.logs.writes_positions
            return self._batches(segments[task.number], wants_positions=wants_positions)

        def run(task: FileGroupTask) -> list[WriteStatus]:
            token = f"{task.number}-0-{self.attempt}"
            with self._held(target, task, sum(len(segment.rows) for segment in segments[task.number])):
                return run_file_group(target, task, batches_of(task), write_token=token, storage=self.storage)

        tasks = [task for task in plan.tasks if any(len(of.rows) for of in segments.get(task.number, ()))]
        work = self.elsewhere(plan)
        if work is not None:
            return work.run(write_sent_group, target, [SentGroup.pack(task, batches_of(task)) for task in tasks])
        return [status for of in self.executor.run(run, tasks) for status in of]

    def pass_by(self, size_bytes: int) -> None:
        """Note that so many bytes of the rows were looked at."""
        if self.memory is not None:
            self.memory.pass_by(size_bytes)

    def _batches(self, segments: Sequence[Segment], *, wants_positions: bool) -> Iterator[pa.RecordBatch]:
        marks = any(segment.leaves for segment in segments)
        for segment in segments:
            rows, of, start = self.partitions[segment.partition], segment.rows, 0
            positions = np.full(len(of), -1) if segment.positions is None else segment.positions
            batches = rows.batches_between(of.start, of.stop) if isinstance(of, range) else rows.batches(of)
            for batch in batches:
                if self.memory is not None:
                    batch = self.memory.take(batch)
                if marks:
                    batch = _leaving(batch, segment.leaves)
                if wants_positions:
                    batch = batch.append_column(POSITION, pa.array(positions[start : start + len(batch)], pa.int64()))
                start += len(batch)
                yield batch

    def _held(self, target: WriteTarget, task: FileGroupTask, rows: int) -> AbstractContextManager[None]:
        """Room for what writing a file group holds of its rows: of a stream one row group, of others the rows twice."""
        if self.memory is None:
            return nullcontext()
        size_bytes = self._size_bytes(rows)
        streams = task.kind is TaskKind.CREATE and not (target.combines or target.sorts_rows)
        return self.memory.hold(min(size_bytes, target.settings.row_group_size_bytes) if streams else 2 * size_bytes)

    def _size_bytes(self, rows: int) -> int:
        return 0 if self.memory is None else rows * self.memory.row_bytes


@dataclass(frozen=True, slots=True)
class TaggedPartitions:
    """Rows by partition whose keys were looked up. `tagged`: by path, by the numbers of `slices`."""

    counted: PartitionedInput
    tagged: Mapping[str, Tagged]
    slices: Sequence[FileSlice]
    profile: WorkloadProfile

    @property
    def group_rows_max(self) -> int | None:
        return self.counted.group_rows_max

    def stored_keys(self) -> tuple[int, str]:
        found = []
        for path, tagged in self.tagged.items():
            left_out = tagged.rows[tagged.groups == len(self.slices)]
            found.append(self.counted.partitions[path].keys().take(pa.array(left_out)).unique())
        count = sum(map(len, found))
        return count, next((keys[0].as_py() for keys in found if len(keys)), "")

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        segments = self.counted.segments(plan, self.tagged, self.slices, keys_meet=target.combines)
        return self.counted.write_segments(target, plan, segments)


@dataclass(frozen=True, slots=True)
class BucketedPartitions:
    """Rows by partition whose buckets are known. `bucketed`: the bucket of each row, by path."""

    counted: PartitionedInput
    bucketed: Mapping[str, np.ndarray]
    counts: Mapping[tuple[str, int], int]

    @property
    def group_rows_max(self) -> int | None:
        return self.counted.group_rows_max

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        return self.counted.write_segments(target, plan, self._segments(plan))

    def _segments(self, plan: WritePlan) -> dict[int, list[Segment]]:
        """Task number -> the rows of a bucket."""
        by_path: dict[str, list[FileGroupTask]] = {}
        for task in plan.tasks:
            by_path.setdefault(task.partition, []).append(task)
        segments: dict[int, list[Segment]] = {}
        for path, tasks in by_path.items():
            numbers = self.bucketed[path]
            order = stable_order(numbers, int(numbers.max(initial=0)) + 1)
            buckets = np.array([task.bucket_id for task in tasks], dtype=np.int64)
            ends = np.searchsorted(numbers[order], buckets, side="right").tolist()
            for task, end in zip(tasks, ends, strict=True):
                segments[task.number] = [Segment(path, order[end - task.inserts - task.updates : end])]
        return segments


def _profile(counts: Mapping[str, int], tagged: Mapping[str, Tagged], slices: Sequence[FileSlice]) -> WorkloadProfile:
    """Rows by what tagging found. `counts`: rows by partition, of which those that were not tagged are new."""
    by_group = np.zeros(len(slices), dtype=np.int64)
    inserts = dict(counts)
    for path, of in tagged.items():
        by_group += np.bincount(of.groups, minlength=len(slices) + 1)[:-1]
        inserts[path] = len(of.new)
    return WorkloadProfile(
        inserts={path: count for path, count in inserts.items() if count},
        updates={(s.partition, s.file_id): int(n) for s, n in zip(slices, by_group, strict=True) if n},
    )


def _placed(
    path: str,
    rows: PartitionRows,
    tagged: Tagged | None,
    to_task: np.ndarray,
    bins: Sequence[tuple[int, int]],
    *,
    keys_meet: bool,
) -> Iterator[tuple[int, Segment]]:
    """The rows of a partition by task number; a row comes once for each file group that it goes to."""
    if tagged is None:
        nothing = np.zeros(0, dtype=np.int64)
        tagged = Tagged(nothing, nothing, nothing, nothing.astype(bool), np.arange(len(rows)))
    numbers, tasks, leaves = tagged.rows, to_task[tagged.groups], tagged.leaves
    positions = tagged.positions
    if bins:
        numbers = np.concatenate([numbers, tagged.new])
        tasks = np.concatenate([tasks, _tasks_of_new(rows, tagged.new, bins, keys_meet=keys_meet)])
        leaves = np.concatenate([leaves, np.zeros(len(tagged.new), dtype=bool)])
        positions = np.concatenate([positions, np.full(len(tagged.new), -1)])
    if not len(numbers):
        return
    order = np.lexsort((numbers, leaves, tasks))
    found, starts = np.unique(2 * tasks[order] + leaves[order], return_index=True)
    for mark, part in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        if mark >= 0:
            yield mark >> 1, Segment(path, numbers[part], leaves=bool(mark & 1), positions=positions[part])


def _tasks_of_new(
    rows: PartitionRows, new: np.ndarray, bins: Sequence[tuple[int, int]], *, keys_meet: bool
) -> np.ndarray:
    tasks = np.repeat([number for number, _ in bins], [count for _, count in bins])
    assert len(tasks) == len(new)
    if keys_meet and len(bins) > 1:
        # A key's number among the new keys is below the number of new rows.
        tasks = tasks[np.unique(rows.key_numbers()[new], return_inverse=True)[1]]
    return tasks


def _leaving(batch: pa.RecordBatch, leaves: bool) -> pa.RecordBatch:
    """The rows, all marked as leaving or none, beside those that the input has marked itself."""
    at = batch.schema.get_field_index(LEAVES)
    if at < 0:
        return batch.append_column(LEAVES, pa.array(np.full(len(batch), leaves)))
    return batch.set_column(at, LEAVES, pa.array(np.full(len(batch), True))) if leaves else batch
