"""Avro object container files that hold one record, as the timeline does.

Layout: magic `Obj` 0x01; a map of text to bytes, with `avro.schema` (without an entry for the codec nothing is
compressed); 16 bytes of sync marker; a block: count of records (long), size in bytes (long), the records, the sync
marker again. Longs are zigzag numbers of variable length.

Spec: Apache Avro 1.11, "Object Container Files"; format/timeline.md section 4. Seen: 0.13.1 to 1.2.0
write `avro.schema` as the only entry and exactly one block with one record.
"""

import hashlib
import io
import json
import struct
import zlib
from functools import lru_cache
from typing import TypeAlias, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.avro.types import parse_schema
from pyhudi.format.unpacking import unpack

MAGIC = b"Obj\x01"
SYNC_SIZE_BYTES = 16
SCHEMA_KEY = "avro.schema"
CODEC_KEY = "avro.codec"
RECORD_SIZE_MAX_BYTES = 1 << 31

ParsedSchema: TypeAlias = dict[str, object]

# The errors that fastavro and zlib raise for bytes or schemas that break their format.
BROKEN_BYTES = (
    EOFError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    StopIteration,
    struct.error,
    zlib.error,
    SchemaParseException,
    UnknownType,
    fastavro.read.SchemaResolutionError,
)


def encode_container(schema_text: str, record: dict[str, object]) -> bytes:
    """A container file with one record.

    The sync marker, which is random in Java, is the MD5 of schema and record. So equal records give equal files.
    """
    body = encode_record(schema_text, record)
    schema_bytes = schema_text.encode()
    sync = hashlib.md5(schema_bytes + body, usedforsecurity=False).digest()
    assert len(sync) == SYNC_SIZE_BYTES
    header = MAGIC + _long(1) + _text(SCHEMA_KEY.encode()) + _text(schema_bytes) + _long(0) + sync
    return header + _long(1) + _long(len(body)) + body + sync


def decode_container(content: bytes, schema_texts: dict[str, str], *, path: str) -> tuple[str, dict[str, object]]:
    """The name and the record of a container file, resolved by name to our schema of that record.

    `schema_texts`: record name -> our schema. Records of other names are refused.
    Raises: CorruptFile for bytes that break the format, for another record, or if the file has not exactly one record.
    """
    written_text, body, offset = split_container(content, path=path)
    try:
        name = str(parsed_schema(written_text)["name"]).rpartition(".")[2]
    except BROKEN_BYTES as error:
        raise CorruptFile(path, len(MAGIC), expected="an Avro record schema", found=_said(error)) from error
    if name not in schema_texts:
        raise CorruptFile(path, len(MAGIC), expected=f"a record {' or '.join(schema_texts)}", found=f"{name:.60}")
    reading = None if written_text == schema_texts[name] else schema_texts[name]
    try:
        record = decode_record(body, written_text, reading)
    except BROKEN_BYTES as error:
        raise CorruptFile(path, offset, expected=f"one record {name}", found=_said(error)) from error
    return name, record


def split_container(content: bytes, *, path: str) -> tuple[str, bytes, int]:
    """The schema text of a container file, the bytes of its only record, and where they begin."""
    if not content.startswith(MAGIC):
        raise CorruptFile(path, 0, expected="Avro magic 4f 62 6a 01", found=content[:4].hex(" ") or "no bytes")

    source = io.BytesIO(content)
    source.seek(len(MAGIC))
    try:
        entries = _read_entries(source)
        schema_text = entries[SCHEMA_KEY].decode()
        codec = entries.get(CODEC_KEY, b"null")
        sync = source.read(SYNC_SIZE_BYTES)
        count, size = _read_long(source), _read_long(source)
        offset = source.tell()
        body = _read(source, size)
        end = source.read()
        if codec == b"deflate":
            body = unpack(body, -zlib.MAX_WBITS)
    except BROKEN_BYTES as error:
        raise CorruptFile(path, source.tell(), expected="an Avro container file", found=_said(error)) from error

    if codec not in (b"null", b"deflate"):
        raise CorruptFile(path, len(MAGIC), expected="codec null or deflate", found=repr(codec[:20]))
    if count != 1 or end != sync or len(sync) != SYNC_SIZE_BYTES:
        found = f"a block of {count:,} records with {len(end):,} bytes after it"
        raise CorruptFile(path, offset, expected="one block with one record, closed by the sync marker", found=found)

    return schema_text, body, offset


def encode_record(schema_text: str, record: dict[str, object]) -> bytes:
    """A record's Avro binary, without any framing."""
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, parsed_schema(schema_text), record)
    return sink.getvalue()


def decode_record(body: bytes, written_text: str, reading_text: str | None = None) -> dict[str, object]:
    """The record in Avro binary, which must fill all bytes. `reading_text`: another schema to resolve the record to.

    Raises: one of `BROKEN_BYTES`.
    """
    source = io.BytesIO(body)
    reading = parsed_schema(reading_text) if reading_text is not None else None
    record = fastavro.schemaless_reader(source, parsed_schema(written_text), reading)
    if source.tell() != len(body):
        raise ValueError(f"{len(body) - source.tell():,} bytes after the record")
    if not isinstance(record, dict):
        raise ValueError(f"a value of type {type(record).__name__}")
    return cast("dict[str, object]", record)


def transcode_record(body: bytes, written_text: str, schema_text: str) -> bytes:
    """A record's Avro binary, rewritten for another schema that its own resolves to. In a union a value keeps its type.

    Raises: one of `BROKEN_BYTES`.
    """
    sink, source = io.BytesIO(), io.BytesIO(body)
    schema = parsed_schema(schema_text)
    record = fastavro.schemaless_reader(source, parsed_schema(written_text), schema, return_record_name=True)
    fastavro.schemaless_writer(sink, schema, record)
    return sink.getvalue()


@lru_cache(maxsize=64)
def parsed_schema(schema_text: str) -> ParsedSchema:
    """A schema text as fastavro takes it. The 64 schemas that were used last are kept.

    Our own parser checks the text first: a record that holds itself makes fastavro end the process, and fastavro has no
    limit on a schema's size.
    """
    try:
        parse_schema(schema_text)
    except (Invalid, Unsupported) as error:
        raise ValueError(str(error)) from error
    parsed = fastavro.parse_schema(json.loads(schema_text))
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise ValueError("a schema of something else than a record")
    return cast(ParsedSchema, parsed)


def _read_entries(source: io.BytesIO) -> dict[str, bytes]:
    entries: dict[str, bytes] = {}
    while (count := _read_long(source)) != 0:
        if count < 0:  # a negative count: the block's size in bytes follows
            _read_long(source)
        for _ in range(abs(count)):
            key = _read(source, _read_long(source)).decode()
            entries[key] = _read(source, _read_long(source))
    return entries


def _read(source: io.BytesIO, size: int) -> bytes:
    if not 0 <= size <= RECORD_SIZE_MAX_BYTES:
        raise ValueError(f"a size of {size:,} bytes")
    data = source.read(size)
    if len(data) != size:
        raise EOFError(f"the end of the file, {size - len(data):,} bytes early")
    return data


def _read_long(source: io.BytesIO) -> int:
    value = shift = 0
    while shift < 70:
        byte = _read(source, 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
    raise ValueError("a number of more than 10 bytes")


def _long(value: int) -> bytes:
    assert value >= 0
    rest = value << 1
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _text(data: bytes) -> bytes:
    return _long(len(data)) + data


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:200]
