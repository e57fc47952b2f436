"""Changes that do not lead from the rows of the start to those of the end: a reader that applies them goes astray.

Where a key is stored twice, a row that stayed must be no change, and each other row is told once.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.merge.latest import match_in_turn
from pyhudi.table.changes.changed_rows import pair_rows

PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
SCHEMA = pa.schema([("_hoodie_commit_time", pa.string()), ("_hoodie_record_key", pa.string()), ("v", pa.int64())])


def has_another_time(before: pa.RecordBatch, after: pa.RecordBatch) -> np.ndarray:
    return np.asarray(pc.not_equal(before.column(0), after.column(0)))


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(map(repr, rows))


def applied(rows: list[dict[str, Any]], changes: list[dict[str, Any]]) -> Counter[str]:
    """The rows after the changes. Each row that a change takes must be there."""
    left = counted(rows)
    left.subtract(counted([one["before"] for one in changes if one["before"] is not None]))
    left.update(counted([one["after"] for one in changes if one["after"] is not None]))
    assert min(left.values(), default=0) >= 0
    return +left


@given(st.data())
def test_the_changes_between_two_states_lead_from_the_one_to_the_other(data: st.DataObject) -> None:
    row = st.tuples(st.sampled_from("123"), st.sampled_from("abc"), st.integers(0, 2))
    before = data.draw(st.lists(row, max_size=6))
    stayed = data.draw(st.lists(st.sampled_from(before), max_size=6)) if before else []
    stayed = list((Counter(before) & Counter(stayed)).elements())
    written = data.draw(st.lists(st.tuples(st.just("9"), st.sampled_from("abcd"), st.integers(0, 2)), max_size=4))
    after = data.draw(st.permutations([*stayed, *written]))
    old, new = (
        pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, one, strict=True)) for one in rows], SCHEMA)
        for rows in (before, after)
    )

    found = []
    for changes in pair_rows(old, new, differs=has_another_time):
        sides = [
            [None] * len(changes.op) if side is None else side.rows.to_pylist()
            for side in (changes.before, changes.after)
        ]
        found += [
            {"op": op, "before": one, "after": other}
            for op, one, other in zip(changes.op.to_pylist(), *sides, strict=True)
        ]

    assert applied(old.to_pylist(), found) == counted(new.to_pylist())
    kept = Counter(before) & Counter(after)
    assert sum(one["before"] is not None for one in found) == len(before) - kept.total()
    assert all(one["op"] == {True: "i", False: "u"}[one["before"] is None] for one in found if one["after"] is not None)


def test_equal_keys_match_one_after_the_other() -> None:
    assert match_in_turn(pa.array(["a", "a", "a"]), pa.array(["a", "b", "a"])).tolist() == [0, 2, -1]
    assert match_in_turn(pa.array(["a", "b"]), pa.array(["b", "a"])).tolist() == [1, 0]
    assert match_in_turn(pa.array(["a", "a"]), pa.array([], pa.string())).tolist() == [-1, -1]
    assert match_in_turn(pa.array([], pa.string()), pa.array(["a", "a"])).tolist() == []


@pytest.mark.parametrize("rules", [{}, {"hoodie.compaction.payload.class": PARTIAL}], ids=["whole", "of several"])
@pytest.mark.parametrize("keeps_logs", [False, True])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_of_keys_that_are_stored_twice_lead_from_the_rows_of_the_start_to_those_of_the_end(
    tmp_path: Path, table_type: str, keeps_logs: bool, rules: dict[str, str]
) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="ts", table_type=table_type, table_version=9,
        properties={"hoodie.table.cdc.enabled": keeps_logs, **rules},
    )  # fmt: skip

    def rows(*given: tuple[str, int]) -> pa.Table:
        return pa.table({"id": [key for key, _ in given], "ts": [ts for _, ts in given], "v": [ts for _, ts in given]})

    steps = [
        lambda: table.bulk_insert(rows(("a", 1), ("b", 1), ("c", 1), ("c", 5))),
        lambda: table.insert(rows(("a", 5))),  # a second row of its key
        lambda: table.upsert(rows(("a", 3))),  # wins over one of the two
        lambda: table.delete(rows(("b", 2), ("c", 2)).select(["id", "ts"])),  # takes one of the two rows of c
        lambda: table.upsert(rows(("a", 6), ("d", 1))),  # wins over both
        lambda: table.delete(rows(("a", 1)).select(["id"])),
    ]
    told = []
    stood, before = [], None
    for step in steps:
        done = step()
        stands = table.scan(meta_fields=False).to_arrow().to_pylist()
        if before is not None:
            changes = table.cdc(start=before.requested).to_arrow().to_pylist()
            assert applied(stood, changes) == counted(stands)
            told.append(sorted(one["op"] for one in changes))
        stood, before = stands, done
    assert told == [["i"], ["u"], ["d", "d"], ["i", "u", "u"], ["d", "d"]]
