"""Links that a listing of a local folder comes upon: which it passes over, and which it refuses.

pyhudi follows no link below a table's folder. Where a link leads to rows or instants, a listing without them would be
a lie, so it is refused. Other links, such as `README` or `.git`, are no part of a table, as to Apache Hudi.
"""

import errno
import os
from typing import Final

from pyhudi.format.table_files import is_table_file
from pyhudi.storage.below import irregular

ENTRIES_MAX: Final = 100_000
"""The most entries that are looked at behind a link to a folder. With more, nobody can tell what it holds."""

_LEADS_NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


def refuse_linked_file(root: str, path: str, entry: "os.DirEntry[str]") -> None:
    """Raise Unsupported if an entry is a link with the name of a table's file, wherever it leads but to a folder.

    `path`: of the entry, relative to the root.
    """
    if entry.is_symlink() and is_table_file(path) and not _is_folder(entry):
        raise irregular(f"{root}/{path}", "a link", why="this one has the name of a table's file")


def refuse_linked_folder(root: str, path: str, entry: "os.DirEntry[str]") -> None:
    """Raise Unsupported if an entry is a link to a folder that holds a table's files, at any depth.

    Passed over are links that lead nowhere, and those to the folder that they lie in or to one above: what is there is
    listed at its own place. `path`: of the entry, relative to the root.
    """
    is_sought = entry.is_symlink() and _is_folder(entry) and not _leads_up(f"{root}/{path}")
    if is_sought and (why := _why_not_passed_over(root, path)):
        raise irregular(f"{root}/{path}", "a link", why=why)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry is a folder or a link to one."""
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno in _LEADS_NOWHERE:
            return False
        raise


def _leads_up(full: str) -> bool:
    above = os.path.realpath(os.path.dirname(full))
    return f"{above}/".startswith(f"{os.path.realpath(full).rstrip('/')}/")


def _why_not_passed_over(root: str, path: str) -> str | None:
    """The table's file among the names in a linked folder and below, or why that cannot be told, in words.

    None: there is none. Links in it are followed, but not to the root. Nothing is opened but folders, and only names
    are looked at.
    """
    seen, left, entries_left = {_identity(root)}, [path], ENTRIES_MAX
    while left:
        folder = left.pop()
        try:
            identity = _identity(f"{root}/{folder}")
            if identity in seen:
                continue
            seen.add(identity)
            with os.scandir(f"{root}/{folder}") as entries:
                for entry in entries:
                    if not entries_left:
                        return f"more than {ENTRIES_MAX:,} files and folders lie behind it, too many to look through"
                    entries_left -= 1
                    below = f"{folder}/{entry.name}"
                    if _is_folder(entry):
                        left.append(below)
                    elif is_table_file(below):
                        return f"behind it '{below}' has the name of a table's file"
        except OSError as error:
            if error.errno not in _LEADS_NOWHERE:  # else it vanished meanwhile
                return f"behind it '{folder}' cannot be looked into: {error.strerror}"
    return None


def _identity(full: str) -> tuple[int, int]:
    status = os.stat(full)
    return status.st_dev, status.st_ino
