"""A writer of change data could die and leave a change log that no commit knows, or a commit whose change log is gone.

Each step of the storage is stopped at. Then the table is before or after the write, its changes from the beginning make
its rows, and after the next write no change log is left that no commit names.
"""

from collections.abc import Callable

import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.faults.test_crash_everywhere import (
    STORED,
    Scenario,
    check_crashes,
    delete_some,
    handles,
    prepared,
    snapshot,
    upsert_changes,
    values,
)
from tests.support.crashes import crash_points, distinct
from tests.support.model import Row, arrow


def with_changes(mode: str, version: int, **more: str) -> Callable[[MemoryStorage], None]:
    properties = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode, **more}

    def prepare(storage: Storage) -> None:
        handles(storage).create(properties=properties, table_version=version).upsert(arrow(STORED[:6]))
        handles(storage, later_ms=1_000).open().upsert(arrow(STORED[6:]))

    return prepare


NO_METADATA = {"hoodie.metadata.enable": "false"}
SCENARIOS = {
    "an upsert": Scenario(with_changes("DATA_BEFORE_AFTER", 9), upsert_changes),
    "a delete": Scenario(with_changes("OP_KEY_ONLY", 8), delete_some),
    "an upsert on version 6": Scenario(with_changes("DATA_BEFORE", 6), upsert_changes),
    "an upsert without a metadata table": Scenario(with_changes("DATA_BEFORE_AFTER", 9, **NO_METADATA), upsert_changes),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_leaves_changes_that_make_the_rows(name: str) -> None:
    scenario = SCENARIOS[name]
    start = prepared(scenario)
    logged = 0

    for what, disk in distinct(crash_points(scenario.run, start.copy)):
        try:
            table = handles(disk, later_ms=5_000).open()
            assert rows_of_changes(table) == rows_of(table)
            after = handles(disk, later_ms=900_000).open()
            after.upsert(arrow(STORED[:2]))
            assert rows_of_changes(after) == rows_of(after)
            assert change_logs(disk) == named_logs(after)
            logged += len(change_logs(disk))
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise

    assert logged


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_leaves_the_table_before_or_after(name: str) -> None:
    check_crashes(SCENARIOS[name])


def rows_of_changes(table: HudiTable) -> set[Row]:
    """The rows that the changes from the beginning make."""
    found: dict[tuple[str, str], Row] = {}
    for change in sorted(table.cdc().to_arrow().to_pylist(), key=lambda row: (row["requested"], row["op"] != "d")):
        row = Row(**(change["after"] or change["before"]))
        key = row.city, row.id
        assert (key in found) == (change["op"] != "i")
        found[key] = row
        if change["op"] == "d":
            del found[key]
    return set(found.values())


def rows_of(table: HudiTable) -> set[Row]:
    return set(values(snapshot(table)).values())


def change_logs(disk: Storage) -> set[str]:
    return {file.path for file in disk.list("", recursive=True) if file.path.endswith(".cdc")}


def named_logs(table: HudiTable) -> set[str]:
    return {path for path in table.cdc().files() if path.endswith(".cdc")}
