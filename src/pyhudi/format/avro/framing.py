"""Finds the rows in the content of log blocks, where each row stands behind its size. Compiled.

Layout: for each row its size as i32, big endian, and its bytes.

Spec: format/log-format.md section 2.1.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.loops import loop

SIZE_OF_SIZE = 4

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

Content: TypeAlias = bytes | bytearray | memoryview | pa.Buffer | Bytes


def find_rows(
    content: Content, row_count: int, *, start: int = 0, path: str = "Avro rows", offset: int = 0
) -> tuple[Numbers, Numbers]:
    """Where each row starts and ends. The rows must fill the content from `start` to its end.

    `path` and `offset` name the content in errors. Raises: CorruptFile for a size that leads beyond the end, or for
    bytes that are left.
    """
    data = np.frombuffer(content, np.uint8)
    if not 0 <= row_count <= (data.size - start) // SIZE_OF_SIZE:
        raise CorruptFile(
            path, offset + start, expected=f"{row_count:,} rows", found=f"{data.size - start:,} bytes in all"
        )

    starts, ends = np.empty(row_count, np.int64), np.empty(row_count, np.int64)
    data.setflags(write=False)
    found, at = _find(data, start, starts, ends)

    if found < row_count:
        left = data.size - at
        raise CorruptFile(path, offset + at, expected=f"row {found:,} behind its size", found=f"{left:,} bytes")
    if at != data.size:
        found_text = f"{data.size - at:,} bytes more"
        raise CorruptFile(path, offset + at, expected=f"the end behind {row_count:,} rows", found=found_text)
    return starts, ends


def find_first_rows(content: Content, row_count_max: int, *, start: int = 0) -> tuple[Numbers, Numbers, int]:
    """Where each whole row starts and ends, and the offset behind the last of them.

    For content that is read piece by piece: the piece may end within a row, which is then left out.
    """
    data = np.frombuffer(content, np.uint8)
    data.setflags(write=False)
    count = min(row_count_max, (data.size - start) // SIZE_OF_SIZE)
    starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    found, at = _find(data, start, starts, ends)
    return starts[:found], ends[:found], int(at)


@loop
def _find(content: Bytes, at: int, starts: Numbers, ends: Numbers) -> tuple[int, int]:
    """Fill in where the rows start and end. Answers how many are whole, and the offset behind the last of them."""
    for row in range(starts.size):
        if content.size - at < SIZE_OF_SIZE:
            return row, at
        size = np.int64(content[at]) << 24 | np.int64(content[at + 1]) << 16
        size |= np.int64(content[at + 2]) << 8 | np.int64(content[at + 3])
        if size > content.size - at - SIZE_OF_SIZE:
            return row, at
        starts[row] = at + SIZE_OF_SIZE
        ends[row] = starts[row] + size
        at = ends[row]
    return starts.size, at
