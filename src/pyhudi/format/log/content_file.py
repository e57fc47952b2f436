"""A log block's content as a file, for readers that want a file and read ranges of it."""

import io
from typing import Any

from pyhudi.format.log.block import LogBlock
from pyhudi.format.log.source import read_exactly


class ContentFile(io.RawIOBase):
    """The content of a block as a seekable binary file. Each read becomes one read of the block's source."""

    def __init__(self, block: LogBlock) -> None:
        self._block, self._at = block, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._block.content_size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._block.content_size - self._at, 0)
        size = left if size is None or size < 0 else min(size, left)
        block = self._block
        found = bytes(read_exactly(block.source, block.content_offset + self._at, size, path=block.path))
        self._at += size
        return found

    def readinto(self, target: Any) -> int:
        view = memoryview(target).cast("B")
        found = self.read(len(view))
        view[: len(found)] = found
        return len(found)
