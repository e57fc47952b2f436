"""Joins many small blocks of Avro rows into one block, since decoding a block costs more than decoding a few rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyhudi.format.avro.framing import find_first_rows
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import AVRO_HEAD, AVRO_VERSIONS, read_row_count
from pyhudi.format.log.source import MemoryLog

JOINED_BLOCK_BYTES_MAX: Final = 64 << 10
"""An Avro block of at most this many bytes is worth joining with others."""


def is_small_avro(block: LogBlock) -> bool:
    """Whether a block has so few Avro rows that decoding them takes less time than preparing to decode."""
    return block.type is BlockType.AVRO_DATA and block.content_size <= JOINED_BLOCK_BYTES_MAX


def join_avro(blocks: Sequence[LogBlock]) -> tuple[LogBlock, list[int]] | None:
    """One block in memory with the rows of several small Avro blocks of one schema, and the row count of each.

    None if a block breaks the layout; reading that block by itself raises the error. Do not show errors about the
    joined rows: they name the first block, whichever block is broken.
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
