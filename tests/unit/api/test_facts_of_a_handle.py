"""A handle could tell of the table as it was when it was opened, while its calls read and write the one of today."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, NotFound

ROWS = pa.table({"k": ["a"], "p": ["x"], "n": [1]})


def facts(table: HudiTable) -> dict[str, Any]:
    names = ("name", "table_type", "table_version", "record_key", "partition_by", "ordering")
    return {name: getattr(table, name) for name in names}


def test_they_are_those_of_a_table_that_was_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(path, name="t", record_key="k")
    table.upsert(ROWS)
    shutil.rmtree(path)
    HudiTable.create(
        path, name="u", record_key=["k", "n"], partition_by="p", ordering="n", table_type="MERGE_ON_READ",
        table_version=9,
    )  # fmt: skip

    assert facts(table) == facts(HudiTable.open(path)) == {
        "name": "u", "table_type": "MERGE_ON_READ", "table_version": 9, "record_key": ("k", "n"),
        "partition_by": ("p",), "ordering": ("n",),
    }  # fmt: skip
    assert repr(table) == f"HudiTable('{path}', name='u', MERGE_ON_READ, version 9)"
    assert table.upsert(ROWS).inserted == 1


def test_they_are_those_after_a_change_of_version(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="k")
    HudiTable.open(tmp_path / "t").upgrade(9)
    assert (table.table_version, "version 9" in repr(table)) == (9, True)
    table.downgrade(6)
    assert (table.table_version, "version 6" in repr(table)) == (6, True)


def test_a_table_that_is_gone_has_none(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="k")
    shutil.rmtree(tmp_path / "t")

    for name in ("name", "table_type", "table_version", "record_key", "partition_by", "ordering", "properties"):
        with pytest.raises(NotFound):
            getattr(table, name)
    assert repr(table) == f"HudiTable('{tmp_path / 't'}', NotFound)"
