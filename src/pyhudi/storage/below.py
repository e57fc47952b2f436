"""Opens files and folders below a root of this machine without following a link.

A user who may write into a table's folder could put a link there: to a private file, which an upsert would copy, or to
a folder elsewhere, from which a clean would delete. So each part of a path below the root is opened relative to the
folder above it, and must be a folder itself. The last part must be a regular file. The root itself may be a link.

Windows has no calls relative to an open folder. There, each part is checked before the path is used.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.errors import Unsupported

_OPENS_RELATIVE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NONBLOCK", 0)  # without it, opening a named pipe would wait
)


@contextmanager
def open_file(root: str, path: str) -> Iterator[int]:
    """The descriptor of a regular file, for reading. `path`: relative to `root`, checked by `check_file_path`.

    Raises: OSError as `os.open`; Unsupported for a link at any part of the path, and for a device, pipe or socket.
    """
    folder, _, name = path.rpartition("/")
    with open_folder(root, folder) as above:
        full = f"{root}/{path}"
        try:
            descriptor = os.open(name, _FILE, dir_fd=above) if above is not None else os.open(full, _FILE)
        except OSError:
            refuse_links(root, path)
            raise

    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(full)
        if not stat.S_ISREG(mode):
            raise irregular(full, "a device, pipe or socket")
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_folder(root: str, path: str) -> Iterator[int | None]:
    """The descriptor of a folder. On a system without calls relative to a folder: None, after a check of each part.

    Raises: OSError as `os.open`; Unsupported for a link at a part of the path.
    """
    if not _OPENS_RELATIVE:
        refuse_links(root, path)
        yield None
        return

    descriptor = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in path.split("/") if path else ():
            try:
                below = os.open(part, _FOLDER, dir_fd=descriptor)
            except OSError:
                refuse_links(root, path)
                raise

            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def refuse_links(root: str, path: str) -> None:
    """Check each part of a path below the root, as far as the path exists. Raises: Unsupported for a link."""
    full = root
    for part in path.split("/") if path else ():
        full = f"{full}/{part}"
        try:
            mode = os.lstat(full).st_mode
        except OSError:
            return
        if stat.S_ISLNK(mode):
            raise irregular(full, "a link")


def irregular(full: str, found: str, *, why: str = "") -> Unsupported:
    """The error for something at this path that is neither a regular file nor a folder.

    `why`: it is not passed over.
    """
    reason = f", and {why}" if why else ""
    return Unsupported(
        f"{full}: expected a regular file or folder, found {found}; pyhudi follows none below a table's folder"
        f"{reason}; put the file or folder itself there, or remove it"
    )


def delete_folder(root: str, path: str) -> None:
    """Delete a folder, or the root, with everything in it. A link in it is deleted; the link's target stays.

    The folder may be deep: the function does not recurse.

    Raises: OSError; Unsupported if the path leads through a link.
    """
    # Files go first, folder by folder; then the empty folders, the deepest first.
    found, left = [], [path]
    while left:
        folder = left.pop()
        found.append(folder)
        with open_folder(root, folder) as descriptor, _scan(descriptor, f"{root}/{folder}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(f"{folder}/{entry.name}" if folder else entry.name)
                elif descriptor is not None:
                    os.unlink(entry.name, dir_fd=descriptor)
                else:
                    os.unlink(entry.path)

    for folder in reversed(found):
        if not folder:
            os.rmdir(root)
            continue

        parent, _, name = folder.rpartition("/")
        with open_folder(root, parent) as above:
            if above is not None:
                os.rmdir(name, dir_fd=above)
            else:
                os.rmdir(f"{root}/{folder}")


@contextmanager
def scan_folder(root: str, path: str) -> Iterator[Iterator["os.DirEntry[str]"]]:
    """The entries of a folder. Their `stat` and `is_dir` work only within the context."""
    with open_folder(root, path) as descriptor, _scan(descriptor, f"{root}/{path}") as entries:
        yield entries


def _scan(descriptor: int | None, full: str) -> "os._ScandirIterator[str]":
    return os.scandir(full) if descriptor is None else os.scandir(descriptor)
