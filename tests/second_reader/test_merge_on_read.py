"""A block, a delete or a position could be written so that pyhudi alone understands it: for each kind of block and of
change, pyhudi writes a merge-on-read table, and hudi-rs must find in it what pyhudi finds and what a dict says.

Where hudi-rs answers otherwise, the test says exactly how; if it has learnt better, that test fails and is to go.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.cow_rows import META_BUT_TIME, key_range, rows
from tests.interop.mor_tables import BLOCK_FORMAT, PARTIAL, SharedLogs
from tests.interop.test_log_merging import CASES, MARKED, Shown, shown, written
from tests.interop.test_merge_on_read import CASES as TABLES
from tests.interop.test_merge_on_read import written_by_us
from tests.second_reader.watched import BEGINNING
from tests.support.compare import assert_same_rows
from tests.support.hudi_rs import SEVERAL_ORDERING_COLUMNS, VERSIONS, HudiRsError, read_hudi_rs, read_hudi_rs_by_storage

OLD_LISTS = HudiRsError("HudiCoreError", "partial-update column 'tags' has type List(Field { data_type: Utf8")
KINDS = pytest.mark.parametrize("kind, version", [("parquet", 8), ("avro", 9), ("hfile", 9)])


@pytest.mark.parametrize("case, version", [("parquet", 8), ("avro", 8), *((case, 9) for case in (*TABLES, "hfile"))])
def test_hudi_rs_reads_our_logs_by_every_query(tmp_path: Path, case: str, version: int) -> None:
    shape, kind = TABLES.get(case, (TABLES["parquet"][0], case))
    shared, commits = written_by_us(tmp_path / "rides", shape, version, kind)

    check_snapshot_and_base_files(shared)
    for requested in commits[1::3]:
        then = shared.ours.scan(as_of=requested).to_arrow()
        assert_same_rows(then, shared.model.table(requested), ignore_columns=META_BUT_TIME)
        if kind == "avro" and len(then.column_names) < len(shared.ours.schema().names):
            with OLD_LISTS.expected():
                read_hudi_rs(shared.path, as_of=requested)
            continue
        added = set(shared.ours.schema().names) - set(then.column_names)  # it shows the columns of now
        assert_same_rows(read_hudi_rs(shared.path, as_of=requested), then, ignore_columns=added)


@KINDS
def test_hudi_rs_finds_the_changes_in_our_logs(tmp_path: Path, kind: str, version: int) -> None:
    shared = SharedLogs(tmp_path / "rides", version=version, properties={BLOCK_FORMAT: kind})
    commits = [
        shared.bulk_insert(rows(key_range(0, 60), turn=1)),
        shared.upsert(rows(key_range(20, 70, 2), turn=2)),
        shared.delete(key_range(3, 60, 11)),
        shared.upsert(rows(key_range(0, 60, 3), turn=4)),
    ]
    for first in range(-1, 3):
        for last in range(first + 1, 4):
            start = shared.completed(commits[first]) if first >= 0 else BEGINNING
            span = (start, shared.completed(commits[last]))
            changes = shared.ours.incremental(*span).to_arrow()
            assert_same_rows(changes, shared.model.changed(commits[first + 1 : last + 1]), ignore_columns=META_BUT_TIME)
            assert_same_rows(read_hudi_rs(shared.path, incremental=span), changes)


@VERSIONS
def test_hudi_rs_shows_rows_that_came_too_late_as_changes(tmp_path: Path, version: int) -> None:
    """It does not ask the base file, whose row is greater, where the range leaves that out."""
    shared = SharedLogs(tmp_path / "rides", version=version)
    first = shared.bulk_insert(rows(key_range(0, 10), turn=5))
    last = shared.upsert(rows(key_range(0, 3), turn=4))
    span = (shared.completed(first), shared.completed(last))

    assert len(shared.ours.incremental(*span).to_arrow()) == 0
    assert len(read_hudi_rs(shared.path, incremental=span)) == 3
    check_snapshot_and_base_files(shared)


@KINDS
def test_hudi_rs_reads_our_partial_updates(tmp_path: Path, kind: str, version: int) -> None:
    shared = SharedLogs(tmp_path / "rides", version=version, properties={BLOCK_FORMAT: kind})
    keys = key_range(0, 40)
    shared.bulk_insert(rows(keys, turn=1))
    shared.upsert_columns(rows([*keys[::2], "key-00050"], turn=2), PARTIAL)
    shared.upsert_columns(rows(keys[::3], turn=3), ("id", "region", "city", "ts", "flag"))
    shared.upsert(rows(keys[::5], turn=4))
    shared.delete(keys[::7])

    check_snapshot_and_base_files(shared)


@VERSIONS
def test_hudi_rs_reads_what_our_compactions_leave(tmp_path: Path, version: int) -> None:
    shared, _ = written_by_us(tmp_path / "rides", TABLES["parquet"][0], version, "parquet")
    assert shared.ours.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2}).requested is not None
    check_snapshot_and_base_files(shared)
    shared.ours.schedule_compaction()
    shared.upsert([{**one, "note": "over a plan"} for one in rows(sorted(shared.model.rows)[::9], turn=20)])
    check_snapshot_and_base_files(shared)
    assert shared.ours.compact().requested is not None
    check_snapshot_and_base_files(shared)
    shared.upsert([{**one, "note": "after it"} for one in rows(sorted(shared.model.rows)[::8], turn=21)])
    check_snapshot_and_base_files(shared)


def check_snapshot_and_base_files(shared: SharedLogs) -> None:
    ours = shared.check_ours()
    base = shared.ours.scan(query="read_optimized").to_arrow()
    assert_same_rows(read_hudi_rs(shared.path), ours)
    assert_same_rows(read_hudi_rs_by_storage(shared.path), ours)
    assert_same_rows(read_hudi_rs(shared.path, read_optimized=True), base)


@KINDS
def test_hudi_rs_makes_of_our_logs_what_we_do(tmp_path: Path, kind: str, version: int) -> None:
    ours: dict[str, Shown] = {}
    found: dict[str, Shown] = {}
    for cases in (MARKED, CASES.keys() - MARKED):
        table = written(tmp_path / f"{len(cases)} cases", kind, version, cases)
        ours |= shown(table.scan().to_arrow())
        found |= shown(read_hudi_rs(table.path))

    assert {case: found.get(case) for case in CASES if found.get(case) != ours.get(case)} == {}


def test_hudi_rs_cannot_read_logs_of_several_ordering_columns(tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering=("ts", "said"), table_type="MERGE_ON_READ", table_version=9
    )
    for said in ("first", "then"):
        table.upsert(pa.table({"id": ["k"], "ts": [1], "said": [said]}))
    assert table.scan(columns=["said"]).to_arrow()["said"].to_pylist() == ["then"]

    with SEVERAL_ORDERING_COLUMNS.expected():
        read_hudi_rs(tmp_path / "t")


@pytest.mark.parametrize("version, ours", [(6, {("ben", 2)}), (8, {("ada", 5)})])
def test_hudi_rs_compares_deletes_of_version_6_as_those_of_version_8(
    tmp_path: Path, version: int, ours: set[tuple[str, int]]
) -> None:
    """As Apache Hudi 1.2.0 does. We go by 0.15.0: a delete wins over the base row, and a later row over the delete."""
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ", table_version=version,
        properties={"hoodie.compact.inline": "false"},
    )  # fmt: skip
    table.bulk_insert(pa.table({"id": ["ada", "ben"], "ts": [5, 1]}))
    table.delete(pa.table({"id": ["ada", "ben"], "ts": [3, 4]}))
    table.upsert(pa.table({"id": ["ben"], "ts": [2]}))

    def rows(found: pa.Table) -> set[tuple[str, int]]:
        return set(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))

    assert rows(table.scan().to_arrow()) == ours
    assert rows(read_hudi_rs(tmp_path / "t")) == {("ada", 5)}


@pytest.mark.parametrize("version, ours", [(6, {("ada", 5)}), (8, {("ada", 2)})])
def test_hudi_rs_orders_rows_of_a_log_of_version_6_by_commit_time_alone(
    tmp_path: Path, version: int, ours: set[tuple[str, int]]
) -> None:
    """We go by 0.15.0: where rows have an ordering value, it decides among those of a log, whatever the merge mode."""
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ", table_version=version,
        properties={"hoodie.compact.inline": "false", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
    )  # fmt: skip
    for moment in (1, 5, 2):
        table.upsert(pa.table({"id": ["ada"], "ts": [moment]}))

    def rows(found: pa.Table) -> set[tuple[str, int]]:
        return set(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))

    assert rows(table.scan().to_arrow()) == ours
    assert rows(read_hudi_rs(tmp_path / "t")) == {("ada", 2)}
