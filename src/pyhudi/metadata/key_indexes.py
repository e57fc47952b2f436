"""Indexes that lead to files or keys: record index, secondary indexes, Bloom filters.

Spec: format/metadata-table.md sections 4 to 6.
"""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.instants import format_instant
from pyhudi.format.metadata_groups import BLOOM_FILTERS, RECORD_INDEX, SECONDARY_INDEX_PREFIX
from pyhudi.format.metadata_keys import (
    KeyHashing,
    bloom_filter_keys,
    secondary_prefixes,
    split_secondary_keys,
)
from pyhudi.format.record_index_records import decode_bloom_filters, decode_locations, decode_secondary_entries
from pyhudi.metadata.indexes import MetadataIndexes
from pyhudi.metadata.versions import RecordVersions

LOCATIONS: Final = pa.schema(
    [("key", pa.string()), ("partition", pa.string()), ("file_id", pa.string()), ("instant", pa.string())]
)
BLOOMS: Final = pa.schema([("file", pa.string()), ("type", pa.string()), ("bloom_filter", pa.binary())])
ENTRIES: Final = pa.schema([("value", pa.string()), ("record_key", pa.string())])


def locate_records(
    indexes: MetadataIndexes, keys: pa.Array | pa.ChunkedArray, *, partition: str | None = None
) -> pa.Table | None:
    """Where record keys lie, as `LOCATIONS`; a key that the table does not have gives no row.

    `partition`: where the index is kept by partition, look there only; else a key may lie in several of them.
    None if there is no record index that is ready.
    """
    found = indexes.find(RECORD_INDEX)
    if found is None:
        return None
    is_partitioned = None not in found.groups
    where: list[str | None] = [None]
    if is_partitioned:
        where = list(found.groups) if partition is None else [partition]
    parts = [part for one in where for part in found.lookup(keys, data_partition=one)]
    located = pa.concat_tables([LOCATIONS.empty_table(), *(_locations(part, indexes) for part in parts)])
    if partition is not None and not is_partitioned:
        located = located.filter(pc.equal(located.column("partition"), partition))
    return located


def located_groups(located: Iterable[pa.Table]) -> dict[str, set[str]]:
    """The file groups that locations name: partition -> file ids."""
    groups: dict[str, set[str]] = {}
    for places in located:
        pairs = places.group_by(["partition", "file_id"]).aggregate([])
        for partition, file_id in zip(pairs["partition"].to_pylist(), pairs["file_id"].to_pylist(), strict=True):
            groups.setdefault(partition, set()).add(file_id)
    return groups


def find_secondary(indexes: MetadataIndexes, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table | None:
    """The record keys of these values, as `ENTRIES`; None if the index cannot tell.

    `name`: of the index, without the metadata partition's prefix. `values`: as Java spells them. A null is only known
    to an index of version V2: Seen: 1.0.2 has no entries for null. A row may be out of date no more than the index is.
    """
    partition = f"{SECONDARY_INDEX_PREFIX}{name}"
    found, definition = indexes.find(partition), indexes.index_definitions().get(partition)
    if found is None or definition is None or (values.null_count and not definition.is_second_version):
        return None
    hashing = KeyHashing.SECONDARY_PREFIX if definition.is_second_version else KeyHashing.WHOLE
    prefixes = secondary_prefixes(pc.unique(values).cast(pa.string())).to_pylist()
    entries = [_secondary(part) for part in found.lookup_prefixes(prefixes, hashing=hashing)]
    return pa.concat_tables([ENTRIES.empty_table(), *entries])


def read_bloom_filters(
    indexes: MetadataIndexes, partition: str, files: Iterable[str], *, index: str = BLOOM_FILTERS
) -> pa.Table | None:
    """The Bloom filters of base files of a partition, as `BLOOMS`, in no order; a file without one gives no row.

    `files`: names without a directory. `index`: `bloom_filters`, or an expression index on them. None if there is no
    such index that is ready. `bloom_filter`: its text, as in a Parquet footer.
    """
    names = pa.array(list(files), pa.string())
    found = read_bloom_filters_of(indexes, pa.repeat(pa.scalar(partition), len(names)), names, index=index)
    return None if found is None else found.drop_columns(["partition"])


def read_bloom_filters_of(
    indexes: MetadataIndexes, partitions: pa.Array, files: pa.Array, *, index: str = BLOOM_FILTERS
) -> pa.Table | None:
    """As `read_bloom_filters`, of files in several partitions, in one look-up; `partition` is the first column."""
    found = indexes.find(index)
    if found is None:
        return None
    nothing = pa.schema([("partition", pa.string()), *BLOOMS]).empty_table()
    if not len(files):
        return nothing
    keys = bloom_filter_keys(partitions, files)
    return pa.concat_tables([nothing, *(_blooms(part, keys, partitions, files) for part in found.lookup(keys))])


def _locations(part: RecordVersions, indexes: MetadataIndexes) -> pa.Table:
    newest = part.newest()
    decoded = newest.decode(lambda values, text: decode_locations(values, text, path=newest.path))
    if decoded is None:
        return LOCATIONS.empty_table()
    encoded = one_array(decoded.column("instant_ms")).dictionary_encode()
    texts = [None if ms is None else format_instant(ms, indexes.zone) for ms in encoded.dictionary.to_pylist()]
    instants = pa.array(texts, pa.string()).take(encoded.indices)
    columns = [newest.keys.cast(pa.string()), decoded.column("partition"), decoded.column("file_id"), instants]
    return pa.Table.from_arrays(columns, schema=LOCATIONS)


def _secondary(part: RecordVersions) -> pa.Table:
    newest = part.newest()
    if not len(newest):
        return ENTRIES.empty_table()
    gone = newest.decode(
        lambda values, text: pa.table({"gone": decode_secondary_entries(values, text, path=newest.path)})
    )
    assert gone is not None
    keys = newest.keys.filter(one_array(pc.invert(gone.column("gone"))))
    if not len(keys):
        return ENTRIES.empty_table()
    return pa.Table.from_arrays(list(split_secondary_keys(keys)), schema=ENTRIES)


def _blooms(part: RecordVersions, keys: pa.StringArray, partitions: pa.Array, names: pa.Array) -> pa.Table:
    schema = pa.schema([("partition", pa.string()), *BLOOMS])
    newest = part.newest()
    decoded = newest.decode(lambda values, text: decode_bloom_filters(values, text, path=newest.path))
    if decoded is None:
        return schema.empty_table()
    at = pc.index_in(newest.keys.cast(pa.string()), value_set=keys)
    columns = [partitions.take(at), names.take(at), decoded.column("type"), decoded.column("bloom_filter")]
    return pa.Table.from_arrays(columns, schema=schema).filter(pc.invert(decoded.column("is_deleted")))
