"""The last 4,096 bytes of an HFile, and its file info block: protobuf messages, read and written by hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from pyhudi.errors import Unsupported
from pyhudi.format.hfile.origin import Origin
from pyhudi.format.hfile.varint import (
    decode_message,
    decode_varint,
    encode_bytes_field,
    encode_varint,
    encode_varint_field,
)

TRAILER_SIZE = 4096
COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"

_MAGIC = b'TRABLK"$'
_VERSION = bytes.fromhex("03 00 00 03")
_MAJOR_VERSION = b"\x00\x00\x03"
_FILE_INFO_MAGIC = b"PBUF"
_INDEX_LEVELS_MAX = 16
NO_OFFSET = (1 << 64) - 1


class Codec(IntEnum):
    """How blocks are compressed, by the id in the trailer. Only GZ and NONE are read and written."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


@dataclass(frozen=True, slots=True)
class Trailer:
    """The fields of a trailer that are needed to find and read the other parts of the file.

    `total_uncompressed_bytes`: 0 where absent, as in files of Hudi 1.1 and later.
    """

    file_info_offset: int
    load_on_open_offset: int
    uncompressed_data_index_size: int
    total_uncompressed_bytes: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    data_index_levels: int
    first_data_block_offset: int
    last_data_block_offset: int
    codec: Codec


def decode_trailer(data: memoryview, path: str, *, base: int = 0) -> Trailer:
    """The trailer of an HFile. `data`: the bytes of the file from `base` to its end.

    Layout: magic 8 bytes; varint size; protobuf message; zeros; minor version u8, major version u24.
    Spec: format/hfile.md section 6. Raises: CorruptFile; Unsupported for a codec other than GZ and NONE.
    """
    start = len(data) - TRAILER_SIZE
    if start < 0:
        raise Origin(path, base).corrupt(f"an HFile of at least {TRAILER_SIZE:,} bytes", f"{len(data):,}")

    trailer, start = data[start:], base + start
    origin = Origin(path, start)
    if trailer[:8] != _MAGIC:
        raise origin.corrupt(f"the trailer's magic {_MAGIC!r}", trailer[:8].hex(" "))
    if trailer[-3:] != _MAJOR_VERSION:
        raise Origin(path, start + TRAILER_SIZE - 3).corrupt("major version 3", trailer[-3:].hex(" "))

    size, at = decode_varint(trailer, 8, origin)
    if size > TRAILER_SIZE - 4 - at:
        raise origin.corrupt("a trailer message inside the trailer", f"one of {size:,} bytes")

    numbers = {n: v for n, v in decode_message(trailer[at : at + size], origin) if isinstance(v, int)}
    missing = [number for number in (1, 2) if number not in numbers]
    if missing:
        raise origin.corrupt("the offsets of file info and index", f"no trailer field {missing[0]}")

    found = Trailer(
        file_info_offset=numbers[1],
        load_on_open_offset=numbers[2],
        uncompressed_data_index_size=numbers.get(3, 0),
        total_uncompressed_bytes=numbers.get(4, 0),
        data_index_count=numbers.get(5, 0),
        meta_index_count=numbers.get(6, 0),
        entry_count=numbers.get(7, 0),
        data_index_levels=numbers.get(8, 1),
        first_data_block_offset=numbers.get(9, NO_OFFSET),
        last_data_block_offset=numbers.get(10, NO_OFFSET),
        codec=_codec(numbers, origin),
    )

    if not found.load_on_open_offset <= found.file_info_offset < start:
        offsets = f"{found.load_on_open_offset:,}, {found.file_info_offset:,}"
        raise origin.corrupt(f"index and file info in this order before byte {start:,}", offsets)
    if not 1 <= found.data_index_levels <= _INDEX_LEVELS_MAX:
        raise origin.corrupt(f"1 to {_INDEX_LEVELS_MAX} index levels", str(found.data_index_levels))

    return found


def _codec(numbers: Mapping[int, int], origin: Origin) -> Codec:
    number = numbers.get(12, Codec.NONE)
    if number not in Codec._value2member_map_:
        raise origin.corrupt(f"a codec id up to {max(Codec)}", str(number))
    codec = Codec(number)
    if codec not in (Codec.GZ, Codec.NONE):
        raise Unsupported(
            f"{origin.path}: an HFile compressed with {codec.name}; only GZ and NONE are read. "
            "Let Hudi rewrite the file with hoodie.hfile.compression.algorithm=GZ."
        )
    return codec


def encode_trailer(trailer: Trailer) -> bytes:
    """The 4,096 bytes of a trailer. Seen: Hudi 0.15 and 1.0.2 write minor version 3, later releases 0."""
    numbers = (
        trailer.file_info_offset,
        trailer.load_on_open_offset,
        trailer.uncompressed_data_index_size,
        trailer.total_uncompressed_bytes,
        trailer.data_index_count,
        trailer.meta_index_count,
        trailer.entry_count,
        trailer.data_index_levels,
        trailer.first_data_block_offset,
        trailer.last_data_block_offset,
    )

    message = b"".join(encode_varint_field(number, value) for number, value in enumerate(numbers, 1))
    message += encode_bytes_field(11, COMPARATOR.encode()) + encode_varint_field(12, trailer.codec)

    content = _MAGIC + encode_varint(len(message)) + message
    return content.ljust(TRAILER_SIZE - len(_VERSION), b"\0") + _VERSION


def decode_file_info(payload: bytes, origin: Origin) -> dict[str, bytes]:
    """The entries of the file info block, names and values, in stored order.

    Layout: `PBUF`; varint size; protobuf message of repeated field 1: {1: name, 2: value}.
    """
    if payload[:4] != _FILE_INFO_MAGIC:
        raise origin.corrupt(f"file info that starts with {_FILE_INFO_MAGIC!r}", payload[:4].hex(" ") or "nothing")
    size, at = decode_varint(payload, 4, origin)
    if size > len(payload) - at:
        raise origin.corrupt(f"a file info message of {size:,} bytes", f"{len(payload) - at:,}")

    info: dict[str, bytes] = {}
    for number, entry in decode_message(payload[at : at + size], origin):
        if number != 1 or not isinstance(entry, bytes):
            continue
        parts = dict(decode_message(entry, origin))
        name, value = parts.get(1, b""), parts.get(2, b"")
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            raise origin.corrupt("file info entries of two byte strings", "a number")
        info[name.decode("utf-8", "replace")] = value

    return info


def encode_file_info(info: Mapping[str, bytes]) -> bytes:
    """The file info block's payload, sorted by name."""
    entries = (encode_bytes_field(1, name.encode()) + encode_bytes_field(2, info[name]) for name in sorted(info))
    message = b"".join(encode_bytes_field(1, entry) for entry in entries)
    return _FILE_INFO_MAGIC + encode_varint(len(message)) + message
