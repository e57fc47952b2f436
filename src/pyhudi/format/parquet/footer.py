"""The footer of a Parquet file: its columns, and where the parts of its row groups lie.

Numbers are those of the fields in `parquet.thrift`. Spec: Parquet format 2.10.
"""

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

from pyhudi.errors import CorruptFile
from pyhudi.format.parquet.thrift import Items, Kind, Message, decode_message, encode_message

MAGIC: Final = b"PAR1"
TAIL_SIZE: Final = 8
"""The length of the footer in four bytes, and the magic."""

CODECS: Final[Mapping[str, int]] = {"none": 0, "snappy": 1, "gzip": 2, "brotli": 4, "zstd": 6, "lz4": 7}
"""Compression codecs by their names in PyArrow."""

INT96: Final = 3
_FIRST_READ_BYTES: Final = 64 << 10
_BYTES: Final = 6
_FIXED: Final = 7
_OPTIONAL: Final = 1
_DECIMAL: Final = 5
"""As an annotation of the old kind, and as one of the new."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The pages of one column in one row group. `message`: a ColumnChunk. `start`, `size`: of its pages, in bytes."""

    message: Message
    start: int
    size: int

    @property
    def facts(self) -> Message:
        """Its ColumnMetaData."""
        found = self.message.message(3)
        assert found is not None, "a chunk has been checked when its footer was decoded"
        return found

    @property
    def name(self) -> str:
        """The path of its column, with dots."""
        return column_path(self.facts)

    @property
    def is_whole_column(self) -> bool:
        """Whether its column is no field of another one."""
        return len(_parts(self.facts)) == 1

    @property
    def codec(self) -> int | None:
        return self.facts.number(4)

    def range_of(self, start: int, size: int) -> tuple[int, int] | None:
        """Where something beside the pages lies: offset and bytes, by the numbers of the fields that tell them."""
        at, length = self.message.number(start), self.message.number(size)
        return None if at is None or length is None or length <= 0 else (at, length)

    @property
    def column_index(self) -> tuple[int, int] | None:
        return self.range_of(6, 7)

    @property
    def offset_index(self) -> tuple[int, int] | None:
        return self.range_of(4, 5)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """`message`: a RowGroup. `size`: bytes of all its pages."""

    message: Message
    rows: int
    chunks: tuple[Chunk, ...]

    @property
    def size(self) -> int:
        return sum(chunk.size for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Footer:
    """`message`: a FileMetaData. `start`: where it begins in its file."""

    message: Message
    start: int
    groups: tuple[RowGroup, ...]

    @property
    def created_by(self) -> str:
        return (self.message.content(6) or b"").decode(errors="replace")

    @property
    def has_plain_pages(self) -> bool:
        """Whether all pages lie in this file, and none is encrypted: encrypted pages cannot be read in another file."""
        chunks = (chunk.message.fields for group in self.groups for chunk in group.chunks)
        return not {8, 9} & self.message.fields.keys() and not any({1, 8, 9} & fields.keys() for fields in chunks)

    @property
    def columns(self) -> tuple[bytes, ...]:
        """What the file states of its columns, each as bytes to be compared, and of how bounds are ordered.

        The name of the schema as a whole is left out: it differs between writers, and means nothing.
        """
        elements = self.message.messages(2)
        orders = Message({7: self.message.fields[7]}) if 7 in self.message.fields else Message()
        root = elements[0].with_fields(f3=None, f4=None) if elements else Message()
        return tuple(encode_message(one) for one in (orders, root, *elements[1:]))

    def has_text_column(self, name: str) -> bool:
        """Whether there is a column of texts of this name that may be null, and is no field of another one."""
        found = [one for one in self.message.messages(2)[1:] if one.content(4) == name.encode()]
        return [(one.number(1), one.number(3)) for one in found] == [(_BYTES, _OPTIONAL)]

    @property
    def has_old_types(self) -> bool:
        """Whether a timestamp has 96 bits, or a decimal is stored as a number: not all readers take these."""
        for element in self.message.messages(2):
            logical = element.message(10)
            is_decimal = element.number(6) == _DECIMAL or (logical is not None and _DECIMAL in logical.fields)
            if element.number(1) == INT96 or (is_decimal and element.number(1) != _FIXED):
                return True
        return False


def footer_size(tail: bytes, file_size: int, *, path: str) -> int:
    """The bytes of the footer, by the last bytes of a file. Raises: CorruptFile; for an encrypted footer, too."""
    if len(tail) < TAIL_SIZE or tail[-4:] != MAGIC:
        raise CorruptFile(path, max(0, file_size - 4), expected=f"{MAGIC!r} at the end", found=f"{tail[-4:]!r}")
    (size,) = struct.unpack("<I", tail[-8:-4])
    if size > file_size - TAIL_SIZE - len(MAGIC):
        raise CorruptFile(path, file_size - 8, expected="a footer within the file", found=f"one of {size:,} bytes")
    return int(size)


def decode_footer(content: bytes, start: int, *, path: str) -> Footer:
    """A footer. `start`: where it begins in its file. Raises: CorruptFile where pages lie outside of the file."""
    message, _ = decode_message(content, path=path)
    groups = tuple(_row_group(one, start, path) for one in message.messages(4))
    return Footer(message, start, groups)


def read_footer(file: BinaryIO, *, path: str) -> tuple[Footer, bytes]:
    """The footer of an open file, and the bytes from there to the file's end. One or two reads. Raises: CorruptFile."""
    size = file.seek(0, io.SEEK_END)
    tail = read_at(file, max(0, size - _FIRST_READ_BYTES), min(size, _FIRST_READ_BYTES), path=path)
    length = footer_size(tail, size, path=path)
    start = size - TAIL_SIZE - length
    if length + TAIL_SIZE > len(tail):
        tail = read_at(file, start, length + TAIL_SIZE, path=path)
    ending = tail[-length - TAIL_SIZE :]
    return decode_footer(ending[:length], start, path=path), ending


def read_at(file: BinaryIO, start: int, size: int, *, path: str) -> bytes:
    """Bytes of a file. Raises: CorruptFile where it ends earlier."""
    file.seek(start)
    content = file.read(size)
    while len(content) < size:  # a file may answer with less than it has
        part = file.read(size - len(content))
        if not part:
            raise CorruptFile(path, start, expected=f"{size:,} bytes", found=f"{len(content):,} and the end")
        content += part
    return content


def encode_footer(message: Message) -> bytes:
    """The end of a file."""
    content = encode_message(message)
    return content + struct.pack("<I", len(content)) + MAGIC


def key_values(entries: Mapping[str, str]) -> Items:
    """Entries beside the rows."""
    pairs = [
        Message({1: (Kind.BINARY, name.encode()), 2: (Kind.BINARY, text.encode())}) for name, text in entries.items()
    ]
    return Items(Kind.STRUCT, list(pairs))


def column_path(facts: Message) -> str:
    return ".".join(part.decode(errors="replace") for part in _parts(facts))


def _parts(facts: Message) -> list[bytes]:
    _, found = facts.fields.get(3, (None, None))
    return [part for part in found.values if isinstance(part, bytes)] if isinstance(found, Items) else []


def _row_group(message: Message, end: int, path: str) -> RowGroup:
    rows = message.number(3)
    chunks = tuple(_chunk(one, end, path) for one in message.messages(1))
    if rows is None or rows < 0:
        raise CorruptFile(path, end, expected="a row group that states its rows", found=f"{rows}")
    return RowGroup(message, rows, chunks)


def _chunk(message: Message, end: int, path: str) -> Chunk:
    facts = message.message(3)
    if facts is None:
        raise CorruptFile(path, end, expected="a column chunk that states its pages", found="one that does not")
    starts = [at for at in (facts.number(9), facts.number(11), facts.number(10)) if at]
    start, size = min(starts, default=-1), facts.number(7)
    if size is None or size < 0 or not len(MAGIC) <= start <= end - size:
        raise CorruptFile(path, end, expected=f"pages within {end:,} bytes", found=f"{size} bytes from {start} on")
    chunk = Chunk(message, start, size)
    for at, length in filter(None, (chunk.column_index, chunk.offset_index)):
        if not len(MAGIC) <= at <= end - length:
            raise CorruptFile(
                path, end, expected=f"page indexes within {end:,} bytes", found=f"{length} bytes from {at} on"
            )
    return chunk
