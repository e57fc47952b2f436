"""What an action changes in indexes, as changes of metadata partitions: keys, records in Avro, and deletes."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.key_records import encode_bloom_filters, encode_locations, encode_secondary_entries
from pyhudi.format.metadata.keys import bloom_filter_keys, column_stats_keys, secondary_keys
from pyhudi.format.metadata.stats import STATS_COLUMNS, encode_column_stats
from pyhudi.metadata.derive.changes import CELLS, PartitionChange, binary_keys
from pyhudi.metadata.derive.keys import LOCATED
from pyhudi.versions import IndexRemoval, TableVersion

_COUNTS = ("value_count", "null_count", "total_size", "total_uncompressed_size")
_UUID_ID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(-[0-9]{1,9})?$"


def record_index_changes(
    located: pa.Table, gone: pa.Table, *, instant_ms: int, table_version: TableVersion, is_partitioned: bool, index: str
) -> Iterator[PartitionChange]:
    """The record index's change; for a partitioned index one for each data partition.

    `located`, `gone`: as in `KeyChanges`. A key in both has moved to another file group, and is not deleted. Where
    several file groups have a key, the last one counts. `instant_ms`: since the epoch, of the commit that put the keys
    there. `index`: its partition of the metadata table.
    """
    if not is_partitioned:
        yield _record_index_change(located, gone, instant_ms, table_version, index, None)
        return

    partitions = pa.concat_arrays([one_array(table.column("partition")) for table in (located, gone)]).unique()
    for partition in sorted(partitions.to_pylist()):
        mine = [table.filter(pc.equal(table.column("partition"), partition)) for table in (located, gone)]
        yield _record_index_change(mine[0], mine[1], instant_ms, table_version, index, partition)


def _record_index_change(
    located: pa.Table,
    gone: pa.Table,
    instant_ms: int,
    table_version: TableVersion,
    index: str,
    data_partition: str | None,
) -> PartitionChange:
    assert located.schema == LOCATED
    located = _last_of_each(located)
    keys = one_array(located.column("record_key"))

    leaving = one_array(gone.column("record_key")).unique()
    # A key that is in another group now has moved. Its new record replaces the old one.
    if len(keys):
        leaving = leaving.filter(pc.invert(pc.is_in(leaving, keys)))

    values = _locations(located, instant_ms, table_version)
    return PartitionChange(index, _cells(keys, values), binary_keys(leaving), data_partition)


def _locations(located: pa.Table, instant_ms: int, table_version: TableVersion) -> pa.Array:
    """The records of keys. All keys of a file group have the same record, so one is made for each file group."""
    partitions, file_ids = (one_array(located.column(name)).dictionary_encode() for name in ("partition", "file_id"))

    width = max(1, len(file_ids.dictionary))
    codes = np.asarray(partitions.indices).astype(np.int64) * width + np.asarray(file_ids.indices)
    groups = pa.array(codes).dictionary_encode()
    group_codes = np.asarray(groups.dictionary)

    names, count = file_ids.dictionary, len(group_codes)
    values = encode_locations(
        pa.table(
            {
                "partition": partitions.dictionary.take(pa.array(group_codes // width)),
                "file_id": names.take(pa.array(group_codes % width)),
                "instant_ms": pa.array(np.full(count, instant_ms, np.int64)),
                "position": pa.nulls(count, pa.int64()),
            }
        ),
        table_version=table_version.metadata_schema,
        is_raw=not pc.all(pc.match_substring_regex(names, _UUID_ID), min_count=0).as_py(),
    )
    return values.cast(pa.large_binary()).take(groups.indices)


def secondary_change(
    partition: str, before: pa.Array, after: pa.Array, *, table_version: TableVersion
) -> PartitionChange:
    """A secondary index's change: the keys of the same file groups before an action, and after it."""
    added, removed = after.unique(), before.unique()

    # An entry that was there before, and still is, does not change.
    if len(before) and len(after):
        stays = pc.is_in(added, removed)
        removed = removed.filter(pc.invert(pc.is_in(removed, added)))
        added = added.filter(pc.invert(stays))

    values = encode_secondary_entries(
        pa.array(np.zeros(len(added), np.bool_)), table_version=table_version.metadata_schema
    )
    return PartitionChange(partition, _cells(added, values), binary_keys(removed))


def secondary_index_keys(values: pa.Array, record_keys: pa.Array, *, has_nulls: bool) -> pa.Array:
    """Keys of a secondary index. `has_nulls`: whether rows whose value is null have keys.

    Seen: 1.2.0 indexes these rows, 1.0.2 does not.
    """
    if values.null_count and not has_nulls:
        known = values.is_valid()
        values, record_keys = values.filter(known), record_keys.filter(known)
    return secondary_keys(values, record_keys)


def bloom_change(
    blooms: pa.Table, removed: Sequence[tuple[str, str]], *, table_version: TableVersion, index: str
) -> PartitionChange:
    """The change of an index of Bloom filters.

    `blooms`: as `BLOOMS`. `removed`: files (partition, name) that are no more. `index`: its partition of the metadata
    table.
    """
    keys = bloom_filter_keys(one_array(blooms.column("partition")), one_array(blooms.column("file")))
    gone = bloom_filter_keys(*_columns_of(removed))

    # Older table versions remove a filter by a record that says so, newer ones by a delete.
    if table_version.index_removal is IndexRemoval.RECORDS:
        return PartitionChange(
            index,
            pa.concat_tables([_blooms(keys, blooms, table_version), _bloom_tombstones(gone, table_version)]),
        )
    return PartitionChange(index, _blooms(keys, blooms, table_version), binary_keys(gone))


def _blooms(keys: pa.Array, blooms: pa.Table, table_version: TableVersion) -> pa.Table:
    filters = pa.table(
        {
            "type": blooms.column("type"),
            "timestamp": blooms.column("instant"),
            "bloom_filter": blooms.column("bloom_filter"),
            "is_deleted": pa.array(np.zeros(len(blooms), np.bool_)),
        }
    )
    return _cells(keys, encode_bloom_filters(filters, table_version=table_version.metadata_schema))


def _bloom_tombstones(keys: pa.Array, table_version: TableVersion) -> pa.Table:
    filters = pa.table(
        {
            "type": pa.repeat("", len(keys)),
            "timestamp": pa.repeat("", len(keys)),
            "bloom_filter": pa.repeat(b"", len(keys)),
            "is_deleted": pa.array(np.ones(len(keys), np.bool_)),
        }
    )
    return _cells(keys, encode_bloom_filters(filters, table_version=table_version.metadata_schema))


def removed_column_stats(
    columns: Sequence[str], removed: Sequence[tuple[str, str]], *, table_version: TableVersion, index: str
) -> PartitionChange:
    """The removal of these columns' statistics in files (partition, name) that are no more. `index`: as above."""
    if not removed or not columns:
        return PartitionChange(index)

    partitions, names = _columns_of(removed)
    keys = pa.concat_arrays([column_stats_keys(column, partitions, names) for column in columns])

    if table_version.index_removal is IndexRemoval.DELETE_BLOCKS:
        return PartitionChange(index, deletes=binary_keys(keys))

    # Older table versions remove statistics by records that say so.
    count, none = len(keys), pa.array(np.zeros(len(keys), np.int8))
    stats = {
        "file_name": pa.concat_arrays([names] * len(columns)),
        "column_name": pa.array(np.repeat(np.array(columns, object), len(removed)), pa.string()),
        **{f"{side}_kind": none for side in ("min", "max")},
        **{f"{side}_bits": none.cast(pa.int64()) for side in ("min", "max")},
        **{f"{side}_bytes": pa.repeat(b"", count) for side in ("min", "max")},
        **{name: pa.repeat(pa.scalar(-1, pa.int64()), count) for name in _COUNTS},
        "is_deleted": pa.array(np.ones(count, np.bool_)),
        "is_tight_bound": pa.array(np.zeros(count, np.bool_)),
        "value_type": pa.nulls(count, pa.int8()),
        "value_type_info": pa.nulls(count, pa.string()),
    }

    columns_of = pa.table([stats[name] for name in STATS_COLUMNS.names], schema=STATS_COLUMNS)
    values = encode_column_stats(columns_of, table_version=table_version.metadata_schema)
    return PartitionChange(index, _cells(keys, values))


def _columns_of(files: Sequence[tuple[str, str]]) -> tuple[pa.Array, pa.Array]:
    return pa.array([partition for partition, _ in files], pa.string()), pa.array(
        [name for _, name in files], pa.string()
    )


def _last_of_each(located: pa.Table) -> pa.Table:
    keys = located.column("record_key")
    if pc.count_distinct(keys).as_py() == len(located):
        return located
    numbered = pa.table({"record_key": keys, "row": np.arange(len(located))})
    last = numbered.group_by("record_key").aggregate([("row", "max")]).column("row_max")
    return located.take(last.combine_chunks().sort())


def _cells(keys: pa.Array, values: pa.Array) -> pa.Table:
    return pa.table([binary_keys(keys), values.cast(pa.large_binary())], schema=CELLS)
