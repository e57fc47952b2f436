"""Many small blocks of Avro rows as one: to decode a block takes longer than to decode a few rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyhudi.format.avro.framing import find_first_rows
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import AVRO_HEAD, AVRO_VERSIONS, read_row_count
from pyhudi.format.log.source import MemoryLog

JOINED_BLOCK_BYTES_MAX: Final = 64 << 10
"""Bytes of an Avro block up to which it is worth joining with others."""


def is_small_avro(block: LogBlock) -> bool:
    """Whether it is a block of few Avro rows: to decode it takes less time than to prepare that."""
    return block.type is BlockType.AVRO_DATA and block.content_size <= JOINED_BLOCK_BYTES_MAX


def join_avro(blocks: Sequence[LogBlock]) -> tuple[LogBlock, list[int]] | None:
    """The rows of small Avro blocks of one schema as one block in memory, and how many rows each of them has.

    None where one of them breaks the layout: to read that block by itself says how. Errors about the joined rows name
    the first block: they are no errors to show.
    """
    parts, counts = [], []
    for block in blocks:
        assert is_small_avro(block)
        content = block.read_content()
        count = read_row_count(replace(block, source=MemoryLog(content, block.content_offset)))
        starts, _, used = find_first_rows(content, count, start=AVRO_HEAD.size)
        if len(starts) != count or used != len(content):
            return None
        parts.append(content[AVRO_HEAD.size :])
        counts.append(count)
    joined = b"".join([AVRO_HEAD.pack(AVRO_VERSIONS[-1], sum(counts)), *parts])
    first = replace(
        blocks[0], source=MemoryLog(joined), content_offset=0, content_size=len(joined), offset=0, size=len(joined)
    )
    return first, counts
