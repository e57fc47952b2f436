"""A row of an older schema could be read into the wrong column, or its missing fields guessed.

Fields match by name and alias, promotions are Avro's, what is missing is the default; everything else is
refused by name before a byte is read.
"""

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.avro.decode import RowDecoder, row_decoder
from pyhudi.format.schema.conversion import arrow_from_avro
from tests.support.avro_rows import decode_rows, encode_rows


def record(*fields: tuple, name: str = "r") -> str:
    made = [{"name": one[0], "type": one[1], **(one[2] if len(one) > 2 else {})} for one in fields]
    return json.dumps({"type": "record", "name": name, "fields": made})


def read(written: str, wanted: str | None, *rows: dict, columns: tuple[str, ...] | None = None) -> pa.RecordBatch:
    return RowDecoder(written, wanted, columns=columns).decode(*encode_rows(written, list(rows)))


@pytest.mark.parametrize(
    "written,wanted,value",
    [
        ("int", "long", 7),
        ("int", "float", 7),
        ("int", "double", -7),
        ("long", "float", 2**40 + 1),
        ("long", "double", 2**60 + 1),
        ("float", "double", 0.1),
        ("string", "bytes", "é"),
        ("bytes", "string", "é".encode()),
        ("int", ["null", "long"], 7),
        (["null", "int"], ["long", "null"], None),
        (["int", "null"], ["null", "double"], 3),
        ({"type": "array", "items": "int"}, {"type": "array", "items": ["null", "double"]}, [1, 2]),
        ({"type": "map", "values": "float"}, {"type": "map", "values": "double"}, {"a": 0.5}),
        ({"type": "fixed", "name": "f", "size": 2}, {"type": "fixed", "name": "f", "size": 2}, b"ab"),
    ],
)
def test_promotions_are_those_of_avro(written: object, wanted: object, value: object) -> None:
    old, new = record(("c", written)), record(("c", wanted))
    (expected,) = decode_rows(old, *encode_rows(old, [{"c": value}]), wanted=new)
    found = read(old, new, {"c": value}).column(0)
    if isinstance(value, dict):
        assert dict(found[0].as_py()) == expected["c"]
    elif isinstance(value, int) and "float" in str(wanted):
        assert found[0].as_py() == float(np.float32(value))
    else:
        assert found[0].as_py() == expected["c"]
    assert found.type == arrow_from_avro(new).field(0).type


@pytest.mark.parametrize(
    "written,wanted,error",
    [
        ("long", "int", Invalid),
        ("double", "float", Invalid),
        ("int", "string", Invalid),
        ("string", {"type": "array", "items": "string"}, Invalid),
        ({"type": "fixed", "name": "f", "size": 2}, {"type": "fixed", "name": "f", "size": 3}, Invalid),
        ({"type": "fixed", "name": "f", "size": 2}, "bytes", Invalid),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            Invalid,
        ),
        ("int", ["int", "string"], Unsupported),
        (["int", "string"], "int", Unsupported),
    ],
)
def test_other_changes_are_refused_by_name(written: object, wanted: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"field 's\.c'"):
        RowDecoder(
            record(("s", json.loads(record(("c", written), name="i")))),
            record(("s", json.loads(record(("c", wanted), name="j")))),
        )


def test_fields_match_by_name_then_alias_in_any_order() -> None:
    old = record(("a", "int"), ("b", "string"), ("gone", {"type": "array", "items": "long"}), ("d", "double"))
    new = record(("d", "double"), ("renamed", "string", {"aliases": ["x", "b"]}), ("a", "long"))
    found = read(old, new, {"a": 1, "b": "x", "gone": [1, 2], "d": 0.5})
    assert found.to_pylist() == [{"d": 0.5, "renamed": "x", "a": 1}]
    assert found.schema == arrow_from_avro(new)


@pytest.mark.parametrize(
    "kind,default,value",
    [
        (["null", "int"], {"default": None}, None),
        (["null", "int"], {}, None),
        ("int", {"default": 7}, 7),
        ("double", {"default": 7}, 7.0),
        ("boolean", {"default": True}, True),
        ("string", {"default": "é"}, "é"),
        ("bytes", {"default": "\u00ff"}, b"\xff"),
        (["string", "null"], {"default": "x"}, "x"),
        ({"type": "array", "items": "int"}, {"default": [1, 2]}, [1, 2]),
        ({"type": "map", "values": "int"}, {"default": {"a": 1}}, [("a", 1)]),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            {"default": "\u0001\u0000"},
            Decimal("2.56"),
        ),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, {"default": "B"}, "B"),
        (
            json.loads(record(("x", "int", {"default": 3}), ("y", "long"), name="i")),
            {"default": {"y": 4}},
            {"x": 3, "y": 4},
        ),
    ],
)
def test_a_missing_field_is_its_default(kind: object, default: dict, value: object) -> None:
    old, new = record(("a", "int")), record(("a", "int"), ("new", kind, default))
    found = read(old, new, {"a": 1}, {"a": 2})
    assert found.column(1).to_pylist() == [value, value]
    assert found.schema == arrow_from_avro(new)


def test_a_missing_field_without_a_default_or_with_a_wrong_one_is_refused() -> None:
    old = record(("a", "int"))
    with pytest.raises(Invalid, match="field 'new': the rows do not have it"):
        RowDecoder(old, record(("new", "int")))
    for kind, default in (
        ("int", "x"),
        ("string", 1),
        ("bytes", 1),
        ("int", True),
        ({"type": "array", "items": "int"}, 3),
    ):
        with pytest.raises(Invalid, match="field 'new': expected a default"):
            read(old, record(("new", kind, {"default": default})), {"a": 1})


def test_a_null_where_the_reading_schema_has_none_is_refused() -> None:
    old, new = record(("a", ["null", "int"])), record(("a", "int"))
    assert read(old, new, {"a": 1}).to_pylist() == [{"a": 1}]
    with pytest.raises(CorruptFile, match=r"no null in column 'a'.*row 1"):
        read(old, new, {"a": 1}, {"a": None})
    inside = {"type": "record", "name": "i", "fields": [{"name": "x", "type": ["null", "int"]}]}
    required = {"type": "record", "name": "i", "fields": [{"name": "x", "type": "int"}]}
    old, new = record(("s", ["null", inside])), record(("s", ["null", required]))
    assert read(old, new, {"s": None}, {"s": {"x": 1}}).to_pylist() == [{"s": None}, {"s": {"x": 1}}]
    with pytest.raises(CorruptFile, match=r"no null in column 's\.x'"):
        read(old, new, {"s": None}, {"s": {"x": None}})


def test_timestamps_keep_their_meaning_across_units() -> None:
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    found = RowDecoder(record(("t", millis)), record(("t", micros))).decode(b"\x04", np.array([0]), np.array([1]))
    assert found.column(0).cast(pa.int64()).to_pylist() == [2000]
    found = RowDecoder(record(("t", "long")), record(("t", micros))).decode(b"\x04", np.array([0]), np.array([1]))
    assert found.column(0).cast(pa.int64()).to_pylist() == [2]
    found = RowDecoder(record(("t", millis)), record(("t", "long"))).decode(b"\x04", np.array([0]), np.array([1]))
    assert found.column(0).to_pylist() == [2]


def test_symbols_that_the_reading_schema_lacks_are_its_default_or_refused() -> None:
    old = record(("e", {"type": "enum", "name": "e", "symbols": ["A", "B"]}))
    with_default = record(("e", {"type": "enum", "name": "e", "symbols": ["B", "C"], "default": "C"}))
    without = record(("e", {"type": "enum", "name": "e", "symbols": ["B"]}))
    assert read(old, with_default, {"e": "A"}, {"e": "B"}).to_pydict() == {"e": ["C", "B"]}
    assert read(old, without, {"e": "B"}).to_pydict() == {"e": ["B"]}
    with pytest.raises(CorruptFile, match="found 'A'"):
        read(old, without, {"e": "B"}, {"e": "A"})


def test_a_union_that_grew_is_read_by_the_names_of_its_types() -> None:
    wrapper = {"type": "record", "name": "n.W", "fields": [{"name": "value", "type": "int"}]}
    old = record(("u", ["null", "string", wrapper]))
    new = record(("u", ["null", "long", {**wrapper, "name": "m.W"}, "string"]))
    found = read(old, new, {"u": "x"}, {"u": {"value": 3}}, {"u": None}).column(0).to_pylist()
    assert found == [
        {"member0": None, "member1": None, "member2": "x"},
        {"member0": None, "member1": {"value": 3}, "member2": None},
        None,
    ]
    with pytest.raises(CorruptFile, match="a type that the schema to read by has"):
        read(new, old, {"u": 5})
    assert read(new, old, {"u": "y"}).column(0).to_pylist() == [{"member0": "y", "member1": None}]


def test_unknown_and_repeated_columns_are_refused() -> None:
    schema = record(("a", "int"), ("b", "int"))
    with pytest.raises(Invalid, match="column 'c': the rows have no such field; there are a, b"):
        RowDecoder(schema, columns=["c"])
    with pytest.raises(Invalid, match="expected each once"):
        RowDecoder(schema, columns=["a", "a"])
    assert read(schema, None, {"a": 1, "b": 2}, columns=("b", "a")).to_pylist() == [{"b": 2, "a": 1}]
    assert row_decoder(schema) is row_decoder(schema)


@pytest.mark.parametrize(
    "kind,error,said",
    [
        ({"type": "array", "items": "null"}, Unsupported, "take no bytes"),
        ({"type": "array", "items": {"type": "record", "name": "e", "fields": []}}, Unsupported, "take no bytes"),
        (["null", ["int"]], Invalid, "no unions"),
        ({"type": "fixed", "name": "f", "size": -1}, Invalid, "size of a fixed"),
        ({"type": "enum", "name": "e", "symbols": []}, Invalid, "symbols of an enum"),
        (["null"], Unsupported, "union without a type"),
    ],
)
def test_schemas_without_columns_are_refused(kind: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        RowDecoder(record(("c", kind)))


def test_an_empty_record_and_no_rows_are_columns_too() -> None:
    empty = {"type": "record", "name": "e", "fields": []}
    assert read(record(("e", empty)), None, {"e": {}}, {"e": {}}).to_pylist() == [{"e": {}}, {"e": {}}]
    batch = read(record(("l", {"type": "array", "items": "string"}), ("s", "string")), None)
    assert (batch.num_rows, batch.schema.names) == (0, ["l", "s"])
