"""Names of columns and values of rows could end up as words of a statement of Spark's, or as patterns of paths."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid
from tests.support.spark_frames import on_spark

pytestmark = pytest.mark.spark

NAMES = ("a`b", "it's", 'say "x"', "x) OR (1=1", "-- c", "${spark.app.name}", "raise_error('ran')", "a.b")
VALUES = (
    "o'slo",
    "`; DROP TABLE t; --",
    "x' OR '1'='1",
    "{a,b}*",
    "[a-z]?",
    "a\\b",
    "${env:HOME}",
    "%2e%2e",
    "\u202e\u0007",
)


def rows(ts: int) -> pa.Table:
    """A row a value, which stands in its key, its partition and another column."""
    return pa.table({"id": list(VALUES), "city": list(VALUES), "ts": [ts] * len(VALUES), "text": list(VALUES)})


@pytest.mark.parametrize("name", NAMES)
def test_a_column_has_no_name_that_could_be_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid, match="expected a name of letters, digits and _"):
        HudiTable.create(tmp_path / "t", name="t", schema=pa.schema({name: pa.string()}))
    assert not (tmp_path / "t").exists()


def test_values_are_never_words_of_a_statement(spark: Any, tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        schema=rows(1).schema,
    )  # fmt: skip
    for ts in (1, 2):
        table.upsert(on_spark(spark, rows(ts), tmp_path))

    read = table.scan(meta_fields=False).to_spark(spark)

    assert sorted(read.columns) == sorted(rows(1).column_names)
    found = sorted(tuple(row) for row in read.select("id", "city", "ts").collect())
    assert found == sorted((value, value, 2) for value in VALUES)
    for value in VALUES:
        quoted = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        for column in ("id", "city"):
            only = table.scan(columns=["id"], where=f"{column} = {quoted}").to_arrow()
            assert only.column("id").to_pylist() == [value], (column, value)
    assert table.scan().to_arrow().num_rows == len(VALUES)
