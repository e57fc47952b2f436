"""A change of columns could give a column another's number, and so another's values; or spell a history otherwise than
Apache Hudi, which then could not read the table. Numbers and spelling are those of its own tables."""

import json

import pyarrow as pa
import pytest

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.alterations import (
    Add,
    Alteration,
    ChangeType,
    Comment,
    Drop,
    MakeNullable,
    Move,
    Place,
    Rename,
    altered,
)
from pyhudi.format.schema.conversion import avro_from_arrow, without_meta_fields
from pyhudi.format.schema.history import NumberedSchema, SchemaHistory, parse_history
from pyhudi.format.schema.history_text import history_text, schema_json
from pyhudi.format.schema.numbering import avro_of, first_numbers, grown
from pyhudi.format.timeline.action_files import decode_commit
from tests.support.golden_tables import GoldenTables, evolved_names, with_long

RECORD = "hoodie.t.t_record"
COLUMNS = pa.schema([
    pa.field("id", pa.string(), nullable=False), ("fare", pa.int32()), ("price", pa.decimal128(10, 2)),
    ("home", pa.struct([("city", pa.string()), ("flat", pa.int32())])),
    ("tags", pa.list_(pa.struct([("name", pa.string())]))), ("prices", pa.map_(pa.string(), pa.int32())),
])  # fmt: skip


def columns() -> NumberedSchema:
    return first_numbers(avro_from_arrow(COLUMNS, record_name=RECORD))


def numbers(schema: NumberedSchema) -> dict[str, int]:
    return {name: number for name, (number, _) in schema.named_kinds().items() if not name.startswith("_hoodie")}


def after(*changes: Alteration) -> NumberedSchema:
    schema = columns()
    for change in changes:
        schema = altered(schema, change)
    return schema


def names(schema: NumberedSchema) -> list[str]:
    return [column.name for column in schema.columns if not column.name.startswith("_hoodie")]


@pytest.mark.parametrize("name", with_long(evolved_names(), {"cow_evo_nested_v9_h120", "mor_evo_types_v6_h0150"}))
def test_histories_and_schemas_are_spelled_as_apache_hudi_spells_them(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = GoldenTables(tmp_path_factory.mktemp("evolved")).get(name).path / ".hoodie"
    for file in (folder / ".schema").glob("*.schemacommit"):
        content: bytes | None = None
        for schema in reversed(parse_history(file.read_bytes()).schemas):
            content = history_text(schema_json(schema), content)
        assert content == file.read_bytes()

    stated = 0
    for file in sorted((*folder.glob("*commit"), *folder.glob("timeline/*_*commit"))):
        extra = decode_commit(file.read_bytes(), path=file.name).extra_metadata
        if "latest_schema" in extra:
            history = parse_history(f'{{"schemas":[{extra["latest_schema"]}]}}'.encode())
            assert avro_of(history.schemas[0], f"hoodie.{name}.{name}_record") == extra["schema"]
            assert grown(history, extra["schema"], "9") is history
            stated += 1
    assert stated


def test_numbers_go_level_by_level_behind_the_meta_fields() -> None:
    assert numbers(columns()) == {
        "id": 5, "fare": 6, "price": 7, "home": 8, "tags": 9, "prices": 10, "home.city": 11, "home.flat": 12,
        "tags.element": 13, "tags.element.name": 14, "prices.key": 15, "prices.value": 16,
    }  # fmt: skip
    assert columns().number_max == 16


def test_changes_keep_numbers_and_new_columns_get_new_ones() -> None:
    schema = after(
        Rename("fare", "cost"), Move("cost", Place(after="home")), Drop("price"), Add("price", pa.decimal128(10, 2)),
        Rename("home.city", "town"), Add("home.zip", pa.string(), Place(before="town")), Drop("home.flat"),
        ChangeType("cost", pa.int64()), ChangeType("prices.value", pa.string()), Rename("tags.element.name", "tag"),
        Add("place", pa.struct([("x", pa.float64()), ("y", pa.list_(pa.int32()))]), Place(is_first=True), "where"),
        MakeNullable("id"), Comment("id", "the key"),
    )  # fmt: skip
    assert names(schema) == ["place", "id", "home", "cost", "tags", "prices", "price"]
    assert numbers(schema) == {
        "place": 19, "id": 5, "home": 8, "cost": 6, "tags": 9, "prices": 10, "price": 17, "home.zip": 18,
        "home.town": 11, "tags.element": 13, "tags.element.tag": 14, "prices.key": 15, "prices.value": 16,
        "place.x": 20, "place.y": 21, "place.y.element": 22,
    }  # fmt: skip
    assert schema.number_max == 22
    by_name = {column.name: column for column in schema.columns}
    assert (by_name["id"].is_optional, by_name["id"].doc, by_name["place"].doc) == (True, "the key", "where")
    assert (by_name["cost"].kind, by_name["prices"].parts[1].kind) == ("long", "string")
    assert parse_history(history_text(schema_json(schema), None)).schemas[0] == schema
    avro = json.loads(avro_of(schema, RECORD))["fields"]
    assert avro[5]["doc"] == "where"
    assert avro[6] == {"name": "id", "type": ["null", "string"], "doc": "the key", "default": None}


REFUSED: list[tuple[Alteration, str]] = [
    (Rename("nope", "x"), "column 'nope': expected one of id, fare"),
    (Rename("fare", "price"), "there is another column 'price'"),
    (Rename("fare", "PRICE"), "capital letters only"),
    (Rename("fare", "a.b"), "without the path"),
    (Rename("fare", "9x"), "expected a name of letters"),
    (Rename("_hoodie_record_key", "k"), "is a meta field"),
    (Rename("fare", "_hoodie_is_deleted"), "does not begin with _hoodie_"),
    (Rename("tags.element", "x"), "expected a struct"),
    (Add("fare", pa.int32()), "is there already"),
    (Add("home.CITY", pa.int32()), "capital letters only"),
    (Add("fare.x", pa.int32()), "column 'fare' of type int: expected a struct"),
    (Add("tags.x", pa.int32()), "the fields of its parts are 'tags.element"),
    (Add("x", pa.int32(), Place(after="nope")), "column 'nope'"),
    (Add("x", pa.int32(), Place(before="_hoodie_file_name")), "meta fields come first"),
    (Drop("home.nope"), "column 'home.nope': expected one of city, flat"),
    (Drop("tags.element.name"), "is the last one"),
    (Move("fare", Place(after="fare")), "found itself"),
    (ChangeType("fare", pa.bool_()), "int cannot become boolean"),
    (ChangeType("fare", pa.decimal128(11, 2)), "decimals with 10 or more digits"),
    (ChangeType("price", pa.decimal128(10, 3)), "no fewer digits"),
    (ChangeType("prices.key", pa.int64()), "the keys of a map are texts"),
    (ChangeType("prices.key", pa.date32()), "the keys of a map are texts"),
    (ChangeType("home.city", pa.int32()), "string may become: decimal where the stored values fit, date where"),
    (ChangeType("home", pa.string()), "expected a simple type"),
]


@pytest.mark.parametrize("change,message", REFUSED, ids=[f"{type(one).__name__} {one.path}" for one, _ in REFUSED])
def test_what_a_schema_does_not_allow_is_said(change: Alteration, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        altered(columns(), change)


def test_a_place_is_one_place() -> None:
    with pytest.raises(Invalid, match="expected one of after, before and first"):
        Place(after="a", is_first=True)


def test_types_that_no_release_reads_in_a_history_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"column 'home\.at'.*local-timestamp-micros"):
        altered(columns(), Add("home.at", pa.timestamp("us")))


def test_a_write_gives_numbers_to_the_columns_it_brings() -> None:
    history = SchemaHistory((altered(columns(), Drop("fare")),))
    wider = pa.schema([*COLUMNS, ("new", pa.struct([("x", pa.int32())]))])
    found = grown(history, avro_from_arrow(wider, record_name=RECORD), "20261126000000000")
    assert found.schemas[1:] == history.schemas
    assert found.schemas[0].since == "20261126000000000"
    known = numbers(found.schemas[0])
    assert (known["fare"], known["new"], known["new.x"], known["home.city"]) == (17, 18, 19, 11)
    assert without_meta_fields(avro_of(found.schemas[0], RECORD)) == avro_from_arrow(wider, record_name=RECORD)


def test_a_history_with_spaces_is_spelled_anew() -> None:
    spaced = json.dumps({"schemas": [json.loads(schema_json(columns()))]}, indent=1).encode()
    assert history_text("{}", spaced) == b'{"schemas":[{},' + schema_json(columns()).encode() + b"]}"
