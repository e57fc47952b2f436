"""A column could get another type or name than Apache Hudi gives it, and readers there would fail.

Schema texts of real commits and footers must come out byte for byte; what cannot be stored is refused
with the cast that would make it fit.
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import (
    META_FIELDS,
    arrow_from_avro,
    avro_from_arrow,
    can_promote,
    canonical_arrow,
    column_defaults,
    decimal_size,
    record_name,
    with_meta_fields,
    without_meta_fields,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "bytes" / "timeline"
TABLE_SCHEMA = (GOLDEN / "commit_schema_h120.json").read_text(encoding="utf-8")
FOOTER_SCHEMA = (GOLDEN / "footer_schema_h120.json").read_text(encoding="utf-8")
TABLE = "cow_nonpart_v9_h120"


def of_type(kind: object, **more: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}], **more})


def column(kind: object) -> pa.DataType:
    return arrow_from_avro(of_type(kind)).field("c").type


def test_the_schema_of_a_real_commit_survives_arrow_byte_for_byte() -> None:
    assert avro_from_arrow(arrow_from_avro(TABLE_SCHEMA), record_name=record_name(TABLE)) == TABLE_SCHEMA


def test_meta_fields_make_a_real_footer_of_a_real_commit_and_back() -> None:
    assert with_meta_fields(TABLE_SCHEMA) == FOOTER_SCHEMA
    assert without_meta_fields(FOOTER_SCHEMA) == TABLE_SCHEMA
    assert with_meta_fields(FOOTER_SCHEMA) == FOOTER_SCHEMA
    assert without_meta_fields(TABLE_SCHEMA) == TABLE_SCHEMA
    assert tuple(arrow_from_avro(FOOTER_SCHEMA).names[:5]) == META_FIELDS


def test_columns_of_a_real_table_have_the_types_of_hudis_answers() -> None:
    schema = arrow_from_avro(TABLE_SCHEMA)
    assert all(one.nullable for one in schema)
    assert schema.field("dt").type == pa.date32()
    assert schema.field("tms").type == pa.timestamp("us", "UTC")
    assert schema.field("dec30").type == pa.decimal128(30, 5)
    assert schema.field("mp").type == pa.map_(pa.string(), pa.int32())
    assert schema.field("arr").type == pa.list_(pa.string())
    assert schema.field("st").type == pa.struct([("a", pa.int32()), ("b", pa.string())])


@pytest.mark.parametrize(
    "avro,arrow",
    [
        ({"type": "fixed", "name": "f", "size": 4}, pa.binary()),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "int", "logicalType": "time-millis"}, pa.int32()),
        ({"type": "long", "logicalType": "time-micros"}, pa.int64()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 7}, pa.decimal128(7, 0)),
        ({"type": {"type": "int", "logicalType": "date"}}, pa.date32()),
        (["null", "int"], pa.int32()),
        (["int", "null"], pa.int32()),
        (["int"], pa.int32()),
    ],
)
def test_avro_types_become_those_of_spark(avro: object, arrow: pa.DataType) -> None:
    assert column(avro) == arrow


def test_top_level_columns_are_nullable_and_nested_ones_as_declared() -> None:
    inner = {
        "type": "record",
        "name": "s",
        "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["int", "null"]}],
    }
    schema = arrow_from_avro(of_type(inner))
    assert schema.field("c").nullable
    assert [one.nullable for one in schema.field("c").type] == [False, True]
    assert column({"type": "array", "items": ["string", "null"]}).value_field.nullable
    assert not column({"type": "array", "items": "string"}).value_field.nullable


def test_a_type_may_be_named_again_within_its_namespace() -> None:
    first = {
        "type": "fixed",
        "name": "money",
        "size": 5,
        "logicalType": "decimal",
        "precision": 10,
        "scale": 2,
    }
    members = [
        {"name": "a", "type": first},
        {"name": "b", "type": ["null", "money"]},
        {"name": "c", "type": "n.money"},
    ]
    schema = arrow_from_avro(json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": members}))
    assert set(schema.types) == {pa.decimal128(10, 2)}


@pytest.mark.parametrize(
    "kind,error,said",
    [
        (["null", "int", "string"], Unsupported, "field 'c': a union of 3 types"),
        ({"type": "array", "items": ["int", "string"]}, Unsupported, r"field 'c\.element'"),
        ("null", Unsupported, "field 'c': type null"),
        (
            {"type": "record", "name": "n", "fields": [{"name": "n", "type": "n"}]},
            Unsupported,
            "holds itself",
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, Unsupported, "39 digits"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 4},
            Invalid,
            "precision and scale",
        ),
        ("money", Invalid, "unknown name 'money'"),
        (7, Invalid, "expected an Avro type"),
    ],
)
def test_types_without_a_column_are_refused_by_path(kind: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        arrow_from_avro(of_type(kind))


@pytest.mark.parametrize("text", ["", "{", '"string"', '{"type":"record"}', '{"type":"record","fields":[7]}'])
def test_a_text_that_is_no_record_schema_is_refused(text: str) -> None:
    for call in (arrow_from_avro, with_meta_fields, without_meta_fields):
        with pytest.raises(Invalid):
            call(text)


def test_columns_that_may_not_be_null_are_no_union() -> None:
    schema = pa.schema([pa.field("k", pa.string(), nullable=False), pa.field("v", pa.timestamp("us"))])
    assert avro_from_arrow(schema, record_name=record_name("t")) == (
        '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"k","type":"string"},'
        '{"name":"v","type":["null",{"type":"long","logicalType":"local-timestamp-micros"}],"default":null}]}'
    )


@pytest.mark.parametrize(
    "table,name",
    [("t", "hoodie.t.t_record"), ("my-t", "hoodie.my__t.my__t_record"), ("1t", "hoodie.__t.__t_record")],
)
def test_table_names_become_avro_names(table: str, name: str) -> None:
    assert record_name(table) == name


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "a.b"])
def test_column_names_that_avro_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(Invalid, match="rename it"):
        avro_from_arrow(pa.schema([(name, pa.int32())]), record_name="n.r")


def test_columns_have_no_names_of_pyhudis_own() -> None:
    """A column `__pyhudi_position` would be taken for the one that writes put beside the rows."""
    with pytest.raises(Invalid, match=r"__PYHUDI_Position.*those of pyhudi's own columns; rename it"):
        avro_from_arrow(pa.schema([("__PYHUDI_Position", pa.int64())]), record_name="n.r")
    avro_from_arrow(pa.schema([("inner", pa.struct([("__pyhudi_position", pa.int64())]))]), record_name="n.r")


@pytest.mark.parametrize("digits", range(1, 39))
def test_decimals_take_the_fewest_bytes(digits: int) -> None:
    size = decimal_size(digits)
    (10**digits - 1).to_bytes(size, "big", signed=True)
    with pytest.raises(OverflowError):
        (10**digits - 1).to_bytes(size - 1, "big", signed=True)


@pytest.mark.parametrize(
    "given_type,stored",
    [
        (pa.int8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary(4), pa.binary()),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Oslo"), pa.timestamp("us", "UTC")),
        (pa.date64(), pa.date32()),
        (pa.decimal256(20, 2), pa.decimal128(20, 2)),
        (pa.list_(pa.int16(), 3), pa.list_(pa.int32())),
        (pa.large_list(pa.int8()), pa.list_(pa.int32())),
        (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int32())])),
        (pa.run_end_encoded(pa.int32(), pa.int8()), pa.int32()),
    ],
)
def test_arrow_types_become_those_of_a_table(given_type: pa.DataType, stored: pa.DataType) -> None:
    once = canonical_arrow(pa.schema([("c", given_type)]))
    assert once.field("c").type == stored
    assert canonical_arrow(once) == once


@pytest.mark.parametrize(
    "kind,said",
    [
        (pa.uint64(), "cast it to int64 or decimal128"),
        (pa.time64("us"), "cast it to int64 or string"),
        (pa.duration("s"), "cast it to int64"),
        (pa.float16(), "cast it to float32"),
        (pa.null(), "cast it to the type that its values"),
        (pa.struct([("x", pa.list_(pa.null()))]), r"'c\.x\.element'"),
        (pa.struct([]), "without fields"),
        (pa.map_(pa.int32(), pa.int32()), "text as keys"),
        (pa.decimal256(50, 2), "at most 38 digits"),
        (pa.month_day_nano_interval(), "cast it to another"),
    ],
)
def test_types_without_a_place_are_refused_with_the_cast(kind: pa.DataType, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        canonical_arrow(pa.schema([("c", kind)]))


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(Invalid, match="each name once"):
        canonical_arrow(pa.schema([("c", pa.int32()), ("c", pa.int32())]))


@pytest.mark.parametrize(
    "source,target,fits",
    [
        (pa.int32(), pa.int64(), True),
        (pa.int32(), pa.float64(), True),
        (pa.float32(), pa.float64(), True),
        (pa.int64(), pa.int32(), False),
        (pa.float64(), pa.int64(), False),
        (pa.string(), pa.binary(), True),
        (pa.int32(), pa.string(), False),
        (pa.decimal128(10, 2), pa.decimal128(12, 2), False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32()), False),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.string())]), True),
        (pa.struct([("a", pa.int32())]), pa.struct([pa.field("b", pa.string(), nullable=False)]), False),
    ],
)
def test_promotions_are_those_of_avro(source: pa.DataType, target: pa.DataType, fits: bool) -> None:
    assert can_promote(source, target) is fits


leaves = st.sampled_from(
    [
        *(
            pa.bool_(),
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.string(),
            pa.binary(),
            pa.date32(),
        ),
        *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(10, 2), pa.decimal128(38, 38)),
    ]
)


def test_defaults_that_are_not_null_are_those_of_the_columns_types() -> None:
    fields = [
        {"name": "none", "type": ["null", "int"], "default": None},
        {"name": "unsaid", "type": "int"},
        {"name": "n", "type": ["long", "null"], "default": 7},
        {"name": "x", "type": "float", "default": 0.5},
        {"name": "s", "type": "string", "default": ""},
        {"name": "d", "type": {"type": "int", "logicalType": "date"}, "default": 1},
        {"name": "b", "type": "bytes", "default": "\u00ff"},
        {"name": "l", "type": {"type": "array", "items": "int"}, "default": []},
    ]
    assert column_defaults(json.dumps({"type": "record", "name": "r", "fields": fields})) == (
        ("n", pa.scalar(7, pa.int64())),
        ("x", pa.scalar(0.5, pa.float32())),
        ("s", pa.scalar("")),
        ("d", pa.scalar(1, pa.date32())),
        ("b", pa.scalar(b"\xff")),
        ("l", pa.scalar([], pa.list_(pa.field("element", pa.int32(), False)))),
    )
    wrong = [{"name": "n", "type": "int", "default": "x"}]
    with pytest.raises(Invalid, match="field 'n': expected a default of type int32, found 'x'"):
        column_defaults(json.dumps({"type": "record", "name": "r", "fields": wrong}))


names = st.from_regex("[a-z_][a-z0-9_]{0,5}", fullmatch=True)


def named(kinds: st.SearchStrategy[pa.DataType], size_max: int) -> st.SearchStrategy[list[pa.Field]]:
    one = st.builds(pa.field, names, kinds, st.booleans())
    return st.lists(one, min_size=1, max_size=size_max, unique_by=lambda field: field.name)


kinds = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda kind, nullable: pa.list_(pa.field("element", kind, nullable)), inner, st.booleans()),
        st.builds(lambda kind: pa.map_(pa.string(), pa.field("value", kind)), inner),
        named(inner, 3).map(pa.struct),
    ),
    max_leaves=6,
)


@given(named(kinds, 5).map(pa.schema))
def test_columns_survive_avro(schema: pa.Schema) -> None:
    text = avro_from_arrow(schema, record_name="hoodie.t.t_record")
    assert arrow_from_avro(text) == pa.schema([one.with_nullable(True) for one in schema])
    assert without_meta_fields(with_meta_fields(text)) == text
    assert json.loads(with_meta_fields(text))["fields"][5:] == json.loads(text)["fields"]
