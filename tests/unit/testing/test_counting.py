"""A request budget could hold only because a request, or a byte, was not counted."""

import pytest

from pyhudi.errors import NotFound
from pyhudi.storage.memory import MemoryStorage
from pyhudi.testing.counting import CountingStorage


def test_each_request_is_counted_by_its_kind() -> None:
    storage = CountingStorage(MemoryStorage())
    storage.put("a/1", b"12")
    storage.put_new("a/2", b"345")
    storage.put_new("a/2", b"not written")
    with storage.put_stream("a/3") as stream:
        stream.write(b"67")
        stream.write(b"890")
    storage.get("a/1")
    storage.get("a/2", 1, 2)
    with pytest.raises(NotFound):
        storage.get("absent")
    storage.head("a/1")
    storage.list("a")
    storage.list_folders("")
    with storage.open_input("a/3") as file:
        file.seek(1)
        file.read(2)
        file.readinto(bytearray(1))  # type: ignore[attr-defined]
    storage.delete("a/1")
    storage.delete_many(["a/2", "a/3"])
    storage.delete_prefix("a")

    assert storage.counts == {
        "put": 1,
        "put_new": 2,
        "put_stream": 1,
        "get": 3,
        "head": 1,
        "list": 1,
        "list_folders": 1,
        "open_input": 1,
        "delete": 3,
        "delete_prefix": 1,
    }
    assert storage.bytes_written == 2 + 3 + 5
    assert storage.bytes_read == 2 + 1 + 2 + 1


def test_a_reset_begins_from_zero() -> None:
    storage = CountingStorage(MemoryStorage())
    storage.put("a", b"12")
    storage.get("a")

    storage.reset()

    assert (sum(storage.counts.values()), storage.bytes_read, storage.bytes_written) == (0, 0, 0)


def test_an_absent_input_is_counted_and_not_found() -> None:
    storage = CountingStorage(MemoryStorage())

    with pytest.raises(NotFound):
        storage.open_input("absent").__enter__()

    assert storage.counts["open_input"] == 1
