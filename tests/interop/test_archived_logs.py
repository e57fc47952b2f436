"""Apache Hudi 1.2.0 takes an archived write for pending where the active timeline begins before it. Its compaction
plans leave out the logs of such a write, and the rows are lost; its readers lay them upon newer base files. So
nothing older than an archived write may be left on the timeline while the write's logs are stored."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.reference.client import ReferenceHudi

KEEP = {
    "hoodie.keep.min.commits": 3, "hoodie.keep.max.commits": 4, "hoodie.clean.commits.retained": 1,
    "hoodie.metadata.compact.max.delta.commits": 2,
}  # fmt: skip
UPGRADE = {"hoodie.write.auto.upgrade": False}


def rows(keys: range, ts: int) -> pa.Table:
    return pa.table({"id": [f"k{k}" for k in keys], "ts": [ts] * len(keys), "v": [f"written at {ts}"] * len(keys)})


def first_actions(table: HudiTable) -> list[str]:
    return [instant.action for instant in table.timeline()][:2]


@pytest.mark.parametrize("stays", ["clean", "indexing", "restore"])
def test_a_compaction_of_apache_hudi_takes_every_log_of_archived_writes(
    hudi_120: ReferenceHudi, tmp_path: Path, stays: str
) -> None:
    table = HudiTable.create(
        tmp_path / "rides", name="rides", record_key="id", ordering="ts", table_type="MERGE_ON_READ",
        table_version=9, properties=KEEP,
    )  # fmt: skip
    table.upsert(rows(range(10), 0))
    if stays == "clean":
        table.upsert(rows(range(10, 20), 1))  # into the small base file, so that a clean has something to do
        table.upsert(rows(range(20, 30), 2))
        assert any(i.action == "clean" for i in table.timeline())
    elif stays == "indexing":
        table.build_index("record_index")
    else:
        saved = table.savepoint()
        table.upsert(rows(range(10), 3))
        table.restore(saved.requested)
        table.delete_savepoint(saved.requested)

    count = len(table.scan().to_arrow())
    for turn in range(10, 22):
        table.upsert(rows(range(turn - 10, turn - 9), turn))
    expected = {f"k{k}": (10 + k if k < 12 else max(k // 10, 0)) for k in range(max(count, 12))}

    def found(read: pa.Table) -> dict[str, int]:
        return dict(zip(read["id"].to_pylist(), read["ts"].to_pylist(), strict=True))

    assert found(table.scan().to_arrow()) == expected
    assert found(hudi_120.read(table.path)) == expected
    for operation in ("schedule", "run"):
        hudi_120.sql(f"CALL run_compaction(op => '{operation}', path => '{table.path}')")
    assert [i.action for i in table.timeline(history=True) if i.action == "commit"]
    assert found(hudi_120.read(table.path)) == expected
    assert found(HudiTable.open(table.path).scan().to_arrow()) == expected
