"""A writer could die, or its store fail, at any step, and leave a table between two states.

Each scenario is stopped at every change of the storage, both ways (the change lands, or does not). Then the
table is opened anew and must be as before the write or as after it, for every way of reading it; the next
write must succeed, tidy up, and give the right rows.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid, NotFound, OutcomeUnknown, Unavailable
from pyhudi.format.metadata.index_definitions import IndexDefinition, encode_index_definitions
from pyhudi.format.names import METADATA_TABLE, PROPERTIES
from pyhudi.format.properties import decode_table_properties, encode_table_properties
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import METADATA_PARTITIONS
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.support.crashes import crash_points, distinct, every_nth
from tests.support.failing import FailingStorage
from tests.support.model import (
    Handles,
    Key,
    Row,
    StepClock,
    Stored,
    arrow,
    dump,
    problems_on,
    read_rows,
    seeded_uuids,
)

START = 1_780_000_000_000

STORED = [Row(f"k{n}", ("oslo", "rome")[n % 2], 5, n) for n in range(12)]
CHANGES = [
    *(Row(f"k{n}", ("oslo", "rome")[n % 2], 6, -n) for n in (0, 1, 2)),
    Row("k3", "rome", 4, 99),  # late: the stored row stays
    *(Row(f"new{n}", "bonn", 5, n) for n in range(7)),
]
NEXT = [Row("k0", "oslo", 9, 1000), Row("last", "bonn", 9, 1001), Row("far", "york", 1, 1)]

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8"}

Values = dict[Key, Row]
Write = Callable[[HudiTable], object]


@dataclass(frozen=True)
class Scenario:
    """`prepare` makes the table on an empty disk; `write` is what dies on it."""

    prepare: Callable[[MemoryStorage], None]
    write: Write

    def run(self, storage: Storage) -> None:
        self.write(reopened(storage))


def handles(storage: Storage, *, later_ms: int = 0) -> Handles:
    """Each has a clock and a random source of its own, as another process has."""
    return Handles(storage, StepClock(START + later_ms), seeded_uuids(later_ms), SerialExecutor())


def create(storage: Storage, **properties: str) -> HudiTable:
    return handles(storage).create(properties=properties)


def create_with_logs(storage: Storage, **properties: str) -> HudiTable:
    return handles(storage).create(properties=properties, table_type="MERGE_ON_READ")


def create_empty(storage: Storage) -> None:
    create(storage)


def with_rows(storage: Storage, **properties: str) -> None:
    create(storage, **properties).upsert(arrow(STORED[:6]))
    handles(storage, later_ms=1_000).open().upsert(arrow(STORED[6:]))


def with_logs(storage: Storage, **properties: str) -> None:
    """Groups with logs and without."""
    create_with_logs(storage, **properties).upsert(arrow(STORED[:6]))
    handles(storage, later_ms=1_000).open().upsert(arrow(STORED[6:]))
    handles(storage, later_ms=1_500).open().upsert(arrow(STORED[1:3]))


def with_buckets(storage: Storage) -> None:
    """Groups with logs and without; the changes make a new one beside them, and a partition of new ones."""
    create_with_logs(storage, **BUCKETS).upsert(arrow(STORED[:6]))
    handles(storage, later_ms=1_000).open().upsert(arrow(STORED[6:9]))


def create_with_rings(storage: Storage) -> None:
    create_with_logs(storage, **BUCKETS, **{"hoodie.index.bucket.engine": "CONSISTENT_HASHING"})


def with_a_dead_delta_commit(storage: Storage) -> None:
    with_logs(storage)
    leave_dead(storage, upsert_changes, ".deltacommit'", with_logs)


def with_rows_and_an_index(storage: Storage) -> None:
    """The metadata table has a partition that pyhudi does not know, as Apache Hudi may add one."""
    with_rows(storage)
    properties = decode_table_properties(storage.get(PROPERTIES), path=PROPERTIES)
    properties[METADATA_PARTITIONS] = "expr_index_old,files"
    storage.put(PROPERTIES, encode_table_properties(properties, epoch_ms=START, is_update=True))
    storage.put(f"{METADATA_TABLE}/expr_index_old/.hoodie_partition_metadata", b"#x\n")
    storage.put(f"{METADATA_TABLE}/expr_index_old/expr-index-old-0000-0_0-0-0_00000000000000000.hfile", b"stale")
    both = {name: IndexDefinition(name, "column_stats") for name in ("expr_index_old", "other")}
    storage.put(".hoodie/.index_defs/index.json", encode_index_definitions(both))


def with_a_dead_write(storage: Storage) -> None:
    """A writer died right before its completion, after the metadata table had taken its commit."""
    with_rows(storage)
    leave_dead(storage, upsert_changes, ".commit'")


def leave_dead(storage: Storage, write: Write, completed: str, prepare: Callable[[Storage], None] = with_rows) -> None:
    """Make the disk as a write leaves it that dies before its completed file, which the words name, is there."""
    copy = MemoryStorage()
    prepare(copy)
    seen: list[str] = []

    def die(disk: Storage) -> None:
        write(reopened(disk))

    for what, disk in crash_points(die, copy.copy):
        if completed in what and "did not land" in what and METADATA_TABLE not in what:
            seen.append(what)
            for path, content in dump(disk).items():
                storage.put(path, content)
    assert len(seen) == 1, seen


def reopened(storage: Storage) -> HudiTable:
    return handles(storage, later_ms=2_000).open()


def upsert_changes(table: HudiTable) -> None:
    table.upsert(arrow(CHANGES))


def delete_some(table: HudiTable) -> None:
    table.delete(arrow([STORED[0], STORED[1], Row("absent", "oslo", 0, 0)], ["id", "city"]))


def delete_a_whole_partition(table: HudiTable) -> None:
    table.delete(arrow([row for row in STORED if row.city == "rome"], ["id", "city"]))


def move_some(table: HudiTable) -> None:
    moved = [Row("k0", "rome", 6, 1), Row("k1", "bonn", 6, 2), Row("k2", "rome", 4, 3), Row("new", "bonn", 1, 4)]
    table.upsert(arrow(moved), options={"hoodie.index.type": "GLOBAL_BLOOM"})


def with_a_dead_overwrite(storage: Storage) -> None:
    """A writer died right before an overwrite completed."""
    with_rows(storage)
    leave_dead(storage, lambda table: table.insert_overwrite(arrow(CHANGES)), ".replacecommit'")


OVERWRITING = [Row("k0", "oslo", 1, 77), *(Row(f"new{n}", "bonn", 5, n) for n in range(7))]

SCENARIOS = {
    "an upsert": Scenario(with_rows, upsert_changes),
    "the first write": Scenario(create_empty, upsert_changes),
    "a bulk insert": Scenario(with_rows, lambda t: t.bulk_insert(arrow([Row("b", "oslo", 1, 1)]))),
    "a delete": Scenario(with_rows, delete_some),
    "a delete of a whole partition": Scenario(with_rows, delete_a_whole_partition),
    "an upsert that moves rows between partitions": Scenario(with_rows, move_some),
    "an empty write": Scenario(with_rows, lambda table: table.upsert(arrow([]))),
    "a write that compacts the metadata table": Scenario(
        lambda disk: with_rows(disk, **{"hoodie.metadata.compact.max.delta.commits": "1"}), upsert_changes
    ),
    "a write that drops an index": Scenario(with_rows_and_an_index, upsert_changes),
    "a write that drops the metadata table": Scenario(
        with_rows, lambda t: t.upsert(arrow(CHANGES), options={"hoodie.metadata.enable": "false"})
    ),
    "a write that makes the metadata table": Scenario(
        lambda disk: with_rows(disk, **{"hoodie.metadata.enable": "false"}),
        lambda t: t.upsert(arrow(CHANGES), options={"hoodie.metadata.enable": "true"}),
    ),
    "a write that rolls a dead one back": Scenario(with_a_dead_write, upsert_changes),
    "an overwrite of partitions": Scenario(with_rows, lambda t: t.insert_overwrite(arrow(OVERWRITING))),
    "an overwrite of the table": Scenario(with_rows, lambda t: t.insert_overwrite_table(arrow(OVERWRITING))),
    "an overwrite of the table by nothing": Scenario(with_rows, lambda t: t.insert_overwrite_table(arrow([]))),
    "a deletion of partitions": Scenario(with_rows, lambda t: t.delete_partitions(["rome"])),
    "a deletion of partitions that rolls a dead overwrite back": Scenario(
        with_a_dead_overwrite, lambda t: t.delete_partitions(["rome", "oslo"])
    ),
    "an upsert to logs": Scenario(with_logs, upsert_changes),
    "a delete to logs": Scenario(with_logs, delete_some),
    "an upsert to logs that rolls a dead one back": Scenario(with_a_dead_delta_commit, upsert_changes),
    "moves between partitions with logs": Scenario(with_logs, move_some),
    "an upsert by bucket": Scenario(with_buckets, upsert_changes),
    "the first write of rings": Scenario(create_with_rings, upsert_changes),
}
NAMES = list(SCENARIOS)
LIKE_OTHERS = (
    "an overwrite of the table by nothing",
    "a delete to logs",
    "an upsert by bucket",
    "a deletion of partitions that rolls a dead overwrite back",
    "an upsert that moves rows between partitions",
    "a write that makes the metadata table",
    "a bulk insert",
)
"""Scenarios whose steps are those of others in another order: for the long run."""


def prepared(scenario: Scenario) -> MemoryStorage:
    disk = MemoryStorage(clock_ms=lambda: START)
    scenario.prepare(disk)
    return disk


def values(stored: dict[Key, Stored]) -> Values:
    return {key: of.row for key, of in stored.items()}


def snapshot(table: HudiTable) -> dict[Key, Stored]:
    answer = table.scan().to_arrow()
    return read_rows(answer) if answer.num_columns else {}


def without_metadata_table(disk: MemoryStorage) -> HudiTable:
    """The same table read by its storage listing."""
    copy = disk.copy()
    properties = decode_table_properties(copy.get(PROPERTIES), path=PROPERTIES)
    properties[METADATA_PARTITIONS] = ""
    copy.put(PROPERTIES, encode_table_properties(properties, epoch_ms=START, is_update=True))
    return handles(copy, later_ms=3_000).open()


def commits(table: HudiTable) -> list[tuple[str, str]]:
    """Requested time, and the time that incremental reads go by."""
    return [
        (i.requested, i.completed if table.table_version > 6 else i.requested)
        for i in table.timeline()
        if i.action in ("commit", "deltacommit", "replacecommit") and i.completed
    ]


@dataclass(frozen=True)
class Expected:
    """The rows that a table may have: as before the write, with its number of commits, or as after it."""

    before: Values
    after: Values
    commits_before: int

    @classmethod
    def of(cls, disk: MemoryStorage, write: Write) -> "Expected":
        before = handles(disk, later_ms=3_000).open()
        whole = disk.copy()
        write(reopened(whole))
        after = handles(whole, later_ms=3_000).open()
        return cls(values(snapshot(before)), values(snapshot(after)), len(commits(before)))


def check_between(disk: MemoryStorage, expected: Expected) -> Values:
    """Every way of reading gives the rows from before, or every one the rows from after. Returns them."""
    table, by_storage = handles(disk, later_ms=3_000).open(), without_metadata_table(disk)
    done = commits(table)
    landed = len(done) > expected.commits_before
    rows = expected.after if landed else expected.before
    found = snapshot(table)
    assert values(found) == rows
    assert snapshot(by_storage) == found
    if not done:
        assert table.incremental().to_arrow().num_rows == 0
        return rows
    assert read_rows(table.scan(as_of=done[-1][0]).to_arrow()) == found
    assert read_rows(by_storage.incremental().to_arrow()) == found
    newest = read_rows(table.incremental(done[-2][1] if len(done) > 1 else None).to_arrow())
    assert newest == {key: of for key, of in found.items() if of.requested == done[-1][0]}
    if landed and expected.commits_before:
        assert values(read_rows(table.scan(as_of=done[-2][0]).to_arrow())) == expected.before
    return rows


def check_next_write(disk: MemoryStorage, rows: Values) -> None:
    """The next writer tidies up, and its rows are right; nothing of the dead one is seen or left."""
    table = handles(disk, later_ms=4_000).open()
    result = table.upsert(arrow(NEXT))
    wanted = {**rows, **{(row.city, row.id): row for row in NEXT}}
    if table.table_type == "COPY_ON_WRITE":  # a log takes an update of a key that it has deleted, too
        assert (result.inserted, result.updated) == (len(wanted) - len(rows), len(NEXT) - len(wanted) + len(rows))
    assert result.inserted + result.updated == len(NEXT)
    assert values(snapshot(table)) == wanted
    assert values(snapshot(without_metadata_table(disk))) == wanted
    assert read_rows(table.incremental().to_arrow()) == snapshot(table)
    assert problems_on(disk, has_metadata_table=None) == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in LIKE_OTHERS else []) for name in NAMES]
)
def test_a_crash_leaves_the_table_before_or_after(name: str) -> None:
    check_crashes(SCENARIOS[name])


def check_crashes(scenario: Scenario) -> None:
    """At each step of the storage: the table before or after, and the next write succeeds."""
    start = prepared(scenario)
    expected = Expected.of(start, scenario.write)
    landed: set[bool] = set()

    for what, disk in distinct(crash_points(scenario.run, start.copy)):
        try:
            rows = check_between(disk, expected)
            check_next_write(disk, rows)
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise
        landed.add(len(commits(handles(disk, later_ms=5_000).open())) - expected.commits_before == 2)

    assert landed == {True, False}, "the commit itself was never crossed"


def digest(disk: Storage) -> str:
    """Of all paths and bytes."""
    return sha256(repr(sorted(dump(disk).items())).encode()).hexdigest()


FAILURES = [
    pytest.param(name, lands, times, id=f"{name}, {kind}, {'lands' if lands else 'lost'}",
                 marks=[] if times == 1 and name in ("an upsert", "the first write") else [pytest.mark.long])
    for name in NAMES
    for lands in (True, False)
    for times, kind in ((1, "once"), (2, "twice"), (1_000_000, "for good"))
]  # fmt: skip


@pytest.mark.parametrize("name,lands,times", FAILURES)
def test_a_store_that_fails_leaves_the_table_before_or_after(name: str, lands: bool, times: int) -> None:
    """Here the writer lives on and rolls back what it can. A write that raised may have landed only when the store
    never answered."""
    scenario = SCENARIOS[name]
    start = prepared(scenario)
    expected = Expected.of(start, scenario.write)
    fails_at, failed, seen = 0, True, {""}
    while failed:
        disk = start.copy()
        storage = FailingStorage(disk, fails_at, lands, times)
        failed = stop_by_failure(storage, scenario.write, disk, expected, seen)
        fails_at += 1

    assert fails_at > 10


def stop_by_failure(
    storage: FailingStorage, write: Write, disk: MemoryStorage, expected: Expected, seen: set[str]
) -> bool:
    """Whether any request failed. `seen`: outcomes and disks that need no second look."""
    outcome: type[Exception] | None = None
    try:
        write(reopened(storage))
    except (Unavailable, OutcomeUnknown) as error:
        outcome = type(error)
    content = f"{outcome} {digest(disk)}"
    if content in seen:
        return bool(storage.failed)
    seen.add(content)
    try:
        rows = check_between(disk, expected)
        after = len(commits(handles(disk, later_ms=3_000).open())) > expected.commits_before
        if outcome is None:
            assert after
        if outcome is Unavailable:
            assert not after, "Unavailable says: call again; but the write has landed"
        check_next_write(disk, rows)
    except Exception as error:
        error.add_note(f"failure of request {storage.fails_at}, {storage.failed}; raised {outcome}")
        raise
    return bool(storage.failed)


@pytest.mark.parametrize("first_step,second_step", [(23, 17), pytest.param(5, 3, marks=pytest.mark.long)])
def test_a_crash_while_a_dead_write_is_rolled_back_and_another_one_there(first_step: int, second_step: int) -> None:
    """Two crashes in a row, at every pair of changes of a sample: the rollback is taken up where it stopped."""
    start = prepared(SCENARIOS["a write that rolls a dead one back"])
    expected = Expected.of(start, upsert_changes)

    for first, disk in every_nth(crash_points(lambda s: upsert_changes(reopened(s)), start.copy), first_step):
        for second, twice in every_nth(crash_points(lambda s: upsert_changes(reopened(s)), disk.copy), second_step):
            try:
                table = handles(twice, later_ms=3_000).open()
                if len(commits(table)) - expected.commits_before > 1:
                    continue  # both of them landed: the same rows written twice
                check_next_write(twice, values(snapshot(table)))
            except Exception as error:
                error.add_note(f"crash at {first}, then at {second}")
                raise


def test_a_clock_that_goes_back_after_a_crash_hides_no_row() -> None:
    """The metadata table was compacted at a time that the next writer's clock has not reached yet."""
    start = prepared(SCENARIOS["a write that compacts the metadata table"])
    expected = Expected.of(start, upsert_changes)

    for what, disk in crash_points(lambda s: upsert_changes(reopened(s)), start.copy):
        table = handles(disk, later_ms=1_500).open()
        if len(commits(table)) > expected.commits_before:
            continue
        table.upsert(arrow(NEXT))
        wanted = {**expected.before, **{(row.city, row.id): row for row in NEXT}}
        assert values(snapshot(handles(disk, later_ms=1_500).open())) == wanted, what
        assert problems_on(disk) == [], what


def test_create_makes_a_table_or_none() -> None:
    seen = set()
    for what, disk in crash_points(create_empty, MemoryStorage):
        try:
            table = handles(disk).open()
        except NotFound:
            seen.add("none")
            table = create(disk)
        else:
            seen.add("table")
            with pytest.raises(Invalid, match="expected no table, found one"):
                create(disk)
        table.upsert(arrow(STORED))
        assert values(snapshot(table)) == {(row.city, row.id): row for row in STORED}, what
        assert problems_on(disk) == []
    assert seen == {"none", "table"}


def test_an_answer_that_got_lost_is_looked_up() -> None:
    """The completed file landed, the store's answer did not: the write has succeeded, and says so."""
    start = prepared(SCENARIOS["an upsert"])
    at = request_of(start, "put_new '.hoodie/timeline/", ".commit'")
    disk = start.copy()

    reopened(FailingStorage(disk, at, lands=True)).upsert(arrow(CHANGES))

    assert len(commits(reopened(disk))) == 3
    assert problems_on(disk) == []


def test_an_outcome_that_nobody_knows_is_left_alone() -> None:
    """Neither the commit nor the look at it was answered: its files must stay, for it may have landed."""
    start = prepared(SCENARIOS["an upsert"])
    at = request_of(start, "put_new '.hoodie/timeline/", ".commit'")
    expected = Expected.of(start, upsert_changes)

    for lands in (True, False):
        disk = start.copy()
        with pytest.raises(OutcomeUnknown, match="look at the timeline"):
            reopened(FailingStorage(disk, at, lands, times=2)).upsert(arrow(CHANGES))

        rows = check_between(disk, expected)
        assert rows == (expected.after if lands else expected.before)
        check_next_write(disk, rows)


def test_the_error_of_a_write_is_not_hidden_by_that_of_its_rollback() -> None:
    start = prepared(SCENARIOS["an upsert"])
    at = request_of(start, "put_stream ", ".parquet'")

    with pytest.raises(Unavailable, match=r"put_stream 'bonn/") as caught:
        reopened(FailingStorage(start.copy(), at, lands=False, times=1_000_000)).upsert(arrow(CHANGES))

    assert any("could not be rolled back yet" in note for note in caught.value.__notes__)


def request_of(start: MemoryStorage, *parts: str) -> int:
    """The number of the first request of an upsert whose words hold all of the parts."""
    for fails_at in range(1_000):
        storage = FailingStorage(start.copy(), fails_at, lands=False)
        with suppress(Unavailable):
            reopened(storage).upsert(arrow(CHANGES))
        if all(part in storage.failed for part in parts):
            return fails_at
        assert storage.failed, f"no request with {parts}"
    raise AssertionError("too many requests")


def test_a_crash_is_not_taken_for_an_error() -> None:
    """What dies does not roll back: everything that it wrote is still there."""
    start = prepared(SCENARIOS["an upsert"])
    storage = CrashingStorage(start, survives=12, lands=True)

    with pytest.raises(Crash):
        upsert_changes(reopened(storage))

    assert storage.done == 12
    assert [i.action for i in reopened(start).timeline() if not i.completed] == ["commit"]
