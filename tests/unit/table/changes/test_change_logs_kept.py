"""A change log could be unknown to the metadata table, outlive its file slice, or go before it."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, NotFound

OPTIONS = {"hoodie.clean.automatic": "false"}


def rows(first: int, last: int, time: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in range(first, last)], "ts": [time] * (last - first)})


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="ts", properties={"hoodie.table.cdc.enabled": "true"}
    )
    made.insert(rows(0, 10, 1), options=OPTIONS)
    for time in (2, 3, 4, 5):
        made.upsert(rows(time, time + 3, time), options=OPTIONS)
    return made


def logs(table: HudiTable) -> list[str]:
    return sorted(path.name for path in Path(table.path.removeprefix("file://")).rglob("*.cdc"))


def test_the_metadata_table_lists_change_logs(table: HudiTable) -> None:
    assert len(logs(table)) == 4
    assert table.metadata.validate().differences == ()


def test_a_clean_takes_change_logs_with_their_slices(table: HudiTable) -> None:
    requested = [instant.requested for instant in table.timeline()]
    whole = table.cdc(requested[2]).count()

    table.clean(options={"hoodie.clean.commits.retained": "2"})

    assert 0 < len(logs(table)) < 4
    assert table.metadata.validate().differences == ()
    with pytest.raises(NotFound, match="the earliest start that can be answered"):
        table.cdc()
    assert table.cdc(requested[2]).count() == whole


def test_a_restore_takes_the_change_logs_of_what_it_takes_back(table: HudiTable) -> None:
    requested = [instant.requested for instant in table.timeline()]

    table.restore(requested[2])

    assert [name.split("_")[1] for name in logs(table)] == [f"{at}.log.1" for at in requested[1:3]]
    assert set(table.cdc().to_arrow().column("requested").to_pylist()) == set(requested[:3])


def test_a_write_that_changes_nothing_keeps_no_change_log(table: HudiTable) -> None:
    before = logs(table)

    table.upsert(rows(0, 3, 0), options=OPTIONS)  # late: the stored rows stay
    table.delete(pa.table({"id": ["nobody"]}), options=OPTIONS)

    assert logs(table) == before


def test_changes_without_a_column_are_counted(table: HudiTable) -> None:
    rows = table.cdc(columns=[], where="ts = 2").to_arrow()
    assert rows["op"].to_pylist() == ["u"] * 5  # three rows became 2, and two of them 3
    assert rows["before"].null_count == 0
    assert table.cdc(columns=[]).to_arrow()["before"].null_count == 10
