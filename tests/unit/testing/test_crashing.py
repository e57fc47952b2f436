"""A crash test could miss a moment at which the power can go, or reach the disk after it."""

from collections.abc import Callable

import pytest

from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.support.crashes import crash_points


def write_stream(storage: Storage) -> None:
    with storage.put_stream("stream") as stream:
        stream.write(b"whole")


CHANGES: dict[str, Callable[[Storage], object]] = {
    "put": lambda storage: storage.put("a", b"x"),
    "put_new": lambda storage: storage.put_new("a", b"x"),
    "put_stream": write_stream,
    "delete": lambda storage: storage.delete("there/1"),
    "delete_prefix": lambda storage: storage.delete_prefix("there"),
    "delete_many": lambda storage: storage.delete_many(["there/1"]),
}


def disk_with(*paths: str) -> MemoryStorage:
    disk = MemoryStorage()
    for path in paths:
        disk.put(path, b"")
    return disk


def files(storage: Storage) -> list[str]:
    return [file.path for file in storage.list("", recursive=True)]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_can_be_the_fatal_one(change: str) -> None:
    expected = disk_with("there/1")
    CHANGES[change](expected)

    for lands in (False, True):
        disk = disk_with("there/1")
        storage = CrashingStorage(disk, survives=0, lands=lands)
        with pytest.raises(Crash):
            CHANGES[change](storage)

        assert storage.dead
        assert files(disk) == (files(expected) if lands else ["there/1"])


@pytest.mark.parametrize("change", CHANGES)
def test_a_dead_machine_changes_nothing(change: str) -> None:
    disk = disk_with("there/1")
    storage = CrashingStorage(disk, survives=0, lands=False)
    with pytest.raises(Crash):
        storage.put("b", b"")

    with pytest.raises(Crash, match="already down"):
        CHANGES[change](storage)

    assert files(disk) == ["there/1"]


def test_reads_and_the_location_are_those_of_the_disk() -> None:
    disk = disk_with("a/1", "a/b/2")
    storage = CrashingStorage(disk, survives=0, lands=False)

    assert storage.location == disk.location
    assert storage.get("a/1") == b""
    assert storage.head("a/1") == disk.head("a/1")
    assert list(storage.list("a")) == list(disk.list("a"))
    assert list(storage.list_folders("a")) == ["a/b"]
    with storage.open_input("a/1") as file:
        assert file.read() == b""
    assert not storage.dead


def test_a_handler_for_exceptions_does_not_stop_a_crash() -> None:
    storage = CrashingStorage(MemoryStorage(), survives=0, lands=False)

    def swallow() -> None:
        try:
            storage.put("a", b"")
        except Exception:
            pytest.fail("a crash is no Exception")

    with pytest.raises(Crash):
        swallow()


def test_crash_points_are_all_prefixes_of_the_changes() -> None:
    def operation(storage: Storage) -> None:
        storage.put("b", b"")
        storage.delete_prefix("old")
        write_stream(storage)

    found = list(crash_points(operation, disk_with("old/1", "old/2").copy))

    assert [(text, files(disk)) for text, disk in found] == [
        ("change 0, put 'b', did not land", ["old/1", "old/2"]),
        ("change 1, delete 'old/1', did not land", ["b", "old/1", "old/2"]),
        ("change 2, delete_prefix 'old', did not land", ["b", "old/2"]),
        ("change 3, put_stream 'stream', did not land", ["b"]),
        ("change 3, put_stream 'stream', landed", ["b", "stream"]),
    ]


def test_an_operation_that_swallows_a_crash_is_caught() -> None:
    def operation(storage: Storage) -> None:
        try:
            storage.put("a", b"")
        except BaseException:
            return

    with pytest.raises(AssertionError, match="swallowed the crash at put 'a'"):
        list(crash_points(operation, MemoryStorage))
