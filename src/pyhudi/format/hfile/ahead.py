"""Unpacking blocks ahead of their reader, in a thread: zlib lets other threads run meanwhile."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from pyhudi.format.hfile.index import IndexEntry

AHEAD_BLOCKS: Final = 4
"""Blocks that are unpacked beside the one in use."""


def unpacked_ahead(unpack: Callable[[IndexEntry], bytes], run: Sequence[IndexEntry]) -> Iterator[bytes]:
    """What `unpack` makes of each block, in order; a thread works on the next ones while the caller has one.

    The thread ends with the run, or when the caller lets go of the iterator. Memory: `AHEAD_BLOCKS` payloads.
    Raises: what `unpack` raises, in its place in the order.
    """
    waiting: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="hfile") as pool:
        try:
            for entry in run:
                waiting.append(pool.submit(unpack, entry))
                if len(waiting) > AHEAD_BLOCKS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
