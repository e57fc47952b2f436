"""A schema that changes could lose what the walk does not look at: other fields, docs, defaults, names of types."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Unsupported
from pyhudi.format.schema.conversion import arrow_from_avro, avro_from_arrow
from pyhudi.format.schema.evolution import evolve_avro

INNER = {"type": "record", "name": "inner", "doc": "mine", "fields": [{"name": "x", "type": "int", "default": 7}]}


def text_of(*fields: dict[str, Any], **more: Any) -> str:
    return json.dumps({"type": "record", "name": "r", "namespace": "a.b", **more, "fields": list(fields)})


def test_nothing_to_change_gives_the_text_as_it_is() -> None:
    text = text_of({"name": "c", "type": ["null", "int"], "default": None}) + "  "
    assert evolve_avro(text, arrow_from_avro(text)) == text


def test_only_what_changes_changes() -> None:
    text = text_of(
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A"]}, "doc": "stays"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "n", "type": ["int", "null"], "default": 5, "doc": "a number"},
        {"name": "s", "type": ["null", INNER], "default": None},
        doc="a table",
    )
    wanted = arrow_from_avro(text)
    wanted = wanted.set(2, pa.field("n", pa.int64()))
    wanted = wanted.set(3, pa.field("s", pa.struct([pa.field("x", pa.float64(), False), ("y", pa.string())])))
    wanted = wanted.append(pa.field("new", pa.bool_()))

    before, after = json.loads(text), json.loads(evolve_avro(text, wanted))

    assert after["fields"][:2] == before["fields"][:2]
    assert after["fields"][2] == {"name": "n", "type": ["long", "null"], "default": 5, "doc": "a number"}
    y = {"name": "y", "type": ["null", "string"], "default": None}
    x = {"name": "x", "type": "double", "default": 7}
    assert after["fields"][3]["type"][1] == {**INNER, "fields": [x, y]}
    assert after["fields"][4] == {"name": "new", "type": ["null", "boolean"], "default": None}
    assert {key: after[key] for key in ("type", "name", "namespace", "doc")} == {
        key: before[key] for key in ("type", "name", "namespace", "doc")
    }


def test_a_new_struct_lies_in_the_namespace_of_the_record_around_it() -> None:
    text = text_of({"name": "s", "type": {**INNER, "namespace": "a.b.r"}})
    s = pa.struct([pa.field("x", pa.int32(), False), ("deep", pa.struct([("y", pa.int32())]))])
    after = json.loads(evolve_avro(text, pa.schema([("s", s), ("t", pa.struct([("z", pa.int32())]))])))

    assert after["fields"][0]["type"]["fields"][1]["type"][1]["namespace"] == "a.b.r.inner"
    assert after["fields"][1]["type"][1]["namespace"] == "a.b.r"


def test_a_field_becomes_optional_by_its_path() -> None:
    text = text_of({"name": "s", "type": INNER}, {"name": "n", "type": "long"})
    after = json.loads(evolve_avro(text, arrow_from_avro(text), optional=frozenset(("s.x",))))

    assert after["fields"][0]["type"]["fields"] == [{"name": "x", "type": ["null", "int"], "default": None}]
    assert after["fields"][1] == {"name": "n", "type": "long"}


def test_types_that_are_used_twice_are_left_alone() -> None:
    text = text_of({"name": "s", "type": INNER}, {"name": "t", "type": ["null", "inner"], "default": None})
    changed = pa.struct([pa.field("x", pa.int64(), False)])
    same = arrow_from_avro(text)

    for at in (0, 1):
        with pytest.raises(Unsupported, match="inner"):
            evolve_avro(text, same.set(at, same.field(at).with_type(changed)))
    assert arrow_from_avro(evolve_avro(text, same.append(pa.field("new", pa.int32())))).names == ["s", "t", "new"]


_PROMOTIONS = {pa.int32(): pa.int64(), pa.float32(): pa.float64(), pa.int64(): pa.float64(), pa.string(): pa.binary()}
_LEAVES = st.sampled_from([*_PROMOTIONS, pa.bool_(), pa.decimal128(9, 2), pa.timestamp("us", "UTC")])


def _members(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    return st.lists(st.builds(pa.field, st.sampled_from("abcd"), kinds), min_size=1, unique_by=lambda one: one.name)


_KINDS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda kind: pa.list_(pa.field("element", kind))),
        inner.map(lambda kind: pa.map_(pa.string(), pa.field("value", kind))),
        _members(inner).map(pa.struct),
    ),
    max_leaves=6,
)


def _widened(kind: pa.DataType, draw: st.DataObject) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _widened(kind.value_type, draw)))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), pa.field("value", _widened(kind.item_type, draw)))
    if pa.types.is_struct(kind):
        return pa.struct(_wider(list(kind), draw))
    return _PROMOTIONS.get(kind, kind) if draw.draw(st.booleans()) else kind


def _wider(fields: list[pa.Field], draw: st.DataObject) -> list[pa.Field]:
    new = draw.draw(st.sampled_from([[], [pa.field("new", pa.struct([pa.field("deep", pa.int32())]))]]))
    return [*(field.with_type(_widened(field.type, draw)) for field in fields), *new]


@given(_members(_KINDS), st.data())
def test_the_text_of_an_evolved_schema_is_that_of_the_same_columns_made_anew(
    fields: list[pa.Field], draw: st.DataObject
) -> None:
    wanted = pa.schema(_wider(fields, draw))
    text = avro_from_arrow(pa.schema(fields), record_name="hoodie.t.t_record")
    assert evolve_avro(text, wanted) == avro_from_arrow(wanted, record_name="hoodie.t.t_record")
