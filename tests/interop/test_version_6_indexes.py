"""An index on a table of version 6 that Apache Hudi 0.15.0 takes for true, and is not, hides rows from it, or makes two
rows of one key. Both write tables with every index that version has, each tags by the record index of the other and
reads by its column statistics."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.interop.indexed_tables import OF_VERSION_6, SKIPPING, Indexed, Row
from tests.interop.indexed_tables import rows as rows_of
from tests.support.reference.client import ReferenceHudi

FILTERS = ("v > 2050", "v < 20 AND city = 'oslo'", "part < 2.5", "id = 'k0007'", "id IN ('k0001', 'k0055', 'nix')")
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def rows(numbers: Iterable[int], *, turn: int, city: str | None = None) -> list[Row]:
    return rows_of(numbers, turn=turn, city=city, mark="-")


@KINDS
def test_hudi_reads_and_tags_by_our_indexes_and_keeps_them(hudi_0150: ReferenceHudi, tmp_path: Path, kind: str) -> None:
    table = Indexed(tmp_path / "rides", kind, 6)
    table.create()
    table.upsert(rows(range(90), turn=1))
    table.upsert(rows(range(80, 100), turn=2))
    table.upsert(rows(range(9), turn=3, city="york"))
    table.delete(range(30, 36))
    assert table.partitions == OF_VERSION_6
    table.check(hudi_0150, FILTERS)
    with table.without_files("k0007") as away:
        assert away
        assert hudi_0150.read(table.path, "id = 'k0007'", **SKIPPING).num_rows == 1
    turns(table, hudi_0150)


@KINDS
def test_turns_on_a_table_of_hudi(hudi_0150: ReferenceHudi, tmp_path: Path, kind: str) -> None:
    table = Indexed(tmp_path / "rides", kind, 6)
    table.hudi_upsert(hudi_0150, rows(range(90), turn=1))
    table.hudi_upsert(hudi_0150, rows(range(80, 100), turn=2))
    assert table.partitions == OF_VERSION_6
    table.check(hudi_0150, FILTERS)
    turns(table, hudi_0150)


def turns(table: Indexed, hudi: ReferenceHudi) -> None:
    """Both compact the metadata table and clean in between; no index is dropped."""
    for turn in (10, 20, 30):
        table.hudi_upsert(hudi, rows(range(turn, turn + 100, 3), turn=turn))
        table.hudi_delete(hudi, range(turn, turn + 4, 3))
        table.upsert(rows(range(turn, turn + 110, 4), turn=turn + 5))
        table.upsert(rows(range(turn + 60, turn + 66), turn=turn + 6, city="oslo"))
        table.delete(range(turn + 8, turn + 12, 4))
    if table.kind == "MERGE_ON_READ":
        assert table.ours.compact().requested is not None
    table.ours.clean()
    table.check(hudi, FILTERS)
    table.hudi_upsert(hudi, rows(range(0, 60, 7), turn=50))
    table.check(hudi, FILTERS)
    assert table.partitions == OF_VERSION_6
    metadata = [path.name for path in (table.path / ".hoodie" / "metadata" / ".hoodie").glob("*001.commit")]
    assert len(metadata) > 1
