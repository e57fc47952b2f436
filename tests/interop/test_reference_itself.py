"""The judge may be wrong: a harness that loses rows, types or options on the way would blame us for it.
Here it handles tables whose answers are known: small ones made here, and those kept in `fixtures`."""

from __future__ import annotations

import datetime as dt
import json
import zipfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.compare import assert_same_rows
from tests.support.hudi_rs import read_hudi_rs
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

META = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
]
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
BEGIN = "hoodie.datasource.read.begin.instanttime"
TABLES = [
    ("cow_part_v8_h102", "1.0.2"),
    ("mor_delete_field_v8_h102", "1.0.2"),
    ("mor_nbcc_v9_h120", "1.2.0"),
    ("cow_nonpart_v9_h120", "1.2.0"),
]


def rides(ids: list[str], *, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "city": ["oslo" if i % 2 else "rome" for i in range(len(ids))],
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "fare": pa.array([Decimal("12.50")] * len(ids), pa.decimal128(10, 2)),
            "at": pa.array([dt.datetime(2026, 11, 21, 13, 0, 0, 1, tzinfo=dt.UTC)] * len(ids)),
            "stops": pa.array([[1.5, 0.1]] * len(ids), pa.list_(pa.float32())),
            "tags": pa.array([[("a", ts), ("b", None)]] * len(ids), pa.map_(pa.string(), pa.int64())),
            "night": pa.array([None] + [True] * (len(ids) - 1), pa.bool_()),
        }
    )


@pytest.mark.parametrize("name,version", [("hudi_102", 8), ("hudi_120", 9)])
def test_what_it_writes_comes_back_by_every_query(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "rides"
    first = rides(["a", "b", "c", "d"], ts=1)
    hudi.write(path, first, operation="insert", mode="overwrite", **OPTIONS)
    changed = first.slice(1, 2).set_column(2, "ts", pa.array([2, 2], pa.int64()))
    hudi.write(path, changed, operation="upsert", **OPTIONS)
    assert f"hoodie.table.version={version}" in (path / ".hoodie/hoodie.properties").read_text()

    second = pa.concat_tables([first.slice(0, 1), changed, first.slice(3)])
    snapshot = hudi.read(path, **{"hoodie.metadata.enable": True})
    assert_same_rows(snapshot, second, ignore_columns=META)
    assert_same_rows(hudi.read(path, **{"hoodie.metadata.enable": False}), snapshot)
    assert_same_rows(read_hudi_rs(path), snapshot)

    requested = sorted(set(snapshot["_hoodie_commit_time"].to_pylist()))
    assert len(requested) == 2
    assert_same_rows(hudi.read(path, **{"as.of.instant": requested[0]}), first, ignore_columns=META)
    assert_same_rows(read_hudi_rs(path, as_of=requested[0]), first, ignore_columns=META)

    incremental = {"hoodie.datasource.query.type": "incremental"}
    newest = snapshot.filter(pc.equal(snapshot["_hoodie_commit_time"], requested[1]))
    assert newest.num_rows == 2
    # A start between the completions of both commits: requested[1] is after the first one completed.
    assert_same_rows(hudi.read(path, **incremental, **{BEGIN: requested[1]}), newest)
    assert_same_rows(hudi.read(path, **incremental, **{BEGIN: "000"}), snapshot)
    assert_same_rows(read_hudi_rs(path, incremental=(requested[1], None)), newest)

    assert hudi.read(path, "ts > 2").num_rows == 0
    hudi.sql(f"CREATE TABLE {name}_rides USING hudi LOCATION '{path}'")
    commits = hudi.sql(f"CALL show_commits(table => '{name}_rides')")
    assert commits is not None
    assert commits.num_rows == 2
    assert hudi.sql(f"DROP TABLE {name}_rides") is None


def test_a_refusal_is_an_error_with_its_reason_and_the_session_lives_on(
    hudi_102: ReferenceHudi, tmp_path: Path
) -> None:
    with pytest.raises(ReferenceFailed, match=r"does not exist|not found|FileNotFound|TableNotFound"):
        hudi_102.read(tmp_path / "nothing")
    answer = hudi_102.sql("SELECT 1 AS one, NULL AS none, '\u00e9' AS text")
    assert answer is not None
    assert answer.to_pylist() == [{"one": 1, "none": None, "text": "é"}]


@pytest.mark.parametrize("table,version", TABLES)
def test_it_gives_the_answers_that_the_fixtures_keep(
    request: pytest.FixtureRequest, fixture_tables: Path, tmp_path: Path, table: str, version: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue("hudi_" + version.replace(".", ""))
    with zipfile.ZipFile(fixture_tables / f"{table}.zip") as archive:
        archive.extractall(tmp_path)
    expected = tmp_path / f"{table}.expected"
    manifest = json.loads((expected / "manifest.json").read_text())
    assert manifest["hudi_version"] == version
    answers = 0
    for file in sorted(expected.glob("*.parquet")):
        query, _, bounds = file.stem.partition("_")
        options = {}
        if file.stem == "read_optimized":
            options = {"hoodie.datasource.query.type": "read_optimized"}
        elif file.stem.startswith("time_travel_"):
            options = {"as.of.instant": file.stem.removeprefix("time_travel_")}
        elif query == "incremental":
            begin, end = bounds.split("_")
            options = {
                "hoodie.datasource.query.type": "incremental",
                BEGIN: begin,
                "hoodie.datasource.read.end.instanttime": end,
            }
        assert_same_rows(hudi.read(tmp_path / table, **options), pq.ParquetFile(file).read())
        answers += 1
    assert answers > 0
