"""Threads could hold more than they may together, wait for ever, or never give memory back."""

import threading
import time

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.local.row_memory import RowMemory


def test_threads_hold_no_more_than_they_may_together() -> None:
    memory = RowMemory(100, row_bytes=1, let_go=lambda: None)
    lock, held, seen = threading.Lock(), [0], []

    def work(size_bytes: int) -> None:
        with memory.hold(size_bytes):
            with lock:
                held[0] += size_bytes
                seen.append(held[0])
            time.sleep(0.005)
            with lock:
                held[0] -= size_bytes

    LocalExecutor(4).run(work, [40] * 12)

    assert len(seen) == 12
    assert max(seen) == 80


def test_what_is_larger_than_all_goes_alone() -> None:
    memory = RowMemory(100, row_bytes=1, let_go=lambda: None)
    at_once, seen = [0], []

    def work(size_bytes: int) -> None:
        with memory.hold(size_bytes):
            at_once[0] += 1
            seen.append(at_once[0])
            time.sleep(0.005)
            at_once[0] -= 1

    LocalExecutor(4).run(work, [500] * 6)

    assert seen == [1] * 6


def test_room_is_given_back_by_what_fails() -> None:
    memory = RowMemory(100, row_bytes=1, let_go=lambda: None)
    for _ in range(3):
        try:
            with memory.hold(100):
                raise ValueError
        except ValueError:
            pass

    with memory.hold(100):
        pass


def test_memory_is_given_back_whenever_so_many_bytes_went_by() -> None:
    calls: list[int] = []
    memory = RowMemory(100, row_bytes=1, let_go=lambda: calls.append(1))

    for _ in range(10):
        memory.pass_by(30)

    assert len(calls) == 2


def test_rows_of_a_group_are_held_twice() -> None:
    assert RowMemory(100, row_bytes=10, let_go=lambda: None).group_rows_max == 5
    assert RowMemory(100, row_bytes=1_000, let_go=lambda: None).group_rows_max == 1
