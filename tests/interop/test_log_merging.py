"""Records of one key in a log could come to another row for us than for Apache Hudi: a late row, a delete with or
without ordering value, a partial update, in any order. Each case is written by pyhudi and read by both."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.mor_tables import BLOCK_FORMAT, MERGE_ON_READ, POSITIONS
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

IS_DELETED = pa.field("_hoodie_is_deleted", pa.bool_())
SCHEMA = pa.schema(
    [("id", pa.string()), ("of", pa.string()), ("ts", pa.int64()), ("a", pa.string()), ("b", pa.string()), IS_DELETED]
)
Shown = tuple[int, str, str] | None
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
    "late row": ([row(4, "late")], (5, "base", "base")),
    "equal row": ([row(5, "equal")], (5, "equal", "equal")),
    "delete": ([delete()], None),
    # The delete is gone once a row follows it in the log, so that the row meets the base file's.
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
    # A record of the log is made of both before it meets the base file's row: what came too late comes along.
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


def written(path: Path, kind: str, version: int, cases: set[str]) -> HudiTable:
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


def shown(found: pa.Table) -> dict[str, Shown]:
    return {one["id"]: (one["ts"], one["a"], one["b"]) for one in found.to_pylist()}


OTHERWISE_IN_102 = {
    **dict.fromkeys(
        ("delete then late row", "delete then equal row", "delete then ordered delete then row"),
        "java.lang.ClassCastException",
    ),
    "ordered delete then late partial": "(7, 'pa', 'base')",
}
"""Case -> what 1.0.2 makes of it, or how it fails: it compares no delete of a log with a partial update that follows,
and a row that follows a delete without ordering value it compares with the int 0, which only an int can be."""


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_hudi_120_makes_of_our_logs_what_we_do(
    tmp_path: Path, hudi_120: ReferenceHudi, kind: str, version: int
) -> None:
    for cases in (MARKED, CASES.keys() - MARKED):
        table = written(tmp_path / f"{len(cases)} cases", kind, version, cases)
        ours = table.scan().to_arrow()
        assert shown(ours) == {case: result for case in cases if (result := CASES[case][1]) is not None}
        for positions in (True, False):
            assert_same_rows(hudi_120.read(table.path, **{POSITIONS: positions}), ours)


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_hudi_102_makes_of_our_logs_what_we_do_but_for_some(tmp_path: Path, hudi_102: ReferenceHudi, kind: str) -> None:
    of_marked = written(tmp_path / "marked", kind, 8, MARKED)
    others = written(tmp_path / "others", kind, 8, CASES.keys() - MARKED)
    for positions in (True, False):
        wrong = {}
        for case, (_, expected) in CASES.items():
            path = (of_marked if case in MARKED else others).path
            try:
                found = shown(hudi_102.read(path, f"of = '{partition(case)}'", **{POSITIONS: positions}))
            except ReferenceFailed as failure:
                reason = next(line for line in reversed(failure.text.splitlines()) if "Caused by: java" in line)
                wrong[case] = reason.partition("Caused by: ")[2].partition(":")[0]
                continue
            if found.get(case) != expected:
                wrong[case] = repr(found.get(case))
        assert wrong == OTHERWISE_IN_102


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
