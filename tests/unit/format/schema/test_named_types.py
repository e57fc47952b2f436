"""A field that goes could take along the definition of a type that another one only names, or change a name's meaning.

Every choice of fields is read back, by our own parser and by fastavro, and compared with the types of the whole schema.
"""

import itertools
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pyhudi.errors import Unsupported
from pyhudi.format.avro.types import parse_schema
from pyhudi.format.schema.conversion import arrow_from_avro, leave_out_fields, select_fields
from pyhudi.format.schema.evolution import evolve_avro
from pyhudi.format.schema.named_types import collapsed, expanded
from pyhudi.format.schema.numbering import first_numbers

ENUM = {"type": "enum", "name": "E", "namespace": "x", "symbols": ["A", "B"]}
POINT = {"type": "record", "name": "P", "fields": [{"name": "n", "type": ["null", "int"], "default": None}]}
PATH = {"type": "record", "name": "Q", "namespace": "y", "fields": [{"name": "e", "type": "x.E"}]}


def optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def schema(*fields: dict[str, Any], namespace: str = "h.t") -> str:
    whole = {"type": "record", "name": "r", "namespace": namespace, "fields": list(fields)}
    return json.dumps(whole, separators=(",", ":"))


SHARED = schema(
    optional("e1", ENUM), optional("e2", "x.E"), optional("p1", POINT), optional("p2", "P"),
    optional("p3", {"type": "array", "items": "h.t.P"}), optional("q1", {"type": "map", "values": PATH}),
    optional("q2", "y.Q"), optional("n", "long"),
)  # fmt: skip
NAMES = ["e1", "e2", "p1", "p2", "p3", "q1", "q2", "n"]


@pytest.mark.parametrize("count", range(1, len(NAMES) + 1))
def test_every_choice_of_fields_keeps_their_types(count: int) -> None:
    fields = {one.name: one for one in parse_schema(SHARED).fields}
    for chosen in itertools.combinations(NAMES, count):
        text = select_fields(SHARED, chosen)
        assert parse_schema(text).fields == tuple(fields[name] for name in chosen)
        fastavro.parse_schema(json.loads(text))
        assert text == leave_out_fields(SHARED, set(NAMES) - set(chosen))


def test_a_definition_moves_with_its_namespace_to_the_first_use() -> None:
    assert json.loads(select_fields(SHARED, ["e2", "p2", "p3"]))["fields"] == [
        optional("e2", ENUM),
        optional("p2", POINT),
        optional("p3", {"type": "array", "items": "P"}),
    ]


def test_a_text_whose_names_stay_true_stays_as_it_is() -> None:
    assert select_fields(SHARED, NAMES) == SHARED
    assert select_fields(SHARED, ["e1", "e2", "n"]) == schema(
        optional("e1", ENUM), optional("e2", "x.E"), optional("n", "long")
    )


def test_a_name_keeps_its_meaning_where_another_type_of_this_name_would_take_its_place() -> None:
    bare = {"type": "enum", "name": "P", "namespace": "", "symbols": ["A"]}
    text = schema(optional("bare", bare), optional("p1", POINT), optional("p2", "P"))
    assert select_fields(text, ["bare", "p2"]) == schema(optional("bare", bare), optional("p2", POINT))
    with pytest.raises(Unsupported, match="'P' has no namespace"):
        collapsed({**json.loads(text), "fields": [optional("f", kind) for kind in (bare, POINT, bare)]})


def test_a_shared_type_has_its_definition_at_each_use() -> None:
    full = expanded(json.loads(SHARED))
    assert full["fields"][1]["type"][1] is full["fields"][0]["type"][1]
    assert collapsed(full) == json.loads(SHARED.replace('"h.t.P"', '"P"'))


@pytest.mark.parametrize("wrapped", ["x.E", {"type": "x.E"}])
def test_a_type_within_an_object_is_the_type_itself(wrapped: Any) -> None:
    """Avro for Java reads `{"type": "x.E"}`; it does not read a definition in the place of the name."""
    text = schema(optional("e1", {"type": ENUM}), optional("e2", {"type": wrapped}), optional("n", {"type": "long"}))
    kept = schema(optional("e2", ENUM), optional("n", {"type": "long"}))
    assert select_fields(text, ["e2", "n"]) == kept
    assert parse_schema(select_fields(text, ["e2", "e1"])).fields == parse_schema(text).fields[:2]
    assert [column.kind for column in first_numbers(text).columns[-3:]] == ["string", "string", "long"]

    before = arrow_from_avro(text)
    for name in ("e1", "e2"):
        rest = pa.schema([field for field in before if field.name != name])
        assert arrow_from_avro(evolve_avro(text, rest)) == rest
    wider = before.append(pa.field("k", pa.int64()))
    assert arrow_from_avro(evolve_avro(text, wider)) == wider


def test_a_column_that_goes_or_changes_leaves_the_type_to_others() -> None:
    before = arrow_from_avro(SHARED)
    gone = pa.schema([field for field in before if field.name not in ("e1", "p1")])
    assert arrow_from_avro(evolve_avro(SHARED, gone)) == gone

    fixed = {"type": "fixed", "name": "d", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 2}
    text = schema(optional("d1", fixed), optional("d2", "d"))
    for changed in ("d1", "d2"):
        wider = pa.schema([(n, pa.decimal128(7, 2) if n == changed else pa.decimal128(5, 2)) for n in ("d1", "d2")])
        assert arrow_from_avro(evolve_avro(text, wider)) == wider


def test_a_field_of_a_shared_record_does_not_change() -> None:
    before = arrow_from_avro(SHARED)
    wider = before.set(3, pa.field("p2", pa.struct([("n", pa.int64())])))
    with pytest.raises(Unsupported, match=r"'h\.t\.P', which the table's schema uses more than once"):
        evolve_avro(SHARED, wider)


def test_columns_with_shared_types_have_numbers() -> None:
    one, other = first_numbers(SHARED).columns[5:7]
    assert (one.kind, other.kind) == ("string", "string")
    path = first_numbers(SHARED).columns[-2]
    assert [part.name for part in path.parts] == ["e"]
