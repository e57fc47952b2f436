"""Apache Hudi 0.15 cannot roll a write back that is older than the newest compaction of the metadata table.

pyhudi could make such a compaction while a write of Apache Hudi is pending. A write that shows its instant only
afterwards is nobody's fault: a write or a clean of pyhudi must end it.
"""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.test_two_at_once import LOCK, THEIRS
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

ROWS = pa.table({"id": ["a", "b"], "ts": pa.array([1, 1], pa.int64())})
KNOWN: dict[str, Any] = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}

COMPACTING: dict[str, Any] = {**LOCK, "hoodie.metadata.compact.max.delta.commits": "2"}


def create(path: Path, table_type: str) -> HudiTable:
    return HudiTable.create(path, name="rides", record_key="id", ordering="ts", table_type=table_type, table_version=6)


def next_instant(path: Path) -> str:
    newest = max(file.name[:17] for file in (path / ".hoodie").glob("2*"))
    return f"{int(newest) + 1:017d}"


def begin_write(path: Path, action: str, requested: str) -> Path:
    """A write of theirs that has begun and is alive, as their writers leave it. Returns its heartbeat."""
    meta = path / ".hoodie"
    (meta / f"{requested}.{action}.requested").touch()
    inflight = f"{requested}.inflight" if action == "commit" else f"{requested}.{action}.inflight"
    (meta / inflight).write_text("{}")
    (meta / ".heartbeat").mkdir(exist_ok=True)
    heartbeat = meta / ".heartbeat" / requested
    heartbeat.touch()
    return heartbeat


def is_compacted_since(path: Path, requested: str) -> bool:
    return any(file.name > requested for file in (path / ".hoodie/metadata/.hoodie").glob("*001.commit"))


@pytest.mark.parametrize("table_type, action", [("COPY_ON_WRITE", "commit"), ("MERGE_ON_READ", "deltacommit")])
def test_what_was_pending_is_rolled_back(
    hudi_0150: ReferenceHudi, tmp_path: Path, table_type: str, action: str
) -> None:
    path = tmp_path / "rides"
    table = create(path, table_type)
    table.upsert(ROWS)
    theirs = begin_write(path, action, next_instant(path))
    ours = HudiTable.open(path, options=COMPACTING)
    for _ in range(5):
        ours.upsert(ROWS)
    assert list((path / ".hoodie").glob(f"{theirs.name}*inflight"))
    assert not is_compacted_since(path, theirs.name)

    os.utime(theirs, (1, 1))
    stated: dict[str, Any] = {**KNOWN, **LOCK, **THEIRS, "hoodie.datasource.write.table.type": table_type}
    hudi_0150.write(path, ROWS, **stated)

    assert not list((path / ".hoodie").glob(f"{theirs.name}*inflight"))
    ours.upsert(ROWS)
    assert is_compacted_since(path, theirs.name)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["a", "b"]
    assert hudi_0150.read(path).num_rows == 2
    assert table.metadata.validate().is_valid


@pytest.mark.parametrize("writer", ["pyhudi", "Apache Hudi"])
@pytest.mark.parametrize("table_type, action", [("COPY_ON_WRITE", "commit"), ("MERGE_ON_READ", "deltacommit")])
def test_what_shows_itself_late_is_rolled_back_by_us(
    hudi_0150: ReferenceHudi, tmp_path: Path, table_type: str, action: str, writer: str
) -> None:
    """`writer`: who compacts the metadata table meanwhile. The late write loses its conflict, and stays."""
    path = tmp_path / "rides"
    table = create(path, table_type)
    stated: dict[str, Any] = {**KNOWN, **THEIRS, **COMPACTING, "hoodie.datasource.write.table.type": table_type}
    ours = HudiTable.open(path, options=COMPACTING)
    ours.upsert(ROWS)
    late = next_instant(path)
    for _ in range(5):
        if writer == "pyhudi":
            ours.upsert(ROWS)
        else:
            hudi_0150.write(path, ROWS, **stated)
    assert is_compacted_since(path, late)
    os.utime(begin_write(path, action, late), (1, 1))

    with pytest.raises(ReferenceFailed, match="is earlier than the latest compaction"):
        hudi_0150.write(path, ROWS, **stated)
    if writer == "pyhudi":
        ours.upsert(ROWS)
    else:
        ours.clean()

    assert not list((path / ".hoodie").glob(f"{late}*inflight"))
    hudi_0150.write(path, ROWS, **stated)
    assert hudi_0150.read(path).num_rows == 2
    assert table.scan().to_arrow().num_rows == 2
    assert table.metadata.validate().is_valid
