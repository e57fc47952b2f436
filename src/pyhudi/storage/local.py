"""A table's bytes in a folder of this machine.

A change writes a hidden temporary file in the folder of the final name, syncs it, and then gives it that name in one
step. So a reader, a crash or a power loss finds the old bytes or the new ones. A crash may leave the temporary file,
until `sweep` deletes it.

Hadoop's local file system keeps a checksum of `NAME` in `.NAME.crc`, and refuses a file that does not fit the checksum.
So a change that replaces or deletes `NAME` here deletes the checksum, too. Otherwise Apache Hudi could not read a table
that both write. Listings show neither checksums nor temporary files.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final, cast

import pyarrow as pa

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.storage.below import delete_folder, open_file, refuse_links
from pyhudi.storage.local_files import (
    delete_checksum,
    file_info,
    link_new,
    open_temporary,
    read_errors,
    replace_with,
    scan_files,
    scan_folders,
    sweep_temporaries,
    sync_folder,
    temporary_file,
    unlink,
    write_errors,
)
from pyhudi.storage.paths import check_file_path, check_folder_path, check_range, not_a_folder
from pyhudi.storage.protocol import FileInfo, StorageLocation

WHOLE_BYTES_MAX: Final = 1 << 31
"""The most bytes of a file that is read whole. Apache Hudi reads such a file into a Java array, which holds no more.
The limit protects memory: a sparse file of terabytes costs nothing to make."""


class LocalInput(pa.OSFile):  # type: ignore[misc]  # pyarrow has no types
    """Arrow's own file. Unlike Python's file, it is read without the GIL.

    Seen: two threads that decode Parquet took 2.8 s with Python's files, and 0.8 s with Arrow's (pyarrow 26).
    """

    def read(self, size: int | None = -1) -> bytes:
        """Read `size` bytes, or all. Arrow's file takes None, but not -1, for "all" (pyarrow 26: SystemError)."""
        content: bytes = super().read(None if size is None or size < 0 else size)
        return content


class LocalStorage:
    """The storage whose root is a local folder. The folder need not exist before the first change.

    Durability: a change survives a power loss once its call has returned. A power loss may undo a deletion, as if the
    power had gone just before it.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root)
        self._base = self._root.rstrip("/") + "/"
        self._top = self._root.rstrip("/") or "/."

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    @property
    def location(self) -> StorageLocation:
        return StorageLocation(self._root)

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        check_range(start, end)
        full = self._file(path)
        with (
            read_errors(full, "read"),
            open_file(self._top, path) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            if end is None and (size_bytes := os.fstat(descriptor).st_size - start) > WHOLE_BYTES_MAX:
                expected = f"at most {WHOLE_BYTES_MAX:,} bytes of a file that is read whole"
                raise CorruptFile(full, WHOLE_BYTES_MAX, expected=expected, found=f"{size_bytes:,}")
            if start:
                file.seek(start)
            return file.read() if end is None else file.read(end - start)

    def open_input(self, path: str) -> BinaryIO:
        full = self._file(path)
        with read_errors(full, "open"), open_file(self._top, path) as descriptor:
            # Arrow opens by name. This name leads to the very file that is open, even if the path changes meanwhile.
            name = f"/proc/self/fd/{descriptor}"
            return cast(BinaryIO, LocalInput(name if os.path.exists(name) else full))

    def head(self, path: str) -> FileInfo | None:
        full = self._file(path)
        with suppress(NotFound), read_errors(full, "look at"):
            refuse_links(self._top, path)
            status = os.lstat(full)
            return file_info(path, status) if stat.S_ISREG(status.st_mode) else None
        return None

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        files, folders = scan_files(self._top, check_folder_path(prefix), recursive=recursive)
        while recursive and folders:
            folder = folders.pop()
            files_below, folders_below = scan_files(self._top, folder, recursive=True)
            files += files_below
            folders += folders_below
        files.sort(key=lambda file: file.path)
        return iter(files)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return iter(sorted(scan_folders(self._top, check_folder_path(prefix))))

    def make_folder(self, path: str) -> None:
        full = self._to_write(path)
        with write_errors(full, "make"):
            os.makedirs(full, exist_ok=True)

    def put_new(self, path: str, content: bytes) -> bool:
        full = self._to_write(path)
        with write_errors(full, "create"):
            if os.path.isdir(full):
                raise not_a_folder(full)
            if os.path.lexists(full):
                return False
            with temporary_file(full, content) as temporary:
                delete_checksum(full)
                is_new = link_new(temporary, full, content)
            sync_folder(os.path.dirname(full))
        return is_new

    def put(self, path: str, content: bytes) -> None:
        full = self._to_write(path)
        with write_errors(full, "write"), temporary_file(full, content) as temporary:
            replace_with(temporary, full)

    @contextmanager
    def put_stream(self, path: str) -> Iterator[BinaryIO]:
        full = self._to_write(path)
        with write_errors(full, "write"):
            temporary, descriptor = open_temporary(full)
            try:
                try:
                    # The descriptor stays open, so that a caller may close the file before the end.
                    with os.fdopen(descriptor, "wb", closefd=False) as file:
                        yield file
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                replace_with(temporary, full)
            finally:
                unlink(temporary)

    def delete(self, path: str) -> bool:
        full = self._to_write(path)
        with write_errors(full, "delete"):
            delete_checksum(full)
            try:
                return unlink(full)
            except (IsADirectoryError, PermissionError):  # macOS, Windows: no permission to unlink a folder
                if os.path.isdir(full):
                    return False
                raise

    def delete_prefix(self, prefix: str) -> None:
        full = self._folder(prefix)
        with write_errors(full, "delete"), suppress(FileNotFoundError, NotADirectoryError):
            delete_folder(self._top, prefix)

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def sweep(self, folder: str, *, written_before_ms: int) -> int:
        full = self._folder(folder)
        refuse_links(self._top, folder)
        with write_errors(full, "sweep"):
            return sweep_temporaries(full, written_before_ms)

    def set_modified(self, path: str, modified_ms: int) -> None:
        full = self._to_write(path)
        with write_errors(full, "date"):
            os.utime(full, ns=(modified_ms * 1_000_000,) * 2)

    def _file(self, path: str) -> str:
        return self._base + check_file_path(path)

    def _to_write(self, path: str) -> str:
        """The full path of a file that is about to be made, replaced or deleted. No folder above it may be a link.

        The last part may be a link: then the link itself is replaced or deleted.
        """
        full = self._file(path)
        refuse_links(self._top, path.rpartition("/")[0])
        return full

    def _folder(self, prefix: str) -> str:
        return self._base + check_folder_path(prefix)
