"""Records of column statistics, for files and for partitions, as columns.

Cost: about 300 ns a record. Memory: the rows.
Spec: format/metadata-table.md sections 6 and 9.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.assembly import write_records
from pyhudi.format.metadata.columns import Bounds, Column, read_records
from pyhudi.format.metadata.groups import COLUMN_STATS_TYPE

_WHERE: Final = "metadata table, column statistics"

STATS_COLUMNS: Final = pa.schema(
    [
        ("file_name", pa.string()),
        ("column_name", pa.string()),
        pa.field("min_kind", pa.int8(), nullable=False),
        pa.field("min_bits", pa.int64(), nullable=False),
        pa.field("min_bytes", pa.binary(), nullable=False),
        pa.field("max_kind", pa.int8(), nullable=False),
        pa.field("max_bits", pa.int64(), nullable=False),
        pa.field("max_bytes", pa.binary(), nullable=False),
        ("value_count", pa.int64()),
        ("null_count", pa.int64()),
        ("total_size", pa.int64()),
        ("total_uncompressed_size", pa.int64()),
        pa.field("is_deleted", pa.bool_(), nullable=False),
        pa.field("is_tight_bound", pa.bool_(), nullable=False),
        ("value_type", pa.int8()),
        ("value_type_info", pa.string()),
    ]
)
"""`file_name`: for statistics of a partition, the partition's path. Bounds are as they are stored, see `stats_values`:
the kind is an index into `metadata_columns.WRAPPERS`; the bits hold a number, in IEEE 754 if it is a float; the bytes
hold a text or bytes. `value_type`: since table version 9, the ordinal of the column's type."""

_STORED: Final = {
    "file_name": "fileName",
    "column_name": "columnName",
    "value_count": "valueCount",
    "null_count": "nullCount",
    "total_size": "totalSize",
    "total_uncompressed_size": "totalUncompressedSize",
    "is_deleted": "isDeleted",
    "is_tight_bound": "isTightBound",
    "value_type": "typeOrdinal",
    "value_type_info": "additionalInfo",
}


def decode_column_stats(values: pa.Array | pa.ChunkedArray, schema_text: str, *, path: str = _WHERE) -> pa.Table:
    """The statistics in records, as `STATS_COLUMNS`, a row a record, in the records' order.

    `schema_text`: the schema that the HFile or log block states. A field that the schema lacks is null, or false.
    Raises: CorruptFile for bytes that break the schema.
    """
    batches = []
    for columns, is_present in read_records(values, schema_text, "ColumnStatsMetadata", path=path):
        made = [_column(one, columns, len(is_present)) for one in STATS_COLUMNS]
        batches.append(pa.RecordBatch.from_arrays(made, schema=STATS_COLUMNS))
    return pa.Table.from_batches(batches, STATS_COLUMNS)


def encode_column_stats(
    stats: pa.Table | pa.RecordBatch,
    *,
    table_version: int,
    base_file_name: str | None = None,
    record_type: int | npt.NDArray[np.int64] = COLUMN_STATS_TYPE,
) -> pa.Array:
    """Rows of `STATS_COLUMNS` as records.

    `record_type`: the type of all records, or of each; `PARTITION_STATS_TYPE` for statistics of partitions.
    Raises: Invalid for a bound in a wrapper that the table version does not have.
    """
    columns: dict[str, Column] = {stored: one_array(stats.column(name)) for name, stored in _STORED.items()}
    for side in ("min", "max"):
        kinds, bits = (one_array(stats.column(f"{side}_{part}")).to_numpy() for part in ("kind", "bits"))
        columns[f"{side}Value"] = Bounds(kinds, bits, one_array(stats.column(f"{side}_bytes")))
    return write_records(
        "ColumnStatsMetadata",
        record_type,
        columns,
        stats.num_rows,
        table_version=table_version,
        base_file_name=base_file_name,
    )


def _column(one: pa.Field, columns: Mapping[str, Column], count: int) -> pa.Array:

    side, _, part = one.name.partition("_")
    if side in ("min", "max"):
        bounds = columns[f"{side}Value"]
        assert isinstance(bounds, Bounds)
        return {"kind": pa.array(bounds.kinds), "bits": pa.array(bounds.bits), "bytes": bounds.data}[part]
    stored = columns.get(_STORED[one.name])
    if stored is None:
        return pa.array(np.zeros(count, np.bool_)) if not one.nullable else pa.nulls(count, one.type)
    assert isinstance(stored, pa.Array)
    return stored.cast(one.type)
