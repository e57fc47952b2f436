"""A bootstrap through Spark's writer, or in tasks of a cluster, could make another table than one in this process.

The same folder is bootstrapped by options of `df.write`, in this process and as on a cluster, and read by Spark.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.spark import register
from tests.support.compare import assert_same_rows
from tests.support.spark_cluster import writes_as_on_cluster

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.datasource.write.operation": "bootstrap",
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "n",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bootstrap.keygen.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
}
REGEX = {
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": "n=1",
}
FULL = {"hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.FullRecordBootstrapModeSelector"}


@pytest.fixture
def expected(tmp_path: Path) -> pa.Table:
    """Makes the source: three partitions of two files each."""
    whole = []
    for part in range(3):
        folder = tmp_path / "source" / f"n={part}"
        folder.mkdir(parents=True)
        for number in range(2):
            rows = pa.table({"id": [f"{part}-{number}-{n}" for n in range(5)], "ts": [1] * 5})
            pq.write_table(rows, folder / f"{number}.parquet", row_group_size=2)
            whole.append(rows.append_column("n", pa.array([part] * 5, pa.int32())))
    return pa.concat_tables(whole)


def save(spark: Any, tmp_path: Path, options: Mapping[str, str], schema: str = "id string") -> str:
    register(spark)
    path = str(tmp_path / "table")
    place = {"hoodie.bootstrap.base.path": (tmp_path / "source").as_uri()}
    frame = spark.createDataFrame([], schema)
    frame.write.format("hudi").options(**OPTIONS, **place, **options).mode("overwrite").save(path)
    return path


def read(spark: Any, path: str) -> pa.Table:
    frame = spark.read.format("hudi").load(path).select("id", "ts", "n")
    return pa.Table.from_pandas(frame.toPandas(), preserve_index=False).cast(
        pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])
    )


def test_the_operation_of_a_writer_makes_the_table(spark: Any, tmp_path: Path, expected: pa.Table) -> None:
    path = save(spark, tmp_path, REGEX)
    assert_same_rows(read(spark, path), expected)

    with pytest.raises(Invalid, match="expected no table to bootstrap, found one"):
        save(spark, tmp_path, REGEX)

    changed = spark.createDataFrame([("1-0-0", 2, 1), ("new", 2, 2)], "id string, ts bigint, n int")
    upsert = {**OPTIONS, "hoodie.datasource.write.operation": "upsert"}
    changed.write.format("hudi").options(**upsert).mode("append").save(path)
    assert HudiTable.open(path).scan(where="ts = 2").count() == 2
    assert len(read(spark, path)) == len(expected) + 1


def test_a_frame_with_other_columns_and_no_source_are_refused(spark: Any, tmp_path: Path, expected: pa.Table) -> None:
    del expected
    with pytest.raises(Invalid, match="column 'other' of the DataFrame"):
        save(spark, tmp_path, {}, "other string")
    register(spark)
    frame = spark.createDataFrame([], "id string")
    with pytest.raises(Invalid, match="expected the folder with the files to bootstrap from"):
        frame.write.format("hudi").options(**OPTIONS).mode("overwrite").save(str(tmp_path / "table"))
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("options", [{}, *(pytest.param(o, marks=pytest.mark.long) for o in (FULL, REGEX))])
def test_a_cluster_writes_skeletons_in_one_job(
    spark: Any, tmp_path: Path, expected: pa.Table, options: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    writes_as_on_cluster(monkeypatch, gathers=False)
    monkeypatch.setattr("pyhudi.engine.spark.engine.runs_on_this_machine", lambda spark: False)
    facts: dict[str, Any] = {"name": "t", "record_key": "id", "partition_by": "n", "ordering": "ts"}
    context = spark.sparkContext
    context.setJobGroup("bootstrap", "")
    table = HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **facts, options=options, spark=spark)
    jobs = context.statusTracker().getJobIdsForGroup("bootstrap")
    context.setJobGroup("other", "")

    assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)
    if not options:
        assert len(jobs) == 1
    table.upsert(pa.table({"id": ["1-0-0"], "ts": [2], "n": pa.array([1], pa.int32())}))
    assert table.scan().count() == len(expected)
