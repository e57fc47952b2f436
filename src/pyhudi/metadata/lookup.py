"""Records of a metadata partition by key, as plain values: for people who look into the metadata table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pyhudi.errors import Unsupported
from pyhudi.format.metadata_groups import FILES, RECORD_INDEX, SECONDARY_INDEX_PREFIX
from pyhudi.format.metadata_record import PARTITIONS_KEY, partition_of_key
from pyhudi.metadata.files_partition import read_files_partition
from pyhudi.metadata.indexes import MetadataIndexes
from pyhudi.metadata.key_indexes import find_secondary, locate_records

Records: TypeAlias = dict[str, dict[str, Any] | None]


def lookup_records(indexes: MetadataIndexes, partition: str, keys: Sequence[str]) -> Records:
    """What a metadata partition holds under each key; None for a key that it does not have.

    Keys of `files` are partition paths, of `record_index` record keys, of a secondary index values of its column.
    Raises: Unsupported for a metadata partition whose keys are hashes, and for an index that cannot tell.
    """
    if partition.startswith(SECONDARY_INDEX_PREFIX):
        return _secondary_records(indexes, partition, keys)
    by_name = _LOOKUPS.get(partition)
    if by_name is None:
        raise Unsupported(
            f"metadata partition '{partition}': keys are looked up in {', '.join(_LOOKUPS)} and secondary indexes"
        )
    return by_name(indexes, keys)


def _files_records(indexes: MetadataIndexes, keys: Sequence[str]) -> Records:
    listing = read_files_partition(indexes.table, indexes.timeline)
    known = set(listing.partitions())
    found: Records = {}
    for key in keys:
        if key == PARTITIONS_KEY:
            found[key] = {"partitions": sorted(known)}
        elif partition_of_key(key) in known:
            files = listing.files(partition_of_key(key))
            found[key] = {"files": {file.name: file.size_bytes for file in files}}
        else:
            found[key] = None
    return found


def _locations(indexes: MetadataIndexes, keys: Sequence[str]) -> Records:
    located = locate_records(indexes, pa.array(keys, pa.string()))
    assert located is not None  # the table names the index
    return _by_key(keys, located, "key", "locations")


def _secondary_records(indexes: MetadataIndexes, partition: str, keys: Sequence[str]) -> Records:
    name = partition.removeprefix(SECONDARY_INDEX_PREFIX)
    entries = find_secondary(indexes, name, pa.array(keys, pa.string()))
    if entries is None:
        raise Unsupported(f"metadata partition '{partition}': the index has no definition, and cannot tell")
    return _by_key(keys, entries, "value", "rows")


def _by_key(keys: Sequence[str], rows: pa.Table, column: str, name: str) -> Records:
    """The rows of each key: few, for somebody named the keys one by one."""
    by_key: dict[str, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_key.setdefault(row.pop(column), []).append(row)
    return {key: {name: by_key[key]} if key in by_key else None for key in keys}


_LOOKUPS: Final[Mapping[str, Callable[[MetadataIndexes, Sequence[str]], Records]]] = {
    FILES: _files_records,
    RECORD_INDEX: _locations,
}
