"""Checks the paths that a storage takes: relative, with `/` between parts, never leading out of the root.

Partition paths come from the data, so anybody's row may hold a `..`. Such a path is refused before the store is
touched.
"""

import re

from pyhudi.errors import Invalid

_BAD_PART = re.compile(r"(?:^|/)\.{0,2}(?:/|\Z)|\x00")  # an empty part, "." and ".."; the character NUL


def check_file_path(path: str) -> str:
    """The same path.

    Raises: Invalid for the root, an absolute path, a trailing `/`, and the parts `""`, `.` and `..`.
    """
    if _BAD_PART.search(path):
        raise Invalid(
            f"path {path!r}: expected a path relative to the table, such as 'folder/file', "
            "without empty parts, '.', '..' or NUL; correct the name or the partition value behind it"
        )
    return path


def check_folder_path(prefix: str) -> str:
    """The same path. The root `""` is allowed.

    Raises: Invalid as `check_file_path` does.
    """
    return check_file_path(prefix) if prefix else prefix


def not_a_folder(shown: str) -> Invalid:
    """The error to raise if a file was found where a folder should be, or a folder where a file should be."""
    return Invalid(
        f"{shown}: expected a file below folders, found a file where a folder is needed, or the reverse; "
        "choose another name"
    )


def check_range(start: int, end: int | None) -> None:
    """Assert that `[start, end)` is a range of bytes. A wrong range is our own mistake."""
    assert start >= 0, f"start {start:,}: expected 0 or more"
    assert end is None or end >= start, f"range [{start:,}, {end:,}): expected its end not before its start"
