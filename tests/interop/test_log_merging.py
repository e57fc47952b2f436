"""Records of one key in a log could come to another row for us than for Apache Hudi: a late row, a delete with or
without ordering value, a partial update, in any order. Each case is written by pyhudi and read by both.

Some logs would show a deleted row again. pyhudi reads them as Apache Hudi does, and writes a base file instead. Others
would show values of a late row. pyhudi reads them as Apache Hudi does, and writes other logs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.write.handles import append, file_group
from pyhudi.write.handles.incoming_rows import IncomingRows
from pyhudi.write.handles.returning_rows import SettledRows
from tests.interop.mor_tables import BLOCK_FORMAT, MERGE_ON_READ, POSITIONS
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

IS_DELETED = pa.field("_hoodie_is_deleted", pa.bool_())
SCHEMA = pa.schema(
    [("id", pa.string()), ("of", pa.string()), ("ts", pa.int64()), ("a", pa.string()), ("b", pa.string()), IS_DELETED]
)
Shown = tuple[int, str, str | None] | None
"""Ordering value and the columns `a` and `b` of the row that a case comes to; None: no row."""


@dataclass(frozen=True, slots=True)
class Step:
    """A write of one row: whole, of some columns, or a delete."""

    names: tuple[str, ...]
    ts: int | None = None
    a: str | None = None
    b: str | None = None
    deletes: bool = False
    is_marked: bool | None = None

    def row(self, case: str) -> dict[str, object]:
        whole = {"id": case, "of": partition(case), "ts": self.ts, "a": self.a, "b": self.b}
        return {name: value for name, value in whole.items() if name in self.names} | (
            {IS_DELETED.name: self.is_marked} if IS_DELETED.name in self.names else {}
        )


def partition(case: str) -> str:
    return case.replace(" ", "_")


def row(ts: int, value: str, *, is_marked: bool | None = None) -> Step:
    return Step(tuple(SCHEMA.names), ts, value, value, is_marked=is_marked)


def only_a(ts: int, value: str) -> Step:
    return Step(("id", "of", "ts", "a"), ts, a=value)


def only_b(ts: int, value: str) -> Step:
    return Step(("id", "of", "ts", "b"), ts, b=value)


def delete(ts: int | None = None) -> Step:
    return Step(("id", "of", *(() if ts is None else ("ts",))), ts, deletes=True)


CASES: dict[str, tuple[list[Step], Shown]] = {
    # Steps, and what a reader makes of a log that holds them.
    "late row": ([row(4, "late")], (5, "base", "base")),
    "equal row": ([row(5, "equal")], (5, "equal", "equal")),
    "delete": ([delete()], None),
    # The delete is gone once a row follows it in the log, so that the row meets the base file's (see REWRITTEN).
    "delete then late row": ([delete(), row(3, "again")], (5, "base", "base")),
    "delete then equal row": ([delete(), row(5, "again")], (5, "again", "again")),
    "delete then partial": ([delete(), only_a(6, "pa")], (6, "pa", "base")),
    "delete then late partial": ([delete(), only_a(4, "pa")], (5, "base", "base")),
    "delete then ordered delete then row": ([delete(), delete(3), row(2, "two")], (5, "base", "base")),
    "late ordered delete": ([delete(3)], (5, "base", "base")),
    "late ordered delete of zero": ([delete(0)], (5, "base", "base")),
    "equal ordered delete": ([delete(5)], None),
    "late ordered delete after a row": ([row(9, "nine"), delete(7)], (9, "nine", "nine")),
    "ordered delete then late row": ([delete(8), row(7, "seven")], None),
    "ordered delete then row": ([delete(8), row(9, "nine")], (9, "nine", "nine")),
    "ordered delete then partial": ([delete(6), only_a(7, "pa")], (7, "pa", "base")),
    "ordered delete then late partial": ([delete(8), only_a(7, "pa")], None),
    "marked then late row": ([row(8, "eight", is_marked=True), row(7, "seven")], None),
    "marked too late": ([row(4, "four", is_marked=True)], (5, "base", "base")),
    "marked of zero": ([row(0, "zero", is_marked=True)], (5, "base", "base")),
    "partials": ([only_a(6, "pa"), only_b(7, "pb")], (7, "pa", "pb")),
    "late partial after partial": ([only_a(8, "pa"), only_b(7, "pb")], (8, "pa", "pb")),
    "late partials": ([only_a(4, "pa"), only_b(3, "pb")], (5, "base", "base")),
    # A record of the log is made of both before it meets the base file's row: what came too late comes along (see
    # SETTLED).
    "late partial then partial": ([only_a(4, "pa"), only_b(6, "pb")], (6, "pa", "pb")),
    "row then partial": ([row(6, "six"), only_b(7, "pb")], (7, "six", "pb")),
    "partial then row": ([only_b(7, "pb"), row(8, "eight")], (8, "eight", "eight")),
    "partial then late row": ([only_b(7, "pb"), row(6, "six")], (7, "six", "pb")),
    "row then late partial": ([row(7, "seven"), only_b(6, "pb")], (7, "seven", "seven")),
    "partial then delete": ([only_b(7, "pb"), delete()], None),
    "partial then late delete": ([only_b(7, "pb"), delete(6)], (7, "base", "pb")),
}


MARKED = {case for case, (steps, _) in CASES.items() if any(step.is_marked for step in steps)}
"""Cases of a table with a column that marks deletes, which takes whole rows only."""

REWRITTEN: dict[str, Shown] = {
    "delete then late row": (3, "again", "again"),
    "delete then partial": (6, "pa", None),
    "delete then late partial": (4, "pa", None),
    "delete then ordered delete then row": (2, "two", "two"),
    "ordered delete then partial": (7, "pa", None),
}
"""Cases whose log would show the deleted row, or values of it, again. Our last write of them writes the next base file,
and the row is as it was written.
"""

SETTLED: dict[str, Shown] = {
    "late partial after partial": (8, "pa", "base"),
    "late partial then partial": (6, "base", "pb"),
    "partial then late row": (7, "base", "pb"),
}
"""Cases whose log would show values of a late row. Our last write of them leaves the late row out, or writes a whole
one, and the row is that of one write after the other.
"""

WRITTEN = {case: shown for case, (_, shown) in CASES.items()} | REWRITTEN | SETTLED
"""What a reader makes of the cases as our writes store them."""


def written(path: Path, kind: str, version: int, cases: Set[str]) -> HudiTable:
    """Cases, each in a partition of its own, upon a row of ts 5 in a base file."""
    schema = SCHEMA if cases & MARKED else SCHEMA.remove(SCHEMA.get_field_index(IS_DELETED.name))
    table = HudiTable.create(
        path, name="cases", record_key="id", partition_by="of", ordering="ts", table_type="MERGE_ON_READ",
        table_version=version, properties={BLOCK_FORMAT: kind, "hoodie.parquet.small.file.limit": 0},
    )  # fmt: skip
    table.bulk_insert(pa.Table.from_pylist([row(5, "base").row(case) for case in sorted(cases)], schema))
    for at in range(max(len(CASES[case][0]) for case in cases)):
        writes: dict[tuple[bool, tuple[str, ...]], list[dict[str, object]]] = defaultdict(list)
        for case in sorted(cases):
            steps, _ = CASES[case]
            if at < len(steps):
                writes[steps[at].deletes, steps[at].names].append(steps[at].row(case))
        for (deletes, names), rows in writes.items():
            data = pa.Table.from_pylist(rows, pa.schema([field for field in schema if field.name in names]))
            (table.delete if deletes else table.upsert)(data)
    return table


def logged(path: Path, kind: str, version: int, cases: Set[str]) -> HudiTable:
    """As `written`, with every step in the log: a log as Apache Hudi writes it."""

    def none(*_: object) -> pa.Array:
        return pa.array([], pa.string())

    def as_they_come(_: object, incoming: IncomingRows) -> SettledRows:
        return SettledRows(incoming)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(append, "returning_keys", none)
        patch.setattr(file_group, "settle_late_rows", as_they_come)
        table = written(path, kind, version, cases)
    assert rewritten(table, cases) == set()
    return table


def rewritten(table: HudiTable, cases: Set[str]) -> set[str]:
    """The cases that have a base file besides the first."""
    return {case for case in cases if len(list(Path(table.path, partition(case)).glob("*.parquet"))) > 1}


def rows_of(results: Mapping[str, Shown]) -> dict[str, Shown]:
    return {case: result for case, result in results.items() if result is not None}


def shown(found: pa.Table) -> dict[str, Shown]:
    return {one["id"]: (one["ts"], one["a"], one["b"]) for one in found.to_pylist()}


def otherwise_in(hudi: ReferenceHudi, table: HudiTable, expected: Mapping[str, Shown]) -> dict[str, str]:
    """Case -> what this release makes of it where that is not as expected, or how it fails."""
    found_otherwise: dict[str, set[str]] = defaultdict(set)
    for positions in (True, False):
        for case, result in expected.items():
            try:
                found = shown(hudi.read(table.path, f"of = '{partition(case)}'", **{POSITIONS: positions}))
            except ReferenceFailed as failure:
                reason = next(line for line in reversed(failure.text.splitlines()) if "Caused by: java" in line)
                found_otherwise[case].add(reason.partition("Caused by: ")[2].partition(":")[0])
                continue
            found_otherwise[case].add("as expected" if found.get(case) == result else repr(found.get(case)))

    assert all(len(one) == 1 for one in found_otherwise.values()), "by positions and by keys it finds the same"
    return {case: one for case, (one,) in found_otherwise.items() if one != "as expected"}


CANNOT_COMPARE = "java.lang.ClassCastException"
"""1.0.2 compares a row that follows a delete without ordering value with the int 0, which only an int can be."""


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_hudi_120_makes_of_our_logs_what_we_do(
    tmp_path: Path, hudi_120: ReferenceHudi, kind: str, version: int
) -> None:
    for cases in (MARKED, CASES.keys() - MARKED):
        table = written(tmp_path / f"{len(cases)} cases", kind, version, cases)
        ours = table.scan().to_arrow()
        assert shown(ours) == rows_of({case: WRITTEN[case] for case in cases})
        assert rewritten(table, cases) == REWRITTEN.keys() & cases
        for positions in (True, False):
            assert_same_rows(hudi_120.read(table.path, **{POSITIONS: positions}), ours)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["parquet", "avro"])
@pytest.mark.parametrize("cases", [REWRITTEN, SETTLED], ids=["deleted rows", "values of late rows"])
def test_hudi_120_shows_what_a_log_brings_back_as_we_do(
    tmp_path: Path, hudi_120: ReferenceHudi, kind: str, version: int, cases: Mapping[str, object]
) -> None:
    table = logged(tmp_path / "cases", kind, version, cases.keys())
    ours = table.scan().to_arrow()
    assert shown(ours) == rows_of({case: CASES[case][1] for case in cases})
    for positions in (True, False):
        assert_same_rows(hudi_120.read(table.path, **{POSITIONS: positions}), ours)


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_hudi_102_makes_of_our_logs_what_we_do_but_for_some(tmp_path: Path, hudi_102: ReferenceHudi, kind: str) -> None:
    """It compares no delete of a log with a partial update that follows."""
    found: dict[str, str] = {}
    for cases in (MARKED, CASES.keys() - MARKED):
        table = written(tmp_path / f"{len(cases)} cases", kind, 8, cases)
        found |= otherwise_in(hudi_102, table, {case: WRITTEN[case] for case in sorted(cases)})
    assert found == {"delete then equal row": CANNOT_COMPARE, "ordered delete then late partial": "(7, 'pa', 'base')"}


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_hudi_102_shows_deleted_rows_of_a_log_as_we_do_or_fails_until_we_compact(
    tmp_path: Path, hudi_102: ReferenceHudi, kind: str
) -> None:
    table = logged(tmp_path / "cases", kind, 8, REWRITTEN.keys())
    expected = {case: CASES[case][1] for case in REWRITTEN}
    assert otherwise_in(hudi_102, table, expected) == dict.fromkeys(
        ("delete then late row", "delete then ordered delete then row"), CANNOT_COMPARE
    )
    table.compact()
    assert otherwise_in(hudi_102, table, expected) == {}


def test_hudi_102_fails_on_a_row_after_a_delete_in_logs_of_its_own(tmp_path: Path, hudi_102: ReferenceHudi) -> None:
    """It compares the row's ordering value, a long, with the delete's, which is the int 0. Not about our tables."""
    path = tmp_path / "theirs"
    options = {
        "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "of", **MERGE_ON_READ,
    }  # fmt: skip
    first = pa.Table.from_pylist([row(5, "base").row("k")], SCHEMA)
    hudi_102.write(path, first, operation="bulk_insert", mode="overwrite", **options)
    hudi_102.write(path, first, operation="delete", **options)
    assert len(hudi_102.read(path)) == 0
    hudi_102.write(path, pa.Table.from_pylist([row(6, "again").row("k")], SCHEMA), operation="upsert", **options)
    with pytest.raises(ReferenceFailed, match=r"java\.lang\.Integer cannot be cast to class java\.lang\.Long"):
        hudi_102.read(path)
    assert shown(HudiTable.open(path).scan().to_arrow()) == {"k": (6, "again", "again")}
