"""A path could open another table than is meant: a decoded character, a relative folder, another store."""

import os
from pathlib import Path

import pytest

from pyhudi.errors import Invalid, Unsupported
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.open import LocalPlace, MemoryPlace, open_storage, parse_location, parse_place
from pyhudi.storage.protocol import StorageLocation


@pytest.mark.parametrize(
    "uri,root",
    [
        ("/data/trips", "/data/trips"),
        ("/data/trips/", "/data/trips"),
        ("file:///data/trips", "/data/trips"),
        ("file:/data/trips/", "/data/trips"),
        ("FILE:///data/trips", "/data/trips"),
        ("file://localhost/data/trips", "/data/trips"),
        ("file:///data/a b%20c/日本", "/data/a b%20c/日本"),
        ("/data/a b%20c/日本", "/data/a b%20c/日本"),
        ("/data/x\ny", "/data/x\ny"),
        ("file:///", "/"),
    ],
)
def test_every_spelling_of_a_local_path_is_one_place(uri: str, root: str) -> None:
    assert parse_place(uri) == LocalPlace(root)
    assert parse_location(uri) == StorageLocation(root)


@pytest.mark.parametrize("path", ["trips", "./trips", "a/../trips", "day:1", "c:/trips"])
def test_a_relative_path_is_taken_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)

    location = parse_location(path)

    monkeypatch.chdir("/")
    assert location == StorageLocation(os.path.normpath(tmp_path / path))


@pytest.mark.parametrize("uri,name", [("memory://a", "a"), ("memory://a b/%20/", "a b/%20"), ("Memory://é", "é")])
def test_a_memory_path_is_a_name(uri: str, name: str) -> None:
    assert parse_place(uri) == MemoryPlace(name)
    assert parse_location(uri) == StorageLocation(f"memory://{name}")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "abfss", "hdfs", "https"])
@pytest.mark.parametrize("rest", ["://bucket/trips", ":///trips", ":/trips", ":"])
def test_another_store_is_unsupported(scheme: str, rest: str) -> None:
    with pytest.raises(Unsupported, match=f"'{scheme}' is not supported; expected one of local paths, 'file:///"):
        parse_location(scheme + rest)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "nul\x00",
        "file:",
        "file://",
        "file:trips",
        "file://host/trips",
        "memory:",
        "memory://",
        "memory:a",
    ],
)
def test_a_path_that_names_no_place_is_invalid(uri: str) -> None:
    with pytest.raises(Invalid, match="path "):
        parse_location(uri)


def test_a_path_object_is_a_path(tmp_path: Path) -> None:
    assert parse_location(tmp_path) == StorageLocation(str(tmp_path))


def test_bytes_are_no_path() -> None:
    with pytest.raises(Invalid, match="found bytes"):
        parse_location(b"/trips")  # type: ignore[arg-type]


@pytest.mark.parametrize("uri", ["/trips", "memory://trips"])
def test_options_that_a_storage_does_not_have_are_refused(uri: str) -> None:
    assert parse_location(uri, {}).options == ()
    with pytest.raises(Invalid, match="expected none for this storage, found 'a', 'region'"):
        parse_location(uri, {"region": "x", "a": "y"})
    with pytest.raises(Invalid, match="found 'region'"):
        open_storage(StorageLocation(uri, (("region", "x"),)))


def test_a_location_opens_its_storage(tmp_path: Path) -> None:
    assert isinstance(open_storage(parse_location(tmp_path)), LocalStorage)
    assert isinstance(open_storage(parse_location("memory://opened")), MemoryStorage)
