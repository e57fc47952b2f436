"""What is worked out ahead could come in another order, lose an error or its origin, or leave a thread behind."""

import threading
from collections.abc import Iterator

import pytest

from pyhudi.format.hfile.ahead import AHEAD_BLOCKS, worked_ahead
from pyhudi.format.hfile.index import IndexEntry

ENTRIES = [IndexEntry(offset=number, size=1, row=b"%03d" % number) for number in range(20)]


def own_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("hfile")]


def row(entry: IndexEntry) -> bytes:
    return entry.row


@pytest.mark.parametrize("count", [1, AHEAD_BLOCKS, AHEAD_BLOCKS + 1, 20])
def test_blocks_come_in_their_order(count: int) -> None:
    assert list(worked_ahead(row, ENTRIES[:count])) == [entry.row for entry in ENTRIES[:count]]
    assert own_threads() == []


def test_no_more_blocks_are_worked_on_than_are_held_ahead() -> None:
    unpacked: list[int] = []

    def note(entry: IndexEntry) -> bytes:
        unpacked.append(entry.offset)
        return entry.row

    blocks = worked_ahead(note, ENTRIES)
    assert isinstance(blocks, Iterator)
    for number in range(3):
        assert next(blocks) == ENTRIES[number].row
        assert len(unpacked) <= number + 1 + AHEAD_BLOCKS


def test_an_error_comes_where_its_block_would() -> None:
    def fail(entry: IndexEntry) -> bytes:
        if entry.offset == 7:
            raise ValueError("block 7")
        return entry.row

    blocks = worked_ahead(fail, ENTRIES)
    assert [next(blocks) for _ in range(7)] == [entry.row for entry in ENTRIES[:7]]
    with pytest.raises(ValueError, match="block 7"):
        next(blocks)
    assert own_threads() == []


def test_letting_go_of_the_iterator_ends_the_thread() -> None:
    blocks = worked_ahead(row, ENTRIES)
    next(blocks)
    assert len(own_threads()) == 1
    del blocks
    assert own_threads() == []
