"""Which columns have statistics, and which files; and the bounds in stored records.

Spec: format/metadata-table.md section 8.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.stats import decode_column_stats
from pyhudi.format.metadata.stats_values import StatsVersion, TypedBounds, bounds_of
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.metadata.derive.column_bounds import IndexedColumn, bounds_schema
from pyhudi.metadata.derive.stats_changes import indexed_columns
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.versions import TableVersion

File = tuple[str, str, int]
"""A data file: its partition, name and bytes."""


@dataclass(frozen=True, slots=True)
class StatsFacts:
    """Which columns have statistics.

    `names`: as the index's definition or the options say; empty: the first columns.
    """

    version: StatsVersion
    table_version: TableVersion
    names: tuple[str, ...] = ()
    count_max: int = 32

    def columns(self, schema: pa.Schema) -> tuple[IndexedColumn, ...]:
        return indexed_columns(schema, self.version, names=self.names, count_max=self.count_max)

    def known_columns(self, schema: pa.Schema) -> tuple[str, ...]:
        """The names of the columns that files may have statistics of, whoever wrote the files.

        Without index definitions nothing names these columns. Then they are those of today's writers, and all columns
        of the table, because 0.15.0 indexes all by default.
        """
        today = [column.name for column in self.columns(schema)]
        every = () if self.table_version.has_index_definitions else schema.names
        return tuple(dict.fromkeys([*today, *every]))


def files_of(slices: Iterable[FileSlice]) -> list[File]:
    """The base and log files of slices."""
    found: list[File] = []
    for file_slice in slices:
        if file_slice.base_file is not None:
            found.append((file_slice.partition, file_slice.base_file.name.format(), file_slice.base_file.size_bytes))
        found += [(file_slice.partition, log.name.format(), log.size_bytes) for log in file_slice.log_files]
    return found


def is_counted(name: str) -> bool:
    """Whether a file has statistics: base files and logs have, logs of changes (CDC) have not."""
    log = LogFileName.parse(name)
    return BaseFileName.parse(name) is not None or (log is not None and not log.is_cdc)


def stored_bounds_rows(
    cells: pa.Table, keys: pa.Array, column: IndexedColumn, partitions: pa.Array, names: pa.Array, schema_text: str
) -> pa.Table:
    """The bounds of one column in the records of these keys, as they are stored. NaN counts as infinity.

    `partitions`, `names`: the file of each key.
    """
    positions = pc.index_in(cells.column("key"), keys)
    chosen = one_array(positions.is_valid())
    rows = one_array(positions.drop_null())
    stats = decode_column_stats(one_array(cells.column("value").filter(chosen)).cast(pa.binary()), schema_text)

    bounds = bounds_of(column.type, stats, keeps_nan=True)
    counts = ("value_count", "null_count", "total_size", "total_uncompressed_size")
    return pa.table(
        [partitions.take(rows), names.take(rows), *(stats.column(name) for name in counts), *_without_nan(bounds)],
        schema=bounds_schema(column.type),
    )


def _without_nan(bounds: TypedBounds) -> tuple[pa.Array, pa.Array]:
    """Both bounds. Apache Hudi writes a greatest value NaN of logs; a least one is believed only beside it."""
    low, high = bounds.min, bounds.max
    if not pa.types.is_floating(low.type):
        return low, high
    infinite = pa.scalar(math.inf, low.type)
    least = pc.if_else(pc.is_nan(high), infinite, pa.scalar(None, low.type))
    return pc.if_else(pc.is_nan(low), least, low), pc.if_else(pc.is_nan(high), infinite, high)
