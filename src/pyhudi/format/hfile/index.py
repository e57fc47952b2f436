"""Index blocks: the root index and, in files with many blocks, leaf and intermediate index blocks."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from pyhudi.errors import CorruptFile
from pyhudi.format.hfile.origin import Origin
from pyhudi.format.hfile.varint import decode_hvint, decode_varint, encode_hvint

KEY_SUFFIX = bytes.fromhex("00 7fffffffffffffff 04")
"""The bytes behind the row in every key: no column family, the latest timestamp, type Put.

Readers built on HBase's fail on index keys without these bytes as soon as a file has two data blocks.
"""

_ENTRY = struct.Struct(">qi")
_ROW_SIZE_MAX = 32_767


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A block that the index points to: its offset, its size with header and checksums, a lower bound of its rows."""

    offset: int
    size: int
    row: bytes


def decode_root_index(payload: bytes, entry_count: int, origin: Origin, *, is_meta: bool) -> list[IndexEntry]:
    """The entries of the data or the meta root index.

    Layout of each: i64 offset; i32 size; length as hvint; key. A data key is i16 row size, row and
    perhaps a suffix; a meta key is a name.

    Seen: 1.1.1 writes the length as a protobuf varint, which differs from 128 on. Both readings are tried; the one
    that agrees with the row size inside the key is taken.

    Spec: format/hfile.md section 4. Raises: CorruptFile.
    """
    entries: list[IndexEntry] = []
    at = 0
    for _ in range(entry_count):
        if at + _ENTRY.size > len(payload):
            raise origin.corrupt(f"{entry_count:,} index entries", f"{len(entries):,}")
        offset, size = _ENTRY.unpack_from(payload, at)
        row, at = _root_key(payload, at + _ENTRY.size, origin, is_meta=is_meta)
        entries.append(IndexEntry(offset, size, row))
    if at != len(payload):
        raise origin.corrupt(f"{entry_count:,} index entries and no more", f"{len(payload) - at:,} further bytes")
    return entries


def _root_key(payload: bytes, at: int, origin: Origin, *, is_meta: bool) -> tuple[bytes, int]:
    """The row or the name of a root entry, and the offset behind its key."""
    for decode_size in (decode_hvint, decode_varint):
        try:
            size, start = decode_size(payload, at, origin)
        except CorruptFile:
            continue
        if not 0 <= size <= len(payload) - start:
            continue

        key = payload[start : start + size]
        row = key if is_meta else row_of_key(key)
        if row is not None:
            return row, start + size
    raise origin.corrupt("an index key with its row size", payload[at : at + 8].hex(" ") or "nothing")


def row_of_key(key: bytes) -> bytes | None:
    """The row inside a key, or None if the sizes do not agree."""
    if len(key) < 2:
        return None
    size = int.from_bytes(key[:2], "big")
    is_whole = len(key) == 2 + size or len(key) >= 2 + size + len(KEY_SUFFIX)
    return key[2 : 2 + size] if is_whole and size <= _ROW_SIZE_MAX else None


def decode_inner_index(payload: bytes, origin: Origin) -> list[IndexEntry]:
    """The entries of a leaf or an intermediate index block.

    Layout: i32 n; n + 1 offsets of i32, counted from the end of these offsets; n of (i64 offset; i32 size; key).
    """
    if len(payload) < 4:
        raise origin.corrupt("an entry count", "nothing")
    (entry_count,) = struct.unpack_from(">i", payload)

    start = 4 + 4 * (entry_count + 1)
    if entry_count < 0 or start > len(payload):
        raise origin.corrupt("an entry count that fits the block", f"{entry_count:,}")

    bounds = struct.unpack_from(f">{entry_count + 1}i", payload, 4)
    entries: list[IndexEntry] = []
    for low, high in pairwise(bounds):
        if not 0 <= low <= high - _ENTRY.size or start + high > len(payload):
            raise origin.corrupt("index entries inside the block", f"one from {low:,} to {high:,}")

        offset, size = _ENTRY.unpack_from(payload, start + low)
        row = row_of_key(payload[start + low + _ENTRY.size : start + high])
        if row is None:
            raise origin.corrupt("an index key with its row size", payload[start + low : start + high].hex(" "))
        entries.append(IndexEntry(offset, size, row))

    return entries


def encode_root_index(entries: Iterable[IndexEntry]) -> bytes:
    """The data root index with whole first keys, as every reader accepts them."""
    return b"".join(_encode_entry(entry, encode_key(entry.row)) for entry in entries)


def encode_meta_index(entries: Iterable[IndexEntry]) -> bytes:
    return b"".join(_encode_entry(entry, entry.row) for entry in entries)


def encode_key(row: bytes) -> bytes:
    """A cell's key: i16 row size, row, suffix."""
    assert len(row) <= _ROW_SIZE_MAX
    return len(row).to_bytes(2, "big") + row + KEY_SUFFIX


def _encode_entry(entry: IndexEntry, key: bytes) -> bytes:
    return _ENTRY.pack(entry.offset, entry.size) + encode_hvint(len(key)) + key
