"""Records of the record index, of secondary indexes and of Bloom filters, as columns.

Cost: about 300 ns a record of the record index. Memory: the rows.
Spec: format/metadata-table.md section 6.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import Bytes, Offsets, key_buffers, one_array
from pyhudi.format.metadata.assembly import write_records
from pyhudi.format.metadata.columns import Column, read_records
from pyhudi.format.metadata.groups import BLOOM_FILTERS_TYPE, RECORD_INDEX_TYPE, SECONDARY_INDEX_TYPE
from pyhudi.loops import loop

Numbers = npt.NDArray[np.int64]

LOCATION_COLUMNS: Final = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("instant_ms", pa.int64()),
        ("position", pa.int64()),
    ]
)
"""Where a record key is. `instant_ms`: the instant of the commit that put the record there, in milliseconds since
1970. `position`: null so far."""

BLOOM_COLUMNS: Final = pa.schema(
    [
        pa.field("type", pa.string(), nullable=False),
        pa.field("timestamp", pa.string(), nullable=False),
        pa.field("bloom_filter", pa.binary(), nullable=False),
        pa.field("is_deleted", pa.bool_(), nullable=False),
    ]
)

_UUID_SIZE: Final = 36
_UUID_ENCODING, _RAW_ENCODING = 0, 1
_NO_INDEX: Final = -1
_DASH: Final = ord("-")
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_ID_SIZE_MAX: Final = _UUID_SIZE + 12


def decode_locations(
    values: pa.Array | pa.ChunkedArray, schema_text: str, *, path: str = "metadata table, record index"
) -> pa.Table:
    """The locations in records of the record index, as `LOCATION_COLUMNS`, a row a record, in the records' order.

    `schema_text`: the schema that the HFile or log block states. Raises: CorruptFile for bytes that break it.
    """
    batches = []
    for columns, is_present in read_records(values, schema_text, "recordIndexMetadata", path=path):
        count = len(is_present)
        position = columns.get("position")
        made = [
            columns["partitionName"],
            _file_ids(columns),
            columns["instantTime"],
            pa.nulls(count, pa.int64()) if position is None else position,
        ]
        batches.append(pa.RecordBatch.from_arrays(made, schema=LOCATION_COLUMNS))
    return pa.Table.from_batches(batches, LOCATION_COLUMNS)


def encode_locations(
    locations: pa.Table | pa.RecordBatch,
    *,
    table_version: int,
    base_file_name: str | None = None,
    is_raw: bool = False,
) -> pa.Array:
    """Rows of `LOCATION_COLUMNS` as records of the record index.

    `is_raw`: store file ids as text, not as the numbers of a UUID; the hidden option
    `_hoodie.writes.fileid.encoding` asks for it. Raises: Invalid for an id other than `<uuid>` or `<uuid>-<number>`.
    """
    count = locations.num_rows
    columns: dict[str, Column] = {
        "partitionName": one_array(locations.column("partition")),
        "instantTime": one_array(locations.column("instant_ms")),
        "position": one_array(locations.column("position")),
        "fileIdEncoding": pa.array(np.full(count, _RAW_ENCODING if is_raw else _UUID_ENCODING, np.int64)),
    }

    file_ids = one_array(locations.column("file_id"))
    if is_raw:
        columns |= dict.fromkeys(("fileIdHighBits", "fileIdLowBits", "fileIndex"), pa.array(np.full(count, -1)))
        columns["fileId"] = file_ids
    else:
        high, low, index = parse_file_ids(file_ids)
        columns |= {"fileIdHighBits": pa.array(high), "fileIdLowBits": pa.array(low), "fileIndex": pa.array(index)}
        columns["fileId"] = _same_text("", count)

    return write_records(
        "recordIndexMetadata",
        RECORD_INDEX_TYPE,
        columns,
        count,
        table_version=table_version,
        base_file_name=base_file_name,
    )


def decode_bloom_filters(
    values: pa.Array | pa.ChunkedArray, schema_text: str, *, path: str = "metadata table, Bloom filters"
) -> pa.Table:
    """The Bloom filters in records, as `BLOOM_COLUMNS`, a row a record. Raises: as `decode_locations`."""
    batches = [
        pa.RecordBatch.from_arrays(
            [columns["type"], columns["timestamp"], columns["bloomFilter"], columns["isDeleted"]],
            schema=BLOOM_COLUMNS,
        )
        for columns, _ in read_records(values, schema_text, "BloomFilterMetadata", path=path)
    ]
    return pa.Table.from_batches(batches, BLOOM_COLUMNS)


def encode_bloom_filters(
    filters: pa.Table | pa.RecordBatch, *, table_version: int, base_file_name: str | None = None
) -> pa.Array:
    """Rows of `BLOOM_COLUMNS` as records."""
    columns: dict[str, Column] = {
        "type": one_array(filters.column("type")),
        "timestamp": one_array(filters.column("timestamp")),
        "bloomFilter": one_array(filters.column("bloom_filter")),
        "isDeleted": one_array(filters.column("is_deleted")),
    }
    return write_records(
        "BloomFilterMetadata",
        BLOOM_FILTERS_TYPE,
        columns,
        filters.num_rows,
        table_version=table_version,
        base_file_name=base_file_name,
    )


def decode_secondary_entries(
    values: pa.Array | pa.ChunkedArray, schema_text: str, *, path: str = "metadata table, secondary index"
) -> pa.ChunkedArray:
    """Flags of the records of a secondary index that are tombstones. Raises: as `decode_locations`."""
    chunks = [
        columns["isDeleted"] for columns, _ in read_records(values, schema_text, "SecondaryIndexMetadata", path=path)
    ]
    return pa.chunked_array(chunks, pa.bool_())


def encode_secondary_entries(
    is_deleted: pa.Array | pa.ChunkedArray, *, table_version: int, base_file_name: str | None = None
) -> pa.Array:
    """Records of a secondary index. They hold only whether they are tombstones; the keys hold everything else."""
    return write_records(
        "SecondaryIndexMetadata",
        SECONDARY_INDEX_TYPE,
        {"isDeleted": one_array(is_deleted)},
        len(is_deleted),
        table_version=table_version,
        base_file_name=base_file_name,
    )


# File ids.


def parse_file_ids(file_ids: pa.Array) -> tuple[Numbers, Numbers, Numbers]:
    """The high and low 64 bits of each id's UUID, and the number behind the UUID, -1 without a number.

    Raises: Invalid for an id other than `<uuid>` or `<uuid>-<number>`.
    """
    high, low, index = (np.zeros(len(file_ids), np.int64) for _ in range(3))
    start = 0
    for data, offsets, count in key_buffers(file_ids, what="record index"):
        part = slice(start, start + count)
        wrong = _parse_each(data, offsets, high[part], low[part], index[part])
        if wrong >= 0:
            found = str(file_ids[start + wrong])
            raise Invalid(f"record index: expected file ids of the form <uuid>-<number>, found '{found:.80}'")
        start += count
    return high, low, index


def format_file_ids(high: Numbers, low: Numbers, index: Numbers) -> pa.StringArray:
    """The texts of file ids, from what `parse_file_ids` gives. Hexadecimal digits are in lower case."""
    assert not len(index) or (index.min() >= -(1 << 31) and index.max() < 1 << 31)  # else too many digits for `out`
    offsets = np.zeros(len(high) + 1, np.int32)
    out = np.empty(len(high) * _ID_SIZE_MAX, np.uint8)
    size = _format_each(high, low, index, out, offsets)
    return pa.StringArray.from_buffers(len(high), pa.py_buffer(offsets), pa.py_buffer(out[:size].copy()))


def _file_ids(columns: Mapping[str, Column]) -> pa.Array:
    """The texts of file ids; null if a record has none."""
    parts: list[pa.Array] = [
        columns[name] for name in ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileIdEncoding")
    ]
    high, low, index, encoding = (np.ascontiguousarray(part.fill_null(0).to_numpy()) for part in parts)
    raw = one_array(columns["fileId"])
    made = format_file_ids(high, low, index)
    is_raw = encoding == _RAW_ENCODING
    is_missing = parts[0].is_null()
    if is_raw.any() or parts[0].null_count:
        made = pc.if_else(is_missing, None, made)
        made = pc.if_else(pa.array(is_raw), raw, made)
    return made


def _same_text(text: str, count: int) -> pa.Array:
    return pa.array([text], pa.string()).take(pa.array(np.zeros(count, np.int64)))


@loop
def _parse_each(data: Bytes, offsets: Offsets, high: Numbers, low: Numbers, index: Numbers) -> int:
    for row in range(high.size):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        if end - start < _UUID_SIZE:
            return row

        words = np.zeros(2, np.uint64)
        digits = 0
        for nth in range(_UUID_SIZE):
            byte = data[start + nth]
            if nth == 8 or nth == 13 or nth == 18 or nth == 23:
                if byte != _DASH:
                    return row
                continue
            if 48 <= byte <= 57:
                digit = byte - 48
            elif 97 <= (byte | 32) <= 102:
                digit = (byte | 32) - 87
            else:
                return row
            words[digits >> 4] = words[digits >> 4] << np.uint64(4) | np.uint64(digit)
            digits += 1

        high[row], low[row] = np.int64(words[0]), np.int64(words[1])
        index[row] = _NO_INDEX
        if end - start == _UUID_SIZE:
            continue

        at = start + _UUID_SIZE + 1
        if data[at - 1] != _DASH or at == end or end - at > 10:
            return row

        number = np.int64(0)
        while at < end:
            if not 48 <= data[at] <= 57:
                return row
            number = number * 10 + np.int64(data[at] - 48)
            at += 1
        if number > 2147483647:
            return row
        index[row] = number
    return -1


@loop
def _format_each(high: Numbers, low: Numbers, index: Numbers, out: Bytes, offsets: npt.NDArray[np.int32]) -> int:
    to = 0
    digits = np.empty(20, np.uint8)
    for row in range(high.size):
        for nth in range(32):
            if nth == 8 or nth == 12 or nth == 16 or nth == 20:
                out[to] = _DASH
                to += 1
            word = np.uint64(high[row] if nth < 16 else low[row])
            out[to] = _HEX[np.int64(word >> np.uint64(60 - 4 * (nth & 15)) & np.uint64(15))]
            to += 1

        if index[row] != _NO_INDEX:
            out[to] = _DASH
            to += 1
            rest, count = abs(index[row]), 0
            if index[row] < 0:
                out[to] = _DASH
                to += 1

            while count == 0 or rest > 0:
                digits[count] = np.uint8(48 + rest % 10)
                rest //= 10
                count += 1
            for nth in range(count):
                out[to + nth] = digits[count - 1 - nth]
            to += count

        offsets[row + 1] = to
    return to
