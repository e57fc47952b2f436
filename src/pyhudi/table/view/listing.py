"""Which files a partition holds: the protocol, and the answer that the storage itself gives."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from pyhudi.format.names import HOODIE, is_partition_metafile
from pyhudi.storage.protocol import FileInfo, Storage


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a partition: its name and size in bytes."""

    name: str
    size_bytes: int


class FileListing(Protocol):
    """Partitions and their files, committed or not. `source`: where the listing comes from, in words."""

    @property
    def source(self) -> str: ...

    def partitions(self) -> list[str]:
        """Every partition path, sorted; `""` is the root of an unpartitioned table."""

    def files(self, partition: str) -> list[ListedFile]:
        """The data and log files of a partition, sorted by name; none for an unknown partition."""

    def expect(self, partitions: Iterable[str]) -> None:
        """Announces that the files of these partitions will be asked for, so that they can be read together."""


def walk(listing: FileListing) -> Iterator[tuple[str, list[ListedFile]]]:
    """Each partition with its files, in the order of their paths."""
    partitions = listing.partitions()
    listing.expect(partitions)
    return ((partition, listing.files(partition)) for partition in partitions)


class StorageListing:
    """The listing that walks the storage.

    Requests: `partitions` lists every folder once; `files` one list request. `nests`: a partition may lie below another
    one, such as `a/b` below `a`, so that the folders below each are asked for, too: one more request a partition. False
    where the table's facts rule that out.
    """

    source = "storage"

    def __init__(self, storage: Storage, *, nests: bool = True) -> None:
        self._storage, self._nests = storage, nests

    def partitions(self) -> list[str]:
        """Folders that hold a partition metadata file. Spec: format/layout.md section 3."""
        return sorted(partition for partition, _ in self._partitions())

    def walk(self) -> Iterator[tuple[str, list[ListedFile]]]:
        """Each partition with its files sorted by name. Partitions come in any order. Lists every folder once."""
        return ((partition, _named(partition, files)) for partition, files in self._partitions())

    def _partitions(self) -> Iterator[tuple[str, Iterator[FileInfo]]]:
        """Each partition with its files. Files are listed lazily: to tell a partition, up to its metadata file."""
        folders = [""]
        while folders:
            folder = folders.pop()
            files, seen, is_partition = self._storage.list(folder), [], False
            for file in files:
                seen.append(file)
                is_partition = is_partition_metafile(file.path)
                if is_partition:
                    yield folder, chain(seen, files)
                    break
            if self._nests or not is_partition:
                folders += [f for f in self._storage.list_folders(folder) if f.rpartition("/")[2] != HOODIE]

    def expect(self, partitions: Iterable[str]) -> None:
        """Does nothing: each folder takes a request of its own anyway."""

    def files(self, partition: str) -> list[ListedFile]:
        return _named(partition, self._storage.list(partition))


def _named(folder: str, files: Iterable[FileInfo]) -> list[ListedFile]:
    """Files of a folder by their names, without the partition metadata file."""
    start = len(folder) + 1 if folder else 0
    named = ((file.path[start:], file.size_bytes) for file in files)
    return [ListedFile(name, size_bytes) for name, size_bytes in named if not is_partition_metafile(name)]
