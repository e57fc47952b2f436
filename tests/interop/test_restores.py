"""A savepoint of ours could be none to Apache Hudi, a restore of ours a damaged table; and the other way round.

Both write to one table, restore it to the same savepoint in turns, and write on; its metadata table has indexes.
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.storage.local import LocalStorage
from pyhudi.testing.crashing import Crash
from tests.interop.cow_rows import key_range, rows
from tests.interop.cow_tables import Shape, Shared
from tests.interop.mor_tables import SharedLogs
from tests.interop.test_cleaning import DyingAt
from tests.support.reference.client import ReferenceHudi

OPTIONS = {
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.metadata.index.column.stats.column.list": "id,region,city,ts,number,flag",
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.compact.max.delta.commits": 100,
    "hoodie.clean.automatic": False,
}
OURS = {**OPTIONS, "hoodie.metadata.index.bloom.filter.enable": True}
CASES = [
    pytest.param("hudi_102", SharedLogs, 8, id="8, merge-on-read, 1.0.2"),
    pytest.param("hudi_120", Shared, 9, id="9, copy-on-write, 1.2.0"),
    pytest.param("hudi_120", SharedLogs, 9, id="9, merge-on-read, 1.2.0"),
    pytest.param("hudi_0150", SharedLogs, 6, id="6, merge-on-read, 0.15.0"),
]


def table_of(hudi: ReferenceHudi, shared: Shared) -> str:
    """The table under a name that procedures of every release take."""
    name = f"restored_{abs(hash(shared.path))}"
    hudi.sql(f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION '{shared.path}'")
    return name


def restore_by_hudi(hudi: ReferenceHudi, shared: Shared, instant: str) -> None:
    hudi.sql(f"CALL rollback_to_savepoint(table => '{table_of(hudi, shared)}', instant_time => '{instant}')")


def savepointed(kind: Callable[..., Shared], path: Path, version: int) -> tuple[Shared, str]:
    shared = kind(path, Shape("rides", properties=OURS), version=version)
    shared.bulk_insert(rows(key_range(0, 60), turn=1))
    shared.upsert(rows(key_range(0, 70, 3), turn=2))
    return shared, shared.ours.savepoint(user="pyhudi", comment="both go back here").requested


def check_metadata(shared: Shared) -> None:
    assert shared.ours.metadata.validate().differences == ()


@pytest.mark.parametrize("name,kind,version", CASES)
def test_both_restore_one_table_to_our_savepoint_and_write_on(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, kind: Callable[..., Shared], version: int
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared, instant = savepointed(kind, tmp_path / "rides", version)
    then = deepcopy(shared.model)
    found = hudi.sql(f"CALL show_savepoints(table => '{table_of(hudi, shared)}')")
    assert found is not None
    assert found.column("savepoint_time").to_pylist() == [instant]

    shared.upsert(rows(key_range(1, 80, 4), turn=3))
    shared.hudi_write(hudi, "upsert", rows(key_range(0, 90, 5), turn=4), **OPTIONS)
    shared.delete(sorted(shared.model.rows)[:5])
    result = shared.ours.restore(instant)
    shared.model = deepcopy(then)

    assert len(result.rolled_back) == 3
    assert result.dropped == (("partition_stats",) if version > 6 else ()), "built by Apache Hudi, since then"
    shared.check(hudi)
    check_metadata(shared)
    shared.hudi_write(hudi, "upsert", rows(key_range(0, 90, 4), turn=5), **OPTIONS)
    shared.check(hudi)
    check_metadata(shared)
    shared.upsert(rows(key_range(2, 90, 3), turn=6))
    shared.check(hudi)

    restore_by_hudi(hudi, shared, instant)
    shared.model = deepcopy(then)

    shared.check(hudi)
    check_metadata(shared)
    shared.upsert(rows(key_range(1, 80, 3), turn=7))
    shared.check(hudi)
    check_metadata(shared)
    shared.hudi_write(hudi, "upsert", rows(key_range(0, 90, 7), turn=8), **OPTIONS)
    shared.check(hudi)
    assert [of.requested for of in shared.ours.savepoints()] == [instant]


@pytest.mark.parametrize("mark", [".restore.inflight'", ".rollback.inflight'", ".deltacommit.inflight'"])
def test_hudi_finishes_a_restore_of_ours(tmp_path: Path, hudi_102: ReferenceHudi, mark: str) -> None:
    shared, instant = savepointed(SharedLogs, tmp_path / "rides", 8)
    then = deepcopy(shared.model)
    shared.upsert(rows(key_range(1, 80, 4), turn=3))
    shared.upsert(rows(key_range(1, 80, 5), turn=4))
    dying = DyingAt(LocalStorage(str(shared.path)), survives=1_000_000, lands=True, mark=mark)
    with pytest.raises(Crash):
        HudiTable.open(shared.path, storage=dying).restore(instant)
    shared.model = deepcopy(then)
    shared.check_ours()

    restore_by_hudi(hudi_102, shared, instant)

    shared.check(hudi_102)
    shared.upsert(rows(key_range(0, 80, 3), turn=5))
    shared.check(hudi_102)
    check_metadata(shared)
    assert [i.action for i in shared.ours.timeline() if not i.completed] == []


@pytest.mark.parametrize("name,kind,version", CASES)
def test_hudi_goes_on_where_we_took_its_newest_commit_back(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, kind: Callable[..., Shared], version: int
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared, _ = savepointed(kind, tmp_path / "rides", version)
    shared.hudi_write(hudi, "upsert", rows(key_range(0, 90, 5), turn=3), **OPTIONS)
    then = deepcopy(shared.model)
    for turn, by_hudi in ((4, True), (5, False)):
        if by_hudi:
            shared.hudi_write(hudi, "upsert", rows(key_range(0, 95, 4), turn=turn), **OPTIONS)
        else:
            shared.upsert(rows(key_range(0, 95, 3), turn=turn))
        newest = max(i.requested for i in shared.ours.timeline() if i.action in ("commit", "deltacommit"))

        assert shared.ours.rollback(newest).rolled_back == newest
        shared.model = deepcopy(then)

        shared.check(hudi)
        check_metadata(shared)
    shared.hudi_write(hudi, "upsert", rows(key_range(0, 90, 7), turn=6), **OPTIONS)
    shared.check(hudi)
    check_metadata(shared)
    shared.upsert(rows(key_range(1, 80, 3), turn=7))
    shared.check(hudi)


@pytest.mark.parametrize("is_planned", [False, True], ids=["no plan", "a compaction is planned"])
@pytest.mark.parametrize("name,version", [("hudi_102", 8), ("hudi_120", 9)])
def test_hudi_reads_what_a_restore_behind_our_upgrade_leaves(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, is_planned: bool
) -> None:
    """The logs of before the upgrade have the names of version 6, which tell the instant of their slice."""
    hudi: ReferenceHudi = request.getfixturevalue(name)

    def few(x: int, ids: tuple[str, ...] = ("a", "b")) -> pa.Table:
        return pa.table({"id": list(ids), "city": ["oslo"] * len(ids), "ts": [x] * len(ids)})

    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        table_version=6, properties={"hoodie.compact.inline": "false"},
    )  # fmt: skip
    table.upsert(few(1))
    kept = table.savepoint()
    table.upsert(few(2))
    if is_planned:
        assert table.schedule_compaction().requested
    table.upsert(few(3))
    table.upgrade(version)
    table.restore(kept.requested)

    def theirs() -> list[tuple[str, int]]:
        return sorted((row["id"], row["ts"]) for row in hudi.read(tmp_path / "t").to_pylist())

    assert theirs() == [("a", 1), ("b", 1)]
    table.upsert(few(4, ("c", "a")))
    assert theirs() == [("a", 4), ("b", 1), ("c", 4)]
