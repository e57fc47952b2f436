"""The files of a table as the storage and the metadata table list them, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyhudi.api.metadata.table import ListedBy
from pyhudi.api.table import HudiTable


@dataclass(frozen=True, slots=True)
class ListedTwice:
    """A data file. Sizes: None where that listing does not have the file."""

    partition: str
    name: str
    stored_bytes: int | None
    known_bytes: int | None


def compare_listings(table: HudiTable) -> Iterator[ListedTwice]:
    """Every file of both listings, by partition and name. Requests: one listing of each partition.

    Files of writes that have not completed are in the storage only. Raises: NotFound without a metadata table.
    """
    metadata = table.metadata
    known_in, stored_in = set(metadata.list_partitions()), set(metadata.list_partitions(listed_by="storage"))
    for partition in sorted(known_in | stored_in):
        known = _sizes(table, partition, "metadata") if partition in known_in else {}
        stored = _sizes(table, partition, "storage") if partition in stored_in else {}
        for name in sorted({*known, *stored}):
            yield ListedTwice(partition, name, stored.get(name), known.get(name))


def _sizes(table: HudiTable, partition: str, listed_by: ListedBy) -> dict[str, int]:
    files = table.metadata.list_files([partition], listed_by=listed_by)
    return dict(zip(files.column("name").to_pylist(), files.column("size_bytes").to_pylist(), strict=True))
