"""Rows read with another row's columns, left out at the edge of a piece, or written so that Apache Hudi reads others.

The rows of blocks of each kind go back and forth; what is read of a source is counted: a log
need not fit into memory.
"""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Invalid, Unavailable
from pyhudi.format.hfile.writer import encode_hfile
from pyhudi.format.log import headers
from pyhudi.format.log.block import BlockType, HeaderKey, LogBlock, encode_block
from pyhudi.format.log.data import data_schema, held_if_small, read_batches, read_row_count
from pyhudi.format.log.delete import make_deletes, no_deletes
from pyhudi.format.log.headers import data_header
from pyhudi.format.log.reader import read_blocks, scan_log
from pyhudi.format.log.writer import (
    encode_avro_block,
    encode_delete_block,
    encode_hfile_rows_block,
    encode_parquet_block,
    encode_rollback_block,
)
from tests.support.avro_rows import schemas_with_rows
from tests.support.logs import COLUMNS, SCHEMA, CountedLog, header, rows, scanned

GOLDEN = Path(__file__).parents[3] / "golden" / "bytes"
KEY = "_hoodie_record_key"


def as_avro(batches: list, **options) -> bytes:
    return encode_avro_block(batches, header(**options))


def as_parquet(batches: list, **options) -> bytes:
    return encode_parquet_block(batches, header(**options), compression="gzip")


def as_hfile(batches: list, **options) -> bytes:
    return encode_hfile_rows_block(batches, header(**options), key_column=KEY)


KINDS = pytest.mark.parametrize("encode", [as_avro, as_parquet, as_hfile])


def only_block(data: bytes) -> LogBlock:
    (block,) = scanned(data)
    return block


def table_of(block: LogBlock, **options) -> pa.Table:
    chosen = {name: value for name, value in options.items() if name != "batch_size_bytes"}
    return pa.Table.from_batches(read_batches(block, **options), data_schema(block, **chosen))


@KINDS
@pytest.mark.parametrize("count", [0, 1, 3, 2_000])
def test_rows_come_back(encode, count):
    block = only_block(encode([rows(count, text="é")]))
    assert read_row_count(block) == count
    assert table_of(block).equals(pa.Table.from_batches([rows(count, text="é")]))


@KINDS
def test_columns_are_read_in_the_order_asked_for(encode):
    block = only_block(encode([rows(5)]))
    found = table_of(block, columns=["n", KEY])
    assert found.column_names == ["n", KEY]
    assert found.equals(pa.Table.from_batches([rows(5)]).select(["n", KEY]))
    assert table_of(block, columns=["text", "nowhere"]).column_names == ["text"]
    assert sum(batch.num_rows for batch in read_batches(block, columns=[])) == 5
    with pytest.raises(Invalid, match="expected each once"):
        table_of(block, columns=["n", "n"])


def newer_schema() -> str:
    schema = json.loads(SCHEMA)
    schema["fields"] += [
        {"name": "more", "type": ["null", "int"], "default": None},
        {"name": "fixed", "type": "string", "default": "none"},
        {"name": "number", "type": "long", "aliases": ["n"]},
    ]
    schema["fields"].pop(1)
    return json.dumps(schema)


@KINDS
def test_fields_that_the_block_lacks_have_their_default(encode):
    found = table_of(only_block(encode([rows(2)])), reader_schema=newer_schema())
    assert found.column_names == [KEY, "text", "more", "fixed", "number"]
    assert found.to_pylist() == [
        {KEY: f"k00000{n}", "text": None, "more": None, "fixed": "none", "number": n} for n in (0, 1)
    ]
    only_new = table_of(only_block(encode([rows(2)])), columns=["fixed"], reader_schema=newer_schema())
    assert only_new.to_pylist() == [{"fixed": "none"}] * 2
    with pytest.raises(Invalid, match="no such field"):
        table_of(only_block(encode([rows(2)])), columns=["nowhere"], reader_schema=newer_schema())
    required = json.dumps({"type": "record", "name": "r", "fields": [{"name": "new", "type": "int"}]})
    with pytest.raises(Invalid, match="states no default"):
        table_of(only_block(encode([rows(2)])), reader_schema=required)


def test_far_times_of_int96_are_read():
    """Spark writes INT96 with `hoodie.parquet.outputtimestamptype=INT96`. In nanoseconds such years overflow."""
    far = [datetime(9999, 12, 31, tzinfo=UTC), datetime(1600, 1, 1, tzinfo=UTC)]
    kind = '["null", {"type": "long", "logicalType": "timestamp-micros"}]'
    text = f'{{"type": "record", "name": "r", "fields": [{{"name": "at", "type": {kind}, "default": null}}]}}'
    file, batch = io.BytesIO(), pa.table({"at": pa.array(far, pa.timestamp("us", "UTC"))})
    pq.write_table(batch, file, use_deprecated_int96_timestamps=True, store_schema=False)
    header = data_header(instant_time="1", schema_text=text)
    block = only_block(encode_block(BlockType.PARQUET_DATA, header, file.getvalue()))
    assert table_of(block)["at"].to_pylist() == far


def test_a_partial_block_gives_only_what_it_holds():
    partial = data_header(instant_time="1", schema_text=SCHEMA, is_partial=True)
    block = only_block(encode_avro_block([rows(2)], partial))
    assert headers.is_partial(block)
    assert table_of(block, reader_schema=newer_schema()).column_names == [KEY, "text", "number"]


@given(schemas_with_rows(), st.integers(1, 200))
@settings(max_examples=60)
def test_avro_rows_of_any_schema_come_back_in_pieces_of_any_size(example, size):
    schema, _, plain = example
    kind = data_schema(only_block(encode_avro_block([], header(schema=schema))))
    batch = pa.RecordBatch.from_pylist(plain, schema=kind)
    block = only_block(encode_avro_block([batch, batch], header(schema=schema)))
    assert table_of(block, batch_size_bytes=size).equals(table_of(block))
    assert table_of(block).to_pylist() == 2 * table_of(block).to_pylist()[: len(plain)]
    assert read_row_count(block) == 2 * len(plain)


def test_an_avro_block_is_read_in_pieces():
    data = as_avro([rows(100_000, text="t" * 50)])
    source = CountedLog(data)
    (block,) = scan_log(source, len(data), path="x")
    source.reads.clear()
    batches = list(read_batches(block, columns=["n"], batch_size_bytes=1 << 20))
    assert len(batches) == pytest.approx(len(data) / (1 << 20), abs=2)
    assert max(size for _, size in source.reads) <= 1 << 20
    assert sum(size for _, size in source.reads) <= len(data) * 1.01
    assert np.array_equal(pa.Table.from_batches(batches).column("n").to_numpy(), np.arange(100_000))


def test_a_large_parquet_block_is_read_by_its_columns():
    noise = np.random.default_rng(1).integers(0, 1 << 60, 300_000)
    batch = rows(300_000).set_column(2, "text", pa.array(noise).cast(pa.string()))
    data = as_parquet([batch])
    source = CountedLog(data)
    (block,) = scan_log(source, len(data), path="x")
    source.reads.clear()
    found = pa.Table.from_batches(read_batches(block, columns=["n"]))
    assert found.num_rows == 300_000
    assert sum(size for _, size in source.reads) < len(data) / 2
    assert read_row_count(block) == 300_000


def test_a_small_parquet_block_is_one_request():
    data = as_parquet([rows(1_000)])
    source = CountedLog(data)
    (block,) = scan_log(source, len(data), path="x")
    source.reads.clear()
    assert sum(batch.num_rows for batch in read_batches(block, columns=["n"])) == 1_000
    assert source.reads == [(block.content_offset, block.content_size)]


def test_a_block_that_is_held_is_read_once_and_stays_where_it_was():
    """Damage behind the first block of a log must be told of at its place in the file."""
    first = as_parquet([rows(10)])
    data = first + as_parquet([rows(1_000, text="é")])
    source = CountedLog(data)
    _, block = scan_log(source, len(data), path="x")
    source.reads.clear()

    held = held_if_small(block)

    assert table_of(held).equals(table_of(block))
    source.reads.clear()
    assert read_row_count(held) == 1_000
    assert table_of(held, columns=["n"]).num_rows == 1_000
    assert source.reads == []
    assert held.corrupt(4, expected="", found="").offset == block.content_offset + 4
    assert block.content_offset > len(first)


def test_large_blocks_and_those_of_other_kinds_are_not_held():
    noise = np.random.default_rng(1).integers(0, 1 << 60, 300_000)
    large = as_parquet([rows(300_000).set_column(2, "text", pa.array(noise).cast(pa.string()))])
    for data in (large, as_avro([rows(10)]), as_hfile([rows(10)])):
        block = only_block(data)
        assert held_if_small(block) is block


class FailingLog(CountedLog):
    """A log whose store is gone once the scan is done."""

    def read_at(self, offset: int, size: int) -> bytes:
        if len(self.reads) > 2:
            raise Unavailable("the store is gone")
        return super().read_at(offset, size)


@KINDS
def test_a_store_that_fails_is_not_taken_for_a_corrupt_block(encode):
    data = encode([rows(20_000, text="x")])
    source = FailingLog(data)
    (block,) = scan_log(source, len(data), path="x")
    source.reads += [(0, 0)] * 3
    with pytest.raises(Unavailable, match="the store is gone"):
        list(read_batches(block))


def test_parquet_blocks_have_what_apache_hudi_looks_for_in_the_footer():
    block = only_block(as_parquet([rows(2)]))
    file = pq.ParquetFile(pa.BufferReader(bytes(block.read_content())))
    assert file.metadata.metadata[b"parquet.avro.schema"].decode() == SCHEMA
    assert b"ARROW:schema" not in file.metadata.metadata


def test_avro_blocks_of_older_versions_are_read():
    data, _ = read_blocks((GOLDEN / "data_and_deletes_h0131.log").read_bytes(), path="x")
    assert bytes(data.read_content()[:4]) == b"\0\0\0\2"
    assert table_of(data).num_rows == read_row_count(data) == 2
    for version in (1, 2):
        block = only_block(as_avro([rows(3)]))
        content = version.to_bytes(4, "big") + bytes(block.read_content()[4:])
        older = only_block(encode_block(BlockType.AVRO_DATA, block.header, content))
        assert table_of(older).equals(table_of(block))


def test_change_data_are_read_as_rows():
    content = only_block(as_avro([rows(3)])).read_content()
    block = only_block(encode_block(BlockType.CDC_DATA, header(), content))
    assert table_of(block).num_rows == read_row_count(block) == 3


@pytest.mark.parametrize(
    "content, match",
    [
        ("", "version and number of rows"),
        ("00000003", "version and number of rows"),
        ("00000000 00000000", "version 1 to 3"),
        ("00000004 00000000", "version 1 to 3"),
        ("00000003 00000001", "0 to 0 rows"),
        ("00000003 ffffffff", "0 to 0 rows"),
        ("00000003 00000000 00", "the end of the content"),
        ("00000003 00000001 ffffffff", "a row of at most 0 bytes"),
        ("00000003 00000001 00000001", "a row of at most 0 bytes, found 1"),
        ("00000003 00000001 00000000", "more bytes of the row"),
    ],
)
def test_broken_avro_contents_are_corrupt_and_say_where(content, match):
    block = only_block(encode_block(BlockType.AVRO_DATA, header(), bytes.fromhex(content)))
    with pytest.raises(CorruptFile, match=match) as caught:
        list(read_batches(block))
    assert caught.value.offset >= block.content_offset


@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA])
def test_a_block_without_a_sound_schema_is_corrupt(kind):
    for schema in (None, "{}", "nonsense", '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "b"}]}'):
        made = {HeaderKey.INSTANT_TIME: "1"} | ({} if schema is None else {HeaderKey.SCHEMA: schema})
        with pytest.raises(CorruptFile):
            list(read_batches(only_block(encode_block(kind, made, b"\0\0\0\3\0\0\0\0"))))


def test_a_parquet_block_without_a_column_of_its_header_is_corrupt():
    content = only_block(as_parquet([rows(2)])).read_content()
    block = only_block(encode_block(BlockType.PARQUET_DATA, header(schema=newer_schema()), content))
    with pytest.raises(CorruptFile, match="a Parquet column 'more', as in the header"):
        list(read_batches(block))


# Writing.


@KINDS
def test_rows_that_are_not_of_the_schema_are_refused(encode):
    for wrong in (
        rows(2).select([KEY, "n"]),
        rows(2).append_column("more", pa.array([1, 2])),
        rows(2).set_column(1, pa.field("n", pa.int64()), pa.array([1, None], pa.int64())),
        rows(2).set_column(1, "n", pa.array(["x", "y"])),
    ):
        with pytest.raises(Invalid):
            encode([wrong])
    with pytest.raises(Invalid, match="schema"):
        encode_avro_block([], {HeaderKey.INSTANT_TIME: "1"})


@pytest.mark.parametrize("keys", [["a", "a"], ["a", None]])
def test_an_hfile_block_has_each_key_once(keys):
    with pytest.raises(Invalid, match="a key for each row, once"):
        as_hfile([rows(2).set_column(0, COLUMNS.field(0), pa.array(keys))])


def test_an_hfile_block_is_sorted_by_the_bytes_of_its_keys():
    keys = ["b", "é", "a", "Z", "🙂", "\uffee"]
    block = only_block(as_hfile([rows(6).set_column(0, COLUMNS.field(0), pa.array(keys))]))
    assert table_of(block).column(KEY).to_pylist() == sorted(keys, key=str.encode)


def test_the_key_that_an_hfile_leaves_empty_comes_from_its_cell():
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "key", "type": "string"}]})
    batch = pa.RecordBatch.from_pydict({"key": ["a", "b"]})
    made = only_block(encode_hfile_rows_block([batch], header(schema=schema), key_column="key"))
    content = bytes(made.read_content())
    assert table_of(made).column("key").to_pylist() == ["a", "b"]
    emptied = encode_hfile([(b"a", b"\0"), (b"b", b"\0")], schema_text=schema)
    assert emptied != content
    block = only_block(encode_block(BlockType.HFILE_DATA, header(schema=schema), emptied))
    assert table_of(block).column("key").to_pylist() == ["a", "b"]


def test_decimals_and_nested_columns_come_back_from_parquet_as_from_avro():
    fields = [
        {"name": KEY, "type": "string"},
        {"name": "d", "type": {"type": "fixed", "name": "f", "size": 5, "logicalType": "decimal", "precision": 10,
                               "scale": 2}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "l", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "m", "type": {"type": "map", "values": "int"}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
    ]  # fmt: skip
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    kind = data_schema(only_block(encode_avro_block([], header(schema=schema))))
    row = {KEY: "a", "d": Decimal("-1.25"), "at": None, "l": ["x", None], "m": [("k", 1)], "e": "B"}
    batch = pa.RecordBatch.from_pylist([row, {**row, KEY: "b"}], schema=kind)
    avro, parquet, hfile = (only_block(encode([batch], schema=schema)) for encode in (as_avro, as_parquet, as_hfile))
    assert table_of(avro).equals(pa.Table.from_batches([batch]))
    assert table_of(parquet).equals(table_of(avro))
    assert table_of(hfile).equals(table_of(avro))


# Headers.


def test_headers_come_back():
    positions = np.array([3, 4, 9, 2**40], np.uint64)
    made = data_header(
        instant_time="5",
        schema_text=SCHEMA,
        positions=positions,
        positions_base_instant="4",
        is_partial=True,
        compacted_instants=["3", "2"],
    )
    assert list(made) == sorted(made)
    block = only_block(encode_avro_block([rows(4)], made))
    assert headers.instant_time(block) == "5"
    assert headers.schema_text(block) == SCHEMA
    assert headers.compacted_instants(block) == ("3", "2")
    assert headers.is_partial(block)
    assert headers.positions_base_instant(block) == "4"
    found = headers.record_positions(block, 4)
    assert found is not None
    assert found.dtype == np.uint64
    assert found.tolist() == positions.tolist()
    for count in (0, 3, 5):
        with pytest.raises(CorruptFile, match="record positions"):
            headers.record_positions(block, count)


def test_headers_that_are_not_there_say_nothing():
    block = only_block(as_avro([rows(1)]))
    assert headers.compacted_instants(block) == ()
    assert not headers.is_partial(block)
    assert headers.positions_base_instant(block) is None
    assert headers.record_positions(block, 1) is None
    assert headers.block_identifier(block) is None
    bare = only_block(encode_block(BlockType.AVRO_DATA, {}, b""))
    with pytest.raises(CorruptFile, match="a header INSTANT_TIME, found a AVRO_DATA block with no header"):
        headers.instant_time(bare)


def test_a_delete_block_may_carry_positions():
    positions = np.array([7], np.uint64)
    deletes = make_deletes(pa.array(["k"]), pa.array(["p"]))
    block = only_block(encode_delete_block(deletes, instant_time="1", positions=positions, positions_base_instant="0"))
    assert headers.positions_base_instant(block) == "0"
    assert headers.record_positions(block, 1) == positions


def test_positions_without_order_or_base_are_refused():
    for positions, base in ((np.array([2, 1], np.uint64), "1"), (np.array([1], np.uint64), None), (None, "1")):
        with pytest.raises(Invalid, match="positions"):
            data_header(instant_time="1", schema_text=None, positions=positions, positions_base_instant=base)


def test_positions_that_are_not_one_a_row_are_not_written():
    made = data_header(
        instant_time="1", schema_text=SCHEMA, positions=np.array([1, 2], np.uint64), positions_base_instant="0"
    )
    for count in (1, 3):
        with pytest.raises(Invalid, match="record positions"):
            encode_avro_block([rows(count)], made)
        with pytest.raises(Invalid, match="record positions"):
            encode_parquet_block([rows(count)], made, compression="gzip")
    with pytest.raises(Invalid, match="sorted by key"):
        encode_hfile_rows_block([rows(2)], made, key_column=KEY)
    with pytest.raises(Invalid, match="record positions"):
        encode_delete_block(
            no_deletes(), instant_time="1", positions=np.array([1], np.uint64), positions_base_instant="0"
        )


@pytest.mark.parametrize("text, expected", [("0,3", (0, 3)), ("12,0", (12, 0))])
def test_block_identifiers_are_attempt_and_number(text, expected):
    block = only_block(encode_block(BlockType.DELETE, {HeaderKey.BLOCK_IDENTIFIER: text}, b""))
    assert headers.block_identifier(block) == expected


@pytest.mark.parametrize("text", ["", "1", "1,", "a,b", "1,-2", "٣,1"])
def test_other_block_identifiers_are_corrupt(text):
    block = only_block(encode_block(BlockType.DELETE, {HeaderKey.BLOCK_IDENTIFIER: text}, b""))
    with pytest.raises(CorruptFile, match="block identifier"):
        headers.block_identifier(block)


@pytest.mark.parametrize("text", ["!", "AAAA", "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAEAEAAAAAMAAwA="])
def test_broken_positions_are_corrupt(text):
    stored = {HeaderKey.INSTANT_TIME: "1", HeaderKey.RECORD_POSITIONS: text}
    block = only_block(encode_block(BlockType.DELETE, stored, b""))
    with pytest.raises(CorruptFile, match="2 record positions"):
        headers.record_positions(block, 2)


def test_commands_other_than_rollbacks_are_refused():
    rollback = only_block(encode_rollback_block(instant_time="2", target_instant_time="1"))
    assert headers.rolled_back_instant(rollback) == "1"
    other = only_block(encode_block(BlockType.COMMAND, {**rollback.header, HeaderKey.COMMAND_BLOCK_TYPE: "1"}, b""))
    with pytest.raises(CorruptFile, match="a rollback, found '1'"):
        headers.rolled_back_instant(other)
