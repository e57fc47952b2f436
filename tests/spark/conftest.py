"""One Spark session for all tests here, and the golden tables unpacked."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.handovers import LONG_WAYS
from tests.support.golden_tables import GoldenTables
from tests.support.spark_cluster import send_all, through_parquet, write_parts, writes_as_on_cluster
from tests.support.spark_jvm import SHORT_LIVED
from tests.support.standalone_cluster import StandaloneCluster, cluster_of_tests

SETTINGS = {
    **SHORT_LIVED,
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


REMOTE = "PYHUDI_TEST_REMOTE"
"""Names a Spark Connect server that the tests here are to run on (`test_connect_sql.py`)."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session. Workers' interpreter is left unset on purpose: pyhudi sees to it itself."""
    sql = pytest.importorskip("pyspark.sql")
    if REMOTE in os.environ:
        session = sql.SparkSession.builder.remote(os.environ[REMOTE]).getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        yield session
        session.stop()
        return
    before = os.environ.pop("PYSPARK_PYTHON", None)
    builder = sql.SparkSession.builder.master("local[2]").appName("pyhudi tests")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    if before is not None:
        os.environ["PYSPARK_PYTHON"] = before


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    """A standalone Spark, one master and two workers."""
    pytest.importorskip("pyspark")
    with cluster_of_tests(tmp_path) as started:
        yield started


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


@pytest.fixture(params=["files", "shuffle", *(pytest.param(way, marks=pytest.mark.long) for way in LONG_WAYS)])
def handover(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """How rows get to their file group: this process through files, as on one machine; Spark's shuffle, as many rows on
    a cluster; gathered by this process, as few rows there; gathered and sent to tasks of Spark, as few rows for many
    file groups; new rows written where Spark reads them, others by the shuffle; through files and the shuffle, as for a
    large upsert on one machine; or from Parquet files that this process reads, or tasks do in parts. All but the first
    two have parts that the others test, so they are mostly in the long run."""
    way: str = request.param
    if way in ("shuffle", "gathered", "sent", "parts", "Parquet in parts"):
        writes_as_on_cluster(monkeypatch, gathers=way in ("gathered", "sent"))
    if way in ("parts", "Parquet in parts"):
        write_parts(monkeypatch)
    if way in ("Parquet", "Parquet in parts"):
        through_parquet(monkeypatch, tmp_path_factory.mktemp("parquet"))
    if way == "sent":
        send_all(monkeypatch)
    if way == "files and shuffle":
        monkeypatch.setattr("pyhudi.engine.spark.write.staged_source.TAGGED_ROWS_MAX", 0)
        monkeypatch.setattr("pyhudi.engine.spark.write.staged_source.BUCKETED_ROWS_MAX", 0)
    return way


@pytest.fixture
def by_shuffle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes as those of many rows on a cluster."""
    writes_as_on_cluster(monkeypatch, gathers=False)


@pytest.fixture
def on_cluster(by_shuffle: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes, indexings and compactions as on a cluster."""
    monkeypatch.setattr("pyhudi.engine.spark.engine.runs_on_this_machine", lambda spark: False)
