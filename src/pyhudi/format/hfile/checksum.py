"""The checksums behind each block: CRC32C, which is compiled here, and CRC32."""

import zlib
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from pyhudi.loops import loop_over

_POLYNOMIAL = 0x82F63B78


class ChecksumType(IntEnum):
    """How a block's checksums are computed. Seen: Hudi up to 1.0 writes CRC32C, 1.1 and later NULL."""

    NULL = 0
    CRC32 = 1
    CRC32C = 2


def _tables() -> npt.NDArray[np.uint32]:
    """Eight tables: entry (k, b) advances byte b by k more bytes."""
    tables = np.zeros((8, 256), np.uint32)
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ np.uint32(_POLYNOMIAL), first >> 1).astype(np.uint32)
    tables[0] = first
    for level in range(1, 8):
        before = tables[level - 1]
        tables[level] = (before >> 8) ^ first[before & 0xFF]
    return tables


_TABLES = _tables()


_FIRST: list[int] = _TABLES[0].tolist()


def _plain_crc32c(data: npt.NDArray[np.uint8], tables: npt.NDArray[np.uint32]) -> int:
    """`_crc32c` byte by byte."""
    crc, first = 0xFFFFFFFF, _FIRST
    for byte in data.tobytes():
        crc = first[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@loop_over(lambda data, tables: data.size, plain=_plain_crc32c)  # a step reads only eight entries of the tables
def _crc32c(data: npt.NDArray[np.uint8], tables: npt.NDArray[np.uint32]) -> int:
    crc = np.uint32(0xFFFFFFFF)

    whole = data.size - data.size % 8
    for at in range(0, whole, 8):
        low = crc ^ (
            np.uint32(data[at])
            | np.uint32(data[at + 1]) << np.uint32(8)
            | np.uint32(data[at + 2]) << np.uint32(16)
            | np.uint32(data[at + 3]) << np.uint32(24)
        )
        crc = np.uint32(
            tables[7, low & 0xFF]
            ^ tables[6, (low >> 8) & 0xFF]
            ^ tables[5, (low >> 16) & 0xFF]
            ^ tables[4, (low >> 24) & 0xFF]
            ^ tables[3, data[at + 4]]
            ^ tables[2, data[at + 5]]
            ^ tables[1, data[at + 6]]
            ^ tables[0, data[at + 7]]
        )

    for at in range(whole, data.size):
        crc = np.uint32(tables[0, (crc ^ data[at]) & 0xFF] ^ (crc >> 8))
    return int(crc ^ np.uint32(0xFFFFFFFF))


def crc32c(data: bytes | memoryview) -> int:
    """The Castagnoli checksum of some bytes."""
    return _crc32c(np.frombuffer(data, np.uint8), _TABLES)


def checksum(kind: ChecksumType, data: bytes | memoryview) -> int:
    """The checksum of one chunk; 0 for NULL."""
    match kind:
        case ChecksumType.NULL:
            return 0
        case ChecksumType.CRC32:
            return zlib.crc32(data)
        case ChecksumType.CRC32C:
            return crc32c(data)
