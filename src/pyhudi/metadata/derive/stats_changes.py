"""Column statistics of files and of whole partitions, as changes of the metadata table; and what it knows already.

Spec: format/metadata-table.md sections 6 and 8.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.metadata.groups import PARTITION_STATS_TYPE
from pyhudi.format.metadata.keys import column_stats_keys, partition_stats_keys
from pyhudi.format.metadata.stats import STATS_COLUMNS, encode_column_stats
from pyhudi.format.metadata.stats_values import StatsVersion, ValueType, is_indexable, stored_bounds, value_type_of
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELDS, PARTITION_PATH, RECORD_KEY
from pyhudi.metadata.derive.changes import CELLS, PartitionChange, binary_keys
from pyhudi.metadata.derive.column_bounds import FileBounds, IndexedColumn, bounds_schema, bounds_table
from pyhudi.versions import TableVersion

ALWAYS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
"""Meta fields that are always indexed, in this order."""


def indexed_columns(
    schema: pa.Schema, version: StatsVersion, *, names: Sequence[str] = (), count_max: int = 32
) -> tuple[IndexedColumn, ...]:
    """The columns that have statistics: the meta fields, then the named columns or, if none is named, the first ones.

    `schema`: meta fields first. A named column that is missing, or that cannot have statistics, is left out. A name
    with dots is a field within a record. Spec: format/metadata-table.md section 6, "Columns indexed".
    """
    always = [IndexedColumn(name, pa.string()) for name in ALWAYS if name in schema.names]

    if names:
        found = [IndexedColumn(name, kind) for name in dict.fromkeys(names) if (kind := _type_of(schema, name))]
        own = [column for column in found if column.name not in META_FIELDS]
        return (*always, *(column for column in own if is_indexable(column.type, version)))

    tops = [IndexedColumn(field.name, field.type) for field in schema if field.name not in META_FIELDS]
    able = [column for column in tops if is_indexable(column.type, version, has_bytes=False)]
    return (*always, *able[:count_max])


def column_stats_change(
    files: Iterable[FileBounds],
    columns: Sequence[IndexedColumn],
    version: StatsVersion,
    *,
    table_version: TableVersion,
    index: str,
) -> PartitionChange:
    """The statistics of new files. `index`: its partition of the metadata table."""
    files = list(files)
    parts = [CELLS.empty_table()]
    for column in columns:
        parts.append(file_stats_cells(bounds_table(files, column), column, version, table_version=table_version))
    return PartitionChange(index, pa.concat_tables(parts))


def file_stats_cells(
    bounds: pa.Table, column: IndexedColumn, version: StatsVersion, *, table_version: TableVersion
) -> pa.Table:
    """A column's statistics of files, as cells. `bounds`: as `bounds_schema` has them."""
    if not len(bounds):
        return CELLS.empty_table()
    keys = column_stats_keys(column.name, *_texts(bounds, "partition", "file"))
    values = encode_column_stats(
        _stored(bounds, column, version, "file", False), table_version=table_version.metadata_schema
    )
    return _cells(keys, values)


def partition_stats_cells(
    merged: pa.Table, column: IndexedColumn, keys: pa.Array, version: StatsVersion, *, table_version: TableVersion
) -> pa.Table:
    """A column's statistics of whole partitions, as cells under these keys.

    `merged`: as `merge_by_partition` gives it.
    """
    if not len(merged):
        return CELLS.empty_table()
    stored = _stored(merged, column, version, "partition", True)
    return _cells(
        keys, encode_column_stats(stored, table_version=table_version.metadata_schema, record_type=PARTITION_STATS_TYPE)
    )


def partition_stats_change(
    by_column: Mapping[str, pa.Table],
    columns: Sequence[IndexedColumn],
    partitions: Collection[str],
    version: StatsVersion,
    *,
    table_version: TableVersion,
    index: str,
) -> PartitionChange:
    """The statistics of whole partitions, tight, made of those of all of their files.

    A partition among `partitions` without a file loses its statistics. `by_column`: the bounds of each column's files,
    as `bounds_schema` has them. `index`: its partition of the metadata table.
    """
    parts, deletes = [CELLS.empty_table()], []

    for column in columns:
        merged = merge_by_partition(by_column.get(column.name, bounds_schema(column.type).empty_table()))
        keys = partition_stats_keys(column.name, *_texts(merged, "partition")) if len(merged) else None
        parts.append(partition_stats_cells(merged, column, keys, version, table_version=table_version))
        gone = sorted({*partitions} - set(merged.column("partition").to_pylist()))
        if gone:
            deletes.append(binary_keys(partition_stats_keys(column.name, pa.array(gone, pa.string()))))

    none = pa.array([], pa.large_binary())
    return PartitionChange(index, pa.concat_tables(parts), pa.concat_arrays([none, *deletes]))


def merge_by_partition(bounds: pa.Table) -> pa.Table:
    """One row a partition: sums, least and greatest value.

    If the bounds of one of its files are not known, they are those of the type, or null for a type without an end:
    Apache Hudi passes over a partition whose bounds are null.
    """
    # Where some value is not null, null bounds are unknown bounds.
    is_unknown = pc.and_(pc.is_null(bounds.column("min")), pc.less(bounds.column("null_count"), bounds["value_count"]))
    told = bounds.append_column("is_unknown", is_unknown.cast(pa.int8()))
    low, high = _orderable(told.column("min")), _orderable(told.column("max"))
    told = told.set_column(told.schema.get_field_index("min"), "min", low)
    told = told.set_column(told.schema.get_field_index("max"), "max", high)

    sums = ("value_count", "null_count", "total_size", "total_uncompressed_size")
    merged = told.group_by("partition", use_threads=False).aggregate(
        [*((name, "sum") for name in sums), ("min", "min"), ("max", "max"), ("is_unknown", "max")]
    )

    known = pc.equal(merged.column("is_unknown_max"), 0)
    kind = bounds.schema.field("min").type
    low, high = (merged.column(f"{name}_{name}").cast(kind) for name in ("min", "max"))
    ends = [pc.if_else(known, side, end) for side, end in zip((low, high), _ends_of(kind), strict=True)]

    partitions = merged.column("partition")
    return pa.table(
        [partitions, partitions, *(merged.column(f"{name}_sum").cast(pa.int64()) for name in sums), *ends],
        schema=bounds_schema(kind),
    )


def _ends_of(kind: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """What all values of a type lie between; nulls if that is not known here. No text has U+10FFFF in it."""
    if pa.types.is_floating(kind):
        return pa.scalar(-math.inf, kind), pa.scalar(math.inf, kind)
    if pa.types.is_string(kind):
        return pa.scalar("", kind), pa.scalar("\U0010ffff", kind)
    return pa.scalar(None, kind), pa.scalar(None, kind)


def _orderable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column


def _stored(bounds: pa.Table, column: IndexedColumn, version: StatsVersion, named: str, is_tight: bool) -> pa.Table:
    """Rows of `STATS_COLUMNS`."""
    low, high = (stored_bounds(bounds.column(side), version) for side in ("min", "max"))
    count = len(bounds)
    ordinal, info = value_type_of(column.type) if version is StatsVersion.V2 else (None, None)

    if column.types_empty_files:
        is_untyped = pa.repeat(False, count)
    else:
        is_untyped = pc.and_(pc.equal(bounds.column("value_count"), 0), pc.equal(bounds.column("null_count"), 0))
    types, infos = pa.nulls(count, pa.int8()), pa.nulls(count, pa.string())
    if ordinal is not None:
        none = pa.scalar(int(ValueType.NULL), pa.int8())
        types = pc.if_else(is_untyped, none, pa.scalar(int(ordinal), pa.int8()))
        infos = pc.if_else(is_untyped, pa.scalar(None, pa.string()), pa.scalar(info, pa.string()))

    return pa.table(
        [
            bounds.column(named), pa.repeat(pa.scalar(column.name), count),
            pa.array(low.kinds), pa.array(low.bits), low.data, pa.array(high.kinds), pa.array(high.bits), high.data,
            *(bounds.column(name) for name in ("value_count", "null_count", "total_size", "total_uncompressed_size")),
            pa.array(np.zeros(count, np.bool_)), pa.array(np.full(count, is_tight)), types, infos,
        ],
        schema=STATS_COLUMNS,
    )  # fmt: skip


def _type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    first, *inner = name.split(".")
    if first not in schema.names:
        return None
    kind = schema.field(first).type
    for part in inner:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return kind


def _texts(bounds: pa.Table, *names: str) -> list[pa.Array]:
    return [bounds.column(name).combine_chunks() for name in names]


def _cells(keys: pa.Array, values: pa.Array) -> pa.Table:
    return pa.table([binary_keys(keys), values.cast(pa.large_binary())], schema=CELLS)
