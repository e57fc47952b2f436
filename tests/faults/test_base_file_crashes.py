"""A writer could die while it writes ORC files, or the first whole file of a bootstrapped file group, and leave a table
whose next reader or writer takes the half for the whole.

As in `test_crash_everywhere.py`: at every change of the storage, both ways.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.faults.test_crash_everywhere import (
    Scenario,
    check_crashes,
    delete_some,
    handles,
    upsert_changes,
    with_logs,
    with_rows,
)
from tests.support.compare import assert_same_rows
from tests.support.crashes import crash_points, distinct, every_nth
from tests.support.golden_tables import GoldenTables

YEAR_MS = 365 * 24 * 3_600_000
"""After the tables were written."""

ORC = {"hoodie.table.base.file.format": "ORC"}

SCENARIOS = {
    "an upsert": Scenario(lambda disk: with_rows(disk, **ORC), upsert_changes),
    "a delete": Scenario(lambda disk: with_rows(disk, **ORC), delete_some),
    "an upsert to logs": Scenario(lambda disk: with_logs(disk, **ORC), upsert_changes),
}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


@pytest.mark.long
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_a_crash_leaves_a_table_of_orc_files_before_or_after(name: str) -> None:
    check_crashes(SCENARIOS[name])


def in_memory(folder: Path) -> MemoryStorage:
    disk = MemoryStorage()
    for path in folder.rglob("*"):
        if path.is_file():
            disk.put(path.relative_to(folder).as_posix(), path.read_bytes())
    return disk


def rows_of(table: HudiTable) -> pa.Table:
    return table.scan(meta_fields=False).to_arrow()


STEPS = {
    "cow_bootstrap_meta_v9_h120": ("upsert", "delete"),
    "mor_bootstrap_mixed_v6_h0150": ("upsert", "compact"),
}


@pytest.mark.parametrize(
    "name,step,nth",
    [
        ("cow_bootstrap_meta_v9_h120", "upsert", 9),
        *(pytest.param(name, step, 1, marks=pytest.mark.long) for name, steps in STEPS.items() for step in steps),
    ],
)
def test_a_crash_leaves_a_bootstrapped_table_before_or_after(
    golden: GoldenTables, name: str, step: str, nth: int
) -> None:
    found = golden.get(name)
    start = in_memory(found.path)
    source = {"hoodie.bootstrap.base.path": found.path.with_name(f"{name}.source").as_uri()}

    def opened(disk: Storage, later_ms: int = 0) -> HudiTable:
        return handles(disk, later_ms=YEAR_MS + later_ms).open(source)

    def change(disk: Storage) -> None:
        table = opened(disk)
        match step:
            case "upsert":
                table.upsert(changed)
            case "delete":
                table.delete(changed)
            case "compact":
                table.compact()

    before = rows_of(opened(start))
    changed = before.filter(pc.match_substring(before.column("id"), "2"))
    changed = changed.set_column(changed.column_names.index("name"), "name", pa.array(["changed"] * len(changed)))
    changed = changed.set_column(
        changed.column_names.index("ts"), "ts", pc.add(changed.column("ts").fill_null(0), 100_000)
    )
    whole = start.copy()
    change(whole)
    after = rows_of(opened(whole))
    last = changed.slice(0, 1)
    last = last.set_column(last.column_names.index("ts"), "ts", pa.array([900_000], pa.int64()))

    outcomes = set()
    for what, disk in every_nth(distinct(crash_points(change, start.copy)), nth):
        try:
            table = opened(disk, 60_000)
            is_after = len(completed(table)) > len(completed(opened(start)))
            wanted = after if is_after else before
            outcomes.add(is_after)
            assert_same_rows(rows_of(table), wanted)
            table.upsert(last)
            others = wanted.filter(pc.not_equal(wanted.column("id"), last.column("id")[0]))
            assert_same_rows(rows_of(table), pa.concat_tables([others, last]))
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise
    assert outcomes == {True, False}


def completed(table: HudiTable) -> list[str]:
    return [i.requested for i in table.timeline() if i.completed and i.action in ("commit", "deltacommit")]
