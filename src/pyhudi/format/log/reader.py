"""The blocks of a log file, in file order; damaged stretches are reported and passed over."""

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
    """The blocks of a log of `size_bytes`, headers decoded, contents left in the file.

    Together they are the whole file: what is no sound block becomes a CORRUPT one up to the next magic, and the
    scan goes on there. Nobody but the caller can tell whether such a block matters; see `Damage`.

    Seen: Apache Hudi counts a whole block as corrupt when no magic follows it. Here it stays, and what follows
    is the CORRUPT block. A block whose two lengths agree but whose parts do not ends where they say.

    Requests: one for each block, of 64 KiB from the last block's end on; fewer for small ones; damage costs reading
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
    """The blocks of a log held in memory, torn ones included as CORRUPT.

    Raises: CorruptFile or Unsupported for damage that no dead writer leaves.
    """
    for block in scan_log(MemoryLog(data), memoryview(data).nbytes, path=path):
        if block.damage is not None and not block.damage.is_torn:
            raise block.damage.error
        yield block


def _block_at(window: LogWindow, offset: int) -> LogBlock:
    """The block that starts at an offset, or the gap from there to the next magic.

    The head is decoded before the end is looked at, so that the window moves forward only.
    """
    start = bytes(window.view(offset, min(len(MAGIC), window.size_bytes - offset)))
    if start != MAGIC:
        found = start.hex(" ")
        error = CorruptFile(window.path, offset, expected=f"log block magic {MAGIC.decode()}", found=found)
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
    assert broken is not None
    return _gap(window, offset, end, Damage(broken, is_torn=False))


def _gap(window: LogWindow, offset: int, end: int, damage: Damage) -> LogBlock:
    size = end - offset
    return LogBlock(BlockType.CORRUPT, {}, offset, size, offset, size, window.path, window.source, damage)


def _find_magic(window: LogWindow, start: int) -> int:
    """The offset of the next magic from `start` on, or the end of the file.

    A magic may share its first byte with the last one of another: a block cut behind `#HUDI`, and the next.
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
