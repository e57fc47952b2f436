"""Records of a metadata partition by key, as plain values: for people who look into the metadata table."""

from collections.abc import Sequence

from pyhudi.errors import Unsupported
from pyhudi.metadata.kinds.records import Records
from pyhudi.metadata.kinds.registry import KINDS, find_kind
from pyhudi.metadata.store.indexes import MetadataIndexes


def lookup_records(indexes: MetadataIndexes, partition: str, keys: Sequence[str]) -> Records:
    """What a metadata partition holds under each key; None for a key that it does not have.

    The kind of the partition says what keys are: partition paths in the listing, record keys in a record index, values
    of the column in a secondary index.
    Raises: Unsupported for a metadata partition whose keys are hashes, and for an index that cannot tell.
    """
    kind = find_kind(partition)
    if kind is None or not kind.has_readable_keys:
        names = ", ".join(one.name for one in KINDS if one.has_readable_keys)
        raise Unsupported(f"metadata partition '{partition}': keys are looked up in partitions of the kinds {names}")
    return kind.records(indexes, partition, keys)
