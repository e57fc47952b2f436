"""A merge of a Spark DataFrame could come out otherwise than that of the same Arrow rows, made in this process."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark
import pyspark.sql.functions as f
import pytest

import pyhudi.spark
from pyhudi import HudiTable, Invalid, Unsupported, When
from pyhudi.api.rows import frame_merges
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import on_spark

pytestmark = pytest.mark.spark

STORED = pa.table({
    "id": ["a", "b", "c", "d"], "ts": [1, 1, 1, 1], "city": ["x", "x", "y", "y"], "n": [1, 2, 3, 4],
    "day": [date(2020, 1, 1)] * 4, "amount": pa.array([Decimal("1.00")] * 4, pa.decimal128(10, 2)),
})  # fmt: skip
SOURCE = pa.table({
    "id": ["a", "c", "z"], "ts": [5, 5, 5], "city": ["x", "y", "x"], "n": [10, 0, 7],
    "day": [date(2021, 2, 3), None, date(1, 1, 1)],
    "amount": pa.array([Decimal("2.50"), Decimal("3.00"), None], pa.decimal128(10, 2)),
})  # fmt: skip

CASES: dict[str, dict[str, Any]] = {
    "whole rows": {"when_matched_update": True, "when_not_matched_insert": "*"},
    "by names": {"on": ["id", "city"], "when_matched_update": {"n": "target.n + source.n", "ts": "source.ts"}},
    "by a name": {"on": "id", "when_matched_update": {"amount": "source.amount", "ts": 9}},
    "several clauses": {
        "on": "target.id = source.id", "when_matched_delete": "source.n = 0",
        "when_matched_update": [When("source.n > 5", {"n": "source.n", "ts": 7}), {"day": None}],
        "when_not_matched_insert": {"id": "source.id", "ts": "ts", "city": "'q'", "n": 4},
        "when_not_matched_by_source_update": When("n < 4", {"n": "n * 2", "day": date(1999, 12, 31)}),
    },
    "values": {
        "when_matched_update": {
            "n": pa.scalar(5), "day": date(2022, 1, 1), "amount": Decimal("7.25"), "city": "source.city",
        },
    },
    "deletes": {"when_matched_delete": True},
    "what the source lacks goes": {"when_not_matched_by_source_delete": True},
    "other aliases": {
        "source_alias": "s", "target_alias": "t", "on": "t.id = s.id", "when_matched_update": {"n": "s.n"},
    },
}  # fmt: skip


def new_table(path: Path, **said: Any) -> HudiTable:
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", ordering="ts", schema=STORED.schema, **said
    )
    table.insert(STORED)
    return table


@pytest.fixture(autouse=True)
def registered(spark: Any) -> None:
    pyhudi.spark.register(spark)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.long)])
@pytest.mark.parametrize("case", CASES)
def test_a_merge_of_a_dataframe_is_that_of_its_rows(spark: Any, tmp_path: Path, case: str, table_type: str) -> None:
    here, there = (new_table(tmp_path / where, table_type=table_type) for where in "ab")

    expected = here.merge(SOURCE, **CASES[case])
    result = there.merge(on_spark(spark, SOURCE, tmp_path), **CASES[case])

    assert (result.inserted, result.updated, result.deleted) == (expected.inserted, expected.updated, expected.deleted)
    assert_same_rows(there.scan(meta_fields=False).to_arrow(), here.scan(meta_fields=False).to_arrow())
    assert len([one for one in there.timeline() if one.is_completed]) == 2


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_ordering_would_settle_is_refused_as_in_this_process(spark: Any, tmp_path: Path, table_type: str) -> None:
    """`MERGE INTO` leaves such rows as they are, and stores the greatest of several new ones."""
    table = new_table(tmp_path / "t", table_type=table_type)
    older = SOURCE.slice(0, 1).set_column(1, "ts", pa.array([0]))
    for source, message in (
        (older, "less than the stored one"),
        (pa.concat_tables([SOURCE, SOURCE.slice(2)]), "several for"),
    ):
        for given in (source, on_spark(spark, source, tmp_path)):
            with pytest.raises(Invalid, match=message):
                table.merge(given, when_matched_update=True, when_not_matched_insert=True)
    assert len(table.timeline()) == 1


def test_a_table_without_columns_is_told_as_in_this_process(spark: Any, tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="city", ordering="ts")
    for source in (SOURCE, on_spark(spark, SOURCE, tmp_path)):
        with pytest.raises(Invalid, match="expected a table with columns, found one without a schema"):
            table.merge(source, when_matched_update=True, when_not_matched_insert=True)


def test_a_stream_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="merge each of its batches, in foreachBatch"):
        new_table(tmp_path / "t").merge(spark.readStream.format("rate").load(), when_matched_delete=True)


def test_a_global_index_finds_keys_in_every_partition(spark: Any, tmp_path: Path) -> None:
    """Without `on`, partition columns say which row it is, but under a global index."""
    elsewhere = SOURCE.set_column(2, "city", pa.array(["elsewhere"] * 3))
    for options, count in (({}, 0), ({"hoodie.index.type": "GLOBAL_SIMPLE"}, 2)):
        for at, source in enumerate((elsewhere, on_spark(spark, elsewhere, tmp_path))):
            table = new_table(tmp_path / f"{count}{at}")
            result = table.merge(source, when_matched_update={"n": "source.n"}, options=options)
            assert result.updated == count
            assert table.scan(where="n = 10 or n = 0").count() == count


def test_values_may_be_columns_of_pyspark_and_options_count(spark: Any, tmp_path: Path) -> None:
    table, source = new_table(tmp_path / "t"), on_spark(spark, SOURCE, tmp_path)
    its_n = f.col("source.n") if pyspark.__version__ < "4" else source.n  # before 4.0 a column does not say whose it is
    result = table.merge(
        source, when_matched_update=When(f.col("source.n") > 0, {"n": its_n + f.col("target.n"), "ts": f.lit(8)}),
        options={"hoodie.datasource.write.commitmeta.key.prefix": "note."}, extra_metadata={"note.why": "a test"},
    )  # fmt: skip
    assert (result.inserted, result.updated, result.deleted) == (0, 1, 0)
    assert table.scan(where="id = 'a'", columns=["n", "ts"]).to_arrow().to_pylist() == [{"n": 11, "ts": 8}]


@pytest.fixture(scope="module")
def unchanged(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[HudiTable, Any]:
    """A table, and a DataFrame of the source, for calls that change nothing."""
    folder = tmp_path_factory.mktemp("unchanged")
    return new_table(folder / "t"), on_spark(spark, SOURCE, folder)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"on": [], "when_matched_delete": True}, "on: expected SQL text or names of columns"),
        ({"on": 5, "when_matched_delete": True}, "on: expected SQL text or names of columns, found 5"),
        ({}, "expected at least one clause"),
        ({"when_matched_update": 5}, "when_matched_update: expected columns and their values"),
        ({"when_matched_update": {"nope": 1}}, "no column 'nope' in table 't'"),
        ({"when_matched_update": {"n": object()}}, "expected one that Spark has a literal for"),
        ({"when_matched_update": [{"n": 1}, {"n": 2}]}, "at most one clause without a condition"),
        ({"when_matched_delete": When(set={"n": 1})}, "expected no values to set in a delete"),
        ({"when_not_matched_by_source_update": True}, "these rows have none in the source"),
        ({"when_matched_delete": True, "source_alias": "target"}, "two different aliases"),
        ({"when_matched_update": {"n": "'abc'"}}, "expected bigint, found 'abc'"),
        ({"when_matched_update": {"n": {"a": 1}}}, "expected one that Spark has a literal for"),
        (
            {"when_matched_update": {"n": "source.n", "ts": "source.ts +* 3"}},
            r"when_matched_update: 'ts': 'source.ts \+\* 3'",
        ),
        ({"on": "target.id = (source.id", "when_matched_delete": True}, r"merge: on: .target.id = \(source.id."),
        ({"when_matched_update": {"n": "source.nn"}}, r"merge into table 't': .*`source`.`nn`.*; nothing was written$"),
        ({"on": "target.idd = source.id", "when_matched_delete": True}, "`target`.`idd`"),
        ({"when_matched_update": {"n": "max(source.n)"}}, "merge into table 't': "),
    ],
)
def test_what_is_no_merge_is_told(unchanged: tuple[HudiTable, Any], given: dict[str, Any], message: str) -> None:
    table, source = unchanged
    with pytest.raises(Invalid, match=message):
        table.merge(source, **given)
    assert len(table.timeline()) == 1


def test_a_column_that_the_source_lacks_is_named(spark: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    with pytest.raises(Invalid, match="expected every column of table 't' in the source, found no 'day'"):
        table.merge(on_spark(spark, SOURCE.drop_columns("day"), tmp_path), when_matched_update=True)
    with pytest.raises(Unsupported, match=r"Expression: expected SQL text, a column of PySpark or a value"):
        table.merge(on_spark(spark, SOURCE, tmp_path), when_matched_update={"n": pc.field("n")})


def test_a_session_that_is_not_registered_says_what_to_call(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_merges, "_carriers", {})
    with pytest.raises(Unsupported, match=r"pyhudi\.spark\.register\(spark\) first"):
        new_table(tmp_path / "t").merge(on_spark(spark, SOURCE, tmp_path), when_matched_delete=True)
