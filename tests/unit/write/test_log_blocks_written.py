"""A block that other readers cannot take: here are the rules of blocks that pyhudi alone could do without."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.format.log.block import LogBlock
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import is_partial
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import MemoryLog

MARK = "_hoodie_is_deleted"


def table_of(path: Path, rows: pa.Table) -> HudiTable:
    table = HudiTable.create(path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.bulk_insert(rows)
    return table


def blocks(path: Path) -> list[LogBlock]:
    """All blocks of the table's logs, those of the newest file last."""
    found: list[LogBlock] = []
    for file in sorted(path.glob(".*.log.*"), key=lambda file: file.name.partition("_")[2]):
        data = file.read_bytes()
        found += scan_log(MemoryLog(data), len(data), path=file.name)
    return found


@pytest.mark.parametrize("kind", ["parquet", "avro", "hfile"])
def test_a_partial_update_says_that_its_rows_are_not_deleted(tmp_path: Path, kind: str) -> None:
    whole = pa.table({"id": ["a", "b"], "ts": [1, 1], "v": ["old", "old"], MARK: pa.array([None, False])})
    table = table_of(tmp_path / "t", whole)

    table.upsert(whole.select(["id", "ts", "v"]), options={"hoodie.logfile.data.block.format": kind})

    (block,) = blocks(tmp_path / "t")
    assert is_partial(block)
    (batch,) = read_batches(block)
    assert batch.column(MARK).to_pylist() == [False, False]
    assert len(table.scan().to_arrow()) == 2


def test_what_is_no_boolean_marks_no_delete(tmp_path: Path) -> None:
    whole = pa.table({"id": ["a"], "ts": [1], "v": ["old"], MARK: ["text"]})
    table = table_of(tmp_path / "t", whole)

    table.upsert(whole.select(["id", "ts", "v"]))

    (block,) = blocks(tmp_path / "t")
    (batch,) = read_batches(block)
    assert MARK not in batch.schema.names
    assert table.scan(columns=[MARK]).to_arrow()[MARK].to_pylist() == ["text"]


def test_deletes_with_and_without_ordering_value_are_in_blocks_of_their_own(tmp_path: Path) -> None:
    keys = pa.table({"id": ["a", "b", "c", "d"], "ts": [1, 1, 1, 1]})
    table = table_of(tmp_path / "t", keys)
    table.delete(keys.slice(1, 1).select(["id"]))
    table.delete(keys.slice(2, 2))

    assert table.log_compact(options={"hoodie.log.compaction.blocks.threshold": 1}).requested is not None

    found = [read_deletes(block) for block in blocks(tmp_path / "t")[-2:]]
    assert [of.column("record_key").to_pylist() for of in found] == [["b"], ["c", "d"]]
    assert [len(of.column("ordering_kind").unique()) for of in found] == [1, 1]
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == ["a"]
