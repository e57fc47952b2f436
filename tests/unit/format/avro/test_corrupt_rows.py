"""Broken bytes could crash the process, be read beyond their row, or pass as rows.

Cut and changed rows raise CorruptFile, with the row and the offset, or give sound columns; what stands
around a row never changes what is read.
"""

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.avro.decode import CONTENT_SIZE_MAX, RowDecoder
from pyhudi.format.avro.framing import find_rows
from tests.support.avro_rows import encode_rows, schemas_with_rows

PATIENT = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


def of_type(kind: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]})


def decode(kind: object, *rows: bytes, wanted: object = None) -> pa.RecordBatch:
    bounds = np.cumsum([0, *map(len, rows)])
    reading = None if wanted is None else of_type(wanted)
    return RowDecoder(of_type(kind), reading).decode(b"".join(rows), bounds[:-1], bounds[1:], path="x", offset=100)


def outcome(decoder: RowDecoder, content: bytes, starts: np.ndarray, ends: np.ndarray, offset: int) -> str | bytes:
    """The rows, or where and why not."""
    try:
        batch = decoder.decode(content, starts, ends, offset=-offset)
    except CorruptFile as error:
        return str(error)
    batch.validate(full=True)
    return batch.serialize().to_pybytes()  # Python has no place for every date


@PATIENT
@given(schemas_with_rows(depth=2), st.data())
def test_changed_rows_are_refused_or_read_within_their_bounds(case: tuple, data: st.DataObject) -> None:
    schema, rows, _ = case
    content, starts, ends = encode_rows(schema, rows)
    changed = bytearray(content)
    for at in data.draw(st.lists(st.integers(0, max(len(content) - 1, 0)), max_size=3)) if content else ():
        changed[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 4))
    ends = np.maximum(starts, ends - cut)
    decoder = RowDecoder(schema)
    alone = outcome(decoder, bytes(changed), starts, ends, 0)
    if isinstance(alone, str):
        assert "row " in alone
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        row = bytes(changed[start:end])
        seen = {
            outcome(decoder, pad * 32 + row + pad * 32, np.array([32]), np.array([32 + len(row)]), 32)
            for pad in (b"\x00", b"\x01", b"\xff")
        }
        assert len(seen) == 1, (index, seen)


@PATIENT
@given(schemas_with_rows(depth=2))
def test_every_cut_of_a_row_is_refused(case: tuple) -> None:
    schema, rows, _ = case
    content, starts, ends = encode_rows(schema, rows)
    decoder = RowDecoder(schema)
    for start, end in zip(starts[:1], ends[:1], strict=True):
        for cut in range(int(start), int(end)):
            with pytest.raises(CorruptFile):
                decoder.decode(content, np.array([start]), np.array([cut]))


@pytest.mark.parametrize(
    "kind,row,said",
    [
        ("boolean", "02", "expected 00 or 01"),
        ("int", "8080808010", "a number of 32 bits"),
        ("long", "ffffffffffffffffff02", "10 bytes and 64 bits"),
        ("long", "80808080808080808080", "10 bytes and 64 bits"),
        ("long", "80", "more bytes of the row"),
        ("double", "00000000000000", "more bytes of the row"),
        ("string", "01", "a size within the row"),
        ("string", "0461", "a size within the row"),
        ("string", "02ff", "UTF-8 text"),
        ("long", "0200", "the end of the row"),
        (["null", "long"], "04", "a branch of the union"),
        (["long"], "0202", "a branch of the union"),
        (["null", "long", "string"], "06", "a branch of the union"),
        ({"type": "array", "items": "long"}, "06", "a count of items that fit into the row"),
        ({"type": "array", "items": "long"}, "feffffffffffffffff0100", "a count of items"),
        ({"type": "array", "items": "long"}, "ffffffffffffffffff010000", "a count of items"),
        ({"type": "array", "items": "long"}, "01ff0100", "a size within the row"),
        ({"type": "map", "values": "long"}, "0202", "a size within the row"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "02", "a symbol of the enum"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, "027f", "at most 2 digits"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, "22" + "01" * 17, "at most 2 digits"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "feffffffffffffffff01", "microseconds fit"),
    ],
)
def test_what_is_wrong_is_named(kind: object, row: str, said: str) -> None:
    with pytest.raises(CorruptFile, match="x at byte 1") as caught:
        decode(kind, bytes.fromhex(row))
    assert said in str(caught.value)
    assert "column 'c" in str(caught.value) or said == "the end of the row"


def test_the_error_names_the_row_and_the_place_of_the_value() -> None:
    with pytest.raises(CorruptFile, match=r"x at byte 105: .*column 'c' of row 2.*found ff"):
        decode("string", b"\x02a", b"\x02b", b"\x02\xff")
    with pytest.raises(CorruptFile, match=r"x at byte 102: .*column 'c' of row 1.*found 04 62 with 2 bytes left"):
        decode("string", b"\x02a", b"\x04b")


def test_blocks_with_their_sizes_and_several_blocks_are_read() -> None:
    row = bytes.fromhex("03 04 02 04 02 06 00")  # two items in 2 bytes, one item, the end
    assert decode({"type": "array", "items": "long"}, row).to_pydict() == {"c": [[1, 2, 3]]}
    entries = bytes.fromhex("01 06 02 61 02 02 02 62 04 00")
    assert decode({"type": "map", "values": "long"}, entries).to_pydict() == {"c": [[("a", 1), ("b", 2)]]}


def test_decimals_of_more_bytes_than_needed_are_read() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}
    rows = [
        bytes([2 * size]) + number.to_bytes(size, "big", signed=True) for size in (2, 16, 17, 30) for number in (5, -5)
    ]
    assert [str(value) for value in decode(kind, *rows).column(0).to_pylist()] == ["0.5", "-0.5"] * 4


def test_rows_outside_of_the_bytes_are_refused() -> None:
    decoder = RowDecoder(of_type("long"))
    for start, end in ((-1, 1), (1, 0), (0, 3), (3, 3)):
        with pytest.raises(CorruptFile, match="rows within 2 bytes"):
            decoder.decode(b"\x02\x02", np.array([start]), np.array([end]))
    with pytest.raises(Invalid, match="as many ends as starts"):
        decoder.decode(b"\x02", np.array([0]), np.array([1, 1]))
    assert CONTENT_SIZE_MAX == 2**31 - 1


def test_a_stated_count_takes_no_memory() -> None:
    kind = {
        "type": "array",
        "items": {"type": "record", "name": "s", "fields": [{"name": "x", "type": ["null", "long"]}]},
    }
    decoder = RowDecoder(of_type(kind))
    tracemalloc.start()
    with pytest.raises(CorruptFile, match="a count of items"):
        decoder.decode(bytes.fromhex("feffffff0f") + b"\x00" * 20, np.array([0]), np.array([25]))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_texts_that_are_not_utf8_are_found_among_many() -> None:
    rows = [f"\x0c{'é' * 3}".encode() for _ in range(1000)]
    rows[700] = b"\x0c\xc3\xa9\xc3\xa9\xc3\x28"
    with pytest.raises(CorruptFile, match="row 700"):
        decode("string", *rows)
    assert decode("bytes", *rows).num_rows == 1000


@pytest.mark.parametrize(
    "content,count,said",
    [
        ("00000001", 1, "expected row 0 behind its size, found 4 bytes"),
        ("000000", 1, "expected 1 rows"),
        ("0000000161 00", 1, "expected the end behind 1 rows"),
        ("ffffffff", 1, "expected row 0"),
        ("0000000161000000", 2, "byte 5: expected row 1 behind its size, found 3 bytes"),
        ("00000000", -1, "expected -1 rows"),
    ],
)
def test_broken_frames_are_refused(content: str, count: int, said: str) -> None:
    with pytest.raises(CorruptFile) as caught:
        find_rows(bytes.fromhex(content), count)
    assert said in str(caught.value)
