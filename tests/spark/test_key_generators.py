"""Spark could spell a time-based partition path, or a key that is made up, other than this process does.

A row would then be looked for in another partition than the one where it lies; made-up keys could repeat.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi.spark
from pyhudi import HudiTable, Invalid
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.keys.timestamp_paths import TimestampSpec, partition_texts
from pyhudi.table.facts.key_properties import PREFIX
from tests.spark.test_sql_statements import CREATE, own_database, used
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, golden_answers
from tests.support.spark_frames import collected, reader
from tests.support.time_specs import CASES, NO_TIMES

pytestmark = pytest.mark.spark


def time_column(name: str, kind: pa.DataType, spec: TimestampSpec) -> Any:
    from pyhudi.engine.spark.write import keys as native

    of = KeySpec((name,), (name,), False, False, False, time_based=(name,), times=spec)
    return native.partition_text(name, pa.schema([(name, kind)]), of)


@contextlib.contextmanager
def settings(spark: Any, values: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in values}
    try:
        for name, value in values.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.mark.parametrize(
    "zone, ansi", [pytest.param("UTC", "false", marks=pytest.mark.long), ("America/New_York", "true")]
)
def test_times_are_spelled_as_in_this_process(spark: Any, tmp_path: Path, zone: str, ansi: str) -> None:
    longest = max(len(column) for _, _, column in CASES)
    columns = {
        name: pa.concat_arrays([column, pa.nulls(longest - len(column), column.type)]) for name, _, column in CASES
    }
    rows = dataframe(spark, pa.table(columns), tmp_path)
    values = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}
    with settings(spark, {**values, "spark.sql.codegen.wholeStage": "false"}):  # so many at once take long to compile
        spelled = [time_column(name, columns[name].type, spec).alias(name) for name, spec, _ in CASES]
        found = rows.select(*spelled).collect()
    for name, spec, _ in CASES:
        expected = partition_texts(pa.chunked_array([columns[name]]), name, spec).to_pylist()
        assert [row[name] for row in found] == expected, name


def test_what_is_no_time_has_no_path(spark: Any, tmp_path: Path) -> None:
    longest = max(len(values) for _, _, values in NO_TIMES)
    columns = {name: pa.array([*values] + [values[0]] * (longest - len(values))) for name, _, values in NO_TIMES}
    rows = dataframe(spark, pa.table(columns), tmp_path)
    found = rows.select(*(time_column(name, columns[name].type, spec) for name, spec, _ in NO_TIMES)).collect()
    assert [tuple(row) for row in found] == [(None,) * len(NO_TIMES)] * longest


TIMES = {
    "hoodie.table.keygenerator.type": "TIMESTAMP",
    f"{PREFIX}timestamp.type": "EPOCHMILLISECONDS",
    f"{PREFIX}output.dateformat": "yyyy/MM/dd",
    f"{PREFIX}timezone": "America/New_York",
}
ROWS = pa.table(
    {
        "id": [f"k{n}" for n in range(40)],
        "ms": pa.array([None if n == 7 else 1_700_000_000_000 + n * 40_000_000 for n in range(40)], pa.int64()),
        "ts": pa.array(range(40), pa.int64()),
    }
)


def dataframe(spark: Any, rows: pa.Table, folder: Path) -> Any:
    import pyarrow.parquet as pq

    pq.write_table(rows, folder / "rows.parquet")
    return reader(spark).parquet(str(folder / "rows.parquet"))


@pytest.mark.parametrize("name", ["cow_tsgen_v6_h0150", "cow_tsgen_v9_h120", "cow_customgen_v6_h0150",
                                  "cow_customgen_v9_h120"])  # fmt: skip
def test_golden_tables_show_their_columns_as_apache_hudi_does(spark: Any, golden: GoldenTables, name: str) -> None:
    table = golden.get(name)
    expected = table.expected(next(a for a in golden_answers(name) if a.query == "snapshot"))
    assert_same_rows(collected(HudiTable.open(table.path).scan().to_spark(spark)), expected)
    column = "epoch_ms" if "tsgen" in name else "day"
    value = expected[column][3].as_py()
    found = HudiTable.open(table.path).scan(where=f"{column} = '{value}'").to_spark(spark)
    assert_same_rows(collected(found), expected.filter(pc.equal(expected[column], value)))


def test_rows_are_placed_as_in_this_process(spark: Any, tmp_path: Path, handover: str) -> None:
    twins = [
        HudiTable.create(tmp_path / name, name="t", record_key="id", partition_by="ms", ordering="ts", properties=TIMES)
        for name in ("arrow", "spark")
    ]
    for operation, rows in (("insert", ROWS.slice(0, 30)), ("upsert", ROWS.slice(5)), ("delete", ROWS.slice(0, 3))):
        getattr(twins[0], operation)(rows)
        getattr(twins[1], operation)(dataframe(spark, rows, tmp_path))
    answers = [table.scan(columns=["_hoodie_partition_path", "_hoodie_record_key", *ROWS.column_names]).to_arrow()
               for table in twins]  # fmt: skip
    assert_same_rows(answers[0], answers[1])
    assert "1969/12/31" in answers[0]["_hoodie_partition_path"].to_pylist()
    assert len(answers[0]) == 37


def test_a_value_that_is_no_time_is_named(spark: Any, tmp_path: Path, handover: str) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="ms", properties=TIMES)
    bad = ROWS.set_column(1, "ms", pa.array([2**62] + [0] * 39, pa.int64()))
    with pytest.raises(Invalid, match=f"column 'ms', value {2**62}: expected a time"):
        table.insert(dataframe(spark, bad, tmp_path))
    assert table.timeline() == ()


def test_made_up_keys_never_repeat(spark: Any, tmp_path: Path, handover: str) -> None:
    small = {"hoodie.parquet.max.file.size": 520_480, "hoodie.copyonwrite.record.size.estimate": 2_000}
    table = HudiTable.create(tmp_path / "t", name="t", ordering="ts", properties=small)
    rows = dataframe(spark, ROWS, tmp_path).repartition(3)
    results = [table.insert(rows), table.bulk_insert(rows), table.insert(rows)]
    found = table.scan(columns=["_hoodie_record_key", "_hoodie_commit_time", "id"]).to_arrow()
    keys = found["_hoodie_record_key"].to_pylist()
    assert len(set(keys)) == len(keys) == 120
    times = found["_hoodie_commit_time"].to_pylist()
    assert set(times) == {result.requested for result in results}
    for key, time in zip(keys, times, strict=True):
        assert re.fullmatch(rf"{time}_\d+_\d+", key)


def test_the_format_hudi_takes_the_options_of_apache_hudi(spark: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(spark)
    rows = ROWS.append_column("city", pa.array(["oslo", "rome"] * 20))
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city:simple,ms:timestamp",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        f"{PREFIX}timestamp.type": "EPOCHMILLISECONDS",
        f"{PREFIX}output.dateformat": "yyyyMM",
        f"{PREFIX}timezone": "UTC",
    }
    for mode in ("overwrite", "append"):
        dataframe(spark, rows, tmp_path).write.format("hudi").options(**options).mode(mode).save(str(tmp_path / "t"))
    found = collected(spark.read.format("hudi").load(str(tmp_path / "t")))
    assert len(found) == 40
    assert {"oslo/202311", "rome/202312", "rome/197001"} <= set(found["_hoodie_partition_path"].to_pylist())
    assert HudiTable.open(tmp_path / "t").properties["hoodie.table.partition.fields"] == "city:SIMPLE,ms:TIMESTAMP"


@pytest.mark.parametrize("table_type", [pytest.param("cow", marks=pytest.mark.long), "mor"])
def test_partitions_of_dates_with_slashes(spark: Any, tmp_path: Path, table_type: str) -> None:
    slashed = "'hoodie.datasource.write.slash.separated.date.partitioning' = 'true'"
    with own_database(spark, tmp_path) as sql, used(sql):
        sql(f"{CREATE} (primaryKey = 'id', orderingFields = 'ts', type = '{table_type}', {slashed})")
        sql("INSERT INTO t VALUES (1, 'a', 1, '2026-01-05'), (2, 'b', 1, '2026-01-06'), (3, 'c', 1, NULL)")
        sql("UPDATE t SET name = 'A', ts = 2 WHERE id = 1")

        assert sql("SELECT id, name, _hoodie_partition_path FROM t WHERE dt = '2026-01-05'") == [(1, "A", "2026/01/05")]
        assert sql("SHOW PARTITIONS t") == [
            ("dt=2026-01-05",), ("dt=2026-01-06",), ("dt=__HIVE_DEFAULT_PARTITION__",),
        ]  # fmt: skip
        with pytest.raises(Invalid, match="change the values"):
            sql("INSERT INTO t VALUES (4, 'd', 1, '2026/01/07')")
        sql("ALTER TABLE t DROP PARTITION (dt = '2026-01-06')")

        assert sql.rows("t") == [(1, "A", 2, "2026-01-05"), (3, "c", 1, None)]


def test_without_key_columns_the_format_hudi_adds_rows(spark: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(spark)
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.partitionpath.field": ""}
    for _ in range(2):
        dataframe(spark, ROWS, tmp_path).write.format("hudi").options(**options).mode("append").save(
            str(tmp_path / "t")
        )
    assert len(collected(spark.read.format("hudi").load(str(tmp_path / "t")))) == 80
    upsert = {**options, "hoodie.datasource.write.operation": "upsert"}
    with pytest.raises(Invalid, match="keys are made up by the writer"):
        dataframe(spark, ROWS, tmp_path).write.format("hudi").options(**upsert).mode("append").save(str(tmp_path / "t"))
