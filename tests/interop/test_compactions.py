"""A compaction is the one chance to lose a row of a log for good. Apache Hudi compacts the logs that pyhudi wrote, and
pyhudi those of Apache Hudi; each carries out what the other has planned; rows before and after must be the same, to
both, and writes that come between plan and compaction must stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.services.compaction import inputs
from pyhudi.write.handles.log_compaction import compact_log
from tests.interop.cow_rows import key_range, row, rows
from tests.interop.cow_tables import PLAIN, SHAPES, Shape
from tests.interop.mor_tables import BLOCK_FORMAT, PARTIAL, SharedLogs
from tests.interop.test_log_turns import COMPACTS, PAIRS
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

BLOCKS = pytest.mark.parametrize("kind", ["parquet", "avro"])
GONE = [f"key-{n:05}" for n in (24, 52, 59, 87, 94)]
"""Deleted without ordering value, and not written again in the same log: 1.0.2 fails on that, its own logs too."""
ALONE = {f"key-{n:05}" for n in (6, 16, 26, 36, 46, 56)}
LOG_COMPACTS = {
    "hoodie.log.compaction.enable": True, "hoodie.log.compaction.inline": True,
    "hoodie.log.compaction.blocks.threshold": 3,
}  # fmt: skip


def logs_of_ours(path: Path, version: int, kind: str, shape: Shape = PLAIN) -> SharedLogs:
    """Rows, late rows, deletes and partial updates, some blocks a slice."""
    shared = SharedLogs(path, shape, version=version, properties={BLOCK_FORMAT: kind})
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    shared.upsert([row(key, turn=2, ts=n % 4) for n, key in enumerate(key_range(60, 150))])
    shared.delete(GONE)
    shared.delete_ordered(sorted(shared.model.rows)[2::12], ts=2)
    # Each the only record of its key in the log: Apache Hudi fails to compact others in Avro blocks.
    shared.upsert_columns(rows(sorted(ALONE & shared.model.rows.keys()), turn=5), PARTIAL)
    shared.upsert(rows(key_range(1, 160, 10), turn=6))
    return shared


def all_is_compacted(shared: SharedLogs) -> None:
    assert_same_rows(shared.ours.scan(query="read_optimized").to_arrow(), shared.check_ours())
    shared.model.graves.clear()


def compactions(shared: SharedLogs) -> list[str]:
    return [i.requested for i in shared.ours.timeline() if i.action == "commit" and i.completed is not None]


def pending(shared: SharedLogs) -> list[str]:
    return [i.requested for i in shared.ours.timeline() if i.completed is None]


def call(hudi: ReferenceHudi, shared: SharedLogs, operation: str, options: dict[str, Any]) -> None:
    """Schedule or run compactions by Apache Hudi's procedure."""
    texts = ",".join(f"{key}={str(value).lower()}" for key, value in options.items())
    with_options = f", options => '{texts}'" if texts else ""
    hudi.sql(f"CALL run_compaction(op => '{operation}', path => '{shared.path}'{with_options})")


@BLOCKS
@PAIRS
def test_hudi_compacts_our_logs(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any], kind: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    by_commit_time = kind == "avro" and name != "hudi_102"
    shared = logs_of_ours(tmp_path / "rides", version, kind, SHAPES[1] if by_commit_time else PLAIN)
    shared.hudi_write(hudi, "upsert", rows(key_range(5, 170, 25), turn=7), **{**options, **COMPACTS})
    assert len(compactions(shared)) == 1
    all_is_compacted(shared)
    shared.check(hudi)
    shared.upsert(rows(key_range(0, 180, 6), turn=8))
    shared.delete(sorted(shared.model.rows)[5::30])
    shared.check(hudi)


def test_hudi_102_compacts_no_partial_updates_of_tables_in_commit_time_order(
    tmp_path: Path, hudi_102: ReferenceHudi
) -> None:
    """Its merger of such tables has no rule for them. We compact them, and it goes on."""
    shared = logs_of_ours(tmp_path / "rides", 8, "avro", SHAPES[1])
    with pytest.raises(ReferenceFailed, match="Partial merging logic is not implemented"):
        shared.hudi_write(hudi_102, "upsert", rows(key_range(5, 170, 25), turn=7), **COMPACTS)


@BLOCKS
@PAIRS
def test_we_compact_logs_of_both(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any], kind: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = logs_of_ours(tmp_path / "rides", version, kind)
    block = {BLOCK_FORMAT: "parquet" if kind == "parquet" else "avro"}
    shared.hudi_write(hudi, "upsert", rows(key_range(5, 170, 7), turn=7), **{**options, **block})
    shared.hudi_delete(hudi, sorted(shared.model.rows)[4::13], **{**options, **block})
    assert shared.ours.compact().requested in compactions(shared)
    all_is_compacted(shared)
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(key_range(2, 180, 9), turn=8), **options)
    shared.upsert(rows(key_range(0, 180, 6), turn=9))
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(key_range(1, 180, 20), turn=10), **{**options, **COMPACTS})
    all_is_compacted(shared)
    shared.check(hudi)


@PAIRS
def test_each_carries_out_what_the_other_planned(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = logs_of_ours(tmp_path / "rides", version, "parquet")
    for by_hudi, turn in ((True, 10), (False, 20)):
        if by_hudi:
            call(hudi, shared, "schedule", {**options, "hoodie.compact.inline.max.delta.commits": 1})
        else:
            shared.upsert(rows(key_range(0, 180, 4), turn=turn))
            assert shared.ours.schedule_compaction().requested is not None
        (planned,) = pending(shared)
        shared.check(hudi)
        shared.upsert(rows(key_range(turn % 7, 180, 5), turn=turn))  # over a plan that is pending
        shared.hudi_write(hudi, "upsert", rows(key_range(turn % 9, 190, 8), turn=turn + 1), **options)
        shared.delete_ordered(sorted(shared.model.rows)[turn % 11 :: 15], ts=turn + 2)
        shared.check(hudi)
        if by_hudi:
            shared.ours.compact()
        else:
            call(hudi, shared, "run", options)
        assert planned in compactions(shared)
        assert pending(shared) == []
        shared.check(hudi)
    shared.ours.compact()
    all_is_compacted(shared)
    shared.check(hudi)


@BLOCKS
@PAIRS
def test_each_reads_and_goes_on_with_logs_that_the_other_compacted_into_logs(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any], kind: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = SharedLogs(tmp_path / "rides", version=version, properties={BLOCK_FORMAT: kind})
    shared.bulk_insert(rows(key_range(0, 100), turn=1))
    for turn in range(2, 6):
        shared.upsert(rows(key_range(turn, 110, 3), turn=turn))
    shared.delete(key_range(0, 1))
    shared.delete_ordered(key_range(3, 100, 11), ts=5)
    result = shared.ours.log_compact(options={"hoodie.log.compaction.blocks.threshold": 3})
    assert result.requested is not None, result
    shared.check(hudi)
    for turn in range(6, 9):
        shared.upsert(rows(key_range(turn, 110, 3), turn=turn))
    before = {i.requested for i in shared.ours.timeline()}
    hudi.write(
        shared.path, shared._as_table(more := rows(key_range(1, 110, 4), turn=9)), operation="upsert",
        **{**shared.hudi_options(), **options, **LOG_COMPACTS},
    )  # fmt: skip
    added = [i.requested for i in shared.ours.timeline() if i.requested not in before and i.completed is not None]
    assert len(added) == 2, "expected a delta commit and a log compaction"
    shared.model.upsert(min(added), more)
    shared.check(hudi)
    shared.upsert(rows(key_range(2, 120, 5), turn=10))
    shared.check(hudi)
    assert shared.ours.compact().requested is not None
    all_is_compacted(shared)
    shared.check(hudi)


def test_a_log_compaction_does_not_count_upon_a_compaction_that_overtook_it(
    hudi_120: ReferenceHudi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache Hudi plans and runs the compaction while the log compaction runs, where several write: both complete."""
    table = HudiTable.create(tmp_path / "rides", name="rides", record_key="id", table_type="MERGE_ON_READ")
    for turn in range(3):
        table.upsert(pa.table({"id": ["a", "b"][turn % 2 :], "v": [turn] * (2 - turn % 2)}))

    def overtaken(*args: Any, **named: Any) -> Any:
        stats = compact_log(*args, **named)
        other = HudiTable.open(table.path)
        other.upsert(pa.table({"id": ["a"], "v": [7]}))
        monkeypatch.setattr(inputs, "compact_log", compact_log)
        monkeypatch.setattr(inputs, "read_pending_groups", lambda *_: {})
        assert other.compact().completed
        return stats

    monkeypatch.setattr(inputs, "compact_log", overtaken)
    monkeypatch.setattr("pyhudi.services.compaction.run.find_overtaking", lambda *_: None)
    assert table.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2}).completed

    ours = HudiTable.open(table.path).scan().to_arrow()
    assert sorted(zip(ours["id"].to_pylist(), ours["v"].to_pylist(), strict=True)) == [("a", 7), ("b", 2)]
    assert_same_rows(hudi_120.read(table.path), ours)
