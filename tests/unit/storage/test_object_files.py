"""A file that is read by ranges could give other bytes than it has, around what it keeps of it, or fetch too much."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.storage import object_files
from pyhudi.storage.object_files import ObjectInput


class Fetched:
    """A content, and the ranges that were asked of it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.ranges: list[tuple[int, int]] = []

    def __call__(self, start: int, end: int) -> bytes:
        assert 0 <= start < end <= len(self.content)
        self.ranges.append((start, end))
        return self.content[start:end]

    def open(self, tail_bytes: int) -> ObjectInput:
        return ObjectInput(self, len(self.content), self.content[len(self.content) - tail_bytes :])


@given(
    size=st.integers(0, 300),
    tail=st.integers(0, 80),
    ahead=st.sampled_from([1, 7, 50]),
    kept=st.sampled_from([0, 10, 100]),
    steps=st.lists(st.tuples(st.integers(0, 300), st.integers(-1, 120))),
)
def test_reads_are_those_of_the_whole_file(
    size: int, tail: int, ahead: int, kept: int, steps: list[tuple[int, int]]
) -> None:
    content = bytes(n % 251 for n in range(size))
    whole = io.BytesIO(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_files, "READ_AHEAD_BYTES", ahead)
        patch.setattr(object_files, "_KEPT_BYTES_MAX", kept)
        file = Fetched(content).open(min(tail, size))
        for position, count in steps:
            assert file.seek(position) == whole.seek(position)
            assert file.read(count) == whole.read(count)
            assert file.tell() == whole.tell()


def test_small_reads_in_a_row_are_fetched_at_once() -> None:
    fetched = Fetched(bytes(1_000_000))
    with fetched.open(0) as file:
        for _ in range(600):
            file.read(100)
    assert fetched.ranges == [(0, 65_536)]


def test_a_large_read_is_one_request_for_what_is_not_there_yet() -> None:
    fetched = Fetched(bytes(1_000_000))
    with fetched.open(100_000) as file:
        file.seek(300_000)
        assert len(file.read()) == 700_000
    assert fetched.ranges == [(300_000, 900_000)]


def test_the_end_is_there_already() -> None:
    fetched = Fetched(bytes(1_000_000))
    with fetched.open(1_000) as file:
        file.seek(-1_000, io.SEEK_END)
        assert len(file.read()) == 1_000
    assert fetched.ranges == []


def test_nothing_lies_before_the_start() -> None:
    with Fetched(b"x").open(1) as file, pytest.raises(ValueError, match="expected 0 or more"):
        file.seek(-2, io.SEEK_END)
