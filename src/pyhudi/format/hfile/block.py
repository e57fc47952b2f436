"""The frame of an HFile block: header, compressed payload, checksums."""

import struct
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from pyhudi.errors import Bug
from pyhudi.format.hfile.checksum import ChecksumType, checksum
from pyhudi.format.hfile.origin import Origin
from pyhudi.format.hfile.trailer import Codec
from pyhudi.format.unpacking import unpacked_max

DATA: Final = b"DATABLK*"
LEAF_INDEX: Final = b"IDXLEAF2"
INTERMEDIATE_INDEX: Final = b"IDXINTE2"
META: Final = b"METABLKc"
ROOT_INDEX: Final = b"IDXROOT2"
FILE_INFO: Final = b"FILEINF2"

NO_PREVIOUS: Final = -1
_HEADER = struct.Struct(">8siiqbii")
HEADER_SIZE: Final = _HEADER.size
CHECKSUM_CHUNK: Final = 16 * 1024
_GZIP = 31
"""zlib's window setting for one gzip stream; it writes no name and no time."""
_GZIP_SYSTEM_AT = 9
_GZIP_SYSTEM = b"\xff"
"""gzip's byte for the operating system. "Unknown", as Java sets it, gives the same bytes on all machines."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block, decompressed. `size` counts header and checksums: the next block starts behind it."""

    offset: int
    size: int
    payload: bytes


def decode_block(data: memoryview, offset: int, *, magic: bytes, codec: Codec, path: str, base: int = 0) -> Block:
    """The block at an offset, with its checksums and sizes verified. `base`: the file's offset where `data` starts.

    Layout (big endian): magic 8 bytes; i32 size of what follows the header; i32 payload size before
    compression; i64 offset of the previous block of this type or -1; u8 checksum type; i32 bytes that a
    checksum covers; i32 size of header and compressed payload; compressed payload; the checksums, a u32 for each
    such number of bytes, counted from the magic.

    Spec: format/hfile.md section 2. Raises: CorruptFile.
    """
    origin = Origin(path, offset)
    at = offset - base
    if not 0 <= at <= len(data) - HEADER_SIZE:
        raise origin.corrupt(f"a block header of {HEADER_SIZE} bytes", f"{max(len(data) - at, 0):,} bytes left")

    found, rest_size, payload_size, _, kind, chunk, data_size = _HEADER.unpack_from(data, at)
    if found != magic:
        raise origin.corrupt(f"block magic {magic!r}", repr(found))
    if kind not in ChecksumType._value2member_map_ or chunk <= 0 or payload_size < 0:
        raise origin.corrupt("a checksum type up to 2 and sizes above 0", f"{kind}, {chunk:,} and {payload_size:,}")

    checksum_count = -(-data_size // chunk)
    if data_size < HEADER_SIZE or HEADER_SIZE + rest_size != data_size + 4 * checksum_count:
        raise origin.corrupt("sizes that agree", f"{rest_size:,} on disk, {data_size:,} with header")
    if at + HEADER_SIZE + rest_size > len(data):
        raise origin.corrupt(f"{rest_size:,} bytes behind the header", f"{len(data) - at - HEADER_SIZE:,}")

    framed = data[at : at + data_size]
    _verify_checksums(framed, data[at + data_size : at + HEADER_SIZE + rest_size], kind, chunk, origin)
    payload = _decompress(framed[HEADER_SIZE:], payload_size, codec, origin)
    return Block(offset, HEADER_SIZE + rest_size, payload)


def _verify_checksums(framed: memoryview, stored: memoryview, kind: int, chunk: int, origin: Origin) -> None:
    checksum_type = ChecksumType(kind)
    if checksum_type is ChecksumType.NULL:
        return
    for index, expected in enumerate(np.frombuffer(stored, ">u4").tolist()):
        found = checksum(checksum_type, framed[index * chunk : (index + 1) * chunk])
        if found != expected:
            at = Origin(origin.path, origin.offset + index * chunk)
            raise at.corrupt(f"bytes of {checksum_type.name} checksum {expected:#010x}", f"{found:#010x}")


def _decompress(stored: memoryview, size: int, codec: Codec, origin: Origin) -> bytes:
    """The payload of `size` bytes. Takes no more memory than that, even if the stored bytes unpack to more."""
    match codec:
        case Codec.NONE:
            payload = bytes(stored)
        case Codec.GZ:
            if size > (most := unpacked_max(len(stored))):
                raise origin.corrupt(f"at most {most:,} bytes out of {len(stored):,}", f"{size:,}")
            stream = zlib.decompressobj(_GZIP)
            try:
                payload = stream.decompress(stored, size + 1)
            except zlib.error as error:
                raise origin.corrupt("a gzip stream", str(error)) from error
            if len(payload) == size and (not stream.eof or stream.unused_data):
                raise origin.corrupt("one whole gzip stream", "one cut short or followed by bytes")
        case _:
            raise Bug(f"{origin.path}: codec {codec.name} was let through by the trailer")

    if len(payload) != size:
        raise origin.corrupt(f"a payload of {size:,} bytes", f"{'more' if len(payload) > size else len(payload)}")
    return payload


def encode_block(
    magic: bytes,
    payload: bytes | memoryview,
    *,
    codec: Codec,
    previous_offset: int = NO_PREVIOUS,
    checksum_type: ChecksumType = ChecksumType.CRC32C,
) -> bytes:
    """A whole block. The same payload gives the same bytes with the same zlib."""
    assert codec in (Codec.GZ, Codec.NONE)
    stored = bytes(payload)
    if codec is Codec.GZ:
        stream = zlib.compressobj(wbits=_GZIP)
        packed = stream.compress(payload) + stream.flush()
        stored = packed[:_GZIP_SYSTEM_AT] + _GZIP_SYSTEM + packed[_GZIP_SYSTEM_AT + 1 :]

    data_size = HEADER_SIZE + len(stored)
    rest_size = len(stored) + checksums_size(data_size)
    numbers = (rest_size, len(payload), previous_offset, checksum_type, CHECKSUM_CHUNK, data_size)
    framed = _HEADER.pack(magic, *numbers) + stored

    view = memoryview(framed)
    chunks = (view[at : at + CHECKSUM_CHUNK] for at in range(0, data_size, CHECKSUM_CHUNK))
    return framed + b"".join(checksum(checksum_type, chunk).to_bytes(4, "big") for chunk in chunks)


def checksums_size(data_size: int) -> int:
    """The size of the checksums for a header and payload of `data_size` bytes."""
    return 4 * -(-data_size // CHECKSUM_CHUNK)
