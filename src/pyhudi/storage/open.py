"""From what a user calls a path to the storage behind it.

A local path is a plain one, `file:/...` or `file:///...`, and is taken as it is written: `%20` is three
characters, not a space. Seen: Hadoop (3.5) reads paths so, and a script must name the same table to both.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from pyhudi.errors import Invalid, Unsupported
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MEMORY_SCHEME, MemoryStorage
from pyhudi.storage.protocol import Storage, StorageLocation

# a name in front of ":/" is a scheme, unless it is one letter, a Windows drive; "day:1" is a relative path
_URI = re.compile(r"(?P<scheme>file|memory|[a-z][a-z0-9+.-]+(?=:(?:/|\Z))):.*", re.DOTALL | re.IGNORECASE)
_LOCAL_HOSTS = ("", "localhost")
_SUPPORTED = f"local paths, 'file:///...' and '{MEMORY_SCHEME}NAME'"


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A folder of this machine: `root` is absolute."""

    root: str


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """The content that this process keeps under `name`."""

    name: str


def parse_place(uri: str) -> LocalPlace | MemoryPlace:
    """Where a location's `uri` points to.

    Raises: Unsupported for any scheme but `file` and `memory`; Invalid for one of these that names no place.
    """
    if not uri or "\x00" in uri:
        raise Invalid(f"path {uri!r}: expected one of {_SUPPORTED}")
    match = _URI.fullmatch(uri)
    if match is None:
        return LocalPlace(os.path.abspath(uri))
    scheme = match["scheme"].lower()
    rest = uri[len(scheme) + 1 :]
    if scheme == "memory":
        name = rest.removeprefix("//").rstrip("/")
        if not rest.startswith("//") or not name:
            raise Invalid(f"path {uri!r}: expected '{MEMORY_SCHEME}NAME'")
        return MemoryPlace(name)
    if scheme != "file":
        raise Unsupported(f"path {uri!r}: storage '{scheme}' is not supported; expected one of {_SUPPORTED}")
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        path = slash + path
    if host not in _LOCAL_HOSTS or not path.startswith("/"):
        raise Invalid(f"path {uri!r}: expected an absolute path without a host, such as 'file:///folder/table'")
    return LocalPlace(os.path.abspath(path))


def parse_location(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> StorageLocation:
    """The location that a path names, in one spelling whatever the spelling of the path.

    A relative path is taken from the current folder of this process, here and now.
    Raises: Invalid for options, of which neither kind of storage has any; else as `parse_place`.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise Invalid(f"path {text!r}: expected text, found {type(text).__name__}; decode it with os.fsdecode")
    uri = _format_place(parse_place(text))
    options = tuple(sorted((storage_options or {}).items()))
    _refuse_options(uri, options)
    return StorageLocation(uri, options)


def open_storage(location: StorageLocation) -> Storage:
    """The storage of a location. No request: nothing is looked at or made before the first call.

    Raises: as `parse_location`.
    """
    place = parse_place(location.uri)
    _refuse_options(location.uri, location.options)
    match place:
        case LocalPlace(root):
            return LocalStorage(root)
        case MemoryPlace(name):
            return MemoryStorage(name)
        case _:
            assert_never(place)


def _format_place(place: LocalPlace | MemoryPlace) -> str:
    match place:
        case LocalPlace(root):
            return root
        case MemoryPlace(name):
            return f"{MEMORY_SCHEME}{name}"
        case _:
            assert_never(place)


def _refuse_options(uri: str, options: tuple[tuple[str, str], ...]) -> None:
    if options:
        names = ", ".join(f"'{name}'" for name, _ in options)
        raise Invalid(f"storage_options of {uri!r}: expected none for this storage, found {names}; remove them")
