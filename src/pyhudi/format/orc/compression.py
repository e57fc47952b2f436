"""How the messages of an ORC file are compressed: in chunks, each with a header of three bytes."""

import zlib
from enum import IntEnum

import pyarrow as pa

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.hfile.origin import Origin
from pyhudi.format.hfile.varint import decode_varint

_HEADER_BYTES = 3
_CHUNK_BYTES_MAX = 1 << 23
"""Chunks of at most so many bytes; the header has no room for longer ones."""


class Compression(IntEnum):
    """Codecs by their numbers in a postscript."""

    NONE = 0
    ZLIB = 1
    SNAPPY = 2
    LZO = 3
    LZ4 = 4
    ZSTD = 5

    @classmethod
    def numbered(cls, number: int, *, path: str) -> "Compression":
        try:
            return cls(number)
        except ValueError:
            raise Unsupported(f"{path}: an ORC codec numbered {number}: expected one from 0 to 5") from None

    def decode(self, content: bytes, *, chunk_bytes_max: int = _CHUNK_BYTES_MAX, path: str) -> bytes:
        """The bytes of a message that the file holds in compressed chunks.

        Layout: for each chunk the length of its stored bytes times two, 3 bytes, little endian; plus one if the bytes
        are stored as they are. Spec: ORC v1, "Compression". Raises: CorruptFile, Unsupported.
        """
        if self is Compression.NONE:
            return content
        found, at = bytearray(), 0
        while at < len(content):
            header = int.from_bytes(content[at : at + _HEADER_BYTES], "little")
            at += _HEADER_BYTES
            chunk = content[at : at + (header >> 1)]
            if len(chunk) != header >> 1:
                raise CorruptFile(
                    path, 0, expected=f"a chunk of {header >> 1:,} bytes in an ORC message", found=f"{len(chunk):,}"
                )
            at += len(chunk)
            found += chunk if header & 1 else self._decoded(chunk, chunk_bytes_max, path)
        return bytes(found)

    def _decoded(self, chunk: bytes, size_bytes_max: int, path: str) -> bytes:
        try:
            match self:
                case Compression.ZLIB:
                    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, size_bytes_max)
                case Compression.ZSTD:
                    return pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read(size_bytes_max)
                case Compression.SNAPPY:
                    size_bytes, _ = decode_varint(chunk, 0, Origin(path, 0))
                    return pa.decompress(chunk, min(size_bytes, size_bytes_max), "snappy", asbytes=True)
                case Compression.LZ4:
                    return _decode_lz4_block(chunk, size_bytes_max)
                case _:
                    raise Unsupported(f"{path}: an ORC message compressed with {self.name}")
        except (zlib.error, pa.ArrowException, OSError, IndexError) as error:
            raise CorruptFile(path, 0, expected=f"an ORC message in {self.name}", found=str(error)) from error


def _decode_lz4_block(block: bytes, size_bytes_max: int) -> bytes:
    """What a block of LZ4 holds, which does not say its size.

    Layout: sequences of a token (4 bits: number of literals; 4 bits: length of a match, less 4), the literals, how far
    back the match begins (2 bytes, little endian). A number of 15 goes on in bytes, up to one that is not 255. The last
    sequence ends with its literals. Spec: LZ4 block format. Raises: IndexError for a block that is cut or wrong.
    """
    found, at = bytearray(), 0
    while at < len(block):
        token = block[at]
        literals, at = _lz4_number(block, token >> 4, at + 1)
        if at + literals > len(block):
            raise IndexError("an LZ4 block that ends within its literals")
        found += block[at : at + literals]
        at += literals
        if at == len(block):
            break

        back = block[at] | block[at + 1] << 8
        length, at = _lz4_number(block, token & 15, at + 2)
        length += 4
        if not 0 < back <= len(found) or len(found) + length > size_bytes_max:
            raise IndexError("an LZ4 match outside of its block")
        match = found[-back:]
        found += (match * (length // back + 1))[:length]
    return bytes(found)


def _lz4_number(block: bytes, first: int, at: int) -> tuple[int, int]:
    """The number that begins with these 4 bits of a token, and where it ends."""
    number, more = first, first == 15
    while more:
        number += block[at]
        more = block[at] == 255
        at += 1
    return number, at


def encode_message(content: bytes, compression: Compression, *, chunk_bytes: int) -> bytes:
    """A message as a file of this codec holds it. Only ZLIB is made use of; for others, chunks stay as they are.

    `chunk_bytes`: what the postscript says that a chunk has at most before it is compressed. Readers fail on more.
    """
    if compression is Compression.NONE:
        return content
    step = min(chunk_bytes, _CHUNK_BYTES_MAX - 1)
    parts: list[bytes] = []
    for start in range(0, len(content), step):
        chunk, is_plain = content[start : start + step], 1
        if compression is Compression.ZLIB:
            deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            smaller = deflate.compress(chunk) + deflate.flush()
            if len(smaller) < len(chunk):
                chunk, is_plain = smaller, 0
        parts += (len(chunk) << 1 | is_plain).to_bytes(_HEADER_BYTES, "little"), chunk
    return b"".join(parts)
