"""The blocks of a log file held in memory, torn ones included."""

from collections.abc import Iterator

from pyhudi.errors import CorruptFile
from pyhudi.format.log.block import MAGIC, BlockType, LogBlock, decode_block, find_magic, is_intact


def read_blocks(data: bytes | memoryview, *, path: str) -> Iterator[LogBlock]:
    """The blocks in file order, without copying their contents.

    A block that a dead writer left unfinished becomes a CORRUPT block up to the next magic, and reading
    goes on there. Fewer than 6 bytes at the end are no block.

    Spec: format/log-format.md section 4. Raises: CorruptFile where no block starts, and inside a block
    whose lengths agree but whose parts do not.
    """
    view = memoryview(data).cast("B").toreadonly()
    offset = 0
    while offset + len(MAGIC) <= len(view):
        found = bytes(view[offset : offset + len(MAGIC)])
        if found != MAGIC:
            raise CorruptFile(path, offset, expected=f"log block magic {MAGIC.decode()}", found=found.hex(" "))
        if is_intact(view, offset):
            block = decode_block(view, offset, path=path)
        else:
            end = find_magic(view, offset + len(MAGIC))
            block = LogBlock(BlockType.CORRUPT, {}, view[offset:end], offset, offset, end - offset)
        yield block
        offset += block.size
