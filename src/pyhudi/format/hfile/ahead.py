"""Works on blocks ahead of their reader, in a thread. zlib and compiled loops let other threads run meanwhile."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

AHEAD_BLOCKS: Final = 16
"""The most blocks that are worked on besides the one in use."""
_TOGETHER: Final = AHEAD_BLOCKS // 2
"""Blocks that the thread hands over at once. One by one, the two threads would wait for each other at every block."""

T = TypeVar("T")
R = TypeVar("R")


def worked_ahead(work: Callable[[T], R], blocks: Sequence[T]) -> Iterator[R]:
    """The result of `work` for each block, in order. A thread works on the next blocks while the caller uses one.

    The thread ends with the blocks, or when the caller drops the iterator. Memory: `AHEAD_BLOCKS` results.
    Raises: what `work` raises, when the caller gets to that block.
    """
    waiting: deque[Future[tuple[list[R], Exception | None]]] = deque()

    def work_on(some: Sequence[T]) -> tuple[list[R], Exception | None]:
        done: list[R] = []
        try:
            done += map(work, some)
        except Exception as error:
            return done, error
        return done, None

    with ThreadPoolExecutor(1, thread_name_prefix="hfile") as pool:
        try:
            for start in range(0, len(blocks), _TOGETHER):
                waiting.append(pool.submit(work_on, blocks[start : start + _TOGETHER]))
                if len(waiting) * _TOGETHER >= AHEAD_BLOCKS:
                    yield from _taken(waiting.popleft())
            while waiting:
                yield from _taken(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()


def _taken(future: Future[tuple[list[R], Exception | None]]) -> Iterator[R]:
    done, error = future.result()
    yield from done
    if error is not None:
        raise error
