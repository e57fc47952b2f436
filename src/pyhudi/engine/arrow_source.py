"""Writing from an Arrow stream, in this process."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from pyhudi.engine.nulls import refuse_null_ordering, refuse_null_required
from pyhudi.executor import Executor
from pyhudi.format.keys import partition_paths, record_keys
from pyhudi.index.simple import KeysOfPartition, locate_keys
from pyhudi.storage.protocol import Storage
from pyhudi.table.conform import conform_array
from pyhudi.table.file_system_view import FileSlice
from pyhudi.write.base_file_writer import RECORD_KEY
from pyhudi.write.handle import WriteStatus, WriteTarget, run_file_group
from pyhudi.write.plan import FileGroupTask, WorkloadProfile, WritePlan
from pyhudi.write.source import InputSpec

BATCH_ROWS = 131_072


class ArrowSource:
    """An Arrow table as the input of a write.

    Memory: the input, its keys, and, while it is written, the input once more in the order of its file groups.
    """

    def __init__(self, rows: pa.Table, storage: Storage, executor: Executor) -> None:
        self._input, self._storage, self._executor = rows, storage, executor
        self._rows = rows
        self._paths = np.zeros(0, dtype=np.int32)
        self._partitions: list[str] = []
        self._located = np.full(len(rows), -1, dtype=np.int32)
        self._slices: Sequence[FileSlice] = ()

    @property
    def schema(self) -> pa.Schema:
        return self._input.schema

    def count(self, spec: InputSpec) -> Mapping[str, int]:
        columns = [_conform(self._input.column(field.name), field) for field in spec.schema]
        rows = pa.Table.from_arrays(columns, schema=spec.schema)
        refuse_null_ordering({name: rows.column(name).null_count for name in spec.ordering})
        refuse_null_required({name: rows.column(name).null_count for name in spec.required})
        paths = partition_paths(rows, spec.keys).combine_chunks()
        paths = paths if isinstance(paths, pa.DictionaryArray) else paths.chunk(0)
        self._partitions = paths.dictionary.to_pylist()
        self._paths = np.asarray(paths.indices, dtype=np.int32)
        self._rows = rows.append_column(RECORD_KEY, record_keys(rows, spec.keys))
        counts = np.bincount(self._paths, minlength=len(self._partitions))
        return {path: int(count) for path, count in zip(self._partitions, counts, strict=True) if count}

    def tag(self, slices: Sequence[FileSlice]) -> WorkloadProfile:
        keys = self._rows.column(RECORD_KEY)
        by_partition = {}
        wanted = {piece.partition for piece in slices}
        for number, partition in enumerate(self._partitions):
            if partition in wanted:
                rows = np.flatnonzero(self._paths == number)
                by_partition[partition] = KeysOfPartition(_one(keys.take(pa.array(rows))), rows)
        self._located = locate_keys(self._storage, by_partition, slices, len(self._rows), self._executor)
        self._slices = slices
        hits = np.bincount(self._located[self._located >= 0], minlength=len(slices))
        new = np.bincount(self._paths[self._located < 0], minlength=len(self._partitions))
        return WorkloadProfile(
            inserts={p: int(n) for p, n in zip(self._partitions, new, strict=True) if n},
            updates={(s.partition, s.file_id): int(n) for s, n in zip(slices, hits, strict=True) if n},
        )

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        buckets = self._buckets(plan, keys_meet=target.combines)
        order = np.argsort(buckets, kind="stable")
        order = order[np.searchsorted(buckets[order], 0) :]
        counts = np.bincount(buckets[buckets >= 0], minlength=len(plan.tasks))
        ends = np.cumsum(counts)

        def run(task: FileGroupTask) -> list[WriteStatus]:
            chosen = order[ends[task.bucket] - counts[task.bucket] : ends[task.bucket]]
            return run_file_group(
                target, task, self._batches(chosen), write_token=f"{task.bucket}-0-0", storage=self._storage
            )

        tasks = [task for task in plan.tasks if counts[task.bucket]]
        return [status for of in self._executor.run(run, tasks) for status in of]

    def close(self) -> None:
        self._rows = self._input = self._input.slice(0, 0)

    def _buckets(self, plan: WritePlan, *, keys_meet: bool) -> np.ndarray:
        """The bucket of each input row; -1 for rows that go nowhere (deletes of absent keys).

        New rows of a partition fill its buckets one after the other, by the planned counts. `keys_meet`: rows of
        one key go to one bucket, where they are settled.
        """
        buckets = np.full(len(self._rows), -1, dtype=np.int64)
        of_slice = plan.update_buckets()
        to_bucket = np.array([of_slice.get((s.partition, s.file_id), -1) for s in self._slices] or [-1], dtype=np.int64)
        is_known = self._located >= 0
        buckets[is_known] = to_bucket[self._located[is_known]]
        bins = plan.insert_buckets()
        for number, partition in enumerate(self._partitions):
            if partition in bins:
                new = np.flatnonzero((self._paths == number) & ~is_known)
                numbers = np.repeat([bucket for bucket, _ in bins[partition]], [rows for _, rows in bins[partition]])
                assert len(numbers) == len(new)
                buckets[new] = numbers[self._key_numbers(new)] if keys_meet else numbers
        return buckets

    def _key_numbers(self, rows: np.ndarray) -> np.ndarray:
        """For each of these rows the number of its key, counted from 0 as keys first appear."""
        keys = _one(self._rows.column(RECORD_KEY).take(pa.array(rows)))
        return np.asarray(keys.dictionary_encode().indices)

    def _batches(self, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
            yield from self._rows.slice(int(rows[0]), len(rows)).to_batches(max_chunksize=BATCH_ROWS)
            return
        for start in range(0, len(rows), BATCH_ROWS):
            yield from (self._rows.take(pa.array(rows[start : start + BATCH_ROWS])).combine_chunks().to_batches())


def _conform(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    chunks = [conform_array(chunk, field.type, path="input", name=field.name) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=field.type)


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
