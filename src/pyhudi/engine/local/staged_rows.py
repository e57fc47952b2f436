"""Rows that are put aside in Arrow files of this machine, together by partition, to be fed to a write from there.

A file is a sequence of batches, each sorted by partition. A second file beside it says where the rows of each partition
lie. A process writes such files for input that memory has no room for; tasks of Spark write them for a DataFrame.
"""

import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.local.code_order import stable_order
from pyhudi.engine.local.nulls import null_counts, refuse_null_ordering, refuse_null_required
from pyhudi.engine.local.partition_rows import PartitionRows
from pyhudi.engine.local.row_memory import RowMemory
from pyhudi.errors import Invalid, Unavailable
from pyhudi.format.keys.record_keys import missing_keys, null_key_message, partition_paths, record_keys
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.storage.scratch import ScratchFolder, let_go, map_file, read_errors
from pyhudi.write.input.source import ARRIVAL, InputSpec
from pyhudi.write.memory_settings import SPILL_FOLDER

PIECE_BYTES = 32 * 1024 * 1024
"""Arrow bytes that are gathered before they are sorted. Sorting needs about four times as much."""

_RUNS = pa.schema([("path", pa.string()), ("batch", pa.int32()), ("start", pa.int64()), ("rows", pa.int64())])
_RUNS_SUFFIX = ".runs"
_TASK_ROWS_BITS = 33
"""Bits for a row's number within its task. The number of the task stands above these bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file of rows, and what was found in them. `nulls`: how many nulls each column of `never_null` has."""

    path: str
    rows: int
    bad_keys: int
    example: str | None
    nulls: tuple[int, ...]


@dataclass(frozen=True)
class StagedRows:
    """The files of an input, in the input's order, in a folder of their own."""

    folder: ScratchFolder
    files: tuple[StagedFile, ...]
    spec: InputSpec
    _mapped: list[mmap.mmap] = field(default_factory=list)

    def refuse_bad_rows(self) -> None:
        """Raises: Invalid for rows without a key, or with a null where none may be."""
        if count := sum(file.bad_keys for file in self.files):
            example = next((file.example for file in self.files if file.example is not None), "")
            raise Invalid(null_key_message(self.spec.keys.record_key, count, f"one row has {example}"))
        columns = never_null(self.spec)
        nulls = {name: sum(file.nulls[at] for file in self.files) for at, name in enumerate(columns)}
        refuse_null_ordering({name: nulls[name] for name in self.spec.ordering})
        refuse_null_required({name: nulls[name] for name in self.spec.required})

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files."""
        size_bytes = 0
        for file in self.files:
            with read_errors(file.path):
                size_bytes += Path(file.path).stat().st_size
        return size_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in the files."""
        return -(-self.size_bytes // max(1, self.rows))

    def memory(self, max_bytes: int, *, piece_bytes: int = PIECE_BYTES) -> RowMemory:
        """Bounds what is held of the rows while they are written. `piece_bytes`: by which the files were made."""
        return RowMemory(max_bytes, row_bytes=self.row_bytes, piece_bytes=piece_bytes, let_go=self.let_go)

    def partitions(self) -> dict[str, PartitionRows]:
        """The rows of each partition in the input's order. They are memory-mapped, so they cost address space only."""
        slices: dict[str, list[pa.RecordBatch]] = {}
        for file in self.files:
            batches = self._open(file.path)
            with read_errors(file.path + _RUNS_SUFFIX):
                runs = pa.ipc.open_file(pa.BufferReader(Path(file.path + _RUNS_SUFFIX).read_bytes())).read_all()
            for path, batch, start, rows in zip(*(column.to_pylist() for column in runs.columns), strict=True):
                slices.setdefault(path, []).append(batches[batch].slice(start, rows))
        key_column = self.spec.bare_key or RECORD_KEY
        return {
            path: PartitionRows(pa.Table.from_batches(partition_batches), key_column)
            for path, partition_batches in slices.items()
        }

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows. Those of a partition come as they arrived; if rows are numbered, all of them do."""
        for file in self.files:
            for batch in self._open(file.path):
                yield batch.sort_by(ARRIVAL) if ARRIVAL in batch.schema.names else batch
                self.let_go()

    def let_go(self) -> None:
        """Give back the memory that was used to look at files."""
        for mapped in self._mapped:
            let_go(mapped)

    def discard(self) -> None:
        """Delete the files."""
        self.folder.discard()

    def _open(self, path: str) -> list[pa.RecordBatch]:
        mapped = map_file(path)
        self._mapped.append(mapped)
        return _batches_of(pa.py_buffer(mapped))


def never_null(spec: InputSpec) -> tuple[str, ...]:
    """The columns in which nulls are counted: the ordering columns, and the columns that must not be null."""
    return tuple(dict.fromkeys((*spec.ordering, *spec.required)))


def open_batches(path: str) -> list[pa.RecordBatch]:
    """The batches of a file as they are stored, memory-mapped."""
    return _batches_of(pa.py_buffer(map_file(path)))


def stage_rows(
    path: str, batches: Iterable[pa.RecordBatch], spec: InputSpec, *, task: int = 0, piece_bytes: int = PIECE_BYTES
) -> StagedFile:
    """Put rows that have the columns of the spec's schema into a file.

    Null keys and nulls are counted, so that the caller can refuse them. Memory: about four times `piece_bytes`, and a
    batch. Raises: Invalid for a text that is no partition path; Unavailable when the file cannot be written.
    """
    schema = spec.schema if spec.bare_key is not None else spec.schema.append(pa.field(RECORD_KEY, pa.string()))
    schema = schema.append(pa.field(ARRIVAL, pa.int64())) if spec.numbers_rows else schema
    stager = _Stager(spec, task)

    with _written(path, schema) as write:
        for piece in _pieces(batches, piece_bytes):
            write(stager.sort(piece))

    with _written(path + _RUNS_SUFFIX, _RUNS) as write:
        for run in stager.runs:
            write(run)
    return StagedFile(
        path=path, rows=stager.rows, bad_keys=stager.bad_keys, example=stager.example, nulls=tuple(stager.nulls)
    )


def runs_path(path: Path) -> Path:
    """The file that says where the rows of each partition lie in a file of rows."""
    return path.with_name(path.name + _RUNS_SUFFIX)


def receive_file(path: str, rows: bytes, runs: bytes) -> None:
    """Put a file of rows, and the one beside it, as another machine staged them. Raises: Unavailable."""
    for name, content in ((path, rows), (path + _RUNS_SUFFIX, runs)):
        with _disk_errors(name):
            Path(name).write_bytes(content)


def _pieces(batches: Iterable[pa.RecordBatch], piece_bytes: int) -> Iterator[pa.Table]:
    """The same rows in pieces of about so many bytes."""
    held: list[pa.RecordBatch] = []
    size_bytes = 0

    for batch in batches:
        count = max(1, len(batch) * piece_bytes // max(1, batch.nbytes))
        for start in range(0, len(batch), count):
            held.append(batch.slice(start, count))
            size_bytes += held[-1].nbytes
            if size_bytes >= piece_bytes:
                piece = pa.Table.from_batches(held)
                held, size_bytes = [], 0
                yield piece

    if held:
        yield pa.Table.from_batches(held)


class _Stager:
    """Prepares rows for a file, and notes what it finds in them."""

    def __init__(self, spec: InputSpec, task: int) -> None:
        self._spec, self._task = spec, task
        self._never_null = never_null(spec)
        self.nulls = [0] * len(self._never_null)
        self.bad_keys = 0
        self.example: str | None = None
        self.rows = 0
        self.runs: list[pa.RecordBatch] = []

    def sort(self, piece: pa.Table) -> pa.RecordBatch:
        """Sort the rows by partition, and add their keys and numbers. Notes where each partition's rows lie."""
        self._check(piece)
        if self._spec.bare_key is None and not self.bad_keys:
            keys = record_keys(piece, self._spec.keys, task=self._task, first=self.rows)
            piece = piece.append_column(RECORD_KEY, keys)
        elif self._spec.bare_key is None:  # refused by the caller anyhow
            piece = piece.append_column(RECORD_KEY, pa.nulls(len(piece), pa.string()))

        if self._spec.numbers_rows:
            first = (self._task << _TASK_ROWS_BITS) + self.rows
            piece = piece.append_column(ARRIVAL, pa.array(np.arange(first, first + len(piece))))

        self.rows += len(piece)

        encoded = partition_paths(piece, self._spec.keys).chunk(0)

        numbers = np.asarray(encoded.indices)
        if (np.diff(numbers) < 0).any():
            order = stable_order(numbers, len(encoded.dictionary))
            piece, numbers = piece.take(pa.array(order)), numbers[order]

        starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1])
        self.runs.append(
            pa.RecordBatch.from_arrays(
                [
                    encoded.dictionary.take(pa.array(numbers[starts])),
                    pa.array(np.full(len(starts), len(self.runs), dtype=np.int32)),
                    pa.array(starts.astype(np.int64)),
                    pa.array(np.diff([*starts, len(numbers)]).astype(np.int64)),
                ],
                schema=_RUNS,
            )
        )

        (batch,) = piece.combine_chunks().to_batches()
        return batch

    def _check(self, piece: pa.Table) -> None:
        for i, count in enumerate(null_counts(piece, self._never_null).values()):
            self.nulls[i] += count
        missing = missing_keys(piece, self._spec.keys)
        count = pc.sum(missing).as_py() or 0
        if count and self.example is None:
            at = pc.index(missing, True).as_py()
            self.example = str({name: piece.column(name)[at].as_py() for name in self._spec.keys.record_key})
        self.bad_keys += count


@contextmanager
def _written(path: str, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Gives a function that writes batches to a new file. Raises: Unavailable when the file cannot be written."""
    with _disk_errors(path):
        sink = pa.OSFile(path, "wb")

    def write(batch: pa.RecordBatch) -> None:
        with _disk_errors(path):
            writer.write_batch(batch)

    with sink:
        with _disk_errors(path):
            writer = pa.ipc.new_file(sink, schema)
        yield write
        with _disk_errors(path):
            writer.close()


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{path}: cannot put rows aside: {error}; make room there, or name another folder ('{SPILL_FOLDER}')"
        ) from error


def _batches_of(buffer: pa.Buffer) -> list[pa.RecordBatch]:
    reader = pa.ipc.open_file(pa.BufferReader(buffer))
    return [reader.get_batch(i) for i in range(reader.num_record_batches)]
