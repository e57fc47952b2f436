"""An input that does not fit could be written all the same, or be refused without saying what to change."""

import pyarrow as pa
import pytest

from pyhudi.errors import Invalid
from pyhudi.write.input_schema import columns_for_delete, columns_for_write, first_schema, fits

TABLE = pa.schema([("id", pa.string()), ("n", pa.int64()), ("s", pa.struct([("a", pa.int64()), ("b", pa.string())]))])


def test_columns_come_in_any_order_with_meta_fields_passed_over_and_narrower_types() -> None:
    given = pa.schema(
        [
            ("s", pa.struct([("b", pa.string()), ("a", pa.int32())])),
            ("_hoodie_record_key", pa.string()),
            ("n", pa.int32()),
            ("id", pa.dictionary(pa.int32(), pa.string())),
        ]
    )
    assert columns_for_write(given, TABLE, table_name="t") == TABLE


def test_all_that_is_wrong_is_named_at_once() -> None:
    given = pa.schema([("ID", pa.string()), ("n", pa.string()), ("s", TABLE.field("s").type)])
    with pytest.raises(Invalid) as caught:
        columns_for_write(given, TABLE, table_name="t")
    text = str(caught.value)
    assert text.startswith("input does not fit table 't': column 'id' (string) is missing")
    assert "column 'n': expected int64, found string" in text
    assert "column 'ID' (string) is not in the table" in text


def test_a_column_twice_is_refused_by_every_way_in() -> None:
    twice = pa.schema([("id", pa.string()), ("id", pa.string())])
    for look in (
        lambda: columns_for_write(twice, TABLE, table_name="t"),
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
    with pytest.raises(Invalid, match=r"expected the key and partition columns \(s, id\), found no 's' among n, id"):
        columns_for_delete(given, TABLE, needed=("s", "id"), ordering=(), table_name="t")


@pytest.mark.parametrize(
    "found,wanted,is_fit",
    [
        (pa.int32(), pa.int64(), True),
        (pa.int64(), pa.int32(), False),
        (pa.float32(), pa.float64(), True),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.string()), pa.list_(pa.int64()), False),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), True),
        (pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int64()), False),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64())]), True),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.int64())]), False),
        (pa.string(), pa.int64(), False),
    ],
)
def test_what_fits(found: pa.DataType, wanted: pa.DataType, is_fit: bool) -> None:
    assert fits(found, wanted) is is_fit
