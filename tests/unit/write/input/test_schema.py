"""An input that does not fit could be written all the same, or be refused without saying what to change; and one that
widens the table could leave it with a column that files of before cannot be read as."""

import itertools
from collections.abc import Callable

import pyarrow as pa
import pytest

from pyhudi.errors import Invalid
from pyhudi.format.schema.conversion import arrow_from_avro, avro_from_arrow
from pyhudi.write.input.schema import TableColumns, columns_for_delete, evolved_schema, first_schema, fits, widens
from pyhudi.write.settings import WriteSettings

TABLE = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)
DEFAULTS = WriteSettings()
FILLING = WriteSettings(fills_missing_columns=True)


def table_of(
    schema: pa.Schema, *, keys: tuple[str, ...] = ("id",), ordering: tuple[str, ...] = (), text: str | None = None
) -> TableColumns:
    text = text or avro_from_arrow(schema, record_name="hoodie.t.t_record")
    return TableColumns("t", text, arrow_from_avro(text), keys, ordering)


def evolved(given: pa.Schema, table: TableColumns, settings: WriteSettings = DEFAULTS) -> pa.Schema:
    return arrow_from_avro(evolved_schema(given, table, settings))


def with_field(schema: pa.Schema, name: str, kind: pa.DataType) -> pa.Schema:
    return schema.set(schema.get_field_index(name), pa.field(name, kind))


def test_columns_come_in_any_order_with_meta_fields_passed_over_and_narrower_types() -> None:
    given = pa.schema(
        [
            ("s", pa.struct([("b", pa.string()), ("a", pa.int32())])),
            ("_hoodie_record_key", pa.string()),
            ("n", pa.int32()),
            ("id", pa.dictionary(pa.int32(), pa.string())),
        ]
    )
    table = table_of(TABLE)
    assert evolved_schema(given, table, WriteSettings()) == table.schema_text


def test_all_that_is_wrong_is_named_at_once() -> None:
    given = pa.schema(
        [("ID", pa.string()), ("n", pa.string()), ("s", pa.struct([("a", pa.bool_()), ("c", pa.int8())]))]
    )
    with pytest.raises(Invalid) as caught:
        evolved(given, table_of(TABLE))
    text = str(caught.value)
    assert text.startswith("input does not fit table 't': column 'id' (string) is missing")
    assert "column 'n': expected int64, found string" in text
    assert "column 's.a': expected int64, found bool" in text
    assert "column 's.b' (string) is missing" in text
    assert "column 's.c' (int32) is not in the table" in text
    assert "'ID' (string) differs from column 'id' by capital letters only" in text


def test_the_error_names_what_cures_each_fault() -> None:
    nulls = "have nulls there by hoodie.write.set.null.for.missing.columns=true"
    columns = dict(zip(TABLE.names, TABLE, strict=True))

    def said(*given: pa.Field | tuple[str, pa.DataType]) -> str:
        with pytest.raises(Invalid) as caught:
            evolved(pa.schema(given), table_of(TABLE))
        return str(caught.value).rpartition("; ")[2]

    assert said(columns["id"], columns["s"]).endswith(nulls)
    assert said(columns["n"], columns["s"]) == "give what is missing", "a key is never null"
    assert said(columns["id"], columns["s"], ("n", pa.string())) == "cast what has another type"
    assert said(columns["id"], columns["s"], ("nn", pa.int64())).startswith("rename what is misspelled")
    assert said(columns["id"], ("m", pa.int64())).endswith(f"{nulls}, leave out what is new")


def test_of_many_faults_the_error_names_the_first_ones() -> None:
    wide = pa.schema([pa.field("id", pa.string()), *(pa.field(f"c{at}", pa.int64()) for at in range(300))])
    with pytest.raises(Invalid) as caught:
        evolved(wide.empty_table().select(["id"]).schema, table_of(wide))
    assert len(str(caught.value)) < 1_200
    assert "column 'c19' (int64) is missing and 280 more; give" in str(caught.value)


def test_new_columns_come_last_and_may_be_null() -> None:
    given = pa.schema([("new", pa.int8()), *TABLE, ("other", pa.struct([("x", pa.decimal128(5, 2))]))])
    assert evolved(given, table_of(TABLE)) == pa.schema(
        [*TABLE, ("new", pa.int32()), ("other", pa.struct([("x", pa.decimal128(5, 2))]))]
    )


def test_new_fields_of_structs_come_last_however_deep_the_struct_lies() -> None:
    def nested(*members: tuple[str, pa.DataType]) -> pa.Schema:
        return pa.schema([("id", pa.string()), ("c", pa.map_(pa.string(), pa.list_(pa.struct(list(members)))))])

    before, new = ("a", pa.int32()), ("b", pa.bool_())
    assert evolved(nested(new, before), table_of(nested(before))) == nested(before, new)


def test_a_new_column_that_is_never_null_is_refused_unless_the_option_says_otherwise() -> None:
    given = TABLE.append(pa.field("new", pa.int32(), nullable=False))
    with pytest.raises(
        Invalid, match=r"'new' \(int32, never null\).*hoodie\.datasource\.write\.new\.columns\.nullable"
    ):
        evolved(given, table_of(TABLE))
    allowed = WriteSettings.from_options({"hoodie.datasource.write.new.columns.nullable": "true"})
    assert evolved(given, table_of(TABLE), allowed).field("new").nullable


@pytest.mark.parametrize(
    "option", ["hoodie.write.set.null.for.missing.columns", "hoodie.datasource.write.reconcile.schema"]
)
def test_missing_columns_are_filled_if_an_option_says_so_but_never_keys_or_ordering(option: str) -> None:
    settings = WriteSettings.from_options({option: "true"})
    given = pa.schema([("id", pa.string()), ("new", pa.bool_()), ("s", pa.struct([("b", pa.string())]))])
    assert evolved(given, table_of(TABLE), settings) == TABLE.append(pa.field("new", pa.bool_()))
    with pytest.raises(Invalid, match=r"column 'n' \(int64\) is missing"):
        evolved(given, table_of(TABLE, ordering=("n",)), settings)
    with pytest.raises(Invalid, match=r"column 'id' \(string\) is missing"):
        evolved(given.remove(0), table_of(TABLE), settings)


def test_a_column_that_was_never_null_may_be_once_it_is_filled() -> None:
    schema = pa.schema([("id", pa.string()), pa.field("must", pa.int32(), nullable=False)])
    table = table_of(schema)
    text = evolved_schema(pa.schema([("id", pa.string())]), table, FILLING)
    assert '{"name":"must","type":["null","int"],"default":null}' in text


PRIMITIVES = (
    *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(10, 2), pa.decimal128(12, 2)),
)
PROMOTIONS = {
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float32()),
    (pa.int32(), pa.float64()),
    (pa.int64(), pa.float32()),
    (pa.int64(), pa.float64()),
    (pa.float32(), pa.float64()),
    (pa.string(), pa.binary()),
}
"""What a column may become. Decimals do not: their files hold other bytes."""


@pytest.mark.parametrize("stored,found", list(itertools.product(PRIMITIVES, PRIMITIVES)), ids=str)
def test_each_change_of_type_widens_the_table_or_the_input_or_is_refused(
    stored: pa.DataType, found: pa.DataType
) -> None:
    table = table_of(with_field(TABLE, "n", stored))
    given = with_field(TABLE, "n", found)
    is_narrower = (found, stored) in PROMOTIONS or (found, stored) == (pa.decimal128(10, 2), pa.decimal128(12, 2))
    if (stored, found) in PROMOTIONS:
        assert evolved(given, table).field("n").type == found
    elif stored == found or is_narrower:
        assert evolved_schema(given, table, WriteSettings()) == table.schema_text
    else:
        with pytest.raises(Invalid, match=r"column 'n': expected .*, found "):
            evolved(given, table)


@pytest.mark.parametrize(
    "stored,found,as_key,as_ordering",
    [
        (pa.int32(), pa.int64(), True, True),
        (pa.int32(), pa.float64(), False, True),
        (pa.int32(), pa.float32(), False, False),
        (pa.int64(), pa.float64(), False, False),
        (pa.float32(), pa.float64(), False, True),
        (pa.string(), pa.binary(), False, False),
    ],
)
def test_keys_keep_their_spelling_and_ordering_values_their_digits(
    stored: pa.DataType, found: pa.DataType, as_key: bool, as_ordering: bool
) -> None:
    schema, given = with_field(TABLE, "n", stored), with_field(TABLE, "n", found)
    for table, allowed in (
        (table_of(schema, keys=("id", "n")), as_key),
        (table_of(schema, ordering=("n",)), as_ordering),
        (table_of(schema, keys=("n",), ordering=("n",)), as_key),
    ):
        if allowed:
            assert evolved(given, table).field("n").type == found
        else:
            with pytest.raises(Invalid, match="would change how rows are keyed or ordered"):
                evolved(given, table)


@pytest.mark.parametrize(
    "within",
    [lambda k: pa.struct([("a", k)]), pa.list_, lambda k: pa.map_(pa.string(), k)],
    ids=["struct", "list", "map"],
)
def test_types_within_others_stay(within: Callable[[pa.DataType], pa.DataType]) -> None:
    table, wider = table_of(with_field(TABLE, "n", within(pa.int32()))), with_field(TABLE, "n", within(pa.int64()))
    with pytest.raises(Invalid, match=r"column 'n\.\w+': expected int32, found int64, which Apache Hudi cannot read"):
        evolved(wider, table)
    assert evolved(with_field(TABLE, "n", within(pa.int32())), table_of(wider)) == wider


def test_a_column_twice_is_refused_by_every_way_in() -> None:
    twice = pa.schema([("id", pa.string()), ("id", pa.string())])
    for look in (
        lambda: evolved_schema(twice, table_of(TABLE), WriteSettings()),
        lambda: columns_for_delete(twice, TABLE, needed=("id",), ordering=(), table_name="t"),
        lambda: first_schema(twice),
    ):
        with pytest.raises(Invalid, match="'id' twice"):
            look()


def test_a_delete_takes_keys_and_the_ordering_if_it_is_all_there() -> None:
    given = pa.schema([("n", pa.int32()), ("id", pa.string()), ("other", pa.binary())])
    names = ("id", "n")
    assert columns_for_delete(given, TABLE, needed=("id",), ordering=("n",), table_name="t").names == list(names)
    assert columns_for_delete(given, TABLE, needed=("id",), ordering=("n", "s"), table_name="t").names == ["id"]
    late = pa.schema([*given, ("not_in_the_table", pa.int64())])
    assert columns_for_delete(late, TABLE, needed=("id",), ordering=("not_in_the_table",), table_name="t").names == [
        "id"
    ]
    with pytest.raises(Invalid, match=r"expected the key and partition columns \(s, id\), found no 's' among n, id"):
        columns_for_delete(given, TABLE, needed=("s", "id"), ordering=(), table_name="t")


def test_a_delete_changes_no_type() -> None:
    given = pa.schema([("id", pa.binary())])
    with pytest.raises(Invalid, match="column 'id': expected string, found binary"):
        columns_for_delete(given, TABLE, needed=("id",), ordering=(), table_name="t")


@pytest.mark.parametrize(
    "found,wanted,is_fit",
    [
        (pa.int32(), pa.int64(), True),
        (pa.int64(), pa.int32(), False),
        (pa.float32(), pa.float64(), True),
        (pa.binary(), pa.string(), False),
        (pa.decimal128(10, 2), pa.decimal128(12, 2), True),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), True),
        (pa.decimal128(10, 2), pa.decimal128(11, 4), False),
        (pa.decimal128(10, 2), pa.decimal128(20, 1), False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.string()), pa.list_(pa.int64()), False),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), True),
        (pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int64()), False),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64())]), True),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.int64())]), False),
        (pa.string(), pa.int64(), False),
        (pa.int64(), pa.string(), False),
    ],
)
def test_what_fits(found: pa.DataType, wanted: pa.DataType, is_fit: bool) -> None:
    assert fits(found, wanted) is is_fit


def test_nothing_nested_and_no_decimal_widens_as_a_whole() -> None:
    assert widens(pa.int32(), pa.int64())
    assert not widens(pa.decimal128(10, 2), pa.decimal128(12, 2))
    assert not widens(pa.list_(pa.int32()), pa.list_(pa.int64()))
