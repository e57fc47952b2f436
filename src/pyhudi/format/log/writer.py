"""Whole log blocks: one function for each kind that is written here.

The rows of a data block have all fields of its schema. Meta fields, if the table has them, come first: they are written
as the caller gives them, the record key included.
"""

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.errors import Invalid
from pyhudi.format.avro.encode import EncodedRows, row_encoder
from pyhudi.format.avro.types import arrow_field, parse_schema
from pyhudi.format.hfile.writer import encode_hfile_table
from pyhudi.format.hidden_nulls import without_hidden_nulls
from pyhudi.format.leaf_bounds import leaves_with_bounds
from pyhudi.format.log.block import ROLLBACK_COMMAND, BlockType, HeaderKey, encode_block
from pyhudi.format.log.delete import encode_delete_content
from pyhudi.format.log.headers import check_positions, data_header
from pyhudi.format.roaring import Positions
from pyhudi.versions import LogContent

ROW_GROUP_ROWS: Final = 131_072
AVRO_SCHEMA: Final = "parquet.avro.schema"
WRITER_MODEL: Final = "writer.model.name"

_HEAD = struct.Struct(">ii")

Rows = Iterable[pa.RecordBatch]


def encode_avro_block(rows: Rows, header: Mapping[HeaderKey, str], *, form: LogContent = LogContent.AVRO) -> bytes:
    """A data block of Avro rows. `header`: as `headers.data_header` makes it, with the schema of the rows.

    Raises: Invalid for columns that are not those of the schema, and for record positions that are not one a row.
    Memory: the block, twice.
    """
    content, count = _avro_content(rows, _schema_text(header), form)
    check_positions(header, count)
    return encode_block(BlockType.AVRO_DATA, header, content)


def encode_change_block(
    rows: Rows, *, instant_time: str, schema_text: str, form: LogContent = LogContent.AVRO
) -> bytes:
    """A block of change data. `schema_text`: as `changes.change_schema` makes it.

    Seen: the header holds the schema first. Raises, memory: as `encode_avro_block`.
    """
    header = {HeaderKey.SCHEMA: schema_text, HeaderKey.INSTANT_TIME: instant_time}
    return encode_block(BlockType.CDC_DATA, header, _avro_content(rows, schema_text, form)[0])


def _avro_content(rows: Rows, schema: str, form: LogContent) -> tuple[bytes, int]:
    """The content of a block of Avro rows, and the number of rows."""
    encoder = row_encoder(schema)
    parts, count = [b""], 0
    for batch in rows:
        if batch.num_rows:
            parts.append(encoder.encode(batch, is_framed=True).content.tobytes())
            count += batch.num_rows
    parts[0] = _HEAD.pack(form.value, count)
    return b"".join(parts), count


def encode_parquet_block(
    rows: Rows, header: Mapping[HeaderKey, str], *, compression: str, dictionary: Sequence[str] | None = None
) -> bytes:
    """A data block that is a Parquet file. The schema's text stands in the footer, as Apache Hudi has it.

    `dictionary`: the Parquet names of the leaf columns that get a dictionary; None: all. A row group has
    `ROW_GROUP_ROWS` rows, whatever the size of the batches.
    Raises: as `encode_avro_block`. Memory: the same.
    """
    text = _schema_text(header)
    schema = _arrow_schema(text)

    sink = pa.BufferOutputStream()
    table = pa.Table.from_batches((_conformed(batch, schema) for batch in rows), schema)
    with pq.ParquetWriter(
        sink,
        schema,
        compression=compression,
        use_dictionary=True if dictionary is None else list(dictionary),
        write_statistics=leaves_with_bounds(table, is_whole=True),  # Spark scans blocks, too
        store_schema=False,
        version="2.6",
    ) as writer:
        writer.write_table(table, ROW_GROUP_ROWS)
        writer.add_key_value_metadata({AVRO_SCHEMA: text, WRITER_MODEL: "avro"})

    check_positions(header, len(table))
    return encode_block(BlockType.PARQUET_DATA, header, sink.getvalue())


def encode_hfile_rows_block(
    rows: Rows, header: Mapping[HeaderKey, str], *, key_column: str, as_null: Collection[str] = ()
) -> bytes:
    """A data block that is an HFile: each row is stored under its record key, and each key occurs once.

    `as_null`: columns whose values are left out of the stored rows, the key column perhaps.

    Order: by the bytes of the keys. Raises: Invalid for a key that is null or comes twice, and for record positions:
    they must ascend, and rows sorted by key do not ascend by position.
    """
    text = _schema_text(header)
    if HeaderKey.RECORD_POSITIONS in header:
        raise Invalid("HFile block: expected no record positions; rows are sorted by key")

    schema = _arrow_schema(text)
    table = pa.Table.from_batches((_conformed(batch, schema) for batch in rows), schema).combine_chunks()
    keys = table.column(key_column).cast(pa.binary())
    if keys.null_count or pc.count_distinct(keys).as_py() < len(keys):
        raise Invalid(f"HFile block: expected in column '{key_column}' a key for each row, once, and no null")

    for at in (at for at, name in enumerate(schema.names) if name in as_null):
        table = table.set_column(at, schema.field(at), pa.nulls(len(table), schema.field(at).type))

    order = pc.sort_indices(keys)
    encoder = row_encoder(text)
    values = [row_values(encoder.encode(batch)) for batch in table.take(order).to_batches()]
    cells = pa.table({"key": keys.take(order), "value": pa.chunked_array(values, pa.large_binary())})
    return encode_block(BlockType.HFILE_DATA, header, encode_hfile_table(cells, schema_text=text))


def encode_hfile_block(
    hfile: bytes | memoryview, *, instant_time: str, schema_text: str, compacted_instants: Iterable[str] = ()
) -> bytes:
    """A data block of a whole HFile. `schema_text`: the Avro schema of the values, as the HFile itself states it."""
    header = data_header(instant_time=instant_time, schema_text=schema_text, compacted_instants=compacted_instants)
    return encode_block(BlockType.HFILE_DATA, header, hfile)


def encode_delete_block(
    deletes: pa.RecordBatch,
    *,
    instant_time: str,
    schema_text: str | None = None,
    positions: Positions | None = None,
    positions_base_instant: str | None = None,
    compacted_instants: Iterable[str] = (),
    form: LogContent = LogContent.AVRO,
) -> bytes:
    """A delete block from columns as in `delete.DELETES`. `positions`: as in `data_header`, one a delete."""
    header = data_header(
        instant_time=instant_time,
        schema_text=schema_text,
        positions=positions,
        positions_base_instant=positions_base_instant,
        compacted_instants=compacted_instants,
    )
    check_positions(header, deletes.num_rows)
    return encode_block(BlockType.DELETE, header, encode_delete_content(deletes, form))


def encode_rollback_block(*, instant_time: str, target_instant_time: str) -> bytes:
    """A command block. It tells readers to drop the target instant's blocks that stand before this block."""
    header = {
        HeaderKey.INSTANT_TIME: instant_time,
        HeaderKey.TARGET_INSTANT_TIME: target_instant_time,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    return encode_block(BlockType.COMMAND, header, b"")


def _schema_text(header: Mapping[HeaderKey, str]) -> str:
    text = header.get(HeaderKey.SCHEMA)
    if text is None:
        raise Invalid("log block: expected the schema of the rows in the header of a data block")
    return text


@lru_cache(maxsize=64)
def _arrow_schema(text: str) -> pa.Schema:
    return pa.schema([arrow_field(one.name, one.type, one.name) for one in parse_schema(text).fields])


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns in the order and the types of the schema."""
    is_conformed = batch.schema.equals(schema)  # casts that change nothing take longer than the rest
    if not is_conformed and sorted(batch.schema.names) != sorted(schema.names):
        raise Invalid(
            f"log block: expected the columns {', '.join(schema.names)}, found {', '.join(batch.schema.names)}"
        )

    columns = batch if is_conformed else batch.select(schema.names)
    for column, field in zip(columns.columns, schema, strict=True):
        if not field.nullable and column.null_count:
            raise Invalid(f"column '{field.name}': expected no null, as the schema states, found {column.null_count:,}")

    columns = without_hidden_nulls(columns)
    try:
        return columns if is_conformed else columns.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Invalid(f"log block: the rows do not fit the schema of the header ({error})") from error


def row_values(rows: EncodedRows) -> pa.Array:
    """Rows one behind the other as a binary column."""
    offsets = np.concatenate([[0], rows.ends]).astype(np.int64)
    assert (offsets[:-1] == rows.starts).all()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(rows.content)]
    return pa.Array.from_buffers(pa.large_binary(), len(rows.ends), buffers)
