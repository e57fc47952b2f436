"""Which columns have statistics, and what is known of files already.

Spec: format/metadata-table.md section 8.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata_groups import COLUMN_STATS
from pyhudi.format.metadata_keys import column_stats_keys
from pyhudi.format.metadata_stats import decode_column_stats
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.stats_values import StatsVersion, bounds_of
from pyhudi.metadata.changes import PartitionChange, binary_keys
from pyhudi.metadata.column_bounds import IndexedColumn, bounds_schema, bounds_table, read_bounds
from pyhudi.metadata.current_cells import current_cells
from pyhudi.metadata.partition import open_partition
from pyhudi.metadata.stats_changes import indexed_columns, partition_stats_change
from pyhudi.metadata.table import open_metadata_table
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.snapshot import Snapshot

_DEFINED_FROM = 8

File = tuple[str, str, int]
"""A data file: its partition, name and bytes."""


@dataclass(frozen=True, slots=True)
class StatsFacts:
    """Which columns have statistics. `names`: as the index's definition or the options say; empty: the first ones."""

    version: StatsVersion
    table_version: int
    names: tuple[str, ...] = ()
    count_max: int = 32

    def columns(self, schema: pa.Schema) -> tuple[IndexedColumn, ...]:
        return indexed_columns(schema, self.version, names=self.names, count_max=self.count_max)

    def known_columns(self, schema: pa.Schema) -> tuple[str, ...]:
        """The names of the columns that files may have statistics of, whoever wrote them.

        Before version 8 nothing says which they are: those of today's writers and, as 0.15.0 by itself indexes all,
        every one of the table's.
        """
        today = [column.name for column in self.columns(schema)]
        every = schema.names if self.table_version < _DEFINED_FROM else ()
        return tuple(dict.fromkeys([*today, *every]))


def all_partition_stats(snapshot: Snapshot, facts: StatsFacts, executor: Executor) -> PartitionChange:
    """The statistics of every partition, by those that `column_stats` has of its files."""
    schema = snapshot.schema_with_meta
    columns, partitions = facts.columns(schema), snapshot.listing.partitions()
    files = files_of(piece for partition in partitions for piece in snapshot.slices(partition))
    by_column = stored_bounds_of(snapshot, files, columns, schema, executor)
    change = partition_stats_change(by_column, columns, (), facts.version, table_version=facts.table_version)
    assert not len(change.deletes)
    return change


def stored_bounds_of(
    snapshot: Snapshot, files: Sequence[File], columns: Sequence[IndexedColumn], schema: pa.Schema, executor: Executor
) -> dict[str, pa.Table]:
    """What `column_stats` says of these files, by column; files that it says nothing of are read.

    Cost: a look-up of a key a file and column; those of one data partition and column lie side by side.
    Memory: the answer.
    """
    found = {column.name: [bounds_schema(column.type).empty_table()] for column in columns}
    if not files or not columns:
        return {name: pa.concat_tables(of) for name, of in found.items()}
    partitions = pa.array([partition for partition, _, _ in files], pa.string())
    names = pa.array([name for _, name, _ in files], pa.string())
    keys = {c.name: column_stats_keys(c.name, partitions, names) for c in columns}
    table = open_metadata_table(snapshot.storage, snapshot.zone)
    partition = open_partition(table, COLUMN_STATS, snapshot.timeline, executor=executor)
    told: dict[str, set[tuple[str, str]]] = {column.name: set() for column in columns}
    for part in partition.lookup(pa.concat_arrays(list(keys.values()))):
        cells = current_cells(table, COLUMN_STATS, part)
        for column in columns:
            wanted = binary_keys(keys[column.name])
            rows = stored_bounds_rows(cells, wanted, column, partitions, names, table.record_schema)
            told[column.name] |= set(zip(rows["partition"].to_pylist(), rows["file"].to_pylist(), strict=True))
            found[column.name].append(rows)
    for column in columns:
        missing = [file for file in files if file[:2] not in told[column.name]]
        found[column.name].append(
            bounds_table(read_bounds(snapshot.storage, missing, [column], schema, executor), column)
        )
    return {name: pa.concat_tables(of) for name, of in found.items()}


def files_of(slices: Iterable[FileSlice]) -> list[File]:
    """The base and log files of slices."""
    found: list[File] = []
    for piece in slices:
        if piece.base_file is not None:
            found.append((piece.partition, piece.base_file.name.format(), piece.base_file.size_bytes))
        found += [(piece.partition, log.name.format(), log.size_bytes) for log in piece.log_files]
    return found


def is_counted(name: str) -> bool:
    """Whether a file has statistics: base files and logs, change logs not."""
    log = LogFileName.parse(name)
    return BaseFileName.parse(name) is not None or (log is not None and not log.is_cdc)


def stored_bounds_rows(
    cells: pa.Table, keys: pa.Array, column: IndexedColumn, partitions: pa.Array, names: pa.Array, schema_text: str
) -> pa.Table:
    """The bounds of one column in the records whose keys are asked for."""
    places = pc.index_in(cells.column("key"), keys)
    chosen = one_array(places.is_valid())
    rows = one_array(places.drop_null())
    stats = decode_column_stats(one_array(cells.column("value").filter(chosen)).cast(pa.binary()), schema_text)
    bounds = bounds_of(column.type, stats)
    counts = ("value_count", "null_count", "total_size", "total_uncompressed_size")
    return pa.table(
        [partitions.take(rows), names.take(rows), *(stats.column(name) for name in counts), bounds.min, bounds.max],
        schema=bounds_schema(column.type),
    )
