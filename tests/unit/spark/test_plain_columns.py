"""A column could be taken for another of the same letters, so that a file with a row to change is not read."""

import pyarrow as pa

from pyhudi.spark.plain_columns import plain_types


def test_columns_that_differ_by_their_case_only_are_left_out() -> None:
    schema = pa.schema([("Id", pa.int64()), ("day", pa.string()), ("DAY", pa.float64()), ("x", pa.float64())])
    assert plain_types(schema) == {"Id": "integer"}
