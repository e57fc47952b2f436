"""An index of the metadata table that the other side takes for true, and is not, hides rows. Here pyhudi and the real
Apache Hudi write the same tables with every index, and each reads by the indexes of the other: by ranges of columns, by
record key, by secondary column. The model, a dict, says what there is; the data files what the indexes must say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.interop.indexed_tables import EVERY, Indexed, Row
from tests.interop.indexed_tables import rows as rows_of
from tests.support.reference.client import ReferenceHudi

MARKS = {8: "-", 9: "$\\"}
"""In the values of the secondary index: those that 1.0.2 finds in tables of its own."""


def filters(version: int) -> list[str]:
    mark = MARKS[version].replace("\\", "\\\\")
    return [
        "v > 2050", "v < 20 AND city = 'oslo'", "part < 2.5", "number IS NULL", "name IS NULL", f"name = 'n1{mark}3'",
        f"name = 'n0{mark}2' AND v > 10", "id = 'k0007'", "id IN ('k0001', 'k0055', 'nix')",
    ]  # fmt: skip


PAIRS = pytest.mark.parametrize("name, version", [("hudi_102", 8), ("hudi_120", 9)], ids=["1.0.2 on 8", "1.2.0 on 9"])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def rows(version: int, numbers: Iterable[int], *, turn: int, city: str | None = None) -> list[Row]:
    return rows_of(numbers, turn=turn, city=city, mark=MARKS[version])


def written_by_us(path: Path, kind: str, version: int) -> Indexed:
    """Every operation that changes an index: inserts, updates, moves to other partitions, deletes, a clean."""
    table = Indexed(path, kind, version)
    table.create()
    table.upsert(rows(version, range(90), turn=1))
    table.upsert(rows(version, range(80, 100), turn=2))
    table.upsert(rows(version, range(9), turn=3, city="york"))
    table.delete(range(30, 36))
    if kind == "MERGE_ON_READ":
        table.ours.compact()
    table.upsert(rows(version, range(40, 60), turn=4))
    table.ours.clean()
    return table


@PAIRS
@KINDS
def test_hudi_reads_by_our_indexes_and_keeps_them(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, kind: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    table = written_by_us(tmp_path / "rides", kind, version)
    assert table.partitions == EVERY
    table.check(hudi, filters(version))
    table.hudi_upsert(hudi, rows(version, range(20, 120, 3), turn=5))  # finds the keys by our record index
    if version == 9:  # 1.0.2 leaves rows that move to another partition out of secondary indexes
        table.hudi_upsert(hudi, rows(version, range(60, 66), turn=6, city="oslo"))
    table.hudi_delete(hudi, range(70, 74))
    assert table.partitions == EVERY
    table.check(hudi, filters(version))
    table.upsert(rows(version, range(0, 130, 4), turn=7))
    table.delete(range(75, 78))
    assert table.partitions == EVERY
    table.check(hudi, filters(version))


@PAIRS
@KINDS
def test_ten_turns_on_a_table_of_hudi(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, kind: str
) -> None:
    """It makes the table and its indexes; both compact the metadata table in between."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    table = Indexed(tmp_path / "rides", kind, version)
    # Its first write leaves rows out of a secondary index, or fails: it asks for the schema before there is one.
    table.hudi_upsert(hudi, rows(version, range(60), turn=1), **{"hoodie.metadata.index.secondary.enable": "false"})
    table.hudi_upsert(hudi, rows(version, range(2), turn=1))
    assert table.partitions == EVERY
    for turn in range(2, 12):
        changed = rows(version, range(turn, 60 + 5 * turn, 7), turn=turn)
        moved = rows(version, range(turn, turn + 2), turn=turn, city=("oslo", "rome", "york")[turn % 3])
        moves = version == 9  # 1.0.2 leaves rows that it moves, or moves back, out of secondary indexes
        new = list({of["id"]: of for of in (*changed, *(moved if moves else ()))}.values())
        gone = range(20 + 2 * turn, 22 + 2 * turn)
        if turn % 2:
            table.hudi_upsert(hudi, new)
            table.hudi_delete(hudi, [n for n in gone if f"k{n:04}" in table.held])
        else:
            table.upsert(new)
            table.delete(n for n in gone if f"k{n:04}" in table.held)
        assert table.partitions == EVERY
        # Its statistics of a column without a value may say 0, which misleads nobody.
        assert table.ours.metadata.validate().differences == (), f"after turn {turn}"
    table.check_answers(hudi, filters(version))
