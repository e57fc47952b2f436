"""What an action changes in the indexes on expressions.

Spec: format/metadata-table.md sections 5, 6 and 8.
Seen: 1.0.2 counts as values of an expression those that are not null. Other statistics count nulls as values, too, and
so does this module until it makes the records.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.metadata.keys import column_stats_keys, expression_partition_stats_keys
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.metadata.derive.blooms import BLOOMS
from pyhudi.metadata.derive.changed_groups import changed_groups, evolution_after, schema_after, slices_after
from pyhudi.metadata.derive.changes import CELLS, PartitionChange, binary_keys
from pyhudi.metadata.derive.column_bounds import bounds_schema, bounds_table
from pyhudi.metadata.derive.expression_values import read_expression_blooms, read_expression_bounds
from pyhudi.metadata.derive.index_changes import bloom_change, removed_column_stats
from pyhudi.metadata.derive.stats import File, files_of, is_counted, stored_bounds_rows
from pyhudi.metadata.derive.stats_changes import file_stats_cells, merge_by_partition, partition_stats_cells
from pyhudi.metadata.kinds.expression_index import ExpressionIndex
from pyhudi.metadata.store.current_cells import current_cells
from pyhudi.metadata.store.partition import open_partition
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.slices.slice_log import Counts, any_write
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion


def expression_change(
    snapshot: Snapshot, requested: str, metadata: CommitMetadata, index: ExpressionIndex, executor: Executor
) -> PartitionChange:
    """What a write, a compaction or a replacement changes in one index.

    It concerns the action's new files, and the partitions that the action touched.
    `snapshot`: the table as it is while the action at `requested` is pending, its files written.
    Cost, memory: the column of each new file; what the index holds of the other files of these partitions.
    """
    schema, evolution = schema_after(snapshot, metadata), evolution_after(snapshot, metadata)
    new = [
        (partition, (stat.path or "").rpartition("/")[2], stat.file_size_in_bytes or 0)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if is_counted((stat.path or "").rpartition("/")[2])
    ]

    if index.bloom is not None:
        return _blooms(snapshot, requested, new, index, schema, executor, evolution=evolution, counts=any_write)
    read = read_expression_bounds(snapshot, new, index, schema, executor, evolution=evolution, counts=any_write)
    bounds = bounds_table(read, index.column)

    touched = sorted({*metadata.partition_to_write_stats, *(metadata.partition_to_replace_file_ids or {})})
    groups = changed_groups(snapshot, metadata, with_rewrites=True)
    needed = files_of(file_slice for partition in touched for file_slice in slices_after(snapshot, partition, groups))

    # What is stored tells of the files that stay; what was just read tells of the new ones.
    written = {file[:2] for file in new}
    staying = [file for file in needed if file[:2] not in written]
    old = _stored_bounds(snapshot, staying, index, schema, executor, evolution=evolution)
    names = pa.array([name for _, name, _ in needed], pa.string())
    mine = bounds.filter(pc.is_in(bounds.column("file"), names))
    return _stats(bounds, pa.concat_tables([old, mine]), touched, index, snapshot.config.version)


def initial_expression_change(
    snapshot: Snapshot, requested: str, index: ExpressionIndex, executor: Executor
) -> PartitionChange:
    """What an index begins with: the statistics, or filters, of all newest slices, and of their partitions.

    `requested`: the action that builds the index. Cost: the column in all files. Memory: the statistics, or the
    filters.
    """
    schema, partitions = snapshot.schema_with_meta, snapshot.listing.partitions()
    counts = snapshot.timeline.is_committed
    files = files_of(file_slice for partition in partitions for file_slice in snapshot.slices(partition))

    if index.bloom is not None:
        return _blooms(snapshot, requested, files, index, schema, executor, evolution=snapshot.evolution, counts=counts)
    read = read_expression_bounds(snapshot, files, index, schema, executor, evolution=snapshot.evolution, counts=counts)
    bounds = bounds_table(read, index.column)
    return _stats(bounds, bounds, (), index, snapshot.config.version)


def cleaned_expression_change(
    index: ExpressionIndex, removed: Sequence[tuple[str, str]], *, table_version: TableVersion
) -> PartitionChange:
    """What the removal of files (partition, name) changes. What is said of partitions stays as it is."""
    if index.bloom is not None:
        return bloom_change(BLOOMS.empty_table(), removed, table_version=table_version, index=index.partition)
    return removed_column_stats([index.source], removed, table_version=table_version, index=index.partition)


def _blooms(
    snapshot: Snapshot, requested: str, files: Sequence[File], index: ExpressionIndex, schema: pa.Schema,
    executor: Executor, *, evolution: Evolution | None, counts: Counts,
) -> PartitionChange:  # fmt: skip
    blooms = read_expression_blooms(
        snapshot, files, index, schema, executor, instant=requested, evolution=evolution,
        counts=counts,
    )  # fmt: skip
    return bloom_change(blooms, (), table_version=snapshot.config.version, index=index.partition)


def _stats(
    files: pa.Table,
    of_partitions: pa.Table,
    touched: Sequence[str],
    index: ExpressionIndex,
    table_version: TableVersion,
) -> PartitionChange:
    """The change of an index of statistics. `files`: bounds of new files. `of_partitions`: of all files of partitions.

    A partition of `touched` that has no file loses its statistics.
    """
    column, version = index.column, index.version
    merged = merge_by_partition(of_partitions)
    cells = [CELLS.empty_table(), file_stats_cells(_without_nulls(files), column, version, table_version=table_version)]

    if len(merged):
        keys = expression_partition_stats_keys(column.name, merged.column("partition").combine_chunks())
        cells.append(partition_stats_cells(_without_nulls(merged), column, keys, version, table_version=table_version))

    gone = sorted({*touched} - set(merged.column("partition").to_pylist()))
    deletes = (
        expression_partition_stats_keys(column.name, pa.array(gone, pa.string())) if gone else pa.array([], pa.string())
    )

    return PartitionChange(index.partition, pa.concat_tables(cells), binary_keys(deletes))


def _stored_bounds(
    snapshot: Snapshot, files: Sequence[File], index: ExpressionIndex, schema: pa.Schema, executor: Executor, *,
    evolution: Evolution | None,
) -> pa.Table:  # fmt: skip
    """What the index says of these files. Files that it says nothing of are read."""
    found = [bounds_schema(index.type).empty_table()]
    if not files:
        return found[0]

    partitions = pa.array([partition for partition, _, _ in files], pa.string())
    names = pa.array([name for _, name, _ in files], pa.string())
    keys = column_stats_keys(index.source, partitions, names)
    table = open_metadata_table(snapshot.storage, snapshot.zone)
    stored = open_partition(table, index.partition, snapshot.timeline, executor=executor)

    for part in stored.lookup(keys):
        cells = current_cells(table, part, stats_type=None)
        rows = stored_bounds_rows(cells, binary_keys(keys), index.column, partitions, names, table.record_schema)
        found.append(_with_nulls(rows))

    told = {key for part in found for key in zip(part["partition"].to_pylist(), part["file"].to_pylist(), strict=True)}
    missing = [file for file in files if file[:2] not in told]
    read = read_expression_bounds(
        snapshot, missing, index, schema, executor, evolution=evolution, counts=snapshot.timeline.is_committed
    )
    return pa.concat_tables([*found, bounds_table(read, index.column)])


def _without_nulls(bounds: pa.Table) -> pa.Table:
    return _counted(bounds, pc.subtract(bounds.column("value_count"), bounds.column("null_count")))


def _with_nulls(bounds: pa.Table) -> pa.Table:
    return _counted(bounds, pc.add(bounds.column("value_count"), bounds.column("null_count")))


def _counted(bounds: pa.Table, counts: pa.ChunkedArray) -> pa.Table:
    return bounds.set_column(bounds.schema.get_field_index("value_count"), "value_count", counts)
