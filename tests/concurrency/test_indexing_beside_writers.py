"""An index is built without the table's guard: a writer, a service, a second indexer or a death could come between, and
leave an index that says other than the data files, or an attempt that nobody takes away.

Each meeting is played at the moment between the work and its commit. What the index says is compared with a scan.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pytest

from pyhudi import Conflict, HudiTable, Invalid, NotFound, Unavailable, Unsupported
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.executor import Executor
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.services.metadata.lists import MetadataLists
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig, table_config
from pyhudi.table.facts.properties_file import read_table_properties
from tests.support.crashes import crash_points
from tests.support.metadata_indexes import index_problems
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids

T = TypeVar("T")
R = TypeVar("R")

START = 1_780_000_000_000
DEAD_MS = 60 * 60_000
FEW = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "2"}
STORED = [Row(f"k{n}", ("oslo", "rome")[n % 2], 5, n) for n in range(6)]
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("record_index", {"options": FEW}),
    ("partitioned_record_index", {}),
    ("column_stats", {"columns": ["v", "ts"]}),
    ("partition_stats", {}),
    ("bloom_filters", {}),
    ("secondary_index", {"columns": "v", "name": "by_v"}),
    ("expr_index", {"name": "at", "expression": "from_unixtime(v, 'yyyy-MM-dd HH:mm:ss')"}),
    ("bloom_filters", {"columns": "v", "expression": "v", "options": {"hoodie.index.bloom.num_entries": "2"}}),
]
NEEDS = {"partition_stats": "column_stats", "secondary_index": "record_index"}


class Wall:
    """The clock of the disk, by which heartbeats age: that of whoever opened the table last."""

    ms = START

    def __call__(self) -> int:
        return self.ms


WALL = Wall()


@dataclass
class Between:
    """An executor that lets something happen once, when an indexer that has opened its file groups has done some work.

    `after`: that work by its function's name; empty: the first.
    """

    happens: Callable[[], object]
    after: str = ""
    has_opened: bool = False
    has_happened: bool = False
    inner: SerialExecutor = field(default_factory=SerialExecutor)

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        done = self.inner.run(function, tasks)
        if self.has_opened and not self.has_happened and self.after in ("", function.__name__):
            self.has_happened = True
            self.happens()
        self.has_opened = self.has_opened or function.__name__ == "_open_group"
        return done


def opened(
    storage: Storage, *, later_ms: int, executor: Executor | None = None, clock: StepClock | None = None
) -> HudiTable:
    clock = clock or StepClock(START + later_ms)
    WALL.ms = clock.ms
    return Handles(storage, clock, seeded_uuids(later_ms), executor or SerialExecutor()).open()


def prepared(kind: str = "COPY_ON_WRITE", version: int = 9, **properties: str) -> MemoryStorage:
    storage = MemoryStorage(clock_ms=WALL)
    handles = Handles(storage, StepClock(START), seeded_uuids(0), SerialExecutor())
    extra = {"hoodie.index.type": "GLOBAL_SIMPLE", **properties}
    table = handles.create(properties=extra, table_type=kind, table_version=version)
    table.upsert(arrow(STORED))
    table.upsert(arrow([Row("k1", "rome", 6, 7)]))
    return storage


def config(storage: Storage) -> TableConfig:
    return table_config(read_table_properties(storage), path="t")


def meddle(storage: Storage, *, later_ms: int = 30_000) -> None:
    """Another process adds, moves, changes and deletes keys, in old partitions and a new one, and cleans."""
    other = opened(storage, later_ms=later_ms)
    other.upsert(arrow([Row("k0", "rome", 9, 9), Row("k2", "oslo", 9, 8), Row("new", "bonn", 5, 2)]))
    other.delete(arrow([Row("k3", "rome", 9, 9)]))
    other.upsert(arrow([Row("k4", "bonn", 9, 9), Row("later", "oslo", 1, 1)]))
    other.clean()


def check(storage: Storage, partition: str) -> None:
    assert partition in config(storage).metadata_partitions
    assert config(storage).metadata_partitions_inflight == ()
    assert index_problems(storage) == []
    assert problems_on(storage) == []
    table = opened(storage, later_ms=10 * DEAD_MS)
    assert [i for i in table.timeline() if i.state != "COMPLETED"] == []
    table.upsert(arrow([Row("k0", "oslo", 99, 1), Row("last", "rome", 1, 0)]))
    assert index_problems(storage) == []


def built(storage: Storage, kind: str, executor: Executor | None = None, **arguments: Any) -> str:
    """Build it, with what it needs. Its partition."""
    if kind in NEEDS:
        opened(storage, later_ms=10_000).build_index(NEEDS[kind])
    result = opened(storage, later_ms=20_000, executor=executor).build_index(kind, **arguments)
    assert result.completed is not None
    assert result.reason == ""
    return result.partitions[0]


TYPES = [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 8)]
MEETINGS = [
    pytest.param(kind, arguments, *of, id=f"{kind}-{of[0]}", marks=[] if number % 2 == place else [pytest.mark.long])
    for number, (kind, arguments) in enumerate(KINDS)
    for place, of in enumerate(TYPES)
]


@pytest.mark.parametrize("kind, arguments, table_type, version", MEETINGS)
def test_what_writers_change_while_an_index_is_built_is_in_it(
    kind: str, arguments: dict[str, Any], table_type: str, version: int
) -> None:
    storage = prepared(table_type, version, **{"hoodie.metadata.compact.max.delta.commits": "2"})
    for after in ("", "_write_base"):
        disk = storage.copy()
        executor = Between(partial(meddle, disk), after)
        partition = built(disk, kind, executor, **arguments)
        assert executor.has_happened
        check(disk, partition)


def test_an_index_that_is_there_is_not_built_again_and_a_second_kind_of_record_index_neither() -> None:
    storage = prepared()
    built(storage, "record_index", options=FEW)
    before = storage.copy()
    result = opened(storage, later_ms=30_000).build_index("partitioned_record_index")
    assert result.completed is None
    assert "is there already" in result.reason
    assert config(storage) == config(before)


def test_an_index_that_is_planned_is_built_later_by_whoever_runs_it() -> None:
    storage = prepared("MERGE_ON_READ")
    planned = opened(storage, later_ms=10_000).schedule_index("column_stats", columns=["v"])
    assert planned.completed is None
    assert config(storage).metadata_partitions_inflight == ()
    meddle(storage)
    (result,) = opened(storage, later_ms=40_000).run_indexes()
    assert (result.requested, result.partitions) == (planned.requested, ("column_stats",))
    assert [name for name in read_definitions(storage)["column_stats"].source_fields if name[0] != "_"] == ["v"]
    check(storage, "column_stats")
    assert opened(storage, later_ms=400_000).run_indexes() == ()


def test_what_is_listed_as_being_built_by_nobody_is_built_by_its_plan() -> None:
    storage = prepared()
    built(storage, "record_index", options=FEW)
    table = opened(storage, later_ms=30_000)
    table.schedule_index("secondary_index", columns="v", name="by_v")
    MetadataLists(storage, lambda: START, lambda: None).put(
        ready=config(storage).metadata_partitions, inflight=["secondary_index_by_v", "column_stats"]
    )
    (result,) = table.run_indexes()
    assert result.partitions == ("secondary_index_by_v",)
    check(storage, "secondary_index_by_v")


def test_a_build_that_fails_is_taken_back() -> None:
    storage = prepared()

    def fail() -> None:
        raise Unavailable("the disk is full")

    before = config(storage)
    with pytest.raises(Unavailable, match="the disk is full"):
        built(storage, "record_index", Between(fail), options=FEW)
    assert config(storage).metadata_partitions == before.metadata_partitions
    assert config(storage).metadata_partitions_inflight == ()
    assert not list(storage.list(".hoodie/metadata/record_index"))
    assert "record_index" not in read_definitions(storage)
    assert [i for i in opened(storage, later_ms=90_000).timeline() if i.action == "indexing"] == []
    built(storage, "record_index", options=FEW)
    check(storage, "record_index")


def test_a_second_indexer_waits_for_a_living_one_and_takes_over_from_a_dead_one() -> None:
    storage, seen, clock = prepared(), [], StepClock(START + 20_000)

    def second() -> None:
        with pytest.raises(Conflict, match="is being run"):
            opened(storage, later_ms=25_000).build_index("record_index", options=FEW)
        with pytest.raises(Conflict, match="is being run"):
            opened(storage, later_ms=26_000).drop_index("record_index")
        clock.ms = START + DEAD_MS
        seen.append(opened(storage, later_ms=DEAD_MS).build_index("record_index", options=FEW))

    first = opened(storage, later_ms=20_000, executor=Between(second, "_write_base"), clock=clock)
    with pytest.raises(Conflict, match="took this build for dead"):
        first.build_index("record_index", options=FEW)
    assert seen[0].completed is not None
    check(storage, "record_index")


def test_a_writer_that_switches_the_index_off_ends_its_build() -> None:
    storage = prepared()
    off = {"hoodie.metadata.index.column.stats.enable": "false"}
    row = arrow([Row("k0", "oslo", 9, 9)])
    executor = Between(lambda: opened(storage, later_ms=50_000).upsert(row, options=off))
    with pytest.raises(Conflict, match="dropped"):
        built(storage, "column_stats", executor)
    assert config(storage).metadata_partitions == ("files",)
    assert [i for i in opened(storage, later_ms=90_000).timeline() if i.action == "indexing"] == []


def test_what_a_writer_did_not_log_makes_the_build_begin_anew() -> None:
    """As a compaction does that began before the list was put, and read the table's properties then."""
    storage = prepared("MERGE_ON_READ")
    opened(storage, later_ms=10_000).schedule_compaction()

    def unseen() -> None:
        lists = MetadataLists(storage, lambda: START, lambda: None)
        lists.put(ready=["files"], inflight=[])
        assert opened(storage, later_ms=30_000).compact().completed is not None
        lists.put(ready=["files"], inflight=["column_stats"])

    executor = Between(unseen)
    assert built(storage, "column_stats", executor) == "column_stats"
    assert executor.has_happened
    check(storage, "column_stats")


def test_writers_leave_the_building_to_an_indexer_when_they_are_told_to() -> None:
    storage = prepared()
    options = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.async": "true"}
    opened(storage, later_ms=10_000).upsert(arrow([Row("k0", "oslo", 9, 9)]), options=options)
    assert config(storage).metadata_partitions == ("files",)
    built(storage, "column_stats", options=options)
    opened(storage, later_ms=50_000).upsert(arrow([Row("k0", "oslo", 10, 9)]), options=options)
    check(storage, "column_stats")


def test_a_dropped_index_takes_along_those_that_need_it() -> None:
    storage = prepared()
    built(storage, "secondary_index", columns="v", name="by_v")
    built(storage, "bloom_filters")
    table = opened(storage, later_ms=60_000)
    with pytest.raises(NotFound, match="which are: bloom_filters, record_index, secondary_index_by_v"):
        table.drop_index("by_w")
    assert table.drop_index("by_v").partitions == ("secondary_index_by_v",)
    built(storage, "secondary_index", columns="v", name="again")
    assert table.drop_index("record_index").partitions == ("record_index", "secondary_index_again")
    assert config(storage).metadata_partitions == ("bloom_filters", "files")
    assert read_definitions(storage) == {}
    assert not list(storage.list(".hoodie/metadata/record_index"))
    check(storage, "bloom_filters")
    stored = opened(storage, later_ms=99_000)
    with pytest.raises(Invalid, match=r"hoodie\.metadata\.index\.bloom\.filter\.enable is set"):
        stored.drop_index("bloom_filters", options={"hoodie.metadata.index.bloom.filter.enable": "true"})


def test_an_index_that_the_options_switch_off_is_not_begun() -> None:
    option = "hoodie.metadata.index.column.stats.enable"
    storage = prepared("COPY_ON_WRITE", 9, **{option: "false"})
    before = {file.path for file in storage.list("")}
    table = opened(storage, later_ms=10_000)
    for begin in (table.build_index, table.schedule_index):
        with pytest.raises(Invalid, match=rf"'column_stats': .* {option}=false"):
            begin("column_stats")
    assert {file.path for file in storage.list("")} == before
    of_kind = "hoodie.metadata.record.level.index.enable"
    with pytest.raises(Invalid, match=rf"'record_index': .* {of_kind}=false"):
        table.build_index("record_index", options={of_kind: "false"})
    planned = opened(storage, later_ms=30_000)
    assert planned.schedule_index("column_stats", options={option: "true"}).completed is None
    with pytest.raises(Invalid, match=rf"{option}=false"):
        planned.run_indexes()
    (result,) = planned.run_indexes(options={option: "true"})
    assert result.partitions == ("column_stats",)
    assert config(storage).metadata_partitions == ("column_stats", "files")


@pytest.mark.parametrize(
    "kind, arguments, error, text",
    [
        ("bitmap", {}, Invalid, "expected one of 'column_stats'"),
        ("expr_index", {"columns": "ts"}, Invalid, "expected an expression"),
        ("expr_index", {"expression": "from_unixtime(ts)"}, Invalid, "expected a name for the index on"),
        ("expr_index", {"columns": "v", "expression": "from_unixtime(ts)"}, Invalid, "expected the column 'ts'"),
        ("expr_index", {"columns": "ts", "expression": "lower(nobody)"}, Invalid, "no column 'nobody'"),
        ("expr_index", {"columns": "ts", "expression": "from_unixtime(ts, 'EEE')"}, Unsupported, "'EEE'"),
        ("expr_index", {"columns": "ts", "expression": "ts + 1"}, Unsupported, "Apache Hudi knows no index"),
        ("expr_index", {"columns": "ts", "expression": "split(city, 'o')"}, Unsupported, "the function split"),
        ("record_index", {"expression": "ts"}, Invalid, "of which one can be on an expression"),
        ("bloom_filters", {"columns": "id", "expression": "date_add(id, 1)"}, Unsupported, "keeps no bloom_filters"),
        ("column_stats", {"columns": ["v", "w"]}, Invalid, "found 'w' that the table does not have: it has id"),
        ("column_stats", {"name": "mine"}, Invalid, "expected no name"),
        ("record_index", {"columns": "v"}, Invalid, "expected no columns, found v"),
        ("secondary_index", {}, Invalid, "expected one column, found none"),
        ("secondary_index", {"columns": "v", "name": "a-b"}, Invalid, "expected letters, digits and underscores"),
        ("secondary_index", {"columns": "v"}, Invalid, "expected a global record index"),
        ("partition_stats", {}, Invalid, "build 'column_stats' first"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_is_written(
    kind: str, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    storage = prepared()
    before = {file.path for file in storage.list(".hoodie/timeline")}
    with pytest.raises(error, match=text):
        opened(storage, later_ms=10_000).build_index(kind, **arguments)
    assert {file.path for file in storage.list(".hoodie/timeline")} == before
    assert config(storage).metadata_partitions == ("files",)


def test_a_column_whose_values_have_no_text_gets_no_secondary_index() -> None:
    storage = prepared()
    built(storage, "record_index", options=FEW)
    with pytest.raises(Invalid, match="columns='nobody': expected a column of text"):
        opened(storage, later_ms=40_000).build_index("secondary_index", columns="nobody")


def build_one(storage: Storage) -> None:
    opened(storage, later_ms=20_000).build_index("column_stats", columns=["v"])


def build_while_another_writes(storage: Storage) -> None:
    row = arrow([Row("k0", "rome", 9, 9), Row("new", "bonn", 1, 1)])
    executor = Between(lambda: opened(storage, later_ms=50_000).upsert(row))
    opened(storage, later_ms=20_000, executor=executor).build_index("record_index", options=FEW)


@pytest.mark.parametrize(
    "build, step",
    [
        pytest.param(build_one, 16, id="alone, some steps"),
        pytest.param(build_one, 1, id="alone", marks=pytest.mark.long),
        pytest.param(build_while_another_writes, 1, id="beside", marks=pytest.mark.long),
    ],
)
def test_an_indexer_that_dies_leaves_only_true_indexes_and_the_next_one_tidies_up(
    build: Callable[[Storage], None], step: int
) -> None:
    start, points = prepared("MERGE_ON_READ"), 0
    for note, disk in crash_points(build, start.copy):
        points += 1
        if points % step:
            continue
        assert index_problems(disk) == [], note
        opened(disk, later_ms=60_000).upsert(arrow([Row("k2", "rome", 9, 100)]))  # a writer goes on
        assert index_problems(disk) == [], note
        later = opened(disk, later_ms=DEAD_MS)
        later.run_indexes()
        kind = "column_stats" if build is build_one else "record_index"
        later.build_index(kind)
        check(disk, kind)
    assert points > 20
