"""Folders and files on a storage, whether they belong to a table or not."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pyhudi.errors import NotFound
from pyhudi.format.names import HOODIE, BaseFileName
from pyhudi.format.parquet.opening import open_parquet
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import Storage

_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, slots=True)
class FolderSize:
    """What lies in a folder and below it. `folders`: itself among them."""

    path: str
    folders: int
    files: int
    size_bytes: int

    @property
    def size_text(self) -> str:
        """With the unit in which it has at most four digits before the point, such as `1.22MB`."""
        size, unit = float(self.size_bytes), 0
        while size >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        return f"{size:.2f}{_UNITS[unit]}"


def read_folder_sizes(path: str, *, of_subfolders: bool) -> list[FolderSize]:
    """The sizes of a folder, or of each folder directly in it. Requests: one listing a folder.

    Raises: NotFound for a folder without any file.
    """
    storage = open_storage(parse_location(path))
    root = storage.location.uri.rstrip("/")
    if of_subfolders:
        found = [_size(storage, folder, f"{root}/{folder}") for folder in storage.list_folders("")]
    else:
        found = [_size(storage, "", root)]
    if not any(one.files for one in found):
        raise NotFound(f"path '{path}': expected a folder with files, found none")
    return found


def find_invalid_parquet(path: str, partitions: Collection[str], instants: Collection[str]) -> Iterator[str]:
    """The Parquet files at a path that do not open, by path. One read of each footer.

    `partitions`, `instants`: only files in folders of these partitions or below them, such as `year=2026`, only base
    files of these instants; empty: all.
    """
    wanted = [f"{one.removesuffix('*').rstrip('/')}/" for one in partitions]
    storage = open_storage(parse_location(path))
    root = storage.location.uri.rstrip("/")
    for folder in _folders(storage, "", passes_over=HOODIE):
        if wanted and not f"{folder}/".startswith(tuple(wanted)):
            continue
        for file in storage.list(folder):
            name = file.path.rpartition("/")[2]
            base = BaseFileName.parse(name)
            if not name.endswith(".parquet") or (instants and (base is None or base.requested not in instants)):
                continue
            if not _opens(storage, file.path):
                yield f"{root}/{file.path}"


def _opens(storage: Storage, path: str) -> bool:
    with storage.open_input(path) as file:
        try:
            open_parquet(file).close()
        except (pa.ArrowInvalid, OSError):
            return False
    return True


def _size(storage: Storage, folder: str, shown: str) -> FolderSize:
    files = [file.size_bytes for file in storage.list(folder, recursive=True)]
    return FolderSize(shown, sum(1 for _ in _folders(storage, folder)), len(files), sum(files))


def _folders(storage: Storage, folder: str, *, passes_over: str = "") -> Iterator[str]:
    """The folder and all below it."""
    yield folder
    for one in storage.list_folders(folder):
        if one != passes_over or not passes_over:
            yield from _folders(storage, one, passes_over=passes_over)
