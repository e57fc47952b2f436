"""Writing from Arrow data, in this process: rows in memory, or in files where they are many."""

from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pyhudi.engine.local.code_order import rows_by_code
from pyhudi.engine.local.executors import worker_count
from pyhudi.engine.local.input_columns import input_batch, input_column
from pyhudi.engine.local.input_stream import input_batches
from pyhudi.engine.local.nulls import null_counts, refuse_null_ordering, refuse_null_required
from pyhudi.engine.local.partition_rows import PartitionRows
from pyhudi.engine.local.partitioned import PartitionedInput
from pyhudi.engine.local.row_memory import RowMemory
from pyhudi.engine.local.staged_rows import PIECE_BYTES, StagedRows, stage_rows
from pyhudi.executor import Executor
from pyhudi.format.keys.record_keys import partition_paths, record_keys
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.format.struct_fields import is_path
from pyhudi.storage.protocol import Storage
from pyhudi.storage.scratch import ScratchFolder
from pyhudi.write.input.source import InputSpec, RowOrder
from pyhudi.write.memory_settings import SPILL_FOLDER, MemorySettings

_PIECES = 8
"""A piece that is sorted on its way into a file is at most one part of so many of what may be held."""


class ArrowSource:
    """An Arrow table, or a stream of batches, as the input of a write.

    A table is the caller's memory and stays there. The rows of a stream are held up to the share of the settings; where
    there are more, all go to files, from which they are fed. Memory: the rows held, their keys and eight bytes a row,
    and what `PartitionedInput` says.
    """

    def __init__(
        self,
        rows: pa.Table | pa.RecordBatchReader,
        storage: Storage,
        executor: Executor,
        memory: MemorySettings | None = None,
        *,
        is_own: bool = False,
    ) -> None:
        """`is_own`: as of `input_batches`."""
        self._storage, self._executor = storage, executor
        self._memory = memory if memory is not None else MemorySettings()
        self._schema = rows.schema
        self._input = rows if isinstance(rows, pa.Table) else None
        self._stream = None if isinstance(rows, pa.Table) else input_batches(rows, is_own=is_own)
        self._staged: StagedRows | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def count(self, spec: InputSpec) -> PartitionedInput:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._take(stream, spec)
        elif self._staged is not None:  # to be checked anew: the table's schema has changed
            before = self._staged
            self._stage(self._own_columns(before.batches(), spec), spec)
            before.discard()
        splits = spec.order is RowOrder.BY_KEY_IN_PARTITION
        if self._staged is not None:
            self._staged.refuse_bad_rows()
            partitions, memory = self._staged.partitions(), self._memory_of(self._staged)
        else:
            assert self._input is not None
            partitions, memory = _in_memory(self._input, spec), None
        return PartitionedInput(partitions, self._storage, self._executor, splits_by_key=splits, memory=memory)

    def close(self) -> None:
        self._input, self._stream = None, None
        staged, self._staged = self._staged, None
        if staged is not None:
            staged.discard()

    @property
    def _share_bytes(self) -> int:
        return self._memory.share_bytes(worker_count(self._executor))

    @property
    def _piece_bytes(self) -> int:
        return min(PIECE_BYTES, self._share_bytes // _PIECES)

    def _take(self, stream: Iterator[pa.RecordBatch], spec: InputSpec) -> None:
        """Read the stream to its end: into memory, or into files once it is too large for that."""
        held: deque[pa.RecordBatch] = deque()
        size_bytes = 0
        for batch in _as_stored(stream, spec):
            held.append(batch)
            size_bytes += batch.nbytes
            if size_bytes > self._share_bytes:
                self._stage(_emptied(held, _as_stored(stream, spec)), spec)
                return
        rows = pa.Table.from_batches(held, spec.schema)
        self._input = rows.select(self._own_names(rows.schema))

    def _stage(self, batches: Iterator[pa.RecordBatch], spec: InputSpec) -> None:
        folder = ScratchFolder.make("pyhudi-staged-", self._memory.spill_folder, setting=SPILL_FOLDER)
        try:
            file = stage_rows(str(folder.path / "rows.arrow"), batches, spec, piece_bytes=self._piece_bytes)
        except BaseException:
            folder.discard()
            raise
        self._staged = StagedRows(folder, (file,), spec)

    def _own_columns(self, batches: Iterator[pa.RecordBatch], spec: InputSpec) -> Iterator[pa.RecordBatch]:
        """Staged rows as input once more, with the columns that the caller gave."""
        for batch in batches:
            yield input_batch(batch.select(self._own_names(batch.schema)), spec.schema)

    def _own_names(self, held: pa.Schema) -> list[str]:
        """The columns that the caller gave, and the fields of structs among them that were made columns."""
        return [name for name in held.names if name in self._schema.names or is_path(name)]

    def _memory_of(self, staged: StagedRows) -> RowMemory:
        return staged.memory(self._share_bytes, piece_bytes=self._piece_bytes)


def _as_stored(stream: Iterator[pa.RecordBatch], spec: InputSpec) -> Iterator[pa.RecordBatch]:
    """The caller's rows in the types in which the table keeps them. Raises: as `input_batches` and `input_batch`."""
    for batch in stream:
        yield input_batch(batch, spec.schema)


def _emptied(held: deque[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What is held, which is let go of, and the rest."""
    while held:
        yield held.popleft()
    yield from rest


def _in_memory(given: pa.Table, spec: InputSpec) -> dict[str, PartitionRows]:
    rows = pa.Table.from_arrays([input_column(given, field) for field in spec.schema], schema=spec.schema)
    refuse_null_ordering(null_counts(rows, spec.ordering))
    refuse_null_required(null_counts(rows, spec.required))
    keys = record_keys(rows, spec.keys)
    if spec.bare_key is None:
        rows = rows.append_column(RECORD_KEY, keys)
    return by_partition(rows, spec)


def by_partition(rows: pa.Table, spec: InputSpec) -> dict[str, PartitionRows]:
    """The rows of each partition that has any, in the order in which partitions first appear."""
    encoded = partition_paths(rows, spec.keys).chunk(0)
    paths = encoded.dictionary.to_pylist()
    key_column = spec.bare_key or RECORD_KEY
    if len(rows) == 0:
        return {}
    if len(paths) == 1:
        return {paths[0]: PartitionRows(rows, key_column)}
    parts = rows_by_code(np.asarray(encoded.indices), len(paths))
    return {
        path: PartitionRows(rows, key_column, row_numbers)
        for path, row_numbers in zip(paths, parts, strict=True)
        if len(row_numbers)
    }
