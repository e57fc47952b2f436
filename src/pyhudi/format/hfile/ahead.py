"""Unpacking blocks ahead of their reader, in a thread: zlib lets other threads run meanwhile."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeAlias

from pyhudi.format.hfile.index import IndexEntry

AHEAD_BLOCKS: Final = 16
"""Blocks that are unpacked at most beside the one in use."""
_TOGETHER: Final = AHEAD_BLOCKS // 2
"""Blocks that the thread hands over at once: one by one, both threads would wait for each other at each."""

_Unpacked: TypeAlias = tuple[list[bytes], Exception | None]


def unpacked_ahead(unpack: Callable[[IndexEntry], bytes], run: Sequence[IndexEntry]) -> Iterator[bytes]:
    """What `unpack` makes of each block, in order; a thread works on the next ones while the caller has one.

    The thread ends with the run, or when the caller lets go of the iterator. Memory: `AHEAD_BLOCKS` payloads.
    Raises: what `unpack` raises, in its place in the order.
    """
    waiting: deque[Future[_Unpacked]] = deque()

    def unpack_some(entries: Sequence[IndexEntry]) -> _Unpacked:
        done: list[bytes] = []
        try:
            done += map(unpack, entries)
        except Exception as error:
            return done, error
        return done, None

    with ThreadPoolExecutor(1, thread_name_prefix="hfile") as pool:
        try:
            for start in range(0, len(run), _TOGETHER):
                waiting.append(pool.submit(unpack_some, run[start : start + _TOGETHER]))
                if len(waiting) * _TOGETHER >= AHEAD_BLOCKS:
                    yield from _taken(waiting.popleft())
            while waiting:
                yield from _taken(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()


def _taken(future: Future[_Unpacked]) -> Iterator[bytes]:
    done, error = future.result()
    yield from done
    if error is not None:
        raise error
