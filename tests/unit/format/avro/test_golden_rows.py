"""Rows as Apache Hudi stores them could be read wrong, though those of fastavro are not.

Every Avro data block of the golden tables, and every value of golden HFiles of the metadata table, against
fastavro record by record; what Apache Hudi wrote must come out of the encoder again, byte for byte.
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.format.avro.decode import row_decoder
from pyhudi.format.avro.encode import row_encoder
from pyhudi.format.avro.framing import find_rows
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.log.block import BlockType, HeaderKey
from pyhudi.format.log.reader import read_blocks
from tests.support.avro_rows import decode_rows

GOLDEN = Path(__file__).parents[3] / "golden"
CONTENT_HEAD = 8  # version and count of the rows


def avro_blocks():
    for path in sorted((GOLDEN / "tables").glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if ".log." in name and not name.endswith(".crc") and "/metadata/" not in name:
                    for block in read_blocks(archive.read(name), path=name):
                        if block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                            yield f"{name}:{block.offset}", block


def plain(value: Any, kind: pa.DataType) -> object:
    """A value of Arrow with maps as dicts."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: plain(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [plain(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        chosen = {one.name: plain(value[one.name], one.type) for one in kind}
        if kind.num_fields and all(name.startswith("member") for name in chosen):
            return next((item for item in chosen.values() if item is not None), None)
        return chosen
    return value


def rows_of(batch: pa.RecordBatch) -> list:
    kind = pa.struct(list(batch.schema))
    return [plain(row, kind) for row in batch.to_pylist()]


def test_every_avro_block_of_the_golden_tables_is_read_and_written_as_it_was():
    types, count = set(), 0
    for place, block in avro_blocks():
        schema = block.header[HeaderKey.SCHEMA]
        content = bytes(block.read_content())
        row_count = int.from_bytes(content[4:8], "big")
        starts, ends = find_rows(content, row_count, start=CONTENT_HEAD, path=place)
        batch = row_decoder(schema).decode(content, starts, ends, path=place)
        assert rows_of(batch) == decode_rows(schema, content, starts, ends), place
        made = row_encoder(schema).encode(batch, is_framed=True)
        assert made.content.tobytes() == content[CONTENT_HEAD:], place
        types |= set(map(str, batch.schema.types))
        count += 1
    assert count >= 10
    assert {"string", "int32", "int64", "double"} <= types


@pytest.mark.parametrize("name", ["files_h0150", "files_h102", "files_h120", "record_index_h120"])
def test_values_of_the_metadata_table_are_read_and_written_as_they_were(name: str):
    reader = HFileReader((GOLDEN / "bytes" / f"{name}.hfile").read_bytes(), path=name)
    schema = reader.schema_text
    assert schema is not None
    values = reader.scan_arrow().column("value").combine_chunks()
    check_values(schema, values)


def check_values(schema: str, values: pa.Array) -> pa.RecordBatch:
    stored = values.to_pylist()
    bounds = np.cumsum([0, *map(len, stored)])
    batch = row_decoder(schema).decode_values(values)
    assert rows_of(batch) == decode_rows(schema, b"".join(stored), bounds[:-1], bounds[1:])
    made = row_encoder(schema).encode(batch)
    content = made.content.tobytes()
    assert [content[start:end] for start, end in zip(made.starts, made.ends, strict=True)] == stored
    return batch


def test_column_stats_of_the_metadata_table_keep_the_types_of_their_values():
    members = set()
    with zipfile.ZipFile(GOLDEN / "tables" / "cow_mdt_all_v9_h120.zip") as archive:
        names = [name for name in archive.namelist() if "/column_stats/.col" in name and ".log." in name]
        for name in sorted(names):
            for block in read_blocks(archive.read(name), path=name):
                if block.type is BlockType.HFILE_DATA:
                    reader = HFileReader(bytes(block.read_content()), path=name)
                    batch = check_values(str(reader.schema_text), reader.scan_arrow().column("value").combine_chunks())
                    for stats in batch.column(batch.schema.get_field_index("ColumnStatsMetadata")).to_pylist():
                        if stats and stats["minValue"]:
                            members |= {key for key, value in stats["minValue"].items() if value is not None}
    assert len(members) >= 3  # wrappers of several types


def test_a_projection_of_a_real_block_walks_over_the_rest():
    place, block = next(avro_blocks())
    schema, content = block.header[HeaderKey.SCHEMA], bytes(block.read_content())
    starts, ends = find_rows(content, int.from_bytes(content[4:8], "big"), start=CONTENT_HEAD, path=place)
    every = row_decoder(schema).decode(content, starts, ends)
    for name in every.schema.names:
        assert (
            row_decoder(schema, None, (name,))
            .decode(content, starts, ends)
            .column(0)
            .equals(every.column(every.schema.get_field_index(name)))
        )
    names = [one["name"] for one in json.load(io.StringIO(schema))["fields"]]
    assert every.schema.names == names
