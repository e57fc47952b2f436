"""The steps of `LocalStorage`'s changes, and what their failures mean.

A file is changed in these steps: write a temporary file beside it, sync the temporary file, give it the file's name in
one step, sync the folder.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyhudi.errors import Invalid, NotFound, Unavailable
from pyhudi.storage.below import scan_folder
from pyhudi.storage.links import refuse_linked_file, refuse_linked_folder
from pyhudi.storage.paths import not_a_folder
from pyhudi.storage.protocol import FileInfo

TEMPORARY_PREFIX = ".pyhudi-tmp-"

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINKS_HERE = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
_NS_PER_MS = 1_000_000


@contextmanager
def read_errors(full: str, doing: str) -> Iterator[None]:
    """Turn the system's errors into what they mean for a reader. A folder where a file should be means NotFound."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise not_found(full) from error
    except OSError as error:
        raise _failed(full, doing, error) from error


@contextmanager
def write_errors(full: str, doing: str) -> Iterator[None]:
    """Turn the system's errors into what they mean for a writer."""
    try:
        yield
    except (NotADirectoryError, IsADirectoryError) as error:
        raise not_a_folder(full) from error
    except OSError as error:
        raise _failed(full, doing, error) from error


def not_found(full: str) -> NotFound:
    return NotFound(f"{full}: expected a file, found none")


def _failed(full: str, doing: str, error: OSError) -> Invalid | Unavailable:
    if error.errno == errno.ENAMETOOLONG:
        return Invalid(f"{full}: the file system cannot {doing} a name that long; shorten it")
    return Unavailable(f"{full}: cannot {doing} it: {error.strerror or error}; mend that and call again")


def file_info(path: str, status: os.stat_result) -> FileInfo:
    return FileInfo(path, status.st_size, status.st_mtime_ns // _NS_PER_MS)


def is_hidden(name: str) -> bool:
    """Whether listings leave a name out: our temporary files and the checksums of Hadoop."""
    return name.startswith(".") and (name.endswith(".crc") or name.startswith(TEMPORARY_PREFIX))


def scan_files(root: str, folder: str, *, recursive: bool) -> tuple[list[FileInfo], list[str]]:
    """Files and folders directly in `folder` below the root, unsorted; none if there is no such folder.

    `recursive`: the folders are wanted, too. Entries that vanish meanwhile are left out. So are pipes and devices, as
    they are neither regular files nor folders. Requests: one scan, and one `stat` a file.
    Raises: Unsupported for a link in the place of a table's file or, where wanted, folder (`links`).
    """
    above = f"{folder}/" if folder else ""
    files: list[FileInfo] = []
    folders: list[str] = []

    with suppress(NotFound), read_errors(f"{root}/{folder}", "list"), scan_folder(root, folder) as entries:
        for entry in entries:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(above + name)
            elif entry.is_file(follow_symlinks=False) and (name[0] != "." or not is_hidden(name)):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                files.append(FileInfo(above + name, status.st_size, status.st_mtime_ns // _NS_PER_MS))
            elif not is_hidden(name):
                refuse_linked_file(root, above + name, entry)
                if recursive:
                    refuse_linked_folder(root, above + name, entry)

    return files, folders


def scan_folders(root: str, folder: str) -> list[str]:
    """Folders directly in `folder` below the root, unsorted. No `stat` of a file is needed.

    Raises: Unsupported for a link to a folder with a table's files (`links`).
    """
    above = f"{folder}/" if folder else ""
    folders: list[str] = []
    with suppress(NotFound), read_errors(f"{root}/{folder}", "list"), scan_folder(root, folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(above + entry.name)
            else:
                refuse_linked_folder(root, above + entry.name, entry)
    return folders


def open_temporary(full: str) -> tuple[str, int]:
    """Open a new hidden file beside `full`. Answers its name and descriptor. Missing folders are made first."""
    folder = os.path.dirname(full)
    temporary = f"{folder}/{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
    try:
        return temporary, os.open(temporary, _NEW_FILE, 0o666)
    except FileNotFoundError:
        _make_folders(folder)
        return temporary, os.open(temporary, _NEW_FILE, 0o666)


@contextmanager
def temporary_file(full: str, content: bytes) -> Iterator[str]:
    """A synced hidden file with `content`, beside `full`. It is deleted at the end, unless it was renamed."""
    temporary, descriptor = open_temporary(full)
    try:
        try:
            _write_all(descriptor, content)
        finally:
            os.close(descriptor)
        yield temporary
    finally:
        unlink(temporary)


def sweep_temporaries(full: str, written_before_ms: int) -> int:
    """Delete temporary files in the folder at `full` that were last written before a time. Returns how many.

    Right before a crash, a file may have been created by giving a temporary file a second name. Then only the temporary
    name is deleted, and the file stays.
    """
    swept = 0
    try:
        with os.scandir(full) as entries:
            old = [
                entry.path
                for entry in entries
                if entry.name.startswith(TEMPORARY_PREFIX) and _written_ms(entry) < written_before_ms
            ]
    except (FileNotFoundError, NotADirectoryError):
        return 0

    for path in old:
        swept += unlink(path)
    return swept


def _written_ms(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns // _NS_PER_MS
    except FileNotFoundError:
        return float("inf")  # its writer renamed it just now


def link_new(temporary: str, full: str, content: bytes) -> bool:
    """Give the temporary file the name `full`, if nothing has that name. False if something has.

    If the file system has no hard links, the file is created under its name and then filled. Still only one of
    two writers wins. But a reader may see the file before it is whole, and a crash may leave it that way.
    """
    try:
        os.link(temporary, full)
    except FileExistsError:
        # NFS may make the link, lose the answer, ask again, and find the name taken by our own link.
        with suppress(FileNotFoundError):
            return os.path.samestat(os.stat(temporary), os.lstat(full))
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS_HERE:
            raise
        return _create_exclusively(full, content)
    return True


def _create_exclusively(full: str, content: bytes) -> bool:
    try:
        descriptor = os.open(full, _NEW_FILE, 0o666)
    except FileExistsError:
        return False
    try:
        _write_all(descriptor, content)
    except BaseException:
        unlink(full)
        raise
    finally:
        os.close(descriptor)
    return True


def replace_with(temporary: str, full: str) -> None:
    """Give the synced temporary file the name `full`, replace the file that had it, and make that durable."""
    delete_checksum(full)
    os.replace(temporary, full)
    sync_folder(os.path.dirname(full))


def delete_checksum(full: str) -> None:
    """Delete Hadoop's checksum of a file before the file changes. Without a checksum Hadoop reads a file unchecked."""
    folder, _, name = full.rpartition("/")
    unlink(f"{folder}/.{name}.crc")


def unlink(full: str) -> bool:
    """Delete a file. False if there was none."""
    try:
        os.unlink(full)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable. Windows has no such call."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folders(folder: str) -> None:
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for absent in reversed(missing):
        with suppress(FileExistsError):  # another writer made it just now
            os.mkdir(absent)
        sync_folder(os.path.dirname(absent))


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    if content:
        os.fsync(descriptor)
