"""The frame of a log block: magic, lengths, type, header, content, footer, reverse pointer."""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from pyhudi.errors import CorruptFile, Unsupported

MAGIC: Final = b"#HUDI#"
FORMAT_VERSION: Final = 1

_LENGTH = struct.Struct(">q")
_PREFIX = struct.Struct(">ii")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">ii")

_LENGTH_END = len(MAGIC) + _LENGTH.size
_LENGTH_MIN = _PREFIX.size + _COUNT.size + _LENGTH.size + _COUNT.size + _LENGTH.size


class BlockType(IntEnum):
    """What a block holds, by the number in its bytes. The published text counts them from 1."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Keys of a block's header, by the number in its bytes. The published text counts them from 1."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


ROLLBACK_COMMAND: Final = "0"
"""The only COMMAND_BLOCK_TYPE there is."""


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block, its content still encoded.

    `offset`, `size`: of the whole block in its file, magic included. `content`: a view of the file's
    bytes, which start at `content_offset`. A CORRUPT block is the gap up to the next magic; it has no
    header, and its content is the gap itself.
    """

    type: BlockType
    header: Mapping[HeaderKey, str]
    content: memoryview = field(repr=False)
    content_offset: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class _Span:
    """The part of a file that one block may use; reads beyond it are CorruptFile."""

    data: memoryview
    path: str
    end: int

    def need(self, at: int, size: int, what: str) -> int:
        """The offset behind `size` bytes at `at`."""
        if size < 0 or size > self.end - at:
            left = f"{self.end - at:,} bytes up to the block's end"
            raise CorruptFile(self.path, at, expected=f"{size:,} bytes of {what}", found=left)
        return at + size


def is_intact(data: memoryview, offset: int) -> bool:
    """Whether a block was written to its end: both its lengths agree, and a block or nothing follows.

    Spec: format/log-format.md section 4, step 2.
    """
    if len(data) < offset + _LENGTH_END:
        return False
    (length,) = _LENGTH.unpack_from(data, offset + len(MAGIC))
    end = offset + _LENGTH_END + length
    if length < _LENGTH.size or end > len(data):
        return False
    (reverse,) = _LENGTH.unpack_from(data, end - _LENGTH.size)
    following = bytes(data[end : end + len(MAGIC)])
    return reverse - len(MAGIC) == length and (len(following) < len(MAGIC) or following == MAGIC)


def find_magic(data: memoryview, start: int) -> int:
    """The offset of the next magic from `start` on, or the end of the data."""
    match = _MAGIC.search(data, start)
    return match.start() if match else len(data)


def decode_block(data: memoryview, offset: int, *, path: str) -> LogBlock:
    """The block at an offset, which `is_intact` has found whole.

    Layout (big endian): magic 6 bytes; i64 length of what follows it; i32 format version; i32 type; header;
    i64 content size; content; footer; i64 reverse pointer, the length + 6. Header and footer: i32 n;
    n of (i32 key, i32 size, UTF-8 text).

    Spec: format/log-format.md section 1. Raises: CorruptFile; Unsupported for blocks of before Hudi 0.5.
    """
    (length,) = _LENGTH.unpack_from(data, offset + len(MAGIC))
    end = offset + _LENGTH_END + length
    span = _Span(data, path, end - _LENGTH.size)
    at = offset + _LENGTH_END
    after_prefix = span.need(at, _PREFIX.size, "format version and block type")
    version, number = _PREFIX.unpack_from(data, at)
    if version == 0:
        raise Unsupported(
            f"{path} at byte {offset:,}: a log block of before Hudi 0.5; compact the table with Hudi first"
        )
    if version != FORMAT_VERSION:
        raise CorruptFile(path, at, expected=f"log format version {FORMAT_VERSION}", found=str(version))
    if number not in BlockType._value2member_map_ or number == BlockType.CORRUPT:
        raise CorruptFile(path, at + 4, expected="a block type that is ever written, 0 to 6", found=str(number))
    header, at = _decode_map(span, after_prefix, "header")
    content_offset = span.need(at, _LENGTH.size, "content size")
    (content_size,) = _LENGTH.unpack_from(data, at)
    at = span.need(content_offset, content_size, "content")
    content = data[content_offset:at]
    footer, at = _decode_map(span, at, "footer")
    if footer or at != span.end:
        found = f"{span.end - at:,} bytes and {len(footer)} footer entries"
        raise CorruptFile(path, at, expected="an empty footer at the block's end", found=found)
    return LogBlock(BlockType(number), header, content, content_offset, offset, end - offset)


def _decode_map(span: _Span, at: int, what: str) -> tuple[dict[HeaderKey, str], int]:
    after = span.need(at, _COUNT.size, f"{what} count")
    (count,) = _COUNT.unpack_from(span.data, at)
    if not 0 <= count <= len(HeaderKey):
        raise CorruptFile(span.path, at, expected=f"at most {len(HeaderKey)} {what} entries", found=f"{count:,}")
    entries: dict[HeaderKey, str] = {}
    at = after
    for _ in range(count):
        start = span.need(at, _ENTRY.size, f"a {what} entry")
        number, size = _ENTRY.unpack_from(span.data, at)
        end = span.need(start, size, f"a {what} entry's text")
        if number not in HeaderKey._value2member_map_:
            hint = "A newer release may have written it."
            expected = f"a {what} key up to {max(HeaderKey)}"
            raise CorruptFile(span.path, at, expected=expected, found=str(number), hint=hint)
        try:
            entries[HeaderKey(number)] = str(span.data[start:end], "utf-8")
        except UnicodeDecodeError as error:
            raise CorruptFile(span.path, start, expected=f"a {what} entry in UTF-8", found=str(error)) from error
        at = end
    return entries, at


def encode_block(kind: BlockType, header: Mapping[HeaderKey, str], content: bytes | memoryview) -> bytes:
    """A whole block; header entries in the order of their numbers. Layout: as in `decode_block`."""
    assert kind is not BlockType.CORRUPT
    entries = []
    for key in sorted(header):
        text = header[key].encode()
        entries.append(_ENTRY.pack(key, len(text)) + text)
    head = _PREFIX.pack(FORMAT_VERSION, kind) + _COUNT.pack(len(entries)) + b"".join(entries)
    length = len(head) + _LENGTH.size + len(content) + _COUNT.size + _LENGTH.size
    assert length >= _LENGTH_MIN
    return b"".join(
        (
            *(MAGIC, _LENGTH.pack(length), head),
            *(_LENGTH.pack(len(content)), content),
            *(_COUNT.pack(0), _LENGTH.pack(length + len(MAGIC))),
        )
    )


_MAGIC = re.compile(re.escape(MAGIC))
