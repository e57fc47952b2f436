"""Deletes could be left out of an answer, without a word, once a clean has taken the files that held the rows."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, NotFound

NO_CLEANS = {"hoodie.clean.automatic": "false"}
ONE_IS_KEPT = {"hoodie.clean.commits.retained": "1"}


def rows(*ids: str, v: int = 1) -> pa.Table:
    return pa.table({"id": ids, "city": ["oslo" if name < "m" else "rome" for name in ids], "v": [v] * len(ids)})


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="city", properties=NO_CLEANS
    )  # fmt: skip


def operations(table: HudiTable, start: str) -> list[str]:
    return sorted(table.cdc(start).to_arrow()["op"].to_pylist())


def test_rows_of_a_replaced_file_group_that_is_gone_are_missed(table: HudiTable) -> None:
    first = table.insert(rows("a", "b", "x"))
    dropped = table.delete_partitions(["oslo"])
    table.upsert(rows("x", v=2))
    assert operations(table, first.requested or "") == ["d", "d", "u"]

    table.clean(options=ONE_IS_KEPT)

    with pytest.raises(NotFound, match=f"cleaned away, .* is '{dropped.requested}'"):
        table.cdc(first.requested)
    assert operations(table, dropped.requested or "") == ["u"]


def test_an_older_slice_that_a_savepoint_keeps_does_not_stand_for_the_replaced_one(table: HudiTable) -> None:
    first = table.insert(rows("a", "b"))
    table.savepoint()
    table.upsert(rows("a", v=2))
    replaced = table.insert_overwrite(rows("c"))
    table.upsert(rows("x"))
    assert operations(table, first.requested or "") == ["d", "d", "i", "i", "u"]

    table.clean(options=ONE_IS_KEPT)

    with pytest.raises(NotFound, match=f"cleaned away, .* is '{replaced.requested}'"):
        table.cdc(first.requested)


def test_a_restore_to_the_write_that_replaced_does_not_bring_the_rows_before_back(table: HudiTable) -> None:
    first = table.insert(rows("a"))
    replaced = table.insert_overwrite(rows("b"))
    table.savepoint()
    table.upsert(rows("x"))
    table.clean(options=ONE_IS_KEPT)

    table.restore(replaced.requested or "")

    with pytest.raises(NotFound, match=f"cleaned away, .* is '{replaced.requested}'"):
        table.cdc(first.requested)
    assert operations(table, replaced.requested or "") == []


def test_logs_that_are_named_after_a_later_slice_do_not_stand_for_the_one_that_is_gone(tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", table_type="MERGE_ON_READ", table_version=6, properties=NO_CLEANS
    )
    first = table.insert(rows("a", "b"))
    into_its_base_file = table.upsert(rows("a", "c", v=2))
    table.upsert(rows("b", v=3))
    table.upsert(rows("b", v=4))
    assert operations(table, first.requested or "") == ["i", "u", "u", "u"]

    table.clean(options=ONE_IS_KEPT)

    with pytest.raises(NotFound, match=f"cleaned away, .* is '{into_its_base_file.requested}'"):
        table.cdc(first.requested)
    assert operations(table, into_its_base_file.requested or "") == ["u", "u"]
