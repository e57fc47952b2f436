"""Statistics of columns: of files, of partitions, and those of indexes on expressions.

An answer has the rows that are known, and no others. A file or partition without a row may hold anything.
Spec: format/metadata-table.md sections 5, 6 and 9.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.bound_orders import in_every_order
from pyhudi.format.metadata.keys import (
    column_stats_keys,
    column_stats_prefixes,
    expression_partition_stats_keys,
    partition_stats_keys,
)
from pyhudi.format.metadata.stats import decode_column_stats
from pyhudi.format.metadata.stats_values import bounds_of
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.versions import RecordVersions

_FILE_KEY_SIZE: Final = 48
_COLUMN_SIZE: Final = 12
_LONG_TEXT_SIZE: Final = 2_000
_PREFIXES_MAX: Final = 64
"""With more partitions than this, all of a column's records are read instead of those of each partition."""


def read_column_stats(
    indexes: MetadataIndexes,
    column: pa.Field,
    *,
    partitions: Sequence[str],
    files: pa.Table | None = None,
    index: str,
    as_stored: bool = False,
) -> pa.Table | None:
    """The statistics of a column in these partitions' files; None if the index is not ready.

    `column`: its name, with dots where it is nested, and its type of now. `files`: only these files (columns as
    `FILES` of `file_statistics`). `index`: the index that holds the statistics. For an index on an expression `column`
    has the name of its source field, and the type of the expression. `as_stored`: bounds are those that are stored;
    otherwise they are as wide as a query needs them, see `in_every_order`.
    Columns: `partition`, `file`, `min`, `max` (of the column's type), `is_known` (of the bounds), `null_count`,
    `value_count`, `is_tight_bound`.
    """
    found = indexes.find(index)
    if found is None:
        return None

    distinct = pa.array(sorted(set(partitions)), pa.string())
    if files is not None:
        keys = column_stats_keys(column.name, one_array(files.column("partition")), one_array(files.column("name")))
        parts = found.lookup(keys)
    elif len(distinct) <= _PREFIXES_MAX:
        parts = found.lookup_prefixes(column_stats_prefixes(column.name, distinct).to_pylist() if len(distinct) else [])
    else:
        parts = found.lookup_prefixes(column_stats_prefixes(column.name).to_pylist())

    hashes = pc.utf8_slice_codeunits(partition_stats_keys(column.name, distinct), _COLUMN_SIZE) if len(distinct) else []
    rows = [_stats(part, column.type, as_stored=as_stored) for part in parts]
    stats = pa.concat_tables([_stats_schema(column.type).empty_table(), *rows])

    # A file's key is 12 characters of the column, 12 of the partition and 24 of the file. Other keys are of partitions.
    keys = stats.column("key")
    stats = stats.filter(pc.equal(pc.binary_length(keys), _FILE_KEY_SIZE))

    of_partition = pc.utf8_slice_codeunits(stats.column("key"), _COLUMN_SIZE, 2 * _COLUMN_SIZE)
    at = pc.index_in(of_partition, value_set=pa.array(hashes, pa.string()))
    stats = stats.set_column(0, "partition", distinct.take(one_array(at)) if len(stats) else pa.array([], pa.string()))
    return stats.filter(pc.is_valid(stats.column("partition")))


def read_partition_stats(
    indexes: MetadataIndexes,
    column: pa.Field,
    *,
    partitions: Sequence[str],
    index: str,
    as_stored: bool = False,
    keys_of: Callable[[str, pa.Array], pa.StringArray] = expression_partition_stats_keys,
) -> pa.Table | None:
    """The statistics of a column over all files of each of these partitions; None if the index is not ready.

    Arguments, columns: as in `read_column_stats`, without `file`. `keys_of`: makes the keys of partitions' statistics,
    which an index on an expression spells in another way.
    """
    found = indexes.find(index)
    if found is None:
        return None

    distinct = pa.array(sorted(set(partitions)), pa.string())
    if not len(distinct):
        return _stats_schema(column.type).empty_table().rename_columns(["partition", *_RESULT]).drop_columns(["file"])

    keys = keys_of(column.name, distinct)
    rows = [_stats(part, column.type, as_stored=as_stored) for part in found.lookup(keys)]
    stats = pa.concat_tables([_stats_schema(column.type).empty_table(), *rows])

    at = one_array(pc.index_in(stats.column("key"), value_set=keys))
    return stats.set_column(0, "partition", distinct.take(at)).drop_columns(["file"])


_RESULT: Final = ["file", "min", "max", "is_known", "null_count", "value_count", "is_tight_bound"]


def _stats_schema(kind: pa.DataType) -> pa.Schema:
    types = [pa.string(), kind, kind, pa.bool_(), pa.int64(), pa.int64(), pa.bool_()]
    return pa.schema([("key", pa.string()), *zip(_RESULT, types, strict=True)])


def _stats(part: RecordVersions, kind: pa.DataType, *, as_stored: bool) -> pa.Table:
    """The statistics of each key, its versions merged."""
    decoded = part.decode(lambda values, text: decode_column_stats(values, text, path=part.path))
    if decoded is None:
        return _stats_schema(kind).empty_table()
    bounds = bounds_of(kind, decoded.combine_chunks())
    nulls, values = (one_array(decoded.column(name)) for name in ("null_count", "value_count"))
    if not as_stored:
        bounds = in_every_order(bounds)
        in_doubt = _may_be_no_nulls(kind, nulls, values, one_array(decoded.column("total_uncompressed_size")))
        nulls, values = (pc.if_else(in_doubt, pa.scalar(None, pa.int64()), counts) for counts in (nulls, values))
    columns = [
        part.keys.cast(pa.string()), one_array(decoded.column("file_name")), bounds.min, bounds.max, bounds.is_known,
        nulls, values, one_array(decoded.column("is_tight_bound")),
    ]  # fmt: skip

    stats = pa.Table.from_arrays(columns, schema=_stats_schema(kind))
    is_deleted = one_array(decoded.column("is_deleted")).to_numpy(zero_copy_only=False)

    starts = part.starts
    if starts.all():
        return stats.filter(pa.array(~is_deleted)) if is_deleted.any() else stats
    return _merged(stats, starts, is_deleted)


def _may_be_no_nulls(kind: pa.DataType, nulls: pa.Array, values: pa.Array, size: pa.Array) -> pa.Array:
    """Where all values of a base file are said to be null, although they may only be without statistics.

    Parquet footers of Apache Hudi have no statistics of a column with a text of more than some 2 kB, nor of times as
    INT96. Its statistics say then that all values are null. `size`: of the column, not compressed; 0 in logs.
    Seen: 1.2.0 (`ParquetUtils`).
    """
    if pa.types.is_timestamp(kind):
        size_min = 1
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        size_min = _LONG_TEXT_SIZE
    else:
        return pa.array(np.zeros(len(nulls), np.bool_))
    return pc.fill_null(pc.and_(pc.equal(nulls, values), pc.greater_equal(size, size_min)), False)


def _merged(stats: pa.Table, starts: np.ndarray, is_deleted: np.ndarray) -> pa.Table:
    """For each key one row: its newest record that states everything, merged with the records after it.

    A key whose newest record is a tombstone has no row. Bounds are known if those of one merged record are, and each
    other record either has known bounds or holds nulls alone.
    """
    is_tight = one_array(stats.column("is_tight_bound")).to_numpy(zero_copy_only=False)
    anew = starts | is_deleted | is_tight
    anew[1:] |= is_deleted[:-1]

    positions = np.arange(len(stats))
    group = np.cumsum(starts) - 1
    newest_start = np.zeros(int(group[-1]) + 1, np.int64)
    np.maximum.at(newest_start, group[anew], positions[anew])
    keep = (positions >= newest_start[group]) & ~is_deleted

    ends = np.append(starts[1:], True)
    empty = pc.fill_null(pc.equal(stats.column("null_count"), stats.column("value_count")), False)
    says = pc.or_(stats.column("is_known"), empty)
    kept = stats.append_column("says", says).append_column("end", pa.array(ends)).filter(pa.array(keep))

    merged = kept.group_by("key").aggregate(
        [
            ("file", "max"), ("min", "min"), ("max", "max"), ("is_known", "any"), ("null_count", "sum"),
            ("value_count", "sum"), ("is_tight_bound", "all"), ("says", "all"),
        ]
    )  # fmt: skip

    columns = [merged.column(name) for name in ("key", "file_max", "min_min", "max_max")]
    columns.append(pc.and_(merged.column("is_known_any"), merged.column("says_all")))
    columns += [merged.column(name) for name in ("null_count_sum", "value_count_sum", "is_tight_bound_all")]
    return pa.Table.from_arrays(columns, schema=stats.schema)
