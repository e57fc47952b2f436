"""A column that does not fit its schema could be cut down to it without a word.

Types, nulls, sizes and units that do not fit are refused by name and row; what fits is taken from every
layout that Arrow has for it.
"""

import json
from datetime import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.errors import HudiError, Invalid
from pyhudi.format.avro import encode as encode_module
from pyhudi.format.avro.decode import RowDecoder
from pyhudi.format.avro.encode import RowEncoder, row_encoder

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def of_type(kind: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]})


def encode(kind: object, column: pa.Array) -> list[bytes]:
    made = RowEncoder(of_type(kind)).encode(pa.RecordBatch.from_arrays([column], ["c"]))
    return [made.content[start:end].tobytes() for start, end in zip(made.starts, made.ends, strict=True)]


def through(kind: object, column: pa.Array) -> list:
    made = RowEncoder(of_type(kind)).encode(pa.RecordBatch.from_arrays([column], ["c"]))
    return RowDecoder(of_type(kind)).decode(made.content.tobytes(), made.starts, made.ends).column(0).to_pylist()


@pytest.mark.parametrize(
    "kind,column,said",
    [
        ("int", pa.array([1, None], pa.int32()), "column 'c', row 1: expected no null"),
        ("int", pa.array([1], pa.int64()), "column 'c' of type int64: expected int32"),
        ("float", pa.array([1.5]), "expected float"),
        ("string", pa.array([1]), "expected string"),
        ("long", pa.array([1], pa.uint64()), "cast it"),
        (MILLIS, pa.array([1], pa.timestamp("us", "UTC")), "round or cast it"),
        ({"type": "fixed", "name": "f", "size": 2}, pa.array([b"ab", b"abc"]), "row 1: expected a value of the size"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.array(["A", "B"]), "expected one of A, found 'B'"),
        (
            {"type": "fixed", "name": "f", "size": 1, "logicalType": "decimal", "precision": 3, "scale": 0},
            pa.array([Decimal(128)], pa.decimal128(3, 0)),
            "row 0: expected a value of the size",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1},
            pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
            "cast it",
        ),
        ({"type": "array", "items": "int"}, pa.array([1], pa.int32()), "expected a list"),
        ({"type": "map", "values": "int"}, pa.array([[1]], pa.list_(pa.int32())), "expected a map"),
        ({"type": "record", "name": "s", "fields": [{"name": "x", "type": "int"}]}, pa.array([1]), "expected a struct"),
        (["int", "string"], pa.array([1], pa.int32()), "expected a struct of 2 members"),
    ],
)
def test_what_does_not_fit_is_refused(kind: object, column: pa.Array, said: str) -> None:
    with pytest.raises(HudiError) as caught:
        encode(kind, column)
    assert isinstance(caught.value, Invalid)
    assert said in str(caught.value)


def test_columns_must_be_those_of_the_schema() -> None:
    encoder = row_encoder(of_type("int"))
    assert encoder is row_encoder(of_type("int"))
    one = pa.array([1], pa.int32())
    for names in (["d"], ["c", "d"], ["c", "c"], []):
        with pytest.raises(Invalid, match="expected"):
            encoder.encode(pa.RecordBatch.from_arrays([one] * len(names), names))


@pytest.mark.parametrize("members", [[1, "x"], [None, None]])
def test_a_union_takes_exactly_one_member(members: list) -> None:
    kind = pa.struct([("member0", pa.int32()), ("member1", pa.string())])
    column = pa.array([{"member0": 1, "member1": None}, dict(zip(("member0", "member1"), members, strict=True))], kind)
    with pytest.raises(Invalid, match=r"column 'c', value 1: expected one member that is not null, found [02]"):
        encode(["int", "string"], column)


@pytest.mark.parametrize(
    "kind,column,expected",
    [
        ("string", pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        ("string", pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        ("string", pa.array(["a", "b" * 20], pa.string_view()), ["a", "b" * 20]),
        ("string", pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), ["a", "b"]), ["a", "a", "b"]),
        ("long", pa.array([1, 2], pa.int8()), [1, 2]),
        ("double", pa.array([1, 2], pa.int32()), [1.0, 2.0]),
        ({"type": "array", "items": "int"}, pa.array([[1], []], pa.large_list(pa.int32())), [[1], []]),
        ({"type": "array", "items": "int"}, pa.array([[1, 2]], pa.list_(pa.int32(), 2)), [[1, 2]]),
        ({"type": "array", "items": "int"}, pa.array([[1, 2], [3]], pa.list_view(pa.int32())), [[1, 2], [3]]),
        ({"type": "int", "logicalType": "time-millis"}, pa.array([time(0, 0, 1)], pa.time32("s")), [1000]),
        ({"type": "long", "logicalType": "time-micros"}, pa.array([time(0, 0, 1)], pa.time64("us")), [1_000_000]),
        ({"type": "fixed", "name": "f", "size": 2}, pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    ],
)
def test_every_layout_of_a_type_is_taken(kind: object, column: pa.Array, expected: list) -> None:
    assert through(kind, column) == expected
    assert through(kind, column.slice(1)) == expected[1:]


def test_nulls_hide_what_stands_below_them() -> None:
    below = pa.array(["A", "no symbol"])
    column = pa.StructArray.from_arrays([below], ["x"], mask=pa.array([False, True]))
    symbols = {"type": "enum", "name": "e", "symbols": ["A"]}
    kind = ["null", {"type": "record", "name": "s", "fields": [{"name": "x", "type": symbols}]}]
    assert through(kind, column) == [{"x": "A"}, None]
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3], pa.int32()), mask=pa.array([True, False]))
    assert through(["null", {"type": "array", "items": "int"}], lists) == [None, [3]]


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 255, 10**38 - 1, 1 - 10**38])
def test_decimals_are_the_fewest_bytes_as_in_java(number: int) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
    (row,) = encode(kind, pa.array([Decimal(number)], pa.decimal128(38, 0)))
    size = next(size for size in range(1, 17) if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1)
    assert row == bytes([2 * size]) + number.to_bytes(size, "big", signed=True)


def test_the_row_of_an_error_counts_from_the_start_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_module, "SLICE_ROWS_MAX", 10)
    values = np.arange(35)
    with pytest.raises(Invalid, match="row 33"):
        encode("long", pa.array(values, mask=values == 33))
    assert through(["null", "long"], pa.array(values, mask=values == 33)) == [*range(33), None, 34]


def test_a_row_in_its_frame_is_as_a_log_block_has_it() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["ab", None])], ["c"])
    made = RowEncoder(of_type(["null", "string"])).encode(batch, is_framed=True)
    assert made.content.tobytes() == bytes.fromhex("00000004 02 04 6162 00000001 00")
    assert (made.starts.tolist(), made.ends.tolist()) == ([4, 12], [8, 13])
