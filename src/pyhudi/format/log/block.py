"""The frame of a log block: magic, lengths, type, header, content, footer, reverse pointer."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, Self

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.log.source import LogSource, LogWindow, MemoryLog, read_exactly

MAGIC: Final = b"#HUDI#"
FORMAT_VERSION: Final = 1

_LENGTH = struct.Struct(">q")
_PREFIX = struct.Struct(">ii")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">ii")

LENGTH_END: Final = len(MAGIC) + _LENGTH.size
_FOOTER_SIZE = _COUNT.size
_LENGTH_MIN = _PREFIX.size + _COUNT.size + _LENGTH.size + _FOOTER_SIZE + _LENGTH.size


class BlockType(IntEnum):
    """What a block holds, by the number that is stored. The published specification counts from 1."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Keys of a block's header, by the number that is stored. The published specification counts from 1."""

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
"""The only value that COMMAND_BLOCK_TYPE has."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Why bytes are no block.

    `is_torn`: a writer that died may have left the bytes; then nothing committed is lost with them. Otherwise the
    block was once written whole, and a reader that needs the whole log raises `error`.
    """

    error: CorruptFile | Unsupported
    is_torn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBlock:
    """One block, with its content still in the file.

    `offset`, `size`: where the whole block lies in its file, magic included. A CORRUPT block is the gap up to the
    next magic: it has no header, its content is the gap itself, and `damage` says why. Footers are always empty.
    """

    type: BlockType
    header: Mapping[HeaderKey, str] = field(repr=False)
    content_offset: int
    content_size: int
    offset: int
    size: int
    path: str
    source: LogSource = field(repr=False, compare=False)
    damage: Damage | None = None

    def read_content(self) -> memoryview:
        """The whole content. No copy is made if the log is held in memory."""
        return read_exactly(self.source, self.content_offset, self.content_size, path=self.path)

    def held(self) -> Self:
        """The same block with its content in memory, so that reading it again makes no request."""
        return replace(self, source=MemoryLog(self.read_content(), self.content_offset))

    def corrupt(self, at: int, *, expected: str, found: str, hint: str = "") -> CorruptFile:
        """The error about byte `at` of the content."""
        return CorruptFile(self.path, self.content_offset + at, expected=expected, found=found, hint=hint)


@dataclass(frozen=True, slots=True)
class _Span:
    """The part of a file that one block may use. Raises: CorruptFile for reads beyond it."""

    window: LogWindow
    end: int

    def need(self, at: int, size: int, what: str) -> memoryview:
        """The `size` bytes at `at`."""
        self.check(at, size, what)
        return self.window.view(at, size)

    def check(self, at: int, size: int, what: str) -> None:
        if size < 0 or size > self.end - at:
            left = f"{self.end - at:,} bytes up to the block's end"
            raise self.corrupt(at, expected=f"{size:,} bytes of {what}", found=left)

    def corrupt(self, at: int, *, expected: str, found: str, hint: str = "") -> CorruptFile:
        return CorruptFile(self.window.path, at, expected=expected, found=found, hint=hint)


def find_block_end(window: LogWindow, offset: int) -> int:
    """The end of the block at an offset, as the length at its start states it.

    Raises: CorruptFile if the file ends before the length, or before the end that the length states.
    """
    left = window.size_bytes - offset
    if left < LENGTH_END:
        raise CorruptFile(window.path, offset, expected=f"{LENGTH_END} bytes of a block's start", found=f"{left}")

    (length,) = _LENGTH.unpack(window.view(offset + len(MAGIC), _LENGTH.size))
    end = offset + LENGTH_END + int(length)
    if length < _LENGTH_MIN or end > window.size_bytes:
        expected = f"a block of {_LENGTH_MIN:,} to {left - LENGTH_END:,} bytes behind its length"
        raise CorruptFile(window.path, offset + len(MAGIC), expected=expected, found=f"{length:,}")
    return end


def check_block_end(window: LogWindow, offset: int, end: int) -> None:
    """Raise CorruptFile unless the length at a block's end agrees with the length at its start.

    If they agree, the block was written to its end.
    """
    at = end - _LENGTH.size
    (reverse,) = _LENGTH.unpack(window.view(at, _LENGTH.size))
    if reverse != at - offset:
        expected = f"{at - offset:,}, the bytes from the block's start to here"
        raise CorruptFile(window.path, at, expected=expected, found=f"{reverse:,}")


def decode_block(window: LogWindow, offset: int, end: int) -> LogBlock:
    """The block from an offset to its end, without its content.

    Layout (big endian): magic 6 bytes; i64 length of what follows it; i32 format version; i32 type; header;
    i64 content size; content; footer; i64 reverse pointer, the length + 6. Header and footer: i32 n;
    n of (i32 key, i32 size, UTF-8 text). The reverse pointer is not looked at.

    Spec: format/log-format.md section 1. Raises: CorruptFile; Unsupported for blocks of before Hudi 0.5.
    """
    span = _Span(window, end - _LENGTH.size - _FOOTER_SIZE)
    at = offset + LENGTH_END

    version, number = _PREFIX.unpack(span.need(at, _PREFIX.size, "format version and block type"))
    if version == 0:
        raise Unsupported(
            f"{window.path} at byte {offset:,}: a log block of before Hudi 0.5; compact the table with Hudi first"
        )
    if version != FORMAT_VERSION:
        raise span.corrupt(at, expected=f"log format version {FORMAT_VERSION}", found=str(version))
    if number not in BlockType._value2member_map_ or number == BlockType.CORRUPT:
        raise span.corrupt(at + 4, expected="a block type that is ever written, 0 to 6", found=str(number))

    header, at = _decode_header(span, at + _PREFIX.size)
    (content_size,) = _LENGTH.unpack(span.need(at, _LENGTH.size, "content size"))
    content_offset = at + _LENGTH.size
    if content_offset + content_size != span.end:
        expected = f"{span.end - content_offset:,} bytes of content, up to an empty footer"
        raise span.corrupt(at, expected=expected, found=f"{content_size:,}")

    (footer_count,) = _COUNT.unpack(window.view(span.end, _COUNT.size))
    if footer_count != 0:
        raise span.corrupt(span.end, expected="an empty footer at the block's end", found=f"{footer_count:,} entries")

    kind = BlockType(number)
    return LogBlock(
        type=kind,
        header=header,
        content_offset=content_offset,
        content_size=content_size,
        offset=offset,
        size=end - offset,
        path=window.path,
        source=window.source,
    )


def _decode_header(span: _Span, at: int) -> tuple[dict[HeaderKey, str], int]:
    (count,) = _COUNT.unpack(span.need(at, _COUNT.size, "header count"))
    if not 0 <= count <= len(HeaderKey):
        raise span.corrupt(at, expected=f"at most {len(HeaderKey)} header entries", found=f"{count:,}")

    entries: dict[HeaderKey, str] = {}
    at += _COUNT.size
    for _ in range(count):
        number, size = _ENTRY.unpack(span.need(at, _ENTRY.size, "a header entry"))
        start = at + _ENTRY.size
        span.check(start, size, "a header entry's text")

        if number not in HeaderKey._value2member_map_:
            hint = "A newer release may have written it."
            raise span.corrupt(at, expected=f"a header key up to {max(HeaderKey)}", found=str(number), hint=hint)
        if HeaderKey(number) in entries:
            raise span.corrupt(at, expected="each header key once", found=f"{HeaderKey(number).name} again")

        try:
            entries[HeaderKey(number)] = str(span.window.view(start, size), "utf-8")
        except UnicodeDecodeError as error:
            raise span.corrupt(start, expected="a header entry in UTF-8", found=str(error)) from error
        at = start + size

    return entries, at


def encode_block(kind: BlockType, header: Mapping[HeaderKey, str], content: bytes | memoryview) -> bytes:
    """A whole block, with the header entries in the order of the mapping. Layout: as in `decode_block`.

    Seen: Apache Hudi writes the entries in the order of a hash map; readers accept any order.
    """
    assert kind is not BlockType.CORRUPT
    entries = []
    for key, value in header.items():
        text = value.encode()
        entries.append(_ENTRY.pack(key, len(text)) + text)

    head = _PREFIX.pack(FORMAT_VERSION, kind) + _COUNT.pack(len(entries)) + b"".join(entries)
    length = len(head) + _LENGTH.size + memoryview(content).nbytes + _FOOTER_SIZE + _LENGTH.size
    assert length >= _LENGTH_MIN
    return b"".join(
        (
            *(MAGIC, _LENGTH.pack(length), head),
            *(_LENGTH.pack(memoryview(content).nbytes), content),
            *(_COUNT.pack(0), _LENGTH.pack(length + len(MAGIC))),
        )
    )
