"""Opens the storage behind a user's path."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from pyhudi.errors import Invalid, Unsupported
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage, StorageLocation, VersionedStorage
from pyhudi.storage.uris import LocalUri, MemoryUri, ObjectUri, OtherUri, parse_uri

if TYPE_CHECKING:
    from pyhudi.storage.object_store import ObjectStorage


def parse_location(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> StorageLocation:
    """The location that a path names. Different spellings of a path give the same location.

    A relative path is taken from the folder that is current at this call.
    Raises: Invalid for a path that names no storage, and for options of a storage that has no options.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise Invalid(f"path {path!r}: expected text or a path, found {type(path).__name__}")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise Invalid(f"path {text!r}: expected text, found {type(text).__name__}; decode it with os.fsdecode")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise Invalid(f"path {text!r}: expected text that can be a name of a file: {error}") from error
    parsed = parse_uri(text)
    options = _option_texts(parsed.uri, storage_options)
    if isinstance(parsed, LocalUri | MemoryUri):
        _refuse_options(parsed.uri, options)
    return StorageLocation(parsed.uri, options)


def _option_texts(uri: str, given: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """The options by name. An error does not show a value, because it may be a secret."""
    if given is not None and not isinstance(given, Mapping):
        raise Invalid(f"storage_options of {uri!r}: expected a mapping of names to texts, found {type(given).__name__}")
    for name, value in (given or {}).items():
        if not isinstance(name, str):
            raise Invalid(f"storage_options of {uri!r}: expected names as text, found {name!r}")
        if not isinstance(value, str):
            raise Invalid(f"storage_options of {uri!r}: '{name}': expected text, found {type(value).__name__}")
    return tuple(sorted((given or {}).items()))


def open_storage(location: StorageLocation) -> Storage:
    """The storage of a location. No request is made before the first call to the storage.

    Raises: as `parse_location`; Unsupported if the package for this store is not installed; Invalid for an option that
    the store does not have.
    """
    parsed = parse_uri(location.uri)
    match parsed:
        case LocalUri(root):
            _refuse_options(location.uri, location.options)
            return LocalStorage(root)
        case MemoryUri(name):
            _refuse_options(location.uri, location.options)
            return MemoryStorage(name)
        case ObjectUri():
            return _open_objects(parsed, location)
        case OtherUri():
            return _open_other(parsed, location)
        case _:
            assert_never(parsed)


def open_versioned(location: StorageLocation) -> VersionedStorage:
    """The storage of an object store, with the calls that only object stores have. Raises: as `open_storage`."""
    parsed = parse_uri(location.uri)
    assert isinstance(parsed, ObjectUri)
    return _open_objects(parsed, location)


def _open_objects(parsed: ObjectUri, location: StorageLocation) -> "ObjectStorage":
    try:
        from pyhudi.storage.object_store import ObjectStorage
    except ModuleNotFoundError as error:
        raise _not_installed(location.uri, "cloud", error) from error
    return ObjectStorage.open(parsed, location)


def _open_other(parsed: OtherUri, location: StorageLocation) -> Storage:
    try:
        from pyhudi.storage.fsspec_store import open_fsspec
    except ModuleNotFoundError as error:
        raise _not_installed(location.uri, "fsspec", error) from error
    return open_fsspec(parsed, location)


def _not_installed(uri: str, extra: str, error: ModuleNotFoundError) -> Unsupported | ModuleNotFoundError:
    package = {"cloud": "obstore", "fsspec": "fsspec"}[extra]
    if (error.name or "").partition(".")[0] != package:
        return error
    return Unsupported(f"path {uri!r}: this store needs the package {package}: pip install 'pyhudi[{extra}]'")


def _refuse_options(uri: str, options: tuple[tuple[str, str], ...]) -> None:
    if options:
        names = ", ".join(f"'{name}'" for name, _ in options)
        raise Invalid(f"storage_options of {uri!r}: expected none for this storage, found {names}; remove them")
