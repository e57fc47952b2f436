"""A file of the table that is cut or scrambled could be taken for less than it says: rows would vanish in silence."""

import re
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import CorruptFile, HudiTable, NotFound


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table without a metadata table, so that reads go by the timeline and the storage."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", properties={"hoodie.metadata.enable": "false"})
    table.bulk_insert(pa.table({"id": ["a", "b"], "n": [1, 2]}))
    table.upsert(pa.table({"id": ["b", "c"], "n": [3, 4]}))
    return tmp_path / "t"


def newest_commit(path: Path) -> Path:
    return max((path / ".hoodie" / "timeline").glob("*.commit"))


def newest_base_file(path: Path) -> Path:
    return max(path.glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scramble(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for at in range(len(content) // 3, 2 * len(content) // 3):
        content[at] ^= 0x5A
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("damage", [cut, scramble])
def test_a_damaged_commit_is_named_by_whoever_needs_it(path: Path, damage: object) -> None:
    commit = newest_commit(path)
    damage(commit)  # type: ignore[operator]
    before = sorted(path.rglob("*"))

    with pytest.raises(CorruptFile, match=commit.name):
        HudiTable.open(path).schema()
    with pytest.raises(CorruptFile, match=commit.name):
        HudiTable.open(path).scan().to_arrow()
    with pytest.raises(CorruptFile, match=commit.name):
        HudiTable.open(path).upsert(pa.table({"id": ["d"], "n": [5]}))
    assert sorted(path.rglob("*")) == before


def test_a_cut_base_file_is_named_by_reads_and_by_writes(path: Path) -> None:
    base_file = newest_base_file(path)
    cut(base_file)
    data, commit = sorted(path.glob("*.parquet")), newest_commit(path)

    with pytest.raises(CorruptFile, match=base_file.name):
        HudiTable.open(path).scan().to_arrow()
    with pytest.raises(CorruptFile, match=base_file.name):
        HudiTable.open(path).upsert(pa.table({"id": ["b"], "n": [5]}))
    assert sorted(path.glob("*.parquet")) == data
    assert newest_commit(path) == commit


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("at", [4, 40, 176])
def test_damaged_pages_are_of_a_named_file_whoever_meets_them(tmp_path: Path, at: int, table_type: str) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="n", table_type=table_type,
        properties={"hoodie.metadata.enable": "false", "hoodie.index.type": "SIMPLE"},
    )  # fmt: skip
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    table.bulk_insert(rows)
    (base_file,) = (tmp_path / "t").glob("*.parquet")
    content = bytearray(base_file.read_bytes())
    start = pq.read_metadata(base_file).row_group(0).column(2 + at % 3).data_page_offset
    content[start : start + at] = bytes(byte ^ 0x5A for byte in content[start : start + at])
    base_file.write_bytes(bytes(content))

    for call in (
        lambda: table.scan().to_arrow(),
        lambda: table.scan(where="n > 0").to_arrow(),
        lambda: table.lookup(["a"]),
        lambda: table.upsert(rows),
        lambda: table.delete(rows),
        *((table.compact,) if table_type == "MERGE_ON_READ" else ()),
    ):
        with suppress(CorruptFile):
            call()
            continue
        with pytest.raises(CorruptFile, match=base_file.name):
            call()


@pytest.mark.parametrize("pattern", ["*.parquet", ".*.log.*"])
def test_of_a_data_file_that_is_gone_the_instant_is_told(tmp_path: Path, pattern: str) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", table_type="MERGE_ON_READ")
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    of = {"*.parquet": table.bulk_insert(rows), ".*.log.*": table.upsert(rows)}[pattern]
    (gone,) = (tmp_path / "t").glob(pattern)
    gone.unlink()

    for call in (table.scan().to_arrow, table.compact):
        with pytest.raises(NotFound, match=f"{re.escape(gone.name)}.*{of.requested}.*put it back"):
            call()
