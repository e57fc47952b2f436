"""Which files a partition holds: the protocol, and the answer that the storage itself gives."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pyhudi.format.names import HOODIE, PARTITION_METAFILE
from pyhudi.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a partition: its name and size in bytes."""

    name: str
    size_bytes: int


class FileListing(Protocol):
    """Partitions and their files, whether committed or not. `source`: who knows them, in words."""

    @property
    def source(self) -> str: ...

    def partitions(self) -> list[str]:
        """Every partition path, sorted; `""` is the root of an unpartitioned table."""

    def files(self, partition: str) -> list[ListedFile]:
        """The data and log files of a partition, sorted by name; none for an unknown partition."""

    def expect(self, partitions: Iterable[str]) -> None:
        """The files of these partitions are about to be asked for: read of them together what can be."""


class StorageListing:
    """The listing that walks the storage.

    Requests: `partitions` lists every folder once; `files` one list request.
    """

    source = "storage"

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def partitions(self) -> list[str]:
        """Folders that hold a partition metadata file. Spec: format/layout.md section 3."""
        found: list[str] = []
        folders = [""]
        while folders:
            folder = folders.pop()
            names = (file.path.rpartition("/")[2] for file in self._storage.list(folder))
            if any(name.startswith(PARTITION_METAFILE) for name in names):
                found.append(folder)
                continue
            folders += [f for f in self._storage.list_folders(folder) if f.rpartition("/")[2] != HOODIE]
        return sorted(found)

    def expect(self, partitions: Iterable[str]) -> None:
        """Nothing: a folder is a request."""

    def files(self, partition: str) -> list[ListedFile]:
        listed = ((file.path.rpartition("/")[2], file.size_bytes) for file in self._storage.list(partition))
        return [ListedFile(name, size) for name, size in listed if not name.startswith(PARTITION_METAFILE)]
