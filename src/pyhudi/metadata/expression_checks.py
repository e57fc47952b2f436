"""Comparing indexes on expressions with the data files: bounds that a value lies beyond, filters that lack one."""

from collections.abc import Iterator

import pyarrow as pa

from pyhudi.metadata.check import Difference, DifferenceKind
from pyhudi.metadata.column_bounds import bounds_table
from pyhudi.metadata.column_stats import read_column_stats, read_partition_stats
from pyhudi.metadata.derive_stats import File, files_of
from pyhudi.metadata.expression_index import ExpressionIndex
from pyhudi.metadata.expression_statistics import usable_filter, with_nulls
from pyhudi.metadata.expression_values import count_unheld, read_expression_bounds
from pyhudi.metadata.index_checks import IndexCheck, beyond
from pyhudi.metadata.key_indexes import read_bloom_filters
from pyhudi.metadata.stats_changes import merge_by_partition
from pyhudi.table.file_statistics import FILES


def expression_differences(check: IndexCheck, index: ExpressionIndex) -> Iterator[Difference]:
    """Of every file that a query reads, and of partitions. Memory: what the index holds of a data partition."""
    for partition in check.snapshot.listing.partitions():
        files = files_of(check.snapshot.slices(partition))
        if index.bloom is not None:
            yield from _filters(check, index, partition, files)
        else:
            yield from _statistics(check, index, partition, files)


def _statistics(check: IndexCheck, index: ExpressionIndex, partition: str, files: list[File]) -> Iterator[Difference]:
    snapshot, field = check.snapshot, pa.field(index.source, index.type)
    read = read_expression_bounds(snapshot.storage, files, index, snapshot.schema_with_meta, check.executor)
    bounds = bounds_table(read, index.column)
    table = pa.table([[p for p, _, _ in files], [name for _, name, _ in files]], schema=FILES)
    of_files = read_column_stats(check.indexes, field, partitions=[partition], files=table, index=index.partition)
    whole = read_partition_stats(check.indexes, field, partitions=[partition], index=index.partition)
    known, known_whole = with_nulls(of_files), with_nulls(whole)
    assert known is not None
    assert known_whole is not None
    yield from beyond(index.partition, partition, index.column, bounds, known, "file")
    merged = merge_by_partition(bounds)
    yield from beyond(index.partition, partition, index.column, merged, known_whole, "partition")


def _filters(check: IndexCheck, index: ExpressionIndex, partition: str, files: list[File]) -> Iterator[Difference]:
    snapshot = check.snapshot
    known = read_bloom_filters(check.indexes, partition, [name for _, name, _ in files], index=index.partition)
    assert known is not None
    by_name = {name: (of, name, size) for of, name, size in files}
    for row in known.to_pylist():
        bloom, file = usable_filter(row, index.partition), by_name[row["file"]]
        schema = snapshot.schema_with_meta
        missing = 0 if bloom is None else count_unheld(snapshot.storage, file, index, schema, bloom)
        if missing:
            yield Difference(
                index.partition, DifferenceKind.RECORD_VALUE, partition, f"{index.source} {row['file']}",
                stored=f"{missing:,} rows that the filter lacks",
            )  # fmt: skip
