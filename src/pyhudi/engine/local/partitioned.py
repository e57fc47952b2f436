"""An input whose rows lie by partition: tagging and writing them with this process's threads."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.engine.local.code_order import stable_order
from pyhudi.engine.local.key_order import split_by_key
from pyhudi.engine.local.partition_rows import PartitionRows
from pyhudi.engine.local.row_memory import RowMemory
from pyhudi.engine.local.tagging import settle_partitions, tag_partitions
from pyhudi.executor import Executor
from pyhudi.index.bucket import BucketRule
from pyhudi.index.moves import Tagged
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.write.handles.file_group import run_file_group
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import LEAVES, POSITION, Tagging
from pyhudi.write.place.plan import FileGroupTask, TaskKind, WorkloadProfile, WritePlan


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows of one partition of the input that go to one file group. `leaves`: only to have their keys deleted there.

    `positions`: of each row its place in the group's base file, -1 where that is not known; None: of none.
    """

    partition: str
    rows: range | np.ndarray
    leaves: bool = False
    positions: np.ndarray | None = None


class PartitionedInput:
    """Rows by partition path, looked up and written by threads of this process.

    Memory: beside the rows, the keys and a few numbers a row where keys are looked up; two numbers a row by bucket,
    and the keys of a partition a worker; nothing a row where rows are only appended, unless by key.
    """

    def __init__(
        self,
        partitions: Mapping[str, PartitionRows],
        storage: Storage,
        executor: Executor,
        *,
        splits_by_key: bool = False,
        memory: RowMemory | None = None,
    ) -> None:
        """`splits_by_key`: the file groups of a partition get ranges of keys, not of rows as they arrived. `memory`: of
        rows that lie in files; None where they are in memory anyhow.
        """
        self._partitions, self._storage, self._executor = partitions, storage, executor
        self._splits_by_key, self._memory = splits_by_key, memory
        self._tagged: Mapping[str, Tagged] = {}
        self._slices: Sequence[FileSlice] = ()
        self._bucketed: Mapping[str, np.ndarray] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        return {path: len(rows) for path, rows in self._partitions.items()}

    @property
    def group_rows_max(self) -> int | None:
        return None if self._memory is None else self._memory.group_rows_max

    def tag(self, stored: SliceCatalog, tagging: Tagging) -> WorkloadProfile:
        if tagging.settles:
            self._partitions = settle_partitions(self._partitions, tagging.ordering)
        self._tagged = tag_partitions(self._partitions, stored, tagging, self._storage, self._executor)
        self._pass_by(self._size_bytes(sum(map(len, self._partitions.values()))))
        self._slices = slices = stored[:]
        by_group = np.zeros(len(slices), dtype=np.int64)
        inserts = dict(self.counts)
        for path, tagged in self._tagged.items():
            by_group += np.bincount(tagged.groups, minlength=len(slices) + 1)[:-1]
            inserts[path] = len(tagged.new)
        return WorkloadProfile(
            inserts={path: count for path, count in inserts.items() if count},
            updates={(s.partition, s.file_id): int(n) for s, n in zip(slices, by_group, strict=True) if n},
        )

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> Mapping[tuple[str, int], int]:
        def numbers(path: str) -> np.ndarray:
            keys = self._partitions[path].key_chunks()
            found = rules[path].bucket_of(keys)
            self._pass_by(keys.nbytes)
            return found

        paths = list(self._partitions)
        self._bucketed = dict(zip(paths, self._executor.run(numbers, paths), strict=True))
        counts: dict[tuple[str, int], int] = {}
        for path, row_buckets in self._bucketed.items():
            buckets, rows = np.unique(row_buckets, return_counts=True)
            counts |= {(path, bucket): n for bucket, n in zip(buckets.tolist(), rows.tolist(), strict=True)}
        return counts

    def stored_keys(self) -> tuple[int, str]:
        found = []
        for path, tagged in self._tagged.items():
            left_out = tagged.rows[tagged.groups == len(self._slices)]
            found.append(self._partitions[path].keys().take(pa.array(left_out)).unique())
        count = sum(map(len, found))
        return count, next((keys[0].as_py() for keys in found if len(keys)), "")

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        segments = self._of_buckets(plan) if self._bucketed else self._segments(plan, keys_meet=target.combines)

        def run(task: FileGroupTask) -> list[WriteStatus]:
            is_tagged = task.index_bucket is None
            wants_positions = is_tagged and task.kind is TaskKind.APPEND and target.logs.writes_positions
            own_segments = segments[task.bucket]
            batches = self._batches(own_segments, wants_positions=wants_positions)
            with self._held(target, task, sum(len(segment.rows) for segment in own_segments)):
                return run_file_group(target, task, batches, write_token=f"{task.bucket}-0-0", storage=self._storage)

        tasks = [task for task in plan.tasks if any(len(segment.rows) for segment in segments.get(task.bucket, ()))]
        return [status for statuses in self._executor.run(run, tasks) for status in statuses]

    def _batches(self, segments: Sequence[Segment], *, wants_positions: bool) -> Iterator[pa.RecordBatch]:
        marks = any(segment.leaves for segment in segments)
        for segment in segments:
            rows, chosen, start = self._partitions[segment.partition], segment.rows, 0
            positions = np.full(len(chosen), -1) if segment.positions is None else segment.positions
            if isinstance(chosen, range):
                batches = rows.batches_between(chosen.start, chosen.stop)
            else:
                batches = rows.batches(chosen)
            for batch in batches:
                if marks:
                    batch = batch.append_column(LEAVES, _flags(segment.leaves, len(batch)))
                if wants_positions:
                    batch = batch.append_column(POSITION, pa.array(positions[start : start + len(batch)], pa.int64()))
                start += len(batch)
                yield batch
                self._pass_by(self._size_bytes(len(batch)))

    def _held(self, target: WriteTarget, task: FileGroupTask, rows: int) -> AbstractContextManager[None]:
        """Room for what writing a file group holds of its rows: of a stream one row group, of others the rows twice."""
        if self._memory is None:
            return nullcontext()
        size_bytes = self._size_bytes(rows)
        streams = task.kind is TaskKind.CREATE and not (target.combines or target.sorts_rows)
        return self._memory.hold(min(size_bytes, target.settings.row_group_size_bytes) if streams else 2 * size_bytes)

    def _size_bytes(self, rows: int) -> int:
        return 0 if self._memory is None else rows * self._memory.row_bytes

    def _pass_by(self, size_bytes: int) -> None:
        if self._memory is not None:
            self._memory.pass_by(size_bytes)

    def _of_buckets(self, plan: WritePlan) -> dict[int, list[Segment]]:
        """As `_segments`, where the rows of a bucket of the index go together."""
        by_path: dict[str, list[FileGroupTask]] = {}
        for task in plan.tasks:
            by_path.setdefault(task.partition, []).append(task)
        segments: dict[int, list[Segment]] = {}
        for path, tasks in by_path.items():
            numbers = self._bucketed[path]
            order = stable_order(numbers, int(numbers.max(initial=0)) + 1)
            buckets = np.array([task.index_bucket for task in tasks], dtype=np.int64)
            ends = np.searchsorted(numbers[order], buckets, side="right").tolist()
            for task, end in zip(tasks, ends, strict=True):
                segments[task.bucket] = [Segment(path, order[end - task.inserts - task.updates : end])]
        return segments

    def _segments(self, plan: WritePlan, *, keys_meet: bool) -> dict[int, list[Segment]]:
        """Bucket -> which rows go there; rows of no bucket (deletes of absent keys) go nowhere.

        New rows of a partition fill its buckets one after the other, by the planned counts. `keys_meet`: rows of
        one key go to one bucket, where they are settled.
        """
        segments: dict[int, list[Segment]] = {}
        of_slice, bins_of = plan.update_buckets(), plan.insert_buckets()
        to_bucket = np.array([*(of_slice.get((s.partition, s.file_id), -1) for s in self._slices), -1], np.int64)
        for path, rows in self._partitions.items():
            tagged, bins = self._tagged.get(path), bins_of.get(path, [])
            if self._splits_by_key and len(bins) > 1:
                assert tagged is None
                for bucket, numbers in split_by_key(rows.keys(), bins):
                    segments.setdefault(bucket, []).append(Segment(path, numbers))
                continue
            if tagged is None and (len(bins) <= 1 or not keys_meet):
                start = 0
                for bucket, count in bins:
                    segments.setdefault(bucket, []).append(Segment(path, range(start, start + count)))
                    start += count
                continue
            for bucket, segment in _placed(path, rows, tagged, to_bucket, bins, keys_meet=keys_meet):
                segments.setdefault(bucket, []).append(segment)
        return segments


def _placed(
    path: str,
    rows: PartitionRows,
    tagged: Tagged | None,
    to_bucket: np.ndarray,
    bins: Sequence[tuple[int, int]],
    *,
    keys_meet: bool,
) -> Iterator[tuple[int, Segment]]:
    """The rows of a partition by bucket; a row comes once for each file group that it goes to."""
    if tagged is None:
        nothing = np.zeros(0, dtype=np.int64)
        tagged = Tagged(nothing, nothing, nothing, nothing.astype(bool), np.arange(len(rows)))
    numbers, buckets, leaves = tagged.rows, to_bucket[tagged.groups], tagged.leaves
    positions = tagged.positions
    if bins:
        numbers = np.concatenate([numbers, tagged.new])
        buckets = np.concatenate([buckets, _buckets_of_new(rows, tagged.new, bins, keys_meet=keys_meet)])
        leaves = np.concatenate([leaves, np.zeros(len(tagged.new), dtype=bool)])
        positions = np.concatenate([positions, np.full(len(tagged.new), -1)])
    if not len(numbers):
        return
    order = np.lexsort((numbers, leaves, buckets))
    found, starts = np.unique(2 * buckets[order] + leaves[order], return_index=True)
    for place, part in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        if place >= 0:
            yield place >> 1, Segment(path, numbers[part], leaves=bool(place & 1), positions=positions[part])


def _buckets_of_new(
    rows: PartitionRows, new: np.ndarray, bins: Sequence[tuple[int, int]], *, keys_meet: bool
) -> np.ndarray:
    buckets = np.repeat([bucket for bucket, _ in bins], [count for _, count in bins])
    assert len(buckets) == len(new)
    if keys_meet and len(bins) > 1:
        # A key's number among the new keys is below the number of new rows.
        buckets = buckets[np.unique(rows.key_numbers()[new], return_inverse=True)[1]]
    return buckets


def _flags(flag: bool, count: int) -> pa.Array:
    return pa.array(np.full(count, flag))
