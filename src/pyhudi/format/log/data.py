"""The rows of data blocks as record batches: Avro, Parquet, HFile, and the change data of CDC blocks.

Columns have the types of the block's own schema, for every kind of block. `table/slices/conform.py` turns them into the
table's types of today, as it does for base files: Apache Hudi's promotions go beyond Avro's and differ from them.
Example: Apache Hudi turns a float into a double by way of the float's text.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile, HudiError, Invalid
from pyhudi.format.avro.decode import row_decoder
from pyhudi.format.avro.defaults import default_column
from pyhudi.format.avro.framing import SIZE_OF_SIZE, find_first_rows
from pyhudi.format.avro.types import NO_DEFAULT, NULL, Field, Record, arrow_field, arrow_type, parse_schema
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.hfile.rows import row_batches
from pyhudi.format.log import headers
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.content_file import ContentFile
from pyhudi.format.log.source import read_exactly
from pyhudi.format.parquet.opening import open_parquet

BATCH_SIZE_BYTES: Final = 16 << 20
BATCH_ROWS: Final = 65_536
WHOLE_BYTES_MAX: Final = 4 << 20
"""A Parquet block of at most this many bytes is read whole: one longer request takes no more time than two more."""

AVRO_HEAD = struct.Struct(">ii")
AVRO_VERSIONS: Final = (1, 2, 3)
_BROKEN_PARQUET: Final = (pa.ArrowException, OSError, UnicodeDecodeError)
ROW_TYPES: Final = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA, BlockType.CDC_DATA)


@dataclass(frozen=True, slots=True)
class _Member:
    """A column of the answer: the stored field it is read from, or the field whose default fills it."""

    name: str
    stored: Field | None
    default: Field | None = None


@dataclass(frozen=True)
class _Reading:
    """What to read from the rows of one schema: the columns of the answer, and the answer's schema."""

    members: tuple[_Member, ...]
    schema: pa.Schema

    @cached_property
    def stored(self) -> tuple[str, ...]:
        return tuple(self.stored_schema.names)

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The columns as the block names them, of the answer's types."""
        fields = zip(self.members, self.schema, strict=True)
        return pa.schema([field.with_name(one.stored.name) for one, field in fields if one.stored is not None])

    def answer(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The answer's batch, from a batch that was read: its columns are those of `stored`, in that order."""
        if not self.members:
            return batch  # a new batch without columns would forget its number of rows
        if batch.schema.equals(self.schema):
            return batch

        columns, at = [], 0
        for member, field in zip(self.members, self.schema, strict=True):
            if member.default is not None:
                columns.append(default_column(member.default, field.type, member.name, batch.num_rows))
            else:
                columns.append(batch.column(at))
                at += 1

        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def data_schema(
    block: LogBlock, *, columns: Sequence[str] | None = None, reader_schema: str | None = None
) -> pa.Schema:
    """The columns that `read_batches` gives, from the header alone."""
    return _reading(block, headers.schema_text(block), columns, reader_schema).schema


def read_batches(
    block: LogBlock,
    *,
    columns: Sequence[str] | None = None,
    reader_schema: str | None = None,
    batch_size_bytes: int = BATCH_SIZE_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The rows of a data or CDC block, in file order; none for a block without rows.

    `columns`: the columns to read, in this order; all by default. A column that the block does not have is left out.
    `reader_schema`: an Avro schema with more fields than the block. A field that the block has neither by name nor
    by alias gets its default, or null. A partial block is an exception: it holds only the columns that it changes,
    so nothing is filled in.

    Memory: Avro: about `batch_size_bytes` of the content, or one row if that is larger, and its columns. Parquet: a
    row group of these columns, or a small block's whole content. HFile: the content and its cells. Requests: one for
    each of these.
    Raises: CorruptFile; Invalid for a column that the reader's schema does not have.
    """
    assert batch_size_bytes > 0
    _, batches = _open_rows(block, columns, reader_schema, batch_size_bytes)
    yield from batches


def read_counted_batches(block: LogBlock, columns: Sequence[str]) -> tuple[int, Iterator[pa.RecordBatch]]:
    """How many rows a data or CDC block holds, and the batches of `read_batches`. The block is opened once for both.

    The caller may read the batches to their end or drop them: an open block holds no more than its own content.
    """
    return _open_rows(block, columns, None, BATCH_SIZE_BYTES)


def _open_rows(
    block: LogBlock, columns: Sequence[str] | None, reader_schema: str | None, batch_size_bytes: int
) -> tuple[int, Iterator[pa.RecordBatch]]:
    assert block.type in ROW_TYPES
    text = headers.schema_text(block)

    match block.type:
        case BlockType.PARQUET_DATA:
            reading = _reading(block, text, columns, reader_schema)
            file = _open_parquet(block)
            return int(file.metadata.num_rows), _parquet_batches(file, block, reading)
        case BlockType.HFILE_DATA:
            reader = HFileReader(block.read_content(), path=block.path)
            # The file's own schema goes before the header's, as its values are of that schema.
            text = reader.schema_text or text
            reading = _reading(block, text, columns, reader_schema)
            return reader.entry_count, _hfile_batches(reader, block, text, reading)
        case _:
            reading = _reading(block, text, columns, reader_schema)
            count = _avro_row_count(block)
            return count, _avro_batches(block, text, reading, count, batch_size_bytes)


def read_parquet_footer(block: LogBlock) -> tuple[pa.Schema, pq.FileMetaData]:
    """The columns of a Parquet block as they are stored, and the metadata in its footer.

    Requests: a range at the end; for a small block one, of its whole content.
    """
    assert block.type is BlockType.PARQUET_DATA
    with _open_parquet(block) as file:
        return file.schema_arrow, file.metadata


def held_if_small(block: LogBlock) -> LogBlock:
    """The same block; a small Parquet block with its content in memory, as each look at it reads it whole.

    Requests: one for a small Parquet block, else none.
    """
    return block.held() if block.type is BlockType.PARQUET_DATA and _is_small(block) else block


def read_row_count(block: LogBlock) -> int:
    """How many rows a data or CDC block holds. Requests: one small range; of an HFile, its content."""
    match block.type:
        case BlockType.PARQUET_DATA:
            return int(read_parquet_footer(block)[1].num_rows)
        case BlockType.HFILE_DATA:
            return HFileReader(block.read_content(), path=block.path).entry_count
        case _:
            assert block.type in ROW_TYPES
            return _avro_row_count(block)


# Which columns.


def _reading(block: LogBlock, written: str, columns: Sequence[str] | None, reader_schema: str | None) -> _Reading:
    # A broken schema is the block's fault, and becomes CorruptFile. A column that does not exist is the
    # caller's fault, and stays Invalid.
    with _from_header(block):
        _record(written)
    asked = written, None if columns is None else tuple(columns), reader_schema, headers.is_partial(block)
    _members_of(*asked)
    with _from_header(block):
        return _reading_of(*asked)


@lru_cache(maxsize=64)  # the many blocks of a log have one schema, as a rule
def _reading_of(written: str, columns: tuple[str, ...] | None, reader_schema: str | None, is_partial: bool) -> _Reading:
    members = _members_of(written, columns, reader_schema, is_partial)
    return _Reading(members, pa.schema([_member_field(member) for member in members]))


@lru_cache(maxsize=64)
def _members_of(
    written: str, columns: tuple[str, ...] | None, reader_schema: str | None, is_partial: bool
) -> tuple[_Member, ...]:
    stored = {field.name: field for field in _record(written).fields}
    reader = None if reader_schema is None else _record(reader_schema)
    return _members(stored, reader, columns, is_partial=is_partial)


@contextmanager
def _from_header(block: LogBlock) -> Iterator[None]:
    """Turn an Invalid schema into a CorruptFile of the block whose header states it."""
    try:
        yield
    except Invalid as error:
        found = str(error)
        raise CorruptFile(block.path, block.offset, expected="a header SCHEMA of Avro", found=found) from error


@lru_cache(maxsize=64)
def _record(text: str) -> Record:
    return parse_schema(text)


def _members(
    stored: Mapping[str, Field], reader: Record | None, columns: Sequence[str] | None, *, is_partial: bool
) -> tuple[_Member, ...]:
    known = stored if reader is None else {field.name: field for field in reader.fields}
    wanted = tuple(known if columns is None else columns)
    if len(set(wanted)) < len(wanted):
        raise Invalid(f"columns {', '.join(wanted)}: expected each once")

    members = []
    for name in wanted:
        if reader is not None and name not in known:
            raise Invalid(f"column '{name}': the schema to read by has no such field; there are {', '.join(known)}")

        aliases = () if reader is None else known[name].aliases
        found = next((stored[one] for one in (name, *aliases) if one in stored), None)
        if found is not None:
            members.append(_Member(name, found))
        elif reader is not None and not is_partial:
            members.append(_Member(name, None, _defaulted(known[name])))

    return tuple(members)


def _defaulted(field: Field) -> Field:
    if field.default is NO_DEFAULT and NULL not in getattr(field.type, "branches", ()):
        raise Invalid(
            f"field '{field.name}': the block does not have it, and the schema to read it by states no default; "
            "state one, or let the field be null"
        )
    return field


def _member_field(member: _Member) -> pa.Field:
    if member.stored is not None:
        return arrow_field(member.name, member.stored.type, member.name).with_nullable(True)
    assert member.default is not None
    return pa.field(member.name, arrow_type(member.default.type, member.name))


# Avro and CDC.


def _avro_row_count(block: LogBlock) -> int:
    if block.content_size < AVRO_HEAD.size:
        found = f"{block.content_size} bytes"
        raise block.corrupt(0, expected="a data block's version and number of rows", found=found)
    head = read_exactly(block.source, block.content_offset, AVRO_HEAD.size, path=block.path)
    version, count = AVRO_HEAD.unpack(head)
    if version not in AVRO_VERSIONS:
        raise block.corrupt(0, expected="a data block of version 1 to 3", found=f"version {version}")

    count_max = (block.content_size - AVRO_HEAD.size) // SIZE_OF_SIZE
    if not 0 <= count <= count_max:
        raise block.corrupt(4, expected=f"0 to {count_max:,} rows, which fit the content", found=f"{count:,}")
    return int(count)


def _avro_batches(
    block: LogBlock, text: str, reading: _Reading, count: int, size_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The `count` rows of a block, as batches of about `size_bytes` of its content.

    Layout (big endian): i32 version; i32 n; n of (i32 size, a row of Avro). Version 0 has no count.

    Seen: versions 1 to 3 differ only in the delete blocks of the same release.
    Spec: format/log-format.md section 2.1.
    """
    left = count
    decoder = row_decoder(text, None, reading.stored)
    at = AVRO_HEAD.size

    while left:
        piece = _piece(block, at, size_bytes)
        starts, ends, used = find_first_rows(piece, left)
        if not starts.size:
            # The row alone is larger than a batch: read it whole.
            piece = _piece(block, at, _first_row_end(block, piece, at))
            starts, ends, used = find_first_rows(piece, 1)

        offset = block.content_offset + at
        yield reading.answer(decoder.decode(piece[:used], starts, ends, path=block.path, offset=offset))
        at += used
        left -= len(starts)

    if at != block.content_size:
        found = f"{block.content_size - at:,} bytes more"
        raise block.corrupt(at, expected="the end of the content behind its last row", found=found)


def _piece(block: LogBlock, at: int, size: int) -> memoryview:
    size = min(size, block.content_size - at)
    return read_exactly(block.source, block.content_offset + at, size, path=block.path)


def _first_row_end(block: LogBlock, piece: memoryview, at: int) -> int:
    """The size, frame included, of a row that the piece holds in part. Raises: CorruptFile if it ends too late."""
    left = block.content_size - at - SIZE_OF_SIZE
    head = bytes(piece[:SIZE_OF_SIZE]) if len(piece) >= SIZE_OF_SIZE else bytes(_piece(block, at, SIZE_OF_SIZE))
    size = int.from_bytes(head, "big", signed=True)
    if left < 0 or not 0 <= size <= left:
        raise block.corrupt(at, expected=f"a row of at most {max(left, 0):,} bytes", found=f"{size:,}")
    return SIZE_OF_SIZE + size


# Parquet.


def _is_small(block: LogBlock) -> bool:
    return block.content_size <= WHOLE_BYTES_MAX


def _open_parquet(block: LogBlock) -> pq.ParquetFile:
    is_small = _is_small(block)
    source = pa.BufferReader(block.read_content()) if is_small else pa.PythonFile(ContentFile(block), "r")
    try:
        return open_parquet(source, pre_buffer=not is_small)
    except HudiError:
        raise
    except _BROKEN_PARQUET as error:
        raise _corrupt_parquet(block, error) from error


def _corrupt_parquet(block: LogBlock, error: Exception) -> CorruptFile:
    return block.corrupt(0, expected="a whole Parquet file", found=f"one that does not read ({error})")


def _parquet_batches(file: pq.ParquetFile, block: LogBlock, reading: _Reading) -> Iterator[pa.RecordBatch]:
    """The rows of an open block. One row group is read at a time, so that only its columns are read ahead."""
    with file:
        present = set(file.schema_arrow.names)
        missing = [name for name in reading.stored if name not in present]
        if missing:
            raise block.corrupt(0, expected=f"a Parquet column '{missing[0]}', as in the header", found="none")

        for group in range(file.num_row_groups):
            try:
                for batch in file.iter_batches(
                    BATCH_ROWS, row_groups=[group], columns=list(reading.stored), use_threads=False
                ):
                    batch.validate(full=True)  # a text may have lost its UTF-8
                    yield reading.answer(_as_stored(batch, reading))
            except HudiError:
                raise
            except _BROKEN_PARQUET as error:
                raise _corrupt_parquet(block, error) from error


def _as_stored(batch: pa.RecordBatch, reading: _Reading) -> pa.RecordBatch:
    """The columns to read, in their order and with the types of the schema in the block's header."""
    stored = reading.stored_schema
    if not stored.names or batch.schema.equals(stored):
        return batch
    return batch.select(stored.names).cast(stored)


# HFile.


def _hfile_batches(reader: HFileReader, block: LogBlock, text: str, reading: _Reading) -> Iterator[pa.RecordBatch]:
    """The rows of an HFile, in the order of their record keys. Spec: format/log-format.md section 2.3."""
    for batch in row_batches(reader, text, reading.stored, path=block.path):
        yield reading.answer(batch)
