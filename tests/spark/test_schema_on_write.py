"""Spark could read a file of before in the type that the table has by now, and fail or give other values; or a write on
Spark could change the schema otherwise than the same write in this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid
from tests.support.compare import assert_same_rows
from tests.support.promotions import KEYS, PROMOTIONS, WRITABLE, Promotion
from tests.support.spark_frames import collected, on_spark

pytestmark = pytest.mark.spark

META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]


def wide(part: str, which: str, keys: tuple[str, ...], promotions: Sequence[Promotion] = PROMOTIONS) -> pa.Table:
    """Rows of one partition with a column for each promotion, in its type of before or after."""
    columns: dict[str, Any] = {"id": list(keys), "part": [part] * len(keys)}
    for number, promotion in enumerate(promotions):
        is_new = which == "after"
        values = promotion.new if is_new else promotion.stored
        columns[f"c{number}"] = pa.array(list(values), promotion.after if is_new else promotion.before)
    if which == "after":
        columns["added"] = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))
    return pa.table(columns)


def before(path: Path, version: int = 8, promotions: Sequence[Promotion] = PROMOTIONS) -> HudiTable:
    """A table of two partitions, with rows of before in each."""
    table = HudiTable.create(path, name="t", record_key="id", partition_by="part", table_version=version)
    for part in ("touched", "untouched"):
        table.bulk_insert(wide(part, "before", KEYS, promotions))
    return table


@pytest.fixture
def evolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HudiTable:
    """A table with rows of before in a file that was written again, and in one that was not.

    Types within others were widened too, as by another writer.
    """
    monkeypatch.setattr("pyhudi.write.input.schema.is_within_another", lambda path: False)
    table = before(tmp_path / "evolved")
    table.upsert(wide("touched", "after", ("k0", "new")))
    return table


def test_spark_reads_files_of_every_schema_as_the_newest(spark: Any, evolved: HudiTable) -> None:
    here = evolved.scan().to_arrow()
    assert here.num_rows == 9
    assert_same_rows(collected(evolved.scan().to_spark(spark)), here)
    first = evolved.timeline()[0].requested
    then = evolved.scan(as_of=first)
    assert_same_rows(collected(then.to_spark(spark)), then.to_arrow())
    changes = evolved.incremental()
    assert_same_rows(collected(changes.to_spark(spark)), changes.to_arrow())


@pytest.mark.parametrize("number", range(len(PROMOTIONS)), ids=[str(promotion) for promotion in PROMOTIONS])
def test_spark_filters_and_chooses_columns_by_their_newest_type(spark: Any, evolved: HudiTable, number: int) -> None:
    for where in (f"c{number} IS NULL", f"c{number} IS NOT NULL AND id <> 'k1'"):
        asked = evolved.scan(["id", f"c{number}"], where=where)
        assert_same_rows(collected(asked.to_spark(spark)), asked.to_arrow())


def test_spark_filters_by_values_that_only_the_newest_type_has(spark: Any, evolved: HudiTable) -> None:
    for where in ("c0 > 2147483647", "c2 = 0.1", "c5 = 0.1", "c7.b IS NULL", "added.x = 1"):
        asked = evolved.scan(["id"], where=where)
        assert asked.to_arrow().num_rows > 0, where
        assert_same_rows(collected(asked.to_spark(spark)), asked.to_arrow())


@pytest.mark.parametrize("version", [pytest.param(8, marks=pytest.mark.long), 9])
def test_a_write_on_spark_changes_the_schema_as_one_in_this_process(
    spark: Any, tmp_path: Path, version: int, handover: str
) -> None:
    here, there = (before(tmp_path / name, version, WRITABLE) for name in ("here", "there"))
    new = wide("touched", "after", ("k0", "new"), WRITABLE)
    here.upsert(new)
    there.upsert(on_spark(spark, new, tmp_path))
    assert there.schema() == here.schema()
    assert_same_rows(there.scan().to_arrow().drop_columns(META), here.scan().to_arrow().drop_columns(META))

    # Rows as they came before still fit, with the option; what they lack is null.
    fill = {"hoodie.write.set.null.for.missing.columns": "true"}
    again = wide("touched", "before", KEYS, WRITABLE).slice(0, 1)
    there.upsert(on_spark(spark, again, tmp_path), options=fill)
    here.upsert(again, options=fill)
    assert_same_rows(there.scan().to_arrow().drop_columns(META), here.scan().to_arrow().drop_columns(META))


def test_a_column_of_nulls_takes_the_type_of_the_table(spark: Any, tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    nulls = spark.sql("select 'b' as id, null as n, named_struct('x', null) as s")
    with pytest.raises(Invalid, match="column 'n' of type null"):
        table.upsert(nulls)
    table.upsert(pa.table({"id": ["a"], "n": [1], "s": [{"x": "y"}]}))

    table.upsert(nulls)

    rows = table.scan().to_arrow().select(["id", "n", "s"]).sort_by("id").to_pylist()
    assert rows == [{"id": "a", "n": 1, "s": {"x": "y"}}, {"id": "b", "n": None, "s": {"x": None}}]
