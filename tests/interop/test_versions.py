"""A table that we made one of another version could be one that the releases of it read or write otherwise."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.test_alterations import EVOLVES
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

KEEP = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
OPTIONS: dict[str, Any] = {
    "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts", "hoodie.write.auto.upgrade": False,
}  # fmt: skip
PATHS = [(6, 8), (6, 9), (8, 9), (9, 8), (9, 6), (8, 6)]


def rows(ts: int, column: str = "v") -> pa.Table:
    keys = ["a", "b", f"k{ts}"]
    return pa.table(
        {"id": keys, "ts": [ts] * 3, "part": ["p1", "p2", "p1"], column: [f"{key} at {ts}" for key in keys]}
    )


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("before, after", PATHS)
def test_apache_hudi_goes_on_with_a_table_of_another_version(
    request: pytest.FixtureRequest, tmp_path: Path, before: int, after: int, kind: str
) -> None:
    path = tmp_path / f"from_{before}_to_{after}_{kind[:4].lower()}"
    table = HudiTable.create(
        path, name=path.name, record_key="id", partition_by="part", ordering="ts", table_type=kind,
        table_version=before, properties=KEEP,
    )  # fmt: skip
    for ts in range(1, 9):
        table.upsert(rows(ts))
    table.alter().rename("v", "w").commit()
    table.upsert(rows(9, "w"))
    expected = table.scan(meta_fields=False).to_arrow()

    change = table.upgrade if after > before else table.downgrade
    assert change(after).steps

    assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)
    for name in {6: ("hudi_0150", "hudi_120"), 8: ("hudi_102", "hudi_120"), 9: ("hudi_120",)}[after]:
        hudi: ReferenceHudi = request.getfixturevalue(name)
        assert_same_rows(hudi.read(path, **EVOLVES), table.scan().to_arrow())
        ts = 20 + len(table.timeline())
        options: dict[str, Any] = {**OPTIONS, **EVOLVES, "hoodie.write.table.version": after}
        hudi.write(path, rows(ts, "w"), **options)
        assert table.table_version == after
        assert_same_rows(hudi.read(path, **EVOLVES), table.scan().to_arrow())
        table.upsert(rows(ts + 1, "w"))
        assert_same_rows(hudi.read(path, **EVOLVES), table.scan().to_arrow())


@pytest.mark.parametrize("name", ["hudi_0150", "hudi_102", "hudi_120"])
def test_logs_of_before_a_downgrade_bring_no_old_rows_back(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    """Apache Hudi 1.x slices the logs of version 6 by when the files of the timeline were modified: all of them when
    the table came there. They lay upon a base file that held newer rows."""
    table = HudiTable.create(tmp_path / "rides", name="rides", record_key="id", table_type="MERGE_ON_READ")
    table.upsert(pa.table({"id": ["a", "b"], "v": [1, 1]}))
    table.upsert(pa.table({"id": ["a"], "v": [2]}))
    table.delete(pa.table({"id": ["b"]}))
    table.compact()
    table.upsert(pa.table({"id": ["a", "b", "c"], "v": [3, 3, 3]}))  # `c` goes into the small base file

    table.downgrade(6)

    found = request.getfixturevalue(name).read(table.path)
    assert sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == [("a", 3), ("b", 3), ("c", 3)]


@pytest.mark.parametrize("name,version", [("hudi_102", 8), ("hudi_120", 9)])
def test_logs_of_before_an_upgrade_bring_no_old_rows_back_where_the_table_was_copied(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    """The dates of copied files say that every write of version 6 completed when the table was copied."""
    first = HudiTable.create(
        tmp_path / "rides", name="rides", record_key="id", table_type="MERGE_ON_READ", table_version=6
    )
    first.upsert(pa.table({"id": ["a", "b"], "v": [1, 1]}))
    first.upsert(pa.table({"id": ["a"], "v": [2]}))
    first.compact()
    first.upsert(pa.table({"id": ["a", "c"], "v": [3, 3]}))  # `c` goes into the small base file
    shutil.copytree(first.path, tmp_path / "copied", copy_function=shutil.copyfile)
    table = HudiTable.open(tmp_path / "copied")

    table.upgrade(version)

    found = request.getfixturevalue(name).read(table.path)
    assert sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == [("a", 3), ("b", 1), ("c", 3)]
