"""What a file holds of each column: least and greatest value, number of rows and nulls, sizes.

A base file's footer tells, where it can be trusted, else the data do. Of a log file the rows of its blocks tell. Bounds
are null where a column has no value. NaN, the greatest value in Spark, counts as infinity. A file that lacks a column
has nulls for it, and says so: Apache Hudi passes over files of which it is told only of other columns of a filter. A
bootstrapped base file has the columns of its source.
Seen: 1.0.2 and 1.2.0, `c IS NULL AND n > 0` and a file with a record of `n` alone; `f = 1.0` and a file with values
whose bounds of `f` are null, or whose upper bound is NaN.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.executor import Executor
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.data import data_schema, read_batches, read_row_count
from pyhudi.format.log.headers import instant_time
from pyhudi.format.names import LogFileName, join
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.protocol import OpenBaseFile
from pyhudi.table.slices.base_files.rows import open_rows
from pyhudi.table.slices.base_files.statistics import ChunkFacts, single_leaves
from pyhudi.table.slices.conform import conform_array, conform_batch
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.slices.slice_log import DATA_TYPES, Counts, log_source, slice_blocks
from pyhudi.table.view.file_system_view import SourceFile
from pyhudi.table.view.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """A column whose bounds are kept.

    `name`: for a field within a record the names joined by dots, as in `home.city`. `types_empty_files`: files without
    any row, such as a log of deletes alone, get the column's value type; else they get NULL.
    """

    name: str
    type: pa.DataType
    types_empty_files: bool = False

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """A column's bounds in one file.

    `low`, `high`: Arrow scalars of its type, null if there is none or it is not known.
    """

    value_count: int
    null_count: int
    low: pa.Scalar
    high: pa.Scalar
    size_bytes: int = 0
    uncompressed_size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FileBounds:
    """A file's bounds, by column name. A column of which the file tells nothing is left out."""

    partition: str
    file: str
    columns: Mapping[str, ColumnBounds]


@dataclass(frozen=True, slots=True)
class _Task:
    storage: Storage
    stored: pa.Schema
    evolution: Evolution | None
    counts: Counts
    columns: Sequence[IndexedColumn]
    partition: str
    file: str
    size_bytes: int
    source: SourceFile | None
    told_elsewhere: frozenset[str]

    def is_null_if_lacking(self, column: IndexedColumn) -> bool:
        """Whether a scan shows nulls for this column where a file lacks it. Other columns are told by the path."""
        return column.top not in self.told_elsewhere


def bounds_schema(kind: pa.DataType) -> pa.Schema:
    """The columns of `bounds_table`."""
    counts = ("value_count", "null_count", "total_size", "total_uncompressed_size")
    texts = [pa.field(name, pa.string()) for name in ("partition", "file")]
    return pa.schema([*texts, *(pa.field(n, pa.int64()) for n in counts), ("min", kind), ("max", kind)])


def bounds_table(files: Iterable[FileBounds], column: IndexedColumn) -> pa.Table:
    """A column's bounds, with a row for each file that has them."""
    rows = [
        (bounds.partition, bounds.file, bounds.columns[column.name])
        for bounds in files
        if column.name in bounds.columns
    ]

    schema = bounds_schema(column.type)
    arrays = [
        pa.array([partition for partition, _, _ in rows], pa.string()),
        pa.array([file for _, file, _ in rows], pa.string()),
        *(
            pa.array([getattr(bounds, name) for _, _, bounds in rows], pa.int64())
            for name in ("value_count", "null_count", "size_bytes", "uncompressed_size_bytes")
        ),
        pa.array([bounds.low for _, _, bounds in rows], column.type),
        pa.array([bounds.high for _, _, bounds in rows], column.type),
    ]

    return pa.table(arrays, schema=schema)


def read_bounds(
    snapshot: Snapshot,
    files: Iterable[tuple[str, str, int]],
    columns: Sequence[IndexedColumn],
    stored: pa.Schema,
    executor: Executor,
    *,
    evolution: Evolution | None,
    counts: Counts,
) -> list[FileBounds]:
    """The bounds of these columns in files (partition, name, bytes).

    `snapshot`: tells the sources of bootstrapped files. `stored`: every column that rows may have. `evolution`: how
    files are read whose columns had other names; None if none had. `counts`: whether what an instant wrote into a log
    counts; a block of a write that was taken back may hold columns that the table never had.

    Requests: the footer of each base file, and its columns of which the footer tells too little; the whole of a log
    file. Memory: in each worker, a row group of one column, or a batch of a log block.
    """
    storage, source_of = snapshot.storage, snapshot.source_of_file
    told_elsewhere = frozenset((*META_FIELDS, *snapshot.config.partition_by))
    return executor.run(
        read_file_bounds,
        [_Task(storage, stored, evolution, counts, columns, *f, source_of(*f[:2]), told_elsewhere) for f in files],
    )


def read_file_bounds(task: _Task) -> FileBounds:
    """The bounds of one file."""
    is_log = LogFileName.parse(task.file) is not None
    return FileBounds(task.partition, task.file, _log_bounds(task) if is_log else _base_bounds(task))


def _base_bounds(task: _Task) -> dict[str, ColumnBounds]:
    path = join(task.partition, task.file)
    file, is_whole = _open(task, path)
    with closing(file):
        # A column within a list or map has several values a row: it has no bounds.
        leaves, found = single_leaves(file.schema), {}
        for column in task.columns:
            name = column.name if task.evolution is None else task.evolution.path_in_file(path, column.name)
            if name is not None and name in leaves:
                found[column.name] = _chunk_bounds(file, IndexedColumn(name, column.type), leaves[name])
            elif is_whole and task.is_null_if_lacking(column) and (name is None or _lacks(file.schema, name)):
                nothing = pa.scalar(None, column.type)
                found[column.name] = ColumnBounds(file.row_count, file.row_count, nothing, nothing)
        return found


def _open(task: _Task, path: str) -> tuple[OpenBaseFile, bool]:
    """The base file, and whether it has all of its columns.

    Older slices may have lost their sources: then it has the meta fields only.
    """
    try:
        return open_rows(task.storage, path, task.source), True
    except (CorruptFile, NotFound):
        if task.source is None:
            raise
        return open_rows(task.storage, path), False


def _lacks(schema: pa.Schema, name: str) -> bool:
    """Whether a file has no such column, or no such field in the record that has the name up to the last dot."""
    first, *inner = name.split(".")
    if first not in schema.names:
        return True
    kind = schema.field(first).type
    for part in inner:
        if not pa.types.is_struct(kind):
            return False
        if kind.get_field_index(part) < 0:
            return True
        kind = kind.field(part).type
    return False


def _chunk_bounds(file: OpenBaseFile, column: IndexedColumn, stored: pa.DataType) -> ColumnBounds:
    told = [file.chunk(number, column.name) for number in range(len(file.group_rows))]
    chunks = [chunk for chunk in told if chunk is not None]
    sizes = (0, 0)
    if len(chunks) == len(told):  # else the format tells nothing of its columns
        sizes = sum(c.size_bytes for c in chunks), sum(c.uncompressed_bytes for c in chunks)

    # Read as the column's type, the values may have another order, and stored bounds tell nothing.
    is_told = len(chunks) == len(told) and _keeps_order(stored, column.type)
    nulls, low, high = (_told_by(chunks, column.type) if is_told else None) or _read_extremes(file, column)
    return ColumnBounds(file.row_count, nulls, low, high, *sizes)


def _told_by(chunks: Sequence[ChunkFacts], kind: pa.DataType) -> tuple[int, pa.Scalar, pa.Scalar] | None:
    """Nulls and bounds as the footer tells them; None where it does not.

    A footer never tells of NaN. A bound must not pass over NaN, so columns of floating point are always read.
    """
    if pa.types.is_floating(kind):
        return None

    nulls, lows, highs = 0, [], []
    for chunk in chunks:
        if chunk.null_count is None:
            return None
        nulls += chunk.null_count
        if chunk.null_count == chunk.value_count:  # nulls alone have no bounds
            continue
        bounds = chunk.bounds
        if bounds is None:
            return None
        lows.append(bounds[0])
        highs.append(bounds[1])

    try:
        return nulls, *_extremes(pa.array(lows, kind), pa.array(highs, kind), kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None


def _read_extremes(file: OpenBaseFile, column: IndexedColumn) -> tuple[int, pa.Scalar, pa.Scalar]:
    tally = Tally(column)
    for batch in file.batches([column.top]):
        tally.add(_leaf(batch, column, path=file.path))
    bounds = tally.bounds()
    return bounds.null_count, bounds.low, bounds.high


def _log_bounds(task: _Task) -> dict[str, ColumnBounds]:
    """The bounds of the rows of the data blocks as they are stored, whatever merging makes of them.

    Deletes count for nothing. A row has nulls for the columns that its block lacks: they were not there yet, or the
    block is a partial one. Seen: 1.0.2 and 1.2.0 (`collectColumnRangeMetadata`).
    """
    path = join(task.partition, task.file)
    tops = list(dict.fromkeys(column.top for column in task.columns))
    found = {column.name: Tally(column) for column in task.columns}
    blocks = slice_blocks([log_source(task.storage, path, task.size_bytes)], task.counts)

    for block in (block for block in blocks if block.type in DATA_TYPES):
        assert block.type is not BlockType.DELETE
        then = None if task.evolution is None else task.evolution.of_instant(instant_time(block), tops)
        pairs = [(name, name) for name in tops] if then is None else then.names
        present = data_schema(block).names
        held = [(name, stored) for name, stored in pairs if stored in present and name in task.stored.names]
        names = [name for name, _ in held]
        wanted = pa.schema([task.stored.field(name) for name in names])
        lacking = [c for c in task.columns if c.top not in names and task.is_null_if_lacking(c)]
        rows_lacking = read_row_count(block) if lacking else 0
        for column in lacking:
            found[column.name].add_nulls(rows_lacking)
        if not held:
            continue

        for batch in read_batches(block, columns=[stored for _, stored in held]):
            rows = conform_batch(batch if then is None else then.named(batch), wanted, path=path)
            for column in task.columns:
                if column.top in names:
                    found[column.name].add(_leaf(rows, column, path=path))
    return {name: tally.bounds() for name, tally in found.items()}


class Tally:
    """Gathers the bounds of a column over batches of its values."""

    def __init__(self, column: IndexedColumn) -> None:
        self._type, self._rows, self._nulls, self._has_nan = column.type, 0, 0, False
        self._lows: list[pa.Scalar] = []
        self._highs: list[pa.Scalar] = []

    def add(self, values: pa.Array) -> None:
        self._rows += len(values)
        self._nulls += values.null_count
        self._has_nan = self._has_nan or _has_nan(values)
        low, high = _min_max(values)
        self._lows.append(low)
        self._highs.append(high)

    def add_nulls(self, count: int) -> None:
        self._rows += count
        self._nulls += count

    def bounds(self) -> ColumnBounds:
        low, high = _extremes(pa.array(self._lows, self._type), pa.array(self._highs, self._type), self._type)
        if self._has_nan:
            high = pa.scalar(math.inf, self._type)
            low = high if math.isnan(low.as_py()) else low
        return ColumnBounds(self._rows, self._nulls, low, high)


def _extremes(lows: pa.Array, highs: pa.Array, kind: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """The least of `lows` and the greatest of `highs`, NaN if there is nothing else. A zero of a float is -0.0 as
    the least, 0.0 as the greatest.
    """
    low, high = _min_max(lows)[0], _min_max(highs)[1]
    if pa.types.is_floating(kind):
        low = pa.scalar(-0.0, kind) if low.is_valid and low.as_py() == 0 else low
        high = pa.scalar(math.fabs(0.0), kind) if high.is_valid and high.as_py() == 0 else high
    return low, high


def _min_max(values: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    if pa.types.is_fixed_size_binary(values.type):
        extremes = pc.min_max(values.cast(pa.binary()))
        return extremes["min"].cast(values.type), extremes["max"].cast(values.type)
    extremes = pc.min_max(values)
    return extremes["min"], extremes["max"]


def _has_nan(values: pa.Array) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _leaf(rows: pa.RecordBatch, column: IndexedColumn, *, path: str) -> pa.Array:
    """A column's values as a scan shows them, which is in the column's own type. A field of a null record is null."""
    first, *inner = column.name.split(".")
    values = rows.column(rows.schema.get_field_index(first))
    if inner:
        values = pc.struct_field(values, inner)
    return conform_array(values, column.type, path=path, name=column.name)


def _keeps_order(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values stored as one type keep their order when they are read as another."""
    if stored == wanted or (pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted)):
        return True
    return (pa.types.is_integer(stored) and (pa.types.is_integer(wanted) or pa.types.is_float64(wanted))) or (
        pa.types.is_floating(stored) and pa.types.is_floating(wanted)
    )
