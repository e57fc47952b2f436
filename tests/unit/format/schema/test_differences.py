"""A message could tell of the wrong columns, or of so many that nobody finds the one that counts."""

import pyarrow as pa

from pyhudi.format.schema.conversion import avro_from_arrow, with_meta_fields
from pyhudi.format.schema.differences import describe_changes


def text(**columns: pa.DataType) -> str:
    return avro_from_arrow(pa.schema(list(columns.items())), record_name="t")


def test_each_kind_of_difference_is_named() -> None:
    before = text(id=pa.string(), v=pa.int32(), note=pa.string())
    after = text(id=pa.string(), v=pa.int64(), fare=pa.float64())
    assert describe_changes(before, after) == "'v' int32 is int64, new column 'fare' (double), no column 'note'"
    assert describe_changes(before, before) == ""
    assert describe_changes(before, with_meta_fields(before)) == "", "every table has the meta fields"
    assert describe_changes(None, text(id=pa.string())) == "new column 'id' (string)"


def test_of_many_differences_five_are_named() -> None:
    many = text(**{f"c{n}": pa.string() for n in range(8)})
    assert describe_changes(None, many).endswith("new column 'c4' (string) and 3 more")
