"""An input whose rows lie by partition: tagging and writing them with this process's threads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.index.simple import Hits, locate_keys
from pyhudi.storage.protocol import Storage
from pyhudi.table.file_system_view import FileSlice
from pyhudi.write.base_file_writer import RECORD_KEY
from pyhudi.write.handle import WriteStatus, WriteTarget, run_file_group
from pyhudi.write.plan import FileGroupTask, WorkloadProfile, WritePlan

BATCH_ROWS = 131_072
_SPARSE = 4  # rows spread over more than this many times their number are gathered from the whole table


@dataclass(frozen=True)
class PartitionRows:
    """The input's rows in one partition, as they arrived: all of `table`, or those that `rows` numbers.

    `key_column`: the column that holds the record keys.
    """

    table: pa.Table
    key_column: str
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.table) if self.rows is None else len(self.rows)

    def keys(self) -> pa.Array:
        """The record keys, one array."""
        column = self.table.column(self.key_column)
        column = column if self.rows is None else column.take(pa.array(self.rows))
        combined = column.combine_chunks()
        return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)

    def key_numbers(self) -> np.ndarray:
        """For each row the number of its key, counted from 0 as keys first appear. Shape: (rows,)."""
        return np.asarray(self.keys().dictionary_encode().indices)

    def batches(self, chosen: np.ndarray) -> Iterator[pa.RecordBatch]:
        """The chosen rows, ascending, with their record key as a column. Memory: one batch."""
        absolute = chosen if self.rows is None else self.rows[chosen]
        for start in range(0, len(absolute), BATCH_ROWS):
            for batch in _gathered(self.table, absolute[start : start + BATCH_ROWS]):
                yield self._with_key(batch)

    def batches_between(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The rows from one number to another, which is cheaper than naming each."""
        if self.rows is not None:
            yield from self.batches(np.arange(start, stop))
            return
        for batch in self.table.slice(start, stop - start).to_batches(max_chunksize=BATCH_ROWS):
            yield self._with_key(batch)

    def _with_key(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.key_column == RECORD_KEY:
            return batch
        return batch.append_column(RECORD_KEY, batch.column(self.key_column))


class PartitionedInput:
    """Rows by partition path, looked up and written by threads of this process.

    Memory: beside the rows, the keys and a few numbers a row where keys are looked up; nothing a row where rows
    are only appended.
    """

    def __init__(self, partitions: Mapping[str, PartitionRows], storage: Storage, executor: Executor) -> None:
        self._partitions, self._storage, self._executor = partitions, storage, executor
        self._hits: Mapping[str, Hits] = {}
        self._slices: Sequence[FileSlice] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        return {path: len(rows) for path, rows in self._partitions.items()}

    def tag(self, slices: Sequence[FileSlice]) -> WorkloadProfile:
        wanted = {piece.partition for piece in slices}
        keys = {path: rows.keys() for path, rows in self._partitions.items() if path in wanted}
        self._hits = locate_keys(self._storage, keys, slices, self._executor)
        self._slices = slices
        by_group = np.zeros(len(slices), dtype=np.int64)
        inserts = dict(self.counts)
        for path, hits in self._hits.items():
            by_group += np.bincount(hits.groups, minlength=len(slices))
            inserts[path] -= len(np.unique(hits.rows))
        return WorkloadProfile(
            inserts={path: count for path, count in inserts.items() if count},
            updates={(s.partition, s.file_id): int(n) for s, n in zip(slices, by_group, strict=True) if n},
        )

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        chosen = self._rows_by_bucket(plan, keys_meet=target.combines)

        def run(task: FileGroupTask) -> list[WriteStatus]:
            rows = self._partitions[task.partition]
            of = chosen[task.bucket]
            batches = rows.batches_between(of.start, of.stop) if isinstance(of, range) else rows.batches(of)
            return run_file_group(target, task, batches, write_token=f"{task.bucket}-0-0", storage=self._storage)

        tasks = [task for task in plan.tasks if len(chosen.get(task.bucket, ()))]
        return [status for of in self._executor.run(run, tasks) for status in of]

    def _rows_by_bucket(self, plan: WritePlan, *, keys_meet: bool) -> dict[int, range | np.ndarray]:
        """Bucket -> which rows of its partition go there; rows of no bucket (deletes of absent keys) go nowhere.

        New rows of a partition fill its buckets one after the other, by the planned counts. `keys_meet`: rows of
        one key go to one bucket, where they are settled.
        """
        chosen: dict[int, range | np.ndarray] = {}
        of_slice = plan.update_buckets()
        to_bucket = np.array([of_slice.get((s.partition, s.file_id), -1) for s in self._slices], np.int64)
        for path, bins in _bins_of_all(plan, self._partitions):
            rows, hits = self._partitions[path], self._hits.get(path)
            if hits is None and (len(bins) <= 1 or not keys_meet):
                start = 0
                for bucket, count in bins:
                    chosen[bucket] = range(start, start + count)
                    start += count
                continue
            of_partition, buckets = _buckets_of(rows, hits or _NO_HITS, to_bucket, bins, keys_meet=keys_meet)
            order = np.lexsort((of_partition, buckets))
            found, starts = np.unique(buckets[order], return_index=True)
            for bucket, part in zip(found.tolist(), np.split(of_partition[order], starts[1:]), strict=True):
                if bucket >= 0:
                    chosen[bucket] = part
        return chosen


_NO_HITS = Hits(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))


def _buckets_of(
    rows: PartitionRows, hits: Hits, to_bucket: np.ndarray, bins: Sequence[tuple[int, int]], *, keys_meet: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a partition and the bucket of each; a row comes once for each file group that holds its key."""
    buckets = to_bucket[hits.groups]
    if not bins:
        return hits.rows, buckets
    is_new = np.ones(len(rows), dtype=bool)
    is_new[hits.rows] = False
    new = np.flatnonzero(is_new)
    numbers = np.repeat([bucket for bucket, _ in bins], [count for _, count in bins])
    assert len(numbers) == len(new)
    if keys_meet and len(bins) > 1:
        # A key's number among the new keys is below the number of new rows.
        numbers = numbers[np.unique(rows.key_numbers()[new], return_inverse=True)[1]]
    return np.concatenate([hits.rows, new]), np.concatenate([buckets, numbers])


def _bins_of_all(
    plan: WritePlan, partitions: Mapping[str, PartitionRows]
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    bins = plan.insert_buckets()
    touched = {task.partition for task in plan.tasks}
    return ((path, bins.get(path, [])) for path in partitions if path in touched)


def _gathered(table: pa.Table, rows: np.ndarray) -> list[pa.RecordBatch]:
    """Rows of a table by ascending number."""
    first, span = int(rows[0]), int(rows[-1] - rows[0]) + 1
    if span == len(rows):
        return table.slice(first, span).to_batches()
    if span <= _SPARSE * len(rows):
        table, rows = table.slice(first, span), rows - first
    return table.take(pa.array(rows)).combine_chunks().to_batches()
