"""A table whose columns change could show values under a wrong column, or bring back those of a dropped one: after a
write, a service or a restore, in the past, by a filter, or where statistics tell of another column of the name.

Random changes of columns and writes run on a table and on dicts, which hold values by the numbers of columns.
"""

import random
from copy import deepcopy

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from tests.support.altered_model import AlteredModel, State
from tests.support.model import Handles, StepClock, problems_on, seeded_uuids

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
STEPS = ("alter", "alter", "alter", "upsert", "upsert", "some", "delete", "add", "roll back", "restore", "service")
ALL_FILES = {"hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30)}


class Altered:
    """One table beside its model."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.model, self.version = AlteredModel(self.draw), self.draw.choice([6, 8, 9])
        self.kind = self.draw.choice(KINDS)
        self.has_statistics = self.draw.random() < 0.6
        self.saved: tuple[str, State] | None = None
        clock = StepClock()
        handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(seed), SerialExecutor())
        statistics = {"hoodie.metadata.index.column.stats.enable": str(self.has_statistics).lower()}
        keeps = {"hoodie.clean.automatic": "false", "hoodie.parquet.max.file.size": str(1 << 20)}
        handles.create(table_version=self.version, table_type=self.kind, properties={**keeps, **statistics})
        self.storage, self.table, self.ts = handles.storage, handles.open(), 0
        self.upsert()
        self.model.note(self.newest)

    @property
    def newest(self) -> str:
        """The newest instant. An indexing is planned just before it."""
        return max(one.requested for one in self.table.timeline())

    def upsert(self) -> None:
        keys = sorted(self.draw.sample("abcdef", self.draw.randint(1, 4)))
        self.table.upsert(self.model.batch(self.ts, keys))

    def step(self, what: str) -> None:
        self.ts += 1
        table, model, now = self.table, self.model, self.model.now
        match what:
            case "alter":
                alteration = table.alter()
                for _ in range(self.draw.randint(1, 3)):
                    alteration = model.alter(alteration)
                alteration.commit()
            case "upsert":
                self.upsert()
            case "some" if self.kind == KINDS[1] and self.version >= 8 and now.rows:
                key, column = self.draw.choice(sorted(now.rows)), self.draw.choice(now.columns)
                old = dict(now.rows[key][1])
                rows = model.batch(self.ts, [key]).select(["id", "city", "ts", column.name])
                now.rows[key] = (now.rows[key][0], {**old, column.number: now.rows[key][1][column.number]})
                table.upsert(rows)
            case "delete":
                key = self.draw.choice("abcdef")
                city = "oslo" if key < "d" else "rome"
                table.delete(pa.table({"id": [key], "city": [city], "ts": [self.ts]}))
                now.rows.pop(key, None)
            case "add":
                made = model.new(model.free_name(now.columns), pa.string())
                now.columns.append(made)
                now.order.append(made.number)
                self.upsert()
            case "roll back":
                altered = table.alter()
                before = model.past[-1][1]
                result = model.alter(altered).commit()
                if result.requested is not None:
                    table.rollback(result.requested)
                model.now = before
                model.past.pop()
            case "restore":
                self.save_or_restore()
            case "service":
                self.serve(self.draw.choice(["compact", "log compact", "cluster", "index", "clean"]))
        model.note(self.newest)

    def save_or_restore(self) -> None:
        if self.saved is None:
            self.saved = self.table.savepoint().requested or "", deepcopy(self.model.now)
            return
        instant, self.model.now = self.saved
        self.table.restore(instant)
        self.model.past = [one for one in self.model.past if one[0] <= instant]
        self.table.delete_savepoint(instant)
        self.saved = None

    def serve(self, what: str) -> None:
        match what:
            case "compact" if self.kind == KINDS[1]:
                self.table.compact()
            case "log compact" if self.kind == KINDS[1] and self.version >= 8:
                self.table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})
            case "cluster":
                self.table.cluster(options=ALL_FILES)
            case "index" if self.has_statistics:
                self.table.build_index("column_stats")
            case "clean":
                self.table.clean(options={"hoodie.clean.commits.retained": "1"})
                del self.model.past[:-1]

    def look(self) -> None:
        table, expected = self.table, self.model.now.shown()
        assert table.schema().names == self.model.now.schema.names
        assert shown(table) == expected
        simple = [one for one in self.model.now.columns if one.type is not None]
        for column in self.draw.sample(simple, min(2, len(simple))):
            for value in {row[column.name] for row in expected}:
                name = pc.field(column.name)
                where = name.is_null() if value is None else name == pa.scalar(value, column.type)
                assert shown(table, where=where) == [row for row in expected if row[column.name] == value], column
        if self.model.past:
            self.look_back(*self.draw.choice(self.model.past))

    def look_back(self, instant: str, then: State) -> None:
        found = self.table.scan(as_of=instant, meta_fields=False).to_arrow().sort_by("id")
        assert found.to_pylist() == then.shown(), instant


def shown(table: HudiTable, **asked: object) -> list[dict[str, object]]:
    found: list[dict[str, object]] = table.scan(meta_fields=False, **asked).to_arrow().sort_by("id").to_pylist()  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 150))])
def test_random_changes_of_columns_beside_writes_agree_with_a_dict(seed: int) -> None:
    altered = Altered(seed)
    steps = []
    for _ in range(altered.draw.randint(8, 20)):
        steps.append(altered.draw.choice(STEPS))
        altered.step(steps[-1])
        try:
            altered.look()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, version {altered.version} {altered.kind}, steps {steps}") from error
    for past in altered.model.past:
        altered.look_back(*past)
    assert problems_on(altered.storage) == [], seed
    assert altered.table.metadata.validate().differences == (), seed
