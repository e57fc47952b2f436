"""The blocks of a log file, in file order. Damaged stretches are reported as CORRUPT blocks, and passed over."""

from collections.abc import Iterator
from typing import Final

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.log.block import (
    MAGIC,
    BlockType,
    Damage,
    LogBlock,
    check_block_end,
    decode_block,
    find_block_end,
)
from pyhudi.format.log.source import LogSource, LogWindow, MemoryLog, read_exactly

SEARCH_SIZE_BYTES: Final = 1 << 20


def scan_log(source: LogSource, size_bytes: int, *, path: str) -> Iterator[LogBlock]:
    """The blocks of a log of `size_bytes`, with headers decoded and contents left in the file.

    Together the blocks cover the whole file. Bytes that are no sound block become a CORRUPT block up to the next
    magic, where the scan goes on. Only the caller can tell whether a CORRUPT block matters; see `Damage`.

    If a block's two lengths agree but its parts do not, its CORRUPT block ends where the lengths say.

    Seen: Apache Hudi counts a whole block as corrupt if no magic follows it. Here the block stays sound, and the
    bytes that follow are the CORRUPT block.

    Requests: one of 64 KiB for each block, from the last block's end on; fewer for small blocks. Damage costs reading
    up to the next magic. Memory: 64 KiB, or the largest header. Spec: format/log-format.md section 4.
    """
    window = LogWindow(source, size_bytes, path=path)
    offset = 0
    while offset < size_bytes:
        block = _block_at(window, offset)
        assert block.offset == offset
        assert 0 < block.size <= size_bytes - offset
        yield block
        offset += block.size


def read_blocks(data: bytes | memoryview, *, path: str) -> Iterator[LogBlock]:
    """The blocks of a log held in memory. Torn blocks are included, as CORRUPT.

    Raises: CorruptFile or Unsupported for damage that a writer which died cannot have left.
    """
    for block in scan_log(MemoryLog(data), memoryview(data).nbytes, path=path):
        if block.damage is not None and not block.damage.is_torn:
            raise block.damage.error
        yield block


def _block_at(window: LogWindow, offset: int) -> LogBlock:
    """The block that starts at an offset, or the gap from there to the next magic.

    The head is decoded before the end is looked at, so that the window only moves forward.
    """
    start = bytes(window.view(offset, min(len(MAGIC), window.size_bytes - offset)))
    if start != MAGIC:
        found = start.hex(" ")
        error = CorruptFile(window.path, offset, expected=f"log block magic {MAGIC.decode()}", found=found)
        # A file that does not begin with a magic, or a part of one, is no log: no writer that died left it.
        is_log = offset > 0 or MAGIC.startswith(start)
        return _gap(window, offset, _find_magic(window, offset + 1), Damage(error, is_torn=is_log))

    broken: CorruptFile | Unsupported | None = None
    block: LogBlock | None = None

    try:
        end = find_block_end(window, offset)
        try:
            block = decode_block(window, offset, end)
        except (CorruptFile, Unsupported) as error:
            broken = error
        check_block_end(window, offset, end)
    except CorruptFile as error:
        return _gap(window, offset, _find_magic(window, offset + 1), Damage(error, is_torn=True))

    if block is not None:
        return block

    # The lengths agree, so the block was written whole: its damage is no torn write.
    assert broken is not None
    return _gap(window, offset, end, Damage(broken, is_torn=False))


def _gap(window: LogWindow, offset: int, end: int, damage: Damage) -> LogBlock:
    size = end - offset
    return LogBlock(
        type=BlockType.CORRUPT,
        header={},
        content_offset=offset,
        content_size=size,
        offset=offset,
        size=size,
        path=window.path,
        source=window.source,
        damage=damage,
    )


def _find_magic(window: LogWindow, start: int) -> int:
    """The offset of the next magic from `start` on, or the end of the file.

    Reads overlap by a magic less one byte, so that a magic on the border of two reads is found.
    """
    overlap = len(MAGIC) - 1
    at = start
    while at < window.size_bytes:
        size = min(SEARCH_SIZE_BYTES, window.size_bytes - at)
        found = bytes(read_exactly(window.source, at, size, path=window.path)).find(MAGIC)
        if found >= 0:
            return at + found
        if at + size == window.size_bytes:
            break
        at += size - overlap
    return window.size_bytes
