"""A table that follows the text for version 7 could be read otherwise than the text says, or ours could differ from it.

No release of Apache Hudi writes such tables. `version_7_by_text` does, without our code.
"""

import io
import json
import logging
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Unsupported
from tests.support.version_7_by_text import INSERTED, UPDATED, lay_down

Rows = list[tuple[str, int]]


def seen(table: HudiTable, **scan: str) -> Rows:
    found = table.scan(**scan).to_arrow()  # type: ignore[arg-type]
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


@pytest.mark.parametrize("form", ["json", "avro"])
def test_a_table_by_the_text_is_read_and_written(tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture) -> None:
    lay_down(tmp_path / "t", form)
    with caplog.at_level(logging.WARNING, logger="pyhudi"):
        table = HudiTable.open(tmp_path / "t")
    assert "table version 7 is experimental" in caplog.text

    assert seen(table) == [("a", 2), ("c", 1), ("d", 2)]
    assert seen(table, query="read_optimized") == [("a", 1), ("b", 1), ("c", 1)]
    assert seen(table, as_of=INSERTED) == [("a", 1), ("b", 1), ("c", 1)]
    assert table.incremental(start=INSERTED.replace("000000000", "000000950")).to_arrow()["id"].to_pylist() != []
    whole = [(i.requested, i.action, i.state) for i in table.timeline(history=True)]
    assert whole[:2] == [(INSERTED, "commit", "COMPLETED"), (UPDATED, "deltacommit", "COMPLETED")]

    table.upsert(pa.table({"id": ["c"], "city": ["oslo"], "ts": [3]}))
    assert seen(table) == [("a", 2), ("c", 3), ("d", 2)]
    assert all(i.is_completed for i in table.timeline()), "the write that died is rolled back"
    assert table.compact().completed
    assert seen(table, query="read_optimized") == [("a", 2), ("c", 3), ("d", 2)]


def test_ours_lie_where_the_text_says_and_hold_what_it_says(tmp_path: Path) -> None:
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1",
           "hoodie.metadata.compact.max.delta.commits": "1"}  # fmt: skip
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", table_version=7, properties=few)
    for ts in range(6):
        table.upsert(pa.table({"id": ["a"], "ts": [ts]}))

    hoodie = tmp_path / "t" / ".hoodie"
    newest = table.timeline()[-1]
    for instant in (i for i in table.timeline() if i.action == "commit"):
        name = f"{instant.requested}_{instant.completed}.commit"
        stored: list[Any] = list(fastavro.reader(io.BytesIO((hoodie / name).read_bytes())))
        assert [one["operationType"] for one in stored] == ["UPSERT"]
    assert not (hoodie / "timeline").exists()
    number = (hoodie / "archived" / "_version_").read_text()
    files = json.loads((hoodie / "archived" / f"manifest_{number}").read_text())["files"]
    for file in files:
        rows = pq.read_table(hoodie / "archived" / file["fileName"]).to_pylist()
        first, last, level = file["fileName"].removesuffix(".parquet").split("_")
        assert (first, last, level) == (
            min(row["instantTime"] for row in rows), max(row["completionTime"] for row in rows), "0"
        )  # fmt: skip
        assert all(json.loads(row["metadata"])["operationType"] for row in rows if row["action"] == "commit")
    assert files
    assert newest.completed is not None
    assert (hoodie / "metadata" / ".hoodie").is_dir()
    assert not (hoodie / "metadata" / ".hoodie" / "timeline").exists()
    assert table.metadata.validate().is_valid
    assert len([i for i in table.timeline(history=True) if i.action == "commit"]) == 6


def test_an_index_that_version_7_does_not_have_is_refused(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", table_version=7)
    with pytest.raises(Unsupported, match="have none such"):
        table.build_index("partition_stats")


@pytest.mark.parametrize("form", ["json", "avro"])
def test_a_table_by_the_text_goes_to_other_versions_and_comes_back(tmp_path: Path, form: str) -> None:
    lay_down(tmp_path / "t", form)
    table = HudiTable.open(tmp_path / "t")
    times = {i.requested: i.completed for i in table.timeline(history=True) if i.is_completed}
    for to in (6, 7, 8, 7, 9, 7):
        (table.upgrade if to > table.table_version else table.downgrade)(to)
        assert table.table_version == to
        assert seen(table) == [("a", 2), ("c", 1), ("d", 2)]
        assert seen(table, as_of=INSERTED) == [("a", 1), ("b", 1), ("c", 1)]
        assert times.items() <= {i.requested: i.completed for i in table.timeline(history=True)}.items() or to == 6
        lying = [path.name for path in (tmp_path / "t" / ".hoodie").glob("*.*") if path.name[0].isdigit()]
        assert to < 8 or not lying
        assert all("_" in name for name in lying if name.endswith("commit")) or to == 6
        assert not any("_" in name for name in lying) or to == 7
