"""Two writes that change a table's schema at once: the later could take the earlier one's column away, or store rows
under a schema that they do not fit.
"""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from tests.concurrency.test_second_writer import watched
from tests.support.model import StepClock, problems_on, seeded_uuids

FILLS = {"hoodie.write.set.null.for.missing.columns": "true"}
ONCE = {"hoodie.write.num.retries.on.conflict.failures": 0}
UUIDS = seeded_uuids(11)


class Race:
    """A table with an `int32` column `v`, and a write that another overtakes."""

    def __init__(self, table_type: str = "COPY_ON_WRITE", version: int = 9) -> None:
        self.clock = StepClock()
        self.storage = MemoryStorage(clock_ms=lambda: self.clock.ms)
        HudiTable.create(
            "", name="t", record_key="id", table_type=table_type, table_version=version, storage=self.storage,
            clock=self.clock, random=UUIDS,
        ).upsert(pa.table({"id": ["a"], "v": pa.array([1], pa.int32())}))  # fmt: skip

    def run(
        self,
        mine: pa.Table,
        yours: pa.Table | Callable[[], object],
        options: Mapping[str, object],
        write: str = "upsert",
    ) -> None:
        """Write `mine`; `yours` begins and completes meanwhile. `write`: the name of the method for both."""
        overtaken: list[str] = []

        def overtake(what: str) -> None:
            if not overtaken and ".parquet" in what and ".hoodie" not in what:
                overtaken.append(what)
                yours() if callable(yours) else getattr(self.open(FILLS), write)(yours)

        table = HudiTable.open(
            "", storage=watched(self.storage, overtake), clock=self.clock, random=UUIDS, options=options,
            executor=SerialExecutor(),
        )  # fmt: skip
        getattr(table, write)(mine)
        assert overtaken

    def open(self, options: dict[str, str] | None = None) -> HudiTable:
        return HudiTable.open("", storage=self.storage, clock=self.clock, random=UUIDS, options=options)

    def rows(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = self.open().scan(meta_fields=False).to_arrow().sort_by("id").to_pylist()
        return found


def rows(id_: str, **columns: object) -> pa.Table:
    return pa.table({"id": [id_], **{name: [value] for name, value in columns.items()}})


def small(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.int32())


@pytest.mark.parametrize("table_type,version", [("COPY_ON_WRITE", 9), ("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 8)])
def test_the_table_gets_the_columns_of_both(table_type: str, version: int) -> None:
    race = Race(table_type, version)
    race.run(rows("m", v=small(2), mine="m"), rows("y", v=small(3), yours=1.5), {**FILLS})
    assert race.rows() == [
        {"id": "a", "v": 1, "yours": None, "mine": None},
        {"id": "m", "v": 2, "yours": None, "mine": "m"},
        {"id": "y", "v": 3, "yours": 1.5, "mine": None},
    ]
    assert problems_on(race.storage) == []


def test_a_write_that_changes_nothing_takes_the_schema_of_the_other() -> None:
    race = Race()
    race.run(rows("m", v=small(2)), rows("y", v=small(3), yours=1.5), {**FILLS})
    assert race.rows()[1] == {"id": "m", "v": 2, "yours": None}


def test_two_that_change_the_schema_alike_do_not_conflict() -> None:
    race = Race()
    race.run(rows("m", v=small(2), new="m"), rows("y", v=small(3), new="y"), {**ONCE}, "bulk_insert")
    assert [row["new"] for row in race.rows()] == [None, "m", "y"]


def test_a_write_that_fits_no_more_ends_with_what_both_change() -> None:
    race = Race()
    with pytest.raises(Conflict) as caught:
        race.run(rows("m", v=small(2), mine="m"), rows("y", v=small(3), yours=1.5), {})
    text = str(caught.value)
    assert "another writer changed the table's schema meanwhile (new column 'yours' (double))" in text
    assert "this write (which brings: new column 'mine' (string))" in text
    assert "column 'yours' (double) is missing" in text
    assert [row["id"] for row in race.rows()] == ["a", "y"]
    assert problems_on(race.storage) == []


def test_one_column_of_two_types_ends_with_both() -> None:
    race = Race()
    number, text = rows("y", v=small(3), new=1), rows("m", v=small(2), new="two")
    both = r"\(new column 'new' \(int64\)\), and .* brings: new column 'new' \(string\)"
    with pytest.raises(Conflict, match=both):
        race.run(text, number, {**FILLS})
    assert [row["new"] for row in race.rows()] == [None, 1]


def test_without_retries_the_conflict_names_what_both_change() -> None:
    race = Race()
    both = r"changed the table's schema \(new column 'yours' \(double\); this write: new column 'mine' \(string\)\)"
    with pytest.raises(Conflict, match=both):
        race.run(rows("m", v=small(2), mine="m"), rows("y", v=small(3), yours=1.5), {**FILLS, **ONCE})


def test_a_write_does_not_bring_back_a_column_that_another_dropped_nor_drop_what_it_added() -> None:
    race = Race()
    drops = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
    with pytest.raises(Conflict, match=r"\(no column 'v'\), which this write .* would undo by column 'v'"):
        race.run(rows("m", v=small(2)), lambda: race.open().alter().drop("v").commit(), {})
    with pytest.raises(Conflict, match=r"\(new column 'w' \(int32\)\), which this write .* would undo by column 'w'"):
        race.run(rows("m"), lambda: race.open().alter().add("w", "int32").commit(), drops)
    assert race.open().schema().names == ["id", "w"]
    assert race.rows() == [{"id": "a", "w": None}]


OVERTAKES: dict[str, Callable[[HudiTable], object]] = {
    "upsert": lambda table: table.upsert(rows("y", v=small(3))),
    "delete": lambda table: table.delete(pa.table({"id": ["gone"]})),
    "compaction": lambda table: table.compact(),
    "clustering": lambda table: table.cluster(),
}


@pytest.mark.parametrize("table_type,version", [("COPY_ON_WRITE", 6), ("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9)])
@pytest.mark.parametrize("other", OVERTAKES)
def test_a_new_column_stays_where_another_action_began_later_and_completed_earlier(
    other: str, table_type: str, version: int
) -> None:
    """The table's columns are those of the write that began last, which knew nothing of the new one."""
    if (other, table_type) == ("compaction", "COPY_ON_WRITE"):
        pytest.skip("has no logs")
    race = Race(table_type, version)
    race.open().bulk_insert(rows("gone", v=small(7)))
    race.open().upsert(rows("gone", v=small(8)))

    race.run(rows("m", v=small(2), mine="m"), lambda: OVERTAKES[other](race.open()), {**FILLS})

    assert race.open().schema().names[-1] == "mine"
    assert [row["mine"] for row in race.rows() if row["id"] == "m"] == ["m"]
    race.open(FILLS).upsert(rows("n", v=small(4)))
    assert [row["mine"] for row in race.rows() if row["id"] == "m"] == ["m"]
    assert problems_on(race.storage) == []


@pytest.mark.parametrize("version", [6, 9])
def test_a_wider_column_stays_readable_where_another_write_began_later_and_completed_earlier(version: int) -> None:
    race = Race(version=version)
    race.run(rows("m", v=1 << 40), rows("y", v=small(3)), {})
    assert {row["id"]: row["v"] for row in race.rows()} == {"a": 1, "m": 1 << 40, "y": 3}


def test_without_retries_a_write_says_why_its_columns_would_not_be_seen() -> None:
    race = Race()
    with pytest.raises(Conflict, match=r"began later, completed earlier, and hides .*new column 'mine'"):
        race.run(rows("m", v=small(2), mine="m"), rows("y", v=small(3)), {**FILLS, **ONCE})
    assert race.open().schema().names[-1] == "v"
