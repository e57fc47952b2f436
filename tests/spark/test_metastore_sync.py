"""A write to a path could ask for a name in the metastore and get none, or take the name of another table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.named_tables import OwnSql, metastore_settings, rows_of
from tests.support.reference.client import ReferenceFailed

pytestmark = [pytest.mark.spark, pytest.mark.long]

SYNC = "hoodie.datasource.hive_sync."
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "city",
    f"{SYNC}enable": "true", f"{SYNC}database": "Lake",
}  # fmt: skip


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnSql]:
    """A session with a metastore of its own, in a folder."""
    ours = OwnSql(metastore_settings("", tmp_path_factory.mktemp("hive") / "warehouse"))
    yield ours
    ours.close()


def rides(*cities: str) -> pa.Table:
    return pa.table({"id": list(range(len(cities))), "city": list(cities)})


def test_names_follow_writes_to_paths_and_streams(hive: OwnSql, tmp_path: Path) -> None:
    path = tmp_path / "a b"
    hive.write(path, rides("oslo", "rome"), **OPTIONS, **{f"{SYNC}table": "Rides"})
    hive.write(path, rides("oslo", "rome", "bonn"), **OPTIONS, **{f"{SYNC}table": "Rides"})
    assert rows_of(hive, "SELECT count(*) FROM lake.rides") == [(3,)]
    assert set(hive.entry("lake", "rides")["partitions"]) == {"oslo", "rome", "bonn"}

    streamed = OPTIONS | {"hoodie.table.name": "streamed", "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    hive.stream_in(tmp_path / "s", rides("oslo"), tmp_path / "checkpoint", **streamed)
    assert rows_of(hive, "SELECT id, city FROM lake.streamed_ro") == [(0, "oslo")]
    assert set(hive.entry("lake", "streamed_rt")["partitions"]) == {"oslo"}
    hive.sql("DROP TABLE lake.streamed PURGE")
    assert [name for _, name, _ in rows_of(hive, "SHOW TABLES IN lake") if name.startswith("streamed")] == []
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "options, expected",
    [
        ({f"{SYNC}table": "taken"}, "found 'lake.taken', which is the table at"),
        ({f"{SYNC}table": "plain"}, "found 'lake.plain', which is a table of another format"),
        ({f"{SYNC}table": "new", f"{SYNC}metastore.uris": "thrift://elsewhere:9083"}, "has 'Derby'"),
        ({f"{SYNC}table": "new", "hoodie.meta.sync.client.tool.class": "a.b.GlueTool"}, "expected HiveSyncTool"),
    ],
)
def test_a_sync_that_cannot_be_is_refused_before_the_write(
    hive: OwnSql, tmp_path: Path, options: dict[str, str], expected: str
) -> None:
    for text in (
        "CREATE DATABASE IF NOT EXISTS lake",
        "CREATE TABLE IF NOT EXISTS lake.plain (id INT) USING parquet",
        "CREATE TABLE IF NOT EXISTS lake.taken (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')",
    ):
        hive.sql(text)
    with pytest.raises(ReferenceFailed, match=expected):
        hive.write(tmp_path / "t", rides("oslo"), **OPTIONS, **options)
    assert not (tmp_path / "t").exists()
