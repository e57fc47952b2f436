"""Two tables could share bytes that they must not, or bytes could be lost that a name still stands for."""

import gc

import pytest

from pyhudi.errors import Invalid
from pyhudi.storage.memory import MemoryStorage, forget_memory_storage
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation


def test_a_name_keeps_its_content() -> None:
    MemoryStorage("kept").put("file", b"x")
    gc.collect()

    assert open_storage(StorageLocation("memory://kept")).get("file") == b"x"

    forget_memory_storage("kept")
    assert MemoryStorage("kept").head("file") is None


def test_storages_without_a_name_share_nothing() -> None:
    one, other = MemoryStorage(), MemoryStorage()
    one.put("file", b"x")

    assert one.location != other.location
    assert other.head("file") is None
    assert open_storage(one.location).get("file") == b"x"


def test_a_made_up_name_is_not_one_that_a_user_chose() -> None:
    number = int(MemoryStorage().location.uri.rpartition("-")[2]) + 1
    MemoryStorage(f"unnamed-{number}").put("file", b"x")

    assert MemoryStorage().head("file") is None
    forget_memory_storage(f"unnamed-{number}")


def test_a_copy_goes_its_own_way() -> None:
    times = iter(range(1_000))
    storage = MemoryStorage(clock_ms=lambda: next(times))
    storage.put("a/1", b"old")
    storage.put("a/2", b"x")

    twin = storage.copy()
    assert list(twin.list("", recursive=True)) == list(storage.list("", recursive=True))
    twin.put("a/1", b"new")
    twin.delete("a/2")
    storage.put("a/3", b"y")

    assert storage.get("a/1") == b"old"
    assert [file.path for file in storage.list("a")] == ["a/1", "a/2", "a/3"]
    assert [file.path for file in twin.list("a")] == ["a/1"]


def test_times_come_from_the_clock() -> None:
    storage = MemoryStorage(clock_ms=lambda: 1_767_225_600_123)
    storage.put("file", b"")

    assert [file.modified_ms for file in storage.list("")] == [1_767_225_600_123]


def test_content_does_not_change_with_the_callers_buffer() -> None:
    storage = MemoryStorage()
    buffer = bytearray(b"old")
    storage.put("file", buffer)  # type: ignore[arg-type]
    buffer[:] = b"new"

    assert storage.get("file") == b"old"


@pytest.mark.parametrize("name", ["", "nul\x00"])
def test_an_impossible_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        MemoryStorage(name)
