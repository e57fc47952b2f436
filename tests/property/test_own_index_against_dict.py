"""An index of the user's could be untrue to its table: a key would be stored twice, or its row lost.

Random operations run on a table that is written by the SQLite index of docs/extending.md, and on a dict. Some writers
die between their commit and the index, some do not know the index, and now and then its file is put back to an older
copy.
After each step the table has the dict's rows; whenever the index was told, it has each key where its row is.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, IndexOf, Invalid, LocationChanges, NotFound, register_index
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.testing.crashing import Crash
from tests.support.model import SMALL_FILES, StepClock, seeded_uuids
from tests.support.own_index import assert_true
from tests.support.sqlite_index import SqliteIndex

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", pa.int64())])
CITIES = ("oslo", "rome", "york")
OPTIONS = {
    **SMALL_FILES,
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}
BY_INDEX = {"hoodie.index.class": "dying"}
WITHOUT = {"hoodie.index.class": "", "hoodie.index.type": "GLOBAL_SIMPLE"}


class DyingIndex(SqliteIndex):
    """The index in the file at `path`. While `dies`, its process dies before it takes a commit in."""

    path, dies = "", False

    def __init__(self, table: IndexOf) -> None:
        super().__init__(type(self).path, table)

    def update(self, changes: LocationChanges) -> None:
        if type(self).dies:
            raise Crash("lights out")
        super().update(changes)


register_index("dying", DyingIndex)

keys = st.integers(0, 14).map(lambda n: f"k{n:02}")
row = st.tuples(keys, st.sampled_from(CITIES))
step = st.one_of(
    st.tuples(st.sampled_from(["upsert", "upsert", "dies", "unknown"]), st.lists(row, min_size=1, max_size=8)),
    st.tuples(st.sampled_from(["delete", "insert", "overwrite"]), st.lists(row, min_size=1, max_size=4)),
    st.tuples(
        st.sampled_from(["delete_partitions", "cluster", "compact", "rollback", "restore"]), row.map(lambda one: [one])
    ),
    st.tuples(st.sampled_from(["put back", "keep a copy"]), st.just([("", "")])),
)  # fmt: skip
steps = st.lists(step, min_size=1, max_size=9)
Step = tuple[str, list[tuple[str, str]]]


@dataclass
class Twin:
    """The table, its index, and the dict: key -> (city, v). `past`: the dict as each commit left it."""

    folder: Path
    kind: str
    version: int
    rows: dict[str, tuple[str, int]] = field(default_factory=dict)
    past: list[tuple[str, dict[str, tuple[str, int]]]] = field(default_factory=list)
    count: int = 0
    is_told: bool = True

    def __post_init__(self) -> None:
        clock = StepClock()
        self.path = str(self.folder / "index.db")
        DyingIndex.path, DyingIndex.dies = self.path, False
        self.storage = MemoryStorage(clock_ms=lambda: clock.ms)
        self.own: dict[str, Any] = {
            "storage": self.storage, "clock": clock, "random": seeded_uuids(1), "executor": SerialExecutor(),
        }  # fmt: skip
        HudiTable.create(
            "", name="t", record_key="id", partition_by="city", table_type=self.kind, table_version=self.version,
            properties=OPTIONS, schema=SCHEMA, **self.own,
        )  # fmt: skip

    def table(self) -> HudiTable:
        return HudiTable.open("", options=BY_INDEX, **self.own)

    def run(self, operation: str, drawn: list[tuple[str, str]]) -> None:
        self.count += 1
        wanted = dict(drawn)  # of a key the last row counts
        made = {key: (city, self.count) for key, city in wanted.items()}
        table = self.table()
        match operation:
            case "upsert":
                self.write(table.upsert(self.arrow(made)), {**self.rows, **made})
            case "dies":
                self.dying(lambda: table.upsert(self.arrow(made)), {**self.rows, **made})
            case "unknown":
                result = table.upsert(self.arrow(made), options=WITHOUT)
                self.write(result, {**self.rows, **made}, is_told=False)
            case "delete":
                self.write(table.delete(pa.table({"id": list(wanted)})), self.without(wanted))
            case "insert":
                fresh = {key: of for key, of in made.items() if key not in self.rows}
                if fresh:
                    self.write(table.insert(self.arrow(fresh)), {**self.rows, **fresh})
            case "overwrite":
                self.overwrite(table, made)
            case "delete_partitions":
                gone = {key for key, (city, _) in self.rows.items() if city == drawn[0][1]}
                with suppress(NotFound):
                    self.write(table.delete_partitions([drawn[0][1]]), self.without(gone))
            case "cluster":
                self.is_told |= table.cluster().requested is not None
            case "compact" if self.kind == "MERGE_ON_READ":
                table.compact()
            case "rollback" if len(self.past) > 1:
                with suppress(Invalid, NotFound):
                    table.rollback(self.past[-1][0])
                    self.go_back(len(self.past) - 1)
            case "restore" if self.past:
                at = len(drawn[0][0]) % len(self.past)
                with suppress(Invalid, NotFound):
                    table.restore(self.past[at][0])
                    self.go_back(at + 1)
            case "keep a copy":
                self.with_file(lambda: shutil.copy(self.path, f"{self.path}.copy"))
            case "put back" if Path(f"{self.path}.copy").exists():
                shutil.copy(f"{self.path}.copy", self.path)
                self.is_told = False
        self.check()

    def write(self, result: object, rows: dict[str, tuple[str, int]], *, is_told: bool = True) -> None:
        self.rows = rows
        if (newest := self.newest()) != (self.past[-1][0] if self.past else ""):
            self.past.append((newest, dict(rows)))
            self.is_told = is_told

    def overwrite(self, table: HudiTable, made: dict[str, tuple[str, int]]) -> None:
        """Rows whose key is stored in no other partition: an overwrite looks no keys up."""
        own = {key: of for key, of in made.items() if self.rows.get(key, of)[0] == of[0]}
        if own:
            cities = {city for city, _ in own.values()}
            gone = {key for key, (city, _) in self.rows.items() if city in cities}
            self.write(table.insert_overwrite(self.arrow(own)), {**self.without(gone), **own})

    def dying(self, write: Callable[[], object], rows: dict[str, tuple[str, int]]) -> None:
        """A writer dies when it tells the index: of what others did, before its write; or of its own, which landed."""
        before = self.newest()
        DyingIndex.dies = True
        try:
            with pytest.raises(Crash):
                write()
        finally:
            DyingIndex.dies = False
        self.is_told = False
        if self.newest() != before:
            self.write(None, rows, is_told=False)

    def newest(self) -> str:
        completed = self.table()._access.snapshot().timeline.completed_writes
        return completed[-1].requested if completed else ""

    def go_back(self, count: int) -> None:
        self.past = self.past[:count]
        self.rows = dict(self.past[-1][1])
        self.is_told = False

    def without(self, gone: object) -> dict[str, tuple[str, int]]:
        return {key: of for key, of in self.rows.items() if key not in gone}  # type: ignore[operator]

    def with_file(self, do: Callable[[], object]) -> None:
        if Path(self.path).exists():
            do()

    @staticmethod
    def arrow(rows: dict[str, tuple[str, int]]) -> pa.Table:
        listed = [{"id": key, "city": city, "v": v} for key, (city, v) in rows.items()]
        return pa.Table.from_pylist(listed, SCHEMA)

    def check(self) -> None:
        found = self.table().scan(meta_fields=False).to_arrow().to_pylist()
        assert len(found) == len(self.rows)
        assert {one["id"]: (one["city"], one["v"]) for one in found} == self.rows
        if self.is_told and self.past:
            assert_true(self.table(), self.path)


@contextmanager
def new_twin(kind: str, version: int) -> Iterator[Twin]:
    with TemporaryDirectory() as folder:
        yield Twin(Path(folder), kind, version)


def run_steps(kind: str, version: int, drawn: list[Step]) -> None:
    with new_twin(kind, version) as twin:
        for operation, rows in drawn:
            twin.run(operation, rows)
        twin.run("upsert", [("k00", "oslo"), ("k01", "rome")])
        assert twin.is_told


BRIEF = settings(
    max_examples=2, deadline=None, suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)  # fmt: skip
LONG = settings(BRIEF, max_examples=40)
MANY = [(f"k{n:02}", CITIES[n % 3]) for n in range(12)]
MOVED = [(f"k{n:02}", CITIES[(n + 1) % 3]) for n in range(8)]
EVERYTHING: list[Step] = [
    ("upsert", MANY), ("keep a copy", [("", "")]), ("dies", MOVED), ("delete", MANY[:2]), ("cluster", MANY[:1]),
    ("unknown", MOVED), ("upsert", MANY[2:9]), ("overwrite", MANY[:3]), ("put back", [("", "")]), ("upsert", MOVED),
    ("compact", MANY[:1]), ("delete_partitions", MANY[1:2]), ("rollback", MANY[:1]), ("upsert", MANY[:4]),
    ("dies", MOVED[:2]), ("restore", [("kk", "")]), ("insert", [("k13", "oslo"), ("k14", "oslo")]), ("upsert", MOVED),
]  # fmt: skip


@pytest.mark.parametrize("kind, version", [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 6)])
@BRIEF
@given(drawn=steps)
@example(drawn=EVERYTHING)
def test_the_index_is_true_whatever_becomes_of_the_table(kind: str, version: int, drawn: list[Step]) -> None:
    run_steps(kind, version, drawn)


@pytest.mark.long
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@LONG
@given(drawn=st.lists(step, min_size=5, max_size=30))
def test_the_index_is_true_for_long(kind: str, version: int, drawn: list[Step]) -> None:
    run_steps(kind, version, drawn)
