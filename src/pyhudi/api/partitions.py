"""The partitions of a table that have rows, and what their paths tell."""

from pyhudi.api.table import HudiTable
from pyhudi.format.keys.record_keys import partition_values


def living_partitions(table: HudiTable) -> tuple[str, ...]:
    """The paths of partitions that have file groups, sorted. Requests: a listing of each partition."""
    snapshot = table._access.snapshot()
    return tuple(sorted(path for path in snapshot.listing.partitions() if snapshot.slices(path)))


def partition_texts(table: HudiTable, path: str) -> dict[str, str | None]:
    """The texts of partition columns as a path tells them, by column."""
    snapshot = table._access.snapshot()
    return dict(partition_values(path, snapshot.key_spec))
