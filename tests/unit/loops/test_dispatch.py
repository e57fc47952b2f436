"""A small call could load the compiler, a large one be interpreted, or the cache answer for code that has changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyhudi.loops import dispatch, inlined, loop, loop_over
from pyhudi.loops.dispatch import Loop

STEP = 2


@inlined
def _stepped(number: int) -> int:
    return number + STEP


@loop
def _summed(numbers: np.ndarray, others: tuple[np.ndarray, ...]) -> int:
    total = np.int64(0)
    for number in numbers:
        total += _stepped(number)
    return int(total) + len(others)


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes loops that are not compiled yet, in a process that has interpreted nothing."""
    monkeypatch.setattr(dispatch._Spent, "seconds", 0.0)
    return lambda function, work=None: Loop(function, work, is_inlined=False)


def raw(loop: object) -> Any:
    assert isinstance(loop, Loop)
    return loop._source


def test_few_values_are_interpreted_and_many_compiled(
    loops: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    summed = loops(raw(_summed))
    assert summed(np.arange(10), (np.arange(3),)) == 45 + 10 * STEP + 1
    assert summed._compiled is None
    assert summed(np.arange(10_000), (np.arange(3),)) == 49_995_000 + 10_000 * STEP + 1
    assert summed._compiled is not None


def test_elements_of_tuples_count() -> None:
    assert dispatch.elements((np.zeros(5), (np.zeros(7), (np.zeros((2, 3)),)), 9)) >= 18


def test_many_small_calls_add_up(loops: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    summed = loops(raw(_summed))
    monkeypatch.setattr(dispatch, "PROCESS_SECONDS_MAX", 0.002)
    for _ in range(10_000):
        summed(np.arange(10), (np.arange(3),))
        if summed._compiled is not None:
            return
    pytest.fail("a process interprets for ever")


def test_a_loop_that_touches_little_of_a_large_array_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch._Spent, "seconds", 0.0)

    @loop_over(lambda table, _at: 1)
    def picked(table: np.ndarray, at: int) -> int:
        return int(table[at])

    assert picked(np.arange(1_000_000), 17) == 17
    assert isinstance(picked, Loop)
    assert picked._compiled is None


def test_sums_that_leave_their_width_wrap_without_a_warning() -> None:
    @loop
    def wrapped(numbers: np.ndarray) -> np.uint64:
        return numbers[0] * numbers[1]

    assert wrapped(np.array([1 << 63, 3], np.uint64)) == np.uint64(1 << 63)


def test_the_digest_follows_code_constants_and_the_loops_that_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(_summed, Loop)
    assert isinstance(_stepped, Loop)
    first = _summed.digest()
    assert _summed.digest() == first
    monkeypatch.setitem(_stepped._source.__globals__, "STEP", 3)
    second = _summed.digest()
    monkeypatch.setitem(_summed._source.__globals__, "_stepped", Loop(lambda number: number + 7, None, is_inlined=True))
    assert len({first, second, _summed.digest()}) == 3
