"""A key could be stored twice, in the partition that it left and in its new one, or be lost on the way; or a Bloom
filter's false positive, or a file without one, could cost a row.

Random upserts and deletes whose keys move between partitions run on a table with each index and on a dict. Filters
are so small that most of what they say is wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from pyhudi.engine.local.executors import LocalExecutor, SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.snapshot import Snapshot
from tests.support.model import Handles, Model, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids

CITIES = ("oslo", "rome", "york")
rows = st.builds(Row, st.integers(0, 11).map(lambda n: f"k{n:02}"), st.sampled_from(CITIES), st.integers(0, 4),
                 st.integers(-9, 9))  # fmt: skip
steps = st.lists(
    st.tuples(st.sampled_from(["upsert", "upsert", "delete", "delete by time"]), st.lists(rows, max_size=14)),
    min_size=2,
    max_size=6,
)
FALSE_POSITIVES = {
    "hoodie.index.bloom.fpp": "0.6", "hoodie.index.bloom.num_entries": "3",
    "hoodie.bloom.index.filter.dynamic.max.entries": "6",
}  # fmt: skip


@dataclass
class GlobalModel:
    """A key is one row of the whole table. `moves`: it follows its partition column; otherwise it stays put."""

    moves: bool
    ordered: bool
    event_time: bool
    rows: dict[str, tuple[str, Row]] = field(default_factory=dict)

    def settle(self, batch: Sequence[Row], *, ordered: bool) -> dict[str, Row]:
        settled: dict[str, Row] = {}
        for row in batch:
            before = settled.get(row.id)
            if before is None or not ordered or row.ts >= before.ts:
                settled[row.id] = row
        return settled

    def wins(self, row: Row, *, ordered: bool) -> bool:
        stored = self.rows.get(row.id)
        return stored is None or not (ordered and self.event_time) or row.ts >= stored[1].ts

    def upsert(self, batch: Sequence[Row]) -> tuple[int, int, int]:
        inserted = updated = deleted = 0
        for key, row in self.settle(batch, ordered=self.ordered).items():
            if not self.wins(row, ordered=self.ordered):
                continue
            city = self.rows[key][0] if key in self.rows else None
            if city is None:
                inserted += 1
            elif city == row.city or not self.moves:
                updated += 1
            else:
                inserted, deleted = inserted + 1, deleted + 1
            self.rows[key] = (row.city if city is None or self.moves else city), row
        return inserted, updated, deleted

    def delete(self, batch: Sequence[Row], *, ordered: bool) -> int:
        ordered = ordered and self.ordered
        gone = [
            key
            for key, row in self.settle(batch, ordered=ordered).items()
            if key in self.rows and self.wins(row, ordered=ordered)
        ]
        for key in gone:
            del self.rows[key]
        return len(gone)


def new_table(
    index: str, order: str, seed: int, options: dict[str, str], executor: SerialExecutor | LocalExecutor
) -> Handles:
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(seed), executor)
    handles.create(
        ordering=None if order == "commit time" else "ts",
        table_version=8 + seed % 2,
        properties={
            "hoodie.index.type": index,
            **({"hoodie.bucket.index.num.buckets": "3"} if index == "BUCKET" else {}),
            **FALSE_POSITIVES,
            **options,
            **({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"} if order == "commit time, ordered" else {}),
        },
    )
    return handles


def stated(snapshot: Snapshot) -> tuple[int, int, int]:
    """Inserts, updates and deletes by the newest commit's statements."""
    metadata = read_commit(snapshot.storage, snapshot.timeline, snapshot.timeline.completed_writes[-1])
    stats = [stat for of in metadata.partition_to_write_stats.values() for stat in of]
    sums = [sum(getattr(s, name) or 0 for s in stats) for name in ("num_inserts", "num_update_writes", "num_deletes")]
    return sums[0], sums[1], sums[2]


orders = st.sampled_from(["event time", "commit time", "commit time, ordered"])
options = st.fixed_dictionaries(
    {
        "hoodie.bloom.index.prune.by.ranges": st.sampled_from(["true", "false"]),
        "hoodie.parquet.bloom.filter.enabled": st.sampled_from(["true", "true", "false"]),
        "hoodie.bloom.index.filter.type": st.sampled_from(["SIMPLE", "DYNAMIC_V0"]),
        "hoodie.parquet.block.size": st.sampled_from(["1", "125829120"]),
    }
)
executors = st.sampled_from([SerialExecutor(), LocalExecutor(2)])
BRIEF = settings(
    deadline=None, max_examples=10, suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)  # fmt: skip
LONG = settings(BRIEF, max_examples=500)


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@BRIEF
@given(steps=steps, order=orders, seed=st.integers(0, 99), options=options, moves=st.booleans(), executor=executors)
@example(
    steps=[("upsert", [Row("k", "oslo", 3, 1)]), ("upsert", [Row("k", "rome", 2, 2), Row("k", "york", 1, 3)])],
    order="event time", seed=0, options={}, moves=True, executor=SerialExecutor(),
)  # fmt: skip
@example(
    steps=[("upsert", [Row("k", "oslo", 3, 1), Row("l", "oslo", 3, 1)]), ("upsert", [Row("k", "rome", 3, 2)])],
    order="event time", seed=0, options={}, moves=True, executor=SerialExecutor(),
)  # fmt: skip
def test_a_key_is_one_row_of_the_table(
    index: str,
    steps: list[tuple[str, list[Row]]],
    order: str,
    seed: int,
    options: dict[str, str],
    moves: bool,
    executor: SerialExecutor | LocalExecutor,
) -> None:
    by = f"hoodie.{'bloom' if index == 'GLOBAL_BLOOM' else 'simple'}.index.update.partition.path"
    handles = new_table(index, order, seed, {**options, by: str(moves).lower()}, executor)
    model = GlobalModel(moves, ordered=order != "commit time", event_time=order == "event time")
    table = handles.open()
    written = False
    for step, batch in steps:
        if step == "upsert":
            result, expected = table.upsert(arrow(batch)), model.upsert(batch)
        elif not written:
            continue
        else:
            columns = ["id", "ts"] if step == "delete by time" else ["id", "city"][: 1 + len(batch) % 2]
            gone = model.delete(batch, ordered="ts" in columns)
            result, expected = table.delete(arrow(batch, columns)), (0, 0, gone)
        written = True
        assert (result.inserted, result.updated, result.deleted) == expected == stated(table._access.snapshot())
        found = read_rows(table.scan().to_arrow())
        assert {key: of.row for key, of in found.items()} == {(city, row.id): row for city, row in model.rows.values()}
        assert problems_on(handles.storage) == []


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET"])
@BRIEF
@given(steps=steps, order=orders, seed=st.integers(0, 99), options=options, executor=executors)
def test_a_key_is_one_row_of_its_partition(
    index: str,
    steps: list[tuple[str, list[Row]]],
    order: str,
    seed: int,
    options: dict[str, str],
    executor: SerialExecutor | LocalExecutor,
) -> None:
    handles = new_table(index, order, seed, options, executor)
    model = Model(is_partitioned=True, ordered=order != "commit time", event_time=order == "event time")
    table = handles.open()
    for step, batch in [("upsert", []), *steps]:
        if step == "upsert":
            put, *counts = model.upsert(batch)
            result, expected = table.upsert(arrow(batch)), (*counts, 0)
            model.committed(result.requested or "", result.completed or "", put, set())
        else:
            by_time = step == "delete by time"
            gone = model.delete(batch, ordered=by_time)
            result = table.delete(arrow(batch, ["city", "id", *(["ts"] if by_time else [])]))
            expected = (0, 0, len(gone))
            model.committed(result.requested or "", result.completed or "", {}, gone)
        assert (result.inserted, result.updated, result.deleted) == expected == stated(table._access.snapshot())
        assert read_rows(table.scan().to_arrow()) == model.rows


@pytest.mark.long
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@LONG
@given(steps=steps, order=orders, seed=st.integers(0, 99), options=options, moves=st.booleans(), executor=executors)
def test_a_key_is_one_row_of_the_table_for_long(index: str, **drawn: object) -> None:
    test_a_key_is_one_row_of_the_table.hypothesis.inner_test(index=index, **drawn)


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_keys_that_lie_in_several_partitions_already_lose_no_greater_row(index: str) -> None:
    """Bulk inserts promise no uniqueness. Each stored row is settled on its own."""
    handles = new_table(index, "event time", 1, {}, SerialExecutor())
    table = handles.open()
    table.bulk_insert(
        arrow([Row("a", "oslo", 3, 1), Row("a", "rome", 9, 1), Row("b", "oslo", 1, 1), Row("b", "rome", 2, 1),
               Row("c", "oslo", 1, 1), Row("c", "rome", 9, 1), Row("c", "rome", 2, 1)])
    )  # fmt: skip
    result = table.upsert(arrow([Row("a", "oslo", 5, 2), Row("b", "york", 5, 2), Row("c", "york", 5, 2)]))
    found = sorted((r["id"], r["_hoodie_partition_path"], r["ts"]) for r in table.scan().to_arrow().to_pylist())
    assert found == [("a", "oslo", 5), ("a", "rome", 9), ("b", "york", 5), ("c", "rome", 9)]
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 4)
    assert table.delete(arrow([Row("a", "nowhere", 0, 0)], ["id"])).deleted == 2


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_a_row_that_is_marked_as_deleted_goes_wherever_it_lies(index: str) -> None:
    def marked(batch: Sequence[Row], deleted: Sequence[bool | None]) -> pa.Table:
        return arrow(batch).append_column("_hoodie_is_deleted", pa.array(deleted, pa.bool_()))

    handles = new_table(index, "event time", 1, {}, SerialExecutor())
    table = handles.open()
    table.upsert(marked([Row("a", "oslo", 3, 1), Row("b", "oslo", 3, 1), Row("c", "oslo", 3, 1)], [None, None, False]))
    batch = [Row("a", "rome", 4, 2), Row("b", "rome", 2, 2), Row("c", "rome", 4, 2), Row("d", "rome", 4, 2)]
    result = table.upsert(marked(batch, [True, True, False, True]))
    found = sorted((r["id"], r["_hoodie_partition_path"], r["ts"]) for r in table.scan().to_arrow().to_pylist())
    assert found == [("b", "oslo", 3), ("c", "rome", 4)]
    assert (result.inserted, result.updated, result.deleted) == (1, 0, 2)
