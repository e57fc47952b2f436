"""A block misread is a row lost or a delete undone; a torn one must cost itself and nothing after it.

The worked examples of the format document and files written by Apache Hudi pin the bytes. Broken lengths
must give CORRUPT blocks, broken insides CorruptFile, and nothing else.
"""

import contextlib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.log.block import BlockType, HeaderKey, encode_block
from pyhudi.format.log.delete import (
    COMMIT_TIME_DELETE,
    DeleteRecord,
    OrderingKind,
    OrderingPlain,
    OrderingValue,
    decode_delete_content,
    encode_delete_content,
)
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.log.writer import encode_delete_block, encode_hfile_block, encode_rollback_block

GOLDEN = Path(__file__).parents[2] / "golden" / "bytes"

ROLLBACK = bytes.fromhex(
    "23 48 55 44 49 23 00 00 00 00 00 00 00 5b 00 00 00 01 00 00 00 00 00 00 00 03"
    "00 00 00 00 00 00 00 11 3230323631313231313131333032343438"
    "00 00 00 01 00 00 00 11 3230323631313231313131323539333733"
    "00 00 00 03 00 00 00 01 30"
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 61"
)


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def test_the_rollback_block_of_the_format_document():
    encoded = encode_rollback_block(instant_time="20261121111302448", target_instant_time="20261121111259373")
    assert encoded == ROLLBACK
    (block,) = read_blocks(ROLLBACK, path="x")
    assert (block.type, block.offset, block.size, bytes(block.content)) == (BlockType.COMMAND, 0, 105, b"")
    assert block.header == {
        HeaderKey.INSTANT_TIME: "20261121111302448",
        HeaderKey.TARGET_INSTANT_TIME: "20261121111259373",
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }


def test_the_rollback_block_of_hudi():
    (block,) = read_blocks(golden("rollback_h0150.log"), path="x")
    assert block.type is BlockType.COMMAND
    encoded = encode_rollback_block(
        instant_time=block.header[HeaderKey.INSTANT_TIME],
        target_instant_time=block.header[HeaderKey.TARGET_INSTANT_TIME],
    )
    assert sorted(encoded) == sorted(golden("rollback_h0150.log"))  # Hudi's order of header entries is a hash map's


def test_the_first_block_of_a_new_file_group():
    expected = golden("init_h120.log")
    assert encode_delete_block(encode_delete_content(()), instant_time="00000000000000000") == expected
    (block,) = read_blocks(expected, path="x")
    assert bytes(block.content) == bytes.fromhex("00000003 00000001 00")
    assert decode_delete_content(block.content, path="x") == []


def test_a_data_block_of_hudi():
    data = golden("record_index_h120.log")
    (block,) = read_blocks(data, path="x")
    assert block.type is BlockType.HFILE_DATA
    reader = HFileReader(block.content, path="x")
    assert reader.schema_text == block.header[HeaderKey.SCHEMA]
    assert len(list(reader.scan())) == reader.entry_count > 0
    assert data[block.content_offset :].startswith(b"DATABLK*")
    encoded = encode_hfile_block(
        block.content,
        instant_time=block.header[HeaderKey.INSTANT_TIME],
        schema_text=block.header[HeaderKey.SCHEMA],
    )
    (again,) = read_blocks(encoded, path="x")
    assert (again.header, bytes(again.content), again.size) == (
        block.header,
        bytes(block.content),
        block.size,
    )


def test_a_delete_block_of_hudi():
    (block,) = read_blocks(golden("deletes_h120.log"), path="x")
    records = decode_delete_content(block.content, path="x", offset=block.content_offset)
    assert records == [DeleteRecord("k0005", "p1")]
    assert encode_delete_content(records) == bytes(block.content)


def test_kryo_delete_blocks_are_unsupported():
    (block,) = read_blocks(golden("init_h0131.log"), path="x")
    assert block.type is BlockType.DELETE
    with pytest.raises(Unsupported, match="version 2"):
        decode_delete_content(block.content, path="x")


@pytest.mark.parametrize(
    "records, expected",
    [
        ([DeleteRecord("y", "")], "00 00 00 03 00 00 00 09 02 02 02 79 02 00 04 00 00"),
        (
            [DeleteRecord("6", "p=0"), DeleteRecord("8", "p=0")],
            "00000003 00000016 04 02 02 36 02 06 70 3d 30 04 00 02 02 38 02 06 70 3d 30 04 00 00",
        ),
        ([], "00000003 00000001 00"),
    ],
)
def test_delete_contents_of_the_format_document(records, expected):
    assert encode_delete_content(records) == bytes.fromhex(expected)
    assert decode_delete_content(bytes.fromhex(expected), path="x") == records


def values(kind: OrderingKind, strategy: st.SearchStrategy[OrderingPlain]) -> st.SearchStrategy[OrderingValue]:
    return strategy.map(lambda value: OrderingValue(kind, value))


ints, longs = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
decimals = st.decimals(-(10**14), 10**14, allow_nan=False, allow_infinity=False, places=15)
shared = st.one_of(
    values(OrderingKind.NULL, st.none()),
    values(OrderingKind.BOOLEAN, st.booleans()),
    values(OrderingKind.INT, ints),
    values(OrderingKind.LONG, longs),
    values(OrderingKind.FLOAT, st.floats(width=32, allow_nan=False)),
    values(OrderingKind.DOUBLE, st.floats(allow_nan=False)),
    values(OrderingKind.BYTES, st.binary()),
    values(OrderingKind.STRING, st.text()),
    values(OrderingKind.DATE, ints),
    values(OrderingKind.DECIMAL, decimals),
    values(OrderingKind.TIME_MICROS, longs),
    values(OrderingKind.TIMESTAMP_MICROS, longs),
)
inner = st.one_of(shared, values(OrderingKind.LOCAL_DATE, ints))
orderings = st.one_of(shared, values(OrderingKind.ARRAY, st.one_of(st.none(), st.lists(inner, max_size=3).map(tuple))))
records_lists = st.lists(
    st.builds(DeleteRecord, st.one_of(st.none(), st.text()), st.one_of(st.none(), st.text()), orderings),
    max_size=8,
)


@given(records_lists)
def test_delete_contents_round_trip(records):
    content = encode_delete_content(records)
    assert decode_delete_content(content, path="x") == records
    assert encode_delete_content(decode_delete_content(content, path="x")) == content


@pytest.mark.parametrize(
    "ordering",
    [
        OrderingValue(OrderingKind.INT, 1 << 31),
        OrderingValue(OrderingKind.LONG, 1 << 63),
        OrderingValue(OrderingKind.STRING, 1),
        OrderingValue(OrderingKind.FLOAT, 1e300),
        OrderingValue(OrderingKind.DECIMAL, Decimal("1e-16")),
        OrderingValue(OrderingKind.DECIMAL, Decimal("1e15")),
        OrderingValue(OrderingKind.DECIMAL, Decimal("NaN")),
        OrderingValue(OrderingKind.LOCAL_DATE, 1),
        OrderingValue(OrderingKind.ARRAY, (OrderingValue(OrderingKind.ARRAY, ()),)),
    ],
)
def test_ordering_values_that_do_not_fit_are_invalid(ordering):
    with pytest.raises(Invalid, match="delete record"):
        encode_delete_content([DeleteRecord("k", "p", ordering)])


headers = st.dictionaries(st.sampled_from(HeaderKey), st.text(max_size=20))
written_types = st.sampled_from([kind for kind in BlockType if kind is not BlockType.CORRUPT])
block_lists = st.lists(st.tuples(written_types, headers, st.binary(max_size=60)), max_size=5)


@given(block_lists)
def test_blocks_round_trip(parts):
    data = b"".join(encode_block(*part) for part in parts)
    found = list(read_blocks(data, path="x"))
    assert [(block.type, block.header, bytes(block.content)) for block in found] == parts
    assert sum(block.size for block in found) == len(data)
    assert all(data[b.content_offset : b.content_offset + len(b.content)] == b.content for b in found)


@given(st.integers(6, 104), st.integers(0, 5))
def test_a_torn_block_costs_itself_only(cut, trailing):
    torn = ROLLBACK[:cut]
    following = encode_delete_block(encode_delete_content(()), instant_time="1")
    found = list(read_blocks(torn + following + b"#HUDI#"[:trailing], path="x"))
    assert [block.type for block in found] == [BlockType.CORRUPT, BlockType.DELETE]
    assert (found[0].offset, found[0].size, bytes(found[0].content)) == (0, cut, torn)
    (alone,) = read_blocks(torn, path="x")
    assert (alone.type, alone.size) == (BlockType.CORRUPT, cut)


def test_a_length_that_runs_beyond_the_next_block_is_corrupt():
    wrong = bytearray(ROLLBACK)
    wrong[13] += 105
    found = list(read_blocks(bytes(wrong) + ROLLBACK + ROLLBACK, path="x"))
    assert [block.type for block in found] == [BlockType.CORRUPT, BlockType.COMMAND, BlockType.COMMAND]


def test_bytes_that_are_no_block_are_corrupt():
    with pytest.raises(CorruptFile, match="at byte 0: expected log block magic #HUDI#, found 00"):
        list(read_blocks(b"\0" * 6, path="x"))
    (block,) = read_blocks(ROLLBACK + b"\0" * 6, path="x")
    assert (block.type, block.size) == (BlockType.CORRUPT, 111)
    assert [block.type for block in read_blocks(ROLLBACK + b"\0" * 5, path="x")] == [BlockType.COMMAND]


@pytest.mark.parametrize(
    "at, value, error, match",
    [
        (17, 0, Unsupported, "before Hudi 0.5"),
        (17, 2, CorruptFile, "log format version 1"),
        (21, 2, CorruptFile, "a block type"),
        (21, 7, CorruptFile, "a block type"),
        (25, 200, CorruptFile, "header entries"),
        (29, 9, CorruptFile, "newer release"),
        (33, 200, CorruptFile, "header entry's text"),
        (34, 0xFF, CorruptFile, "UTF-8"),
        (92, 1, CorruptFile, "."),
    ],
)
def test_a_broken_inside_is_corrupt_and_says_where(at, value, error, match):
    broken = bytearray(ROLLBACK)
    broken[at] = value
    with pytest.raises(error, match=match):
        list(read_blocks(bytes(broken), path="x"))


@given(st.binary(max_size=300), block_lists, st.data())
def test_random_and_flipped_bytes_never_raise_anything_else(noise, parts, data):
    whole = bytearray(b"".join(encode_block(*part) for part in parts) + noise)
    for _ in range(data.draw(st.integers(0, 4)) if whole else 0):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptFile, Unsupported):
        list(read_blocks(bytes(whole), path="x"))


@given(st.binary(max_size=60), records_lists, st.data())
def test_broken_delete_contents_never_raise_anything_else(noise, records, data):
    content = bytearray(encode_delete_content(records))
    for _ in range(3):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    framed = (3).to_bytes(4, "big") + len(noise).to_bytes(4, "big") + noise
    for one in (bytes(content), bytes(content)[: len(content) // 2], framed, noise):
        with contextlib.suppress(CorruptFile, Unsupported):
            decode_delete_content(one, path="x")


def test_the_default_ordering_is_the_commit_time_delete():
    assert DeleteRecord("k", "p").ordering == COMMIT_TIME_DELETE == OrderingValue(OrderingKind.INT, 0)
