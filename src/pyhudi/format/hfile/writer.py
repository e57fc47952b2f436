"""Writes HFiles that every release of Hudi, HBase's reader and hudi-rs accept.

The choices are those of format/hfile.md section 10: index keys and LASTKEY are whole and have the suffix, checksums are
CRC32C, the index has one level, blocks have 64 KiB.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from pyhudi.errors import Bug, Invalid
from pyhudi.format.hfile import block as blocks
from pyhudi.format.hfile.cells import CELL_OVERHEAD, Bytes, Spans, cut_blocks, first_not_ascending, lay_cells
from pyhudi.format.hfile.index import IndexEntry, encode_key, encode_meta_index, encode_root_index
from pyhudi.format.hfile.trailer import (
    NO_OFFSET,
    TRAILER_SIZE,
    Codec,
    Trailer,
    encode_file_info,
    encode_trailer,
)

Compression: TypeAlias = Literal["GZ", "NONE"]

BLOCK_SIZE = 64 * 1024
KEY_SIZE_MAX = 32_767
_BLOCK_SIZE_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class _Column:
    """A binary Arrow column as two arrays, without a copy. Offsets count from the start of `data`."""

    data: Bytes
    offsets: Spans

    def cell(self, index: int) -> bytes:
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()

    @property
    def size(self) -> int:
        return int(self.offsets[-1] - self.offsets[0])


def encode_hfile(
    cells: Iterable[tuple[bytes, bytes]],
    *,
    schema_text: str | None,
    block_size: int = BLOCK_SIZE,
    compression: Compression = "GZ",
    min_max_record_key: bool = False,
    file_info: Mapping[str, bytes] | None = None,
    meta: Mapping[str, bytes] | None = None,
) -> bytes:
    """A whole HFile of row keys and values, in strictly ascending order of key bytes.

    The same as `encode_hfile_table`, for pairs instead of columns. Memory: the cells twice, and the file.
    """
    pairs = list(cells)
    keys = pa.array([key for key, _ in pairs], pa.large_binary())
    values = pa.array([value for _, value in pairs], pa.large_binary())
    return encode_hfile_table(
        pa.table({"key": keys, "value": values}),
        schema_text=schema_text,
        block_size=block_size,
        compression=compression,
        min_max_record_key=min_max_record_key,
        file_info=file_info,
        meta=meta,
    )


def encode_hfile_table(
    cells: pa.Table,
    *,
    schema_text: str | None,
    block_size: int = BLOCK_SIZE,
    compression: Compression = "GZ",
    min_max_record_key: bool = False,
    file_info: Mapping[str, bytes] | None = None,
    meta: Mapping[str, bytes] | None = None,
) -> bytes:
    """A whole HFile of the columns `key` and `value`, strings or bytes without nulls.

    `block_size`: bytes of a block's cells before compression. `min_max_record_key`: write the first and the
    last key to the file info, as base files have them. `file_info`: further entries, such as
    `bloomFilterTypeCode`. `meta`: meta blocks by name, such as `bloomFilter`.

    Layout: data blocks, meta blocks, data root index, meta root index, file info, trailer. The same
    cells give the same bytes: no time is written.

    Spec: format/hfile.md. Raises: Bug for keys out of order; Invalid for an empty or too long key.
    """
    if not 1 <= block_size <= _BLOCK_SIZE_MAX:
        raise Invalid(f"HFile: expected a block size from 1 to {_BLOCK_SIZE_MAX:,} bytes, found {block_size:,}")
    keys, values = _column(cells.column("key")), _column(cells.column("value"))
    _check_keys(keys)

    codec = Codec[compression]
    out = _Output()
    data_index = _append_data(out, keys, values, block_size, codec)
    meta_index = _append_meta(out, meta or {}, codec)

    load_on_open_offset = out.size
    root = encode_root_index(data_index)
    out.append(blocks.encode_block(blocks.ROOT_INDEX, root, codec=codec))
    meta_root = encode_meta_index(meta_index)
    out.append(
        blocks.encode_block(blocks.ROOT_INDEX, meta_root, codec=codec, previous_offset=load_on_open_offset),
        meta_root,
    )

    info = encode_file_info(_file_info(keys, values, schema_text, min_max_record_key) | dict(file_info or {}))
    file_info_offset = out.size
    out.append(blocks.encode_block(blocks.FILE_INFO, info, codec=codec), info)

    trailer = Trailer(
        file_info_offset=file_info_offset,
        load_on_open_offset=load_on_open_offset,
        uncompressed_data_index_size=len(root),
        total_uncompressed_bytes=out.uncompressed_size + TRAILER_SIZE,
        data_index_count=len(data_index),
        meta_index_count=len(meta_index),
        entry_count=len(cells),
        data_index_levels=1,
        first_data_block_offset=data_index[0].offset if data_index else NO_OFFSET,
        last_data_block_offset=data_index[-1].offset if data_index else NO_OFFSET,
        codec=codec,
    )
    return b"".join((*out.parts, encode_trailer(trailer)))


class _Output:
    """The blocks so far.

    `uncompressed_size` counts headers and payloads before compression. Seen: HBase's writer, in Hudi
    0.15 and 1.0.2, leaves the data root index out of that sum.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.uncompressed_size = 0

    def append(self, block: bytes, payload: bytes | memoryview | None = None) -> None:
        self.parts.append(block)
        self.size += len(block)
        if payload is not None:
            self.uncompressed_size += blocks.HEADER_SIZE + len(payload)


def _append_data(out: _Output, keys: _Column, values: _Column, block_size: int, codec: Codec) -> list[IndexEntry]:
    """Write the data blocks, cut at `block_size`, and halved where Apache Hudi would lose cells.

    Seen: the reader of Hudi 1.2.0 skips cells that start in the last n bytes of a block's payload, where n is
    the size of the block's checksums. A block is safe if its last cell is larger than n. Blocks of 64 KiB are
    always safe; larger blocks that compress badly may not be.
    """
    starts = cut_blocks(keys.offsets, values.offsets, block_size).tolist()
    ranges = list(pairwise(starts))[::-1]
    index: list[IndexEntry] = []
    while ranges:
        start, end = ranges.pop()

        payload = _payload(keys, values, start, end)
        previous_offset = index[-1].offset if index else blocks.NO_PREVIOUS
        framed = blocks.encode_block(blocks.DATA, payload, codec=codec, previous_offset=previous_offset)

        if end - start > 1 and blocks.checksums_size(len(framed)) > _cells_size(keys, values, end - 1, end):
            middle = (start + end) // 2
            ranges += [(middle, end), (start, middle)]
            continue

        index.append(IndexEntry(out.size, len(framed), keys.cell(start)))
        out.append(framed, payload)

    return index


def _payload(keys: _Column, values: _Column, start: int, end: int) -> memoryview:
    content = np.empty(_cells_size(keys, values, start, end), np.uint8)
    lay_cells(keys.data, keys.offsets, values.data, values.offsets, start, end, content)
    return content.data


def _cells_size(keys: _Column, values: _Column, start: int, end: int) -> int:
    row_bytes = keys.offsets[end] - keys.offsets[start]
    value_bytes = values.offsets[end] - values.offsets[start]
    return int(row_bytes + value_bytes) + CELL_OVERHEAD * (end - start)


def _append_meta(out: _Output, meta: Mapping[str, bytes], codec: Codec) -> list[IndexEntry]:
    index: list[IndexEntry] = []
    for name in sorted(meta):
        framed = blocks.encode_block(blocks.META, meta[name], codec=codec)
        index.append(IndexEntry(out.size, len(framed), name.encode()))
        out.append(framed, meta[name])
    return index


def _file_info(keys: _Column, values: _Column, schema_text: str | None, min_max_record_key: bool) -> dict[str, bytes]:
    """The file info entries that readers look up. A file without cells has no LASTKEY: HBase's reader fails on an
    empty one.
    """
    count = len(keys.offsets) - 1
    key_bytes = keys.size + count * len(encode_key(b""))
    info = {
        "KEY_VALUE_VERSION": (1).to_bytes(4, "big"),
        "MAX_MEMSTORE_TS_KEY": (0).to_bytes(8, "big"),
        "hfile.AVG_KEY_LEN": (key_bytes // max(count, 1)).to_bytes(4, "big"),
        "hfile.AVG_VALUE_LEN": (values.size // max(count, 1)).to_bytes(4, "big"),
        "hfile.CREATE_TIME_TS": (0).to_bytes(8, "big"),
    }

    if count:
        info["hfile.LASTKEY"] = encode_key(keys.cell(count - 1))
    if schema_text is not None:
        info["schema"] = schema_text.encode()
    if min_max_record_key:
        info["minRecordKey"] = keys.cell(0) if count else b""
        info["maxRecordKey"] = keys.cell(count - 1) if count else b""

    return info


def _check_keys(keys: _Column) -> None:
    sizes = np.diff(keys.offsets)
    bad = np.flatnonzero((sizes < 1) | (sizes > KEY_SIZE_MAX))
    if bad.size:
        found = f"{int(sizes[bad[0]]):,} at cell {int(bad[0]):,}"
        raise Invalid(f"HFile: expected keys of 1 to {KEY_SIZE_MAX:,} bytes, found one of {found}")

    unsorted = first_not_ascending(keys.data, keys.offsets)
    if unsorted >= 0:
        pair = f"{keys.cell(unsorted)!r} after {keys.cell(unsorted - 1)!r} at cell {unsorted:,}"
        raise Bug(f"HFile: expected strictly ascending keys, found {pair}")


def _column(column: pa.ChunkedArray) -> _Column:
    """The bytes and offsets of a column of strings or bytes. A column of several chunks is copied."""
    if column.null_count:
        raise Invalid(f"HFile: expected no nulls, found {column.null_count:,}")
    whole = pa.concat_arrays(
        [chunk.cast(pa.large_binary()) for chunk in column.chunks] or [pa.array([], pa.large_binary())]
    )
    _, offsets, data = whole.buffers()
    positions: Spans = np.frombuffer(offsets, np.int64, len(whole) + 1, whole.offset * 8)
    return _Column(np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), positions)
