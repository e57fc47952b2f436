"""What a file states of its columns without reading their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq


class ChunkFacts(Protocol):
    """What is stated of one column in one row group. Units: bytes."""

    @property
    def value_count(self) -> int:
        """Values, nulls among them."""

    @property
    def null_count(self) -> int | None:
        """None if it is not stated."""

    @property
    def bounds(self) -> tuple[object, object] | None:
        """The least and the greatest value. None if they are not stated, or if the chunk has no value."""

    @property
    def exact_bounds(self) -> tuple[int, int] | None:
        """The bounds of a column that is stored as whole numbers, as these numbers. Dates count days."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def uncompressed_bytes(self) -> int: ...


class Statistics(Protocol):
    """What a file states of its columns. Row groups are numbered from 0."""

    @property
    def schema(self) -> pa.Schema:
        """The stored columns."""

    @property
    def group_rows(self) -> Sequence[int]:
        """The number of rows of each row group."""

    def chunk(self, group: int, leaf: str) -> ChunkFacts | None:
        """What is stated of a column in a row group. None if nothing is.

        `leaf`: a column of one value a row; for a field within a record the names joined by dots, as in `home.city`.
        """


@dataclass(frozen=True, slots=True)
class ParquetChunk:
    """`ChunkFacts` of a Parquet column chunk."""

    chunk: pq.ColumnChunkMetaData

    @property
    def value_count(self) -> int:
        return int(self.chunk.num_values)

    @property
    def null_count(self) -> int | None:
        told = self.chunk.statistics
        return None if told is None or not told.has_null_count else int(told.null_count)

    @property
    def bounds(self) -> tuple[object, object] | None:
        told = self.chunk.statistics
        if told is None or not told.has_min_max:
            return None
        try:
            return told.min, told.max
        except (ValueError, OverflowError, pa.ArrowException):  # bounds that Python's types cannot hold
            return None

    @property
    def exact_bounds(self) -> tuple[int, int] | None:
        told = self.chunk.statistics
        if told is None or not told.has_min_max or told.physical_type not in ("INT32", "INT64"):
            return None
        return told.min_raw, told.max_raw

    @property
    def size_bytes(self) -> int:
        return int(self.chunk.total_compressed_size)

    @property
    def uncompressed_bytes(self) -> int:
        return int(self.chunk.total_uncompressed_size)


class ParquetStatistics:
    """`Statistics` of a Parquet footer, be it of a file or of a log block."""

    def __init__(self, schema: pa.Schema, footer: pq.FileMetaData) -> None:
        self.schema, self.footer = schema, footer

    @cached_property
    def group_rows(self) -> tuple[int, ...]:
        return tuple(self.footer.row_group(number).num_rows for number in range(self.footer.num_row_groups))

    def chunk(self, group: int, leaf: str) -> ParquetChunk | None:
        at = self._leaves.get(leaf)
        return None if at is None else ParquetChunk(self.footer.row_group(group).column(at))

    @cached_property
    def _leaves(self) -> dict[str, int]:
        """Path -> number of each Parquet column with one value a row."""
        columns = self.footer.schema
        return {
            columns.column(number).path: number
            for number in range(len(columns))
            if columns.column(number).max_repetition_level == 0
        }


def single_leaves(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The columns with one value a row, and the fields within records, by path. Lists and maps have none."""
    found: dict[str, pa.DataType] = {}
    for field in schema:
        _add_leaves(found, field.name, field.type)
    return found


def _add_leaves(found: dict[str, pa.DataType], path: str, kind: pa.DataType) -> None:
    if pa.types.is_struct(kind):
        for field in kind:
            _add_leaves(found, f"{path}.{field.name}", field.type)
    elif not pa.types.is_nested(kind):
        found[path] = kind
