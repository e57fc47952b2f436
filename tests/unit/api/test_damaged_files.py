"""A file of the table that is cut or scrambled could be taken for less than it says: rows would vanish in silence."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import CorruptFile, HudiTable


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
