"""Runs of several writers, services and readers on one table, drawn by a seed, and what must hold after each."""

import builtins
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa

import pyhudi.services
from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Bug, CorruptFile, HudiError, LockLost, OutcomeUnknown, Unavailable, Unsupported
from pyhudi.format.timeline.instant import PENDING_SERVICE_ACTIONS, WRITE_ACTIONS
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.pending import is_clustering
from pyhudi.testing.crashing import Crash
from pyhudi.txn.locks.guard import Guard, MemoryGuard
from pyhudi.txn.locks.lease import LeaseGuard
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids
from tests.support.orders import (
    ANY,
    Happened,
    State,
    Step,
    deleted,
    find_order,
    first,
    inserted,
    replaced,
    restored,
    rolled_back,
    seen,
    since_first,
    some_keys,
    upserted,
    whole,
    written,
)
from tests.support.simulator import (
    START_MS,
    Faults,
    Process,
    SimulatedClock,
    SimulatedStorage,
    Simulation,
    simulated_threads,
)

CITIES = ("oslo", "rome")
STORED = [Row(f"k{n}", CITIES[n % 2], 1, n) for n in range(8)]
CHANGED = [replace(row, v=row.v + 10) for row in STORED[:2]]
LOCAL = Faults(crash=0.001)
REMOTE = Faults(is_leased=True, crash=0.0007, refused=0.001, lost=0.0015, stall=0.002, skew_ms=20_000)
QUIET = Faults()


@dataclass(frozen=True, slots=True)
class Variant:
    """What kind of table."""

    table_type: str
    version: int
    index: str

    @property
    def has_logs(self) -> bool:
        return self.table_type == "MERGE_ON_READ"

    @property
    def properties(self) -> dict[str, object]:
        made: dict[str, object] = {
            "hoodie.index.type": self.index,
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
        }
        if self.version == 6:
            made["hoodie.compaction.payload.class"] = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
        else:
            made["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
        if self.index == "BUCKET":
            made["hoodie.bucket.index.num.buckets"] = "2"
        if self.index == "RECORD_INDEX":
            made["hoodie.metadata.record.index.enable"] = "true"
        return made


VARIANTS = [
    Variant(table_type, version, index)
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for version in (6, 8, 9)
    for index in ("SIMPLE", "BLOOM", "BUCKET", "RECORD_INDEX")
]


@dataclass(frozen=True)
class Base:
    """A table at the beginning of a run, which has a savepoint."""

    storage: MemoryStorage
    requested: str
    completed: str
    state: State


@cache
def base_table(variant: Variant) -> Base:
    clock = StepClock(START_MS - 3_600_000)
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    made = Handles(storage, clock, seeded_uuids(1), SerialExecutor())
    table = made.create(
        ordering=None, properties=variant.properties, table_version=variant.version, table_type=variant.table_type
    )
    table.bulk_insert(arrow(STORED))
    result = table.upsert(arrow(CHANGED))
    table.savepoint()
    assert result.requested is not None
    assert result.completed is not None
    assert problems_on(storage) == []
    values = {**{row.id: row for row in STORED}, **{row.id: row for row in CHANGED}}.values()
    return Base(storage, result.requested, result.completed, {(row.city, row.id): (row.v,) for row in values})


@dataclass(frozen=True)
class Call:
    """An operation that an actor is about to run. `does`: the call, and what its result means."""

    name: str
    does: Callable[[HudiTable], Step]
    means: Step | None = None
    """What it does where nobody saw its result; None for one that changes no row."""
    is_finished_later: bool = False
    """Whether others bring it to its end once it is on the timeline, even where its caller was told of an error."""


def same(history: Any) -> Any:
    """The step of an operation that changes no row."""
    return history


@dataclass
class Run:
    """One run. `happened`: what is sure or possible; `outcomes`: operations by name and outcome.

    `clusters`: there are clusterings and service processes, too, on tables where rows may lie anywhere.
    """

    seed: int
    faults: Faults
    actors: int | None = None
    variant: Variant | None = None
    clusters: bool = False
    calls: list[str] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    events: int = 0
    uuids: dict[str, Callable[[], str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        drawn = self.random.choice([one for one in VARIANTS if not (self.clusters and one.index == "BUCKET")])
        self.variant = self.variant or drawn
        self.base = base_table(self.variant)
        self.storage = self.base.storage.copy()
        self.simulation = Simulation(self.seed, self.storage, self.faults)
        self.storage._clock_ms = self.simulation.tick
        self.options = self._options()
        self.numbers = 0

    def _options(self) -> dict[str, object]:
        pick = self.random.choice
        options: dict[str, object] = {
            "hoodie.metadata.compact.max.delta.commits": pick([1, 2, 10]),
            "hoodie.clean.automatic": pick(["false", "true"]),
            "hoodie.clean.commits.retained": pick([1, 2, 10]),
            "hoodie.archive.automatic": pick(["false", "true"]),
            "hoodie.keep.min.commits": 1,
            "hoodie.keep.max.commits": pick([2, 3, 30]),
            "hoodie.timeline.compaction.batch.size": 2,
            "hoodie.log.compaction.blocks.threshold": 2,
            "hoodie.write.lock.wait_time_ms": 120_000,
        }
        assert self.variant is not None
        if self.variant.has_logs:
            options["hoodie.compact.inline"] = pick(["false", "false", "true"])
            options["hoodie.compact.inline.max.delta.commits"] = 2
            options["hoodie.parquet.small.file.limit"] = pick(["0", "104857600"])
        if self.clusters:
            options["hoodie.clustering.inline.max.commits"] = pick([1, 2])
            options["hoodie.clustering.plan.strategy.sort.columns"] = pick(["", "v"])
            options["hoodie.clustering.updates.strategy"] = pick(UPDATES)
            options["hoodie.clustering.rollback.pending.replacecommit.on.conflict"] = pick(["false", "true"])
        return options

    def open(self, process: Process) -> HudiTable:
        storage = SimulatedStorage(self.simulation, process)
        clock = SimulatedClock(self.simulation, process)
        made = seeded_uuids(self.seed * 1_000 + sum(process.name.encode()))
        uuids = self.uuids.setdefault(process.name, made)
        guard: Guard = MemoryGuard(self.storage.location.uri)
        if self.faults.is_leased:
            guard = LeaseGuard(storage, table="t", clock=clock, new_uuid=uuids)
        return HudiTable.open(
            "", options=self.options, storage=storage, clock=clock, random=uuids, lock=guard, executor=SerialExecutor()
        )

    def go(self) -> "Run":
        """Carry the run out and look at what came of it."""
        with simulated_threads(self.simulation):
            for number in range(self.actors or self.random.choice([2, 2, 3, 3, 4])):
                skew = self.random.randrange(-self.faults.skew_ms, self.faults.skew_ms + 1)
                process = Process(f"p{number}", skew_ms=skew)
                calls = [self._draw() for _ in range(self.random.choice([1, 1, 2, 3]))]
                self.calls.append(f"{process.name}: {', '.join(call.name for call in calls)}")
                self.simulation.spawn(process, lambda p=process, c=calls: self._act(p, c))  # type: ignore[misc]
            self.simulation.run()
            self.problems += self.simulation.problems
            if not self.problems:
                self._end()
        return self

    def told(self) -> str:
        """What went wrong, and in which run: `Run(seed, faults).go()` runs it again."""
        return "\n".join([f"seed {self.seed}, {self.variant}", *self.calls, *self.problems])

    def _act(self, process: Process, calls: Sequence[Call]) -> None:
        for call in calls:
            begin = self._event()
            try:
                step = call.does(self.open(process))
                self._note(call, begin, step, "done")
            except Crash:
                self._note(call, begin, call.means, "crashed", is_sure=False)
                raise
            except OutcomeUnknown:
                self._note(call, begin, call.means, "unknown", is_sure=False)
            except HudiError as error:
                self._failed(call, error)
                if call.is_finished_later and isinstance(error, (Unavailable, LockLost)):
                    self._note(call, begin, call.means, "unknown", is_sure=False)
            except Exception as error:
                logging.getLogger("simulator").exception("raw")
                self.problems.append(f"{call.name} of {process.name}: raw {type(error).__name__}: {error}")

    def _failed(self, call: Call, error: HudiError) -> None:
        name = type(error).__name__
        self.outcomes[f"{call.name}: {name}"] += 1
        self.simulation.note(f"{call.name} failed: {name}: {str(error)[:300]}")
        if isinstance(error, (Bug, CorruptFile, Unsupported)):
            self.problems.append(f"{call.name}: {name}: {error}")

    def _note(self, call: Call, begin: int, step: Step | None, outcome: str, *, is_sure: bool = True) -> None:
        self.outcomes[f"{call.name}: {outcome}"] += 1
        self.simulation.note(f"{call.name} {outcome}")
        if step is not None:
            self.happened.append(Happened(f"{call.name}@{begin}", begin, self._event(), step, is_sure))

    def _event(self) -> int:
        self.events += 1
        return self.events

    def _end(self) -> None:
        """After the last writer: one more write, the planned services, then everything must be in order."""
        self.simulation.now_ms += 1_200_000
        keeper = Process("keeper", is_faulty=False)
        try:
            last = self._write("upsert", [Row("k0", "oslo", 1, 9_999), Row("last", "rome", 1, 9_998)])
            if self.clusters:  # what is planned may keep writes off its file groups
                self.open(keeper).run_clusterings()
            self._act(keeper, [last])
            if self.outcomes["upsert: done"] == 0 or self.happened[-1].step is None:
                self.problems.append(f"the last upsert failed: {self.outcomes}")
            table = self.open(keeper)
            timeline = table._access.snapshot().timeline
            planned = {*PENDING_SERVICE_ACTIONS, "indexing", "clean"}
            self.problems += [
                f"pending after a write: {i.action} {i.requested}"
                for i in timeline
                if not i.is_completed and i.action not in planned and not is_clustering(self.storage, timeline, i)
            ]
            table.clean()
            if self.variant is not None and self.variant.has_logs:
                table.compact()
                table.log_compact()
            table.run_indexes()
            self._act(keeper, [self._read("scan"), self._read("incremental"), self._read("lookup")])
            self.problems += problems_on(self.storage)
            found = table.metadata.validate()
            self.problems += [f"metadata: {difference}" for difference in found.differences]
        except Exception as error:
            logging.getLogger("simulator").exception("end")
            self.problems.append(f"at the end: {type(error).__name__}: {error}")
            return
        if find_order(self.base.state, self.happened) is None:
            state = rows_of(self.open(keeper).scan().to_arrow())
            self.problems.append(f"no order explains {[one.name for one in self.happened]}, found {state}")

    def _draw(self) -> Call:
        """An operation and its rows."""
        assert self.variant is not None
        names = {**WEIGHTS, **(CLUSTERINGS if self.clusters else {})}
        if not self.variant.has_logs:
            for name in ("compact", "schedule_compaction", "log_compact", "read_optimized"):
                del names[name]
        name = self.random.choices(list(names), list(names.values()))[0]
        if name in READS:
            return self._read(name)
        if name in SERVICES:
            return Call(name, lambda table: _served(SERVICES[name], table))
        if name == "rollback":
            return Call(name, self._roll_back, rolled_back(ANY), is_finished_later=True)
        if name == "restore":
            return Call(name, self._restore, restored, is_finished_later=True)
        return self._write(name, self._rows(name))

    def _rows(self, name: str) -> list[Row]:
        self.numbers += 1
        batch = 100 * self.numbers
        if name in ("insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"):
            keys = [f"i{batch + n}" for n in range(self.random.randrange(1, 3))]
        else:
            keys = self.random.sample([*(row.id for row in STORED), "n0", "n1", "n2"], self.random.randrange(1, 5))
        return [Row(key, CITIES[int(key[1:]) % 2], 1, batch + n) for n, key in enumerate(keys)]

    def _write(self, name: str, rows: list[Row]) -> Call:
        cities = {row.city for row in rows}
        change = {
            "upsert": upserted(rows),
            "insert": inserted(rows),
            "bulk_insert": inserted(rows),
            "delete": deleted(rows),
            "insert_overwrite": replaced(rows, cities),
            "insert_overwrite_table": replaced(rows, CITIES),
            "delete_partitions": replaced([], [rows[0].city]),
        }[name]

        def does(table: HudiTable) -> Step:
            if name == "delete_partitions":
                return written(table.delete_partitions([rows[0].city]).requested, change)
            if name == "delete":
                return written(table.delete(arrow(rows, ["id", "city"])).requested, change)
            write: Callable[[pa.Table], Any] = getattr(table, name)
            return written(write(arrow(rows)).requested, change)

        return Call(name, does, written(ANY, change))

    def _roll_back(self, table: HudiTable) -> Step:
        newest = [i for i in table.timeline() if i.is_completed and i.action in WRITE_ACTIONS]
        target = max(newest, key=lambda i: i.completed or i.requested).requested
        if target <= self.base.requested:
            return same
        table.rollback(target)
        return rolled_back(target)

    def _restore(self, table: HudiTable) -> Step:
        table.restore(self.base.requested)
        return restored

    def _read(self, name: str) -> Call:
        wanted = ["k0", "k1", "k3", "n0", "n1", "last"]

        def does(table: HudiTable) -> Step:
            match name:
                case "incremental":
                    return seen(rows_of(table.incremental(start=self._start).to_arrow()), since_first)
                case "time_travel":
                    return seen(rows_of(table.scan(as_of=self.base.requested).to_arrow()), first)
                case "lookup":
                    return seen(rows_of(table.lookup(wanted)), some_keys(wanted))
                case "read_optimized":
                    rows_of(table.scan(query="read_optimized").to_arrow())
                    return same
                case _:
                    return seen(rows_of(table.scan().to_arrow()), whole)

        return Call(name, does)

    @property
    def _start(self) -> str:
        assert self.variant is not None
        return self.base.requested if self.variant.version == 6 else self.base.completed


def _served(run: Callable[[HudiTable], object], table: HudiTable) -> Step:
    run(table)
    return same


SERVICES: Mapping[str, Callable[[HudiTable], object]] = {
    "compact": lambda table: table.compact(),
    "schedule_compaction": lambda table: table.schedule_compaction(),
    "log_compact": lambda table: table.log_compact(),
    "clean": lambda table: table.clean(),
    "archive": lambda table: table.archive(),
    "build_record_index": lambda table: table.build_index("record_index"),
    "build_column_stats": lambda table: table.build_index("column_stats", columns=["v"]),
    "cluster": lambda table: table.cluster(),
    "schedule_clustering": lambda table: table.schedule_clustering(),
    "run_clusterings": lambda table: table.run_clusterings(),
    "service_process": lambda table: look_after(table),
}
UPDATES = ("SparkRejectUpdateStrategy", "SparkAllowUpdateStrategy")
CLUSTERINGS = {"cluster": 3.0, "schedule_clustering": 1.5, "run_clusterings": 1.5, "service_process": 3.0}
"""How often these are drawn, compared with `WEIGHTS`."""


def look_after(table: HudiTable) -> None:
    """A round of a service process. Raises: Bug for a service that failed with anything but an error of ours."""
    names = ("failed_writes", "compaction", "log_compaction", "clustering", "indexing", "clean", "archive")
    report = pyhudi.services.run(table, services=names, options=table._handle.options, once=True)
    for one in (one for found in report.tables.values() for one in found):
        if one.state == "failed" and one.reason.partition(":")[0] in dir(builtins):
            raise Bug(f"{one.service}: {one.reason}")


READS = ("scan", "incremental", "time_travel", "lookup", "read_optimized")
WEIGHTS = {
    **dict.fromkeys(("insert", "delete", "insert_overwrite", "delete_partitions", "compact", "clean"), 2.0),
    "upsert": 6.0, "bulk_insert": 1.0, "insert_overwrite_table": 1.0, "schedule_compaction": 1.0, "log_compact": 1.5,
    "archive": 1.0, "build_record_index": 0.7, "build_column_stats": 0.7, "rollback": 1.5, "restore": 0.8,
    "scan": 1.5, "incremental": 1.0, "time_travel": 0.7, "lookup": 1.0, "read_optimized": 0.7,
}  # fmt: skip


def rows_of(rows: pa.Table) -> State:
    """An answer as a state."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for row in rows.select(["city", "id", "v"]).to_pylist():
        key = row["city"], row["id"]
        found[key] = tuple(sorted((*found.get(key, ()), row["v"])))
    return found
