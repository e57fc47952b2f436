"""The table of docs/concurrency.md could promise what two operations at once do not do.

Each cell of it is played: the first operation has begun, and has not completed; then the second runs from its beginning
to its end; then the first goes on. Both change the same rows.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Conflict
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.concurrency.test_second_writer import watched
from tests.support.model import Row, StepClock, arrow, problems_on, seeded_uuids

Rows: TypeAlias = dict[str, int]
PAGE = Path(__file__).parents[2] / "docs" / "concurrency.md"
HEADER = "| comes meanwhile"
MANY = {"hoodie.log.compaction.blocks.threshold": "2"}
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
KEEPING = {
    "hoodie.clean.commits.retained": 1, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3,
    "hoodie.write.lock.wait_time_ms": 0,
}  # fmt: skip
STORED = {"k0": 0, "k1": 1, "k2": 2, "k3": 3}


def batch(rows: Mapping[str, int]) -> object:
    """Rows, those of odd keys in Rome and the others in Oslo. Each wins over what is stored."""
    return arrow([Row(key, ("oslo", "rome")[int(key[1:]) % 2], 9, v) for key, v in rows.items()])


@dataclass(frozen=True, slots=True)
class Operation:
    """`run`: does it on a table. `upon`: the table's rows after it. `role`: tells the values of the two apart."""

    run: Callable[[HudiTable, int], object]
    upon: Callable[[Rows, int], Rows] = field(default=lambda rows, role: rows)


def in_rome(rows: Rows) -> Rows:
    return {key: v for key, v in rows.items() if int(key[1:]) % 2}


def without(rows: Rows, *keys: str) -> Rows:
    return {key: v for key, v in rows.items() if key not in keys}


def newest_write(table: HudiTable) -> str:
    writes = [i for i in table.timeline() if i.is_completed and i.action in ("commit", "deltacommit", "replacecommit")]
    return max(writes, key=lambda i: i.completed or "").requested


OPERATIONS: dict[str, Operation] = {
    "upsert": Operation(
        lambda t, role: t.upsert(batch({"k0": role, "k4": role})), lambda rows, role: rows | {"k0": role, "k4": role}
    ),
    "insert": Operation(
        lambda t, role: t.insert(batch({f"k{10 * role}": role})), lambda rows, role: rows | {f"k{10 * role}": role}
    ),
    "bulk_insert": Operation(
        lambda t, role: t.bulk_insert(batch({f"k{10 * role + 2}": role})),
        lambda rows, role: rows | {f"k{10 * role + 2}": role},
    ),
    "delete": Operation(
        lambda t, role: t.delete(batch({"k0": 0, "k4": 0})), lambda rows, role: without(rows, "k0", "k4")
    ),
    "insert_overwrite": Operation(
        lambda t, role: t.insert_overwrite(batch({"k0": role})), lambda rows, role: in_rome(rows) | {"k0": role}
    ),
    "delete_partitions": Operation(lambda t, role: t.delete_partitions(["oslo"]), lambda rows, role: in_rome(rows)),
    "compaction": Operation(lambda t, role: t.compact()),
    "log compaction": Operation(lambda t, role: t.log_compact(options=MANY)),
    "clustering": Operation(lambda t, role: t.cluster(options=SORTED)),
    "build_index": Operation(lambda t, role: t.build_index("column_stats")),
    "clean": Operation(lambda t, role: t.clean(options=KEEPING)),
    "archive": Operation(lambda t, role: t.archive(options=KEEPING)),
    "savepoint": Operation(lambda t, role: t.savepoint(newest_write(t))),
    "rollback": Operation(lambda t, role: t.rollback(newest_write(t))),
    "restore": Operation(lambda t, role: t.restore(sorted(i.requested for i in t.timeline() if i.is_completed)[1])),
}
RUNNING = list(OPERATIONS)[:11]
"""Those that work without the guard. The others hold the table from beginning to end: nobody comes between."""


UUIDS = seeded_uuids(1)


def opened(storage: Storage, clock: StepClock) -> HudiTable:
    return HudiTable.open(
        "", storage=storage, clock=clock, random=UUIDS, executor=SerialExecutor(),
        options={"hoodie.write.lock.wait_time_ms": 0},
    )  # fmt: skip


def a_table(storage: MemoryStorage, clock: StepClock) -> None:
    """A table with old file slices to clean, and with logs to compact."""
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        storage=storage, clock=clock, random=UUIDS, executor=SerialExecutor(),
        properties={
            "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false",
            "hoodie.metadata.compact.max.delta.commits": "2",
        },
    )  # fmt: skip
    table.bulk_insert(batch(dict.fromkeys(STORED, -1)))
    table.upsert(batch(STORED))
    table.compact()
    for _ in range(2):
        table.upsert(batch(STORED))


def ended(call: Callable[[], object]) -> str:
    """How an operation ended. Services say that there was nothing to do by a result without an instant."""
    try:
        result = call()
    except Conflict as error:
        return f"refused: {error}"
    has_acted = getattr(result, "requested", getattr(result, "instant", None)) or getattr(result, "archived", 0)
    return "done" if has_acted else "nothing"


def play(first: str, second: str, caplog: pytest.LogCaptureFixture) -> tuple[str, str]:
    """How the first and the second operation ended. What they left is checked."""
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    a_table(storage, clock)
    other = opened(storage, clock)
    ends: list[str] = []

    def meanwhile(what: str) -> None:
        if not ends and is_at_work(other):
            ends.append("")
            ends[0] = ended(lambda: OPERATIONS[second].run(other, 2))

    table = opened(watched(storage, meanwhile), clock)
    with caplog.at_level(logging.INFO, "pyhudi"), pytest.MonkeyPatch.context() as patch:
        if first == "clean":  # as if it had more files to delete than a clean deletes in one turn
            patch.setattr("pyhudi.services.clean.run.IN_TURN_FILES_MAX", 0)
        end = ended(lambda: OPERATIONS[first].run(table, 1))
    assert ends, "the second operation never ran"

    rows = STORED if ends[0] != "done" else OPERATIONS[second].upon(STORED, 2)
    rows = rows if end != "done" else OPERATIONS[first].upon(rows, 1)
    found = opened(storage, clock).scan(["id", "v"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in found) == sorted(rows.items())
    assert problems_on(storage) == []
    assert opened(storage, clock).metadata.validate().differences == ()
    return "anew" if end == "done" and "planned anew" in caplog.text else end, ends[0]


def is_at_work(other: HudiTable) -> bool:
    """Whether the first operation has begun and does not hold the table."""
    if all(instant.is_completed for instant in other.timeline()):
        return False
    try:
        with other._access.guard.acquire("a look", ""):
            return True
    except Conflict:
        return False


def cells() -> dict[tuple[str, str], str]:
    """(First, second) -> what the page says of them."""
    table = HEADER + PAGE.read_text(encoding="utf-8").partition(HEADER)[2].partition("\n\n")[0]
    header, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    return {(first, line[0]): cell for line in lines for first, cell in zip(header[1:], line[1:], strict=True)}


def test_the_page_has_every_pair() -> None:
    assert set(cells()) == {(first, second) for first in RUNNING for second in OPERATIONS}


@pytest.mark.parametrize("second", OPERATIONS)
@pytest.mark.parametrize("first", RUNNING)
def test_a_pair_of_operations_does_what_the_page_says(
    first: str, second: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert word_of(*play(first, second, caplog)) == cells()[first, second]


def word_of(first: str, second: str) -> str:
    """What the page calls the ends of a first and a second operation."""
    match first, second.partition(":")[0]:
        case "done", "done":
            return "both"
        case "anew", "done":
            return "anew"
        case "done", "refused":
            return "refused"
        case "done", "nothing":
            return "not now"
        case _:
            raise AssertionError((first, second))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    "first,second,index,rows",
    [
        ("upsert", "upsert", "SIMPLE", [1]),
        ("upsert", "insert", "SIMPLE", [1]),
        ("insert", "upsert", "SIMPLE", [1, 2]),
        ("insert", "insert", "SIMPLE", [1, 2]),
        ("bulk_insert", "bulk_insert", "SIMPLE", [1, 2]),
        ("upsert", "upsert", "BUCKET", [1]),
        ("upsert", "insert", "BUCKET", [1]),
        ("insert", "upsert", "BUCKET", [1]),
        ("insert", "insert", "BUCKET", [1]),
    ],
)
def test_one_new_key_of_two_writes(table_type: str, first: str, second: str, index: str, rows: list[int]) -> None:
    """`rows`: the values that the table then has of the key. The first write completes later."""
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", table_type=table_type,
        storage=storage, clock=clock, random=UUIDS, executor=SerialExecutor(), properties=bucket,
    ).upsert(batch({"k0": 0}))  # fmt: skip
    other = opened(storage, clock)
    begun: list[str] = []

    def meanwhile(what: str) -> None:
        if not begun and is_at_work(other):
            begun.append(what)
            getattr(other, second)(batch({"k2": 2}))

    getattr(opened(watched(storage, meanwhile), clock), first)(batch({"k2": 1}))

    if first == "insert" and index == "BUCKET" and table_type == "COPY_ON_WRITE":
        rows = [1, 2]  # as when the two come one after the other
    found = other.scan(["id", "v"]).to_arrow().to_pylist()
    assert begun
    assert sorted(row["v"] for row in found if row["id"] == "k2") == rows
    assert problems_on(storage) == []
