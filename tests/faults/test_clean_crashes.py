"""A clean could die at any step and leave readers without a file that they are shown, the metadata table with files
that are gone, or itself pending for ever. It is stopped at every change of the storage, both ways.

After each crash every reader of a retained commit finds its rows, however the files are listed, and one of an older
commit finds them or is refused; the next commit finishes the clean, and the files that are left are those of a table
where nothing ever crashed.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import NotFound, OutcomeUnknown, Unavailable
from pyhudi.format.names import PROPERTIES
from pyhudi.format.properties import decode_table_properties, encode_table_properties
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import METADATA_PARTITIONS
from tests.support.crashes import crash_points, distinct
from tests.support.failing import FailingStorage
from tests.support.model import (
    Handles,
    Row,
    StepClock,
    arrow,
    problems_on,
    read_rows,
    seeded_uuids,
    without_metadata_table,
)

START = 1_780_000_000_000
RETAINED = 2
PROPERTIES_OF_TABLE = {
    "hoodie.clean.commits.retained": str(RETAINED),
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.clean.automatic": "false",
}
CLEANED = {"hoodie.clean.automatic": "true"}

Rows = frozenset[Row]


def handle(storage: Storage, *, later_ms: int = 0) -> HudiTable:
    return Handles(storage, StepClock(START + later_ms), seeded_uuids(later_ms), SerialExecutor()).open()


def change(turn: int) -> list[Row]:
    return [Row("a", "rome", turn, turn), Row("b", "bonn", turn, turn)]


@cache
def before() -> tuple[MemoryStorage, dict[str, Rows]]:
    """A table with superfluous files and a partition that was deleted, and its rows as of each commit."""
    storage = MemoryStorage(clock_ms=lambda: START)
    handles = Handles(storage, StepClock(START), seeded_uuids(0), SerialExecutor())
    table = handles.create(properties=PROPERTIES_OF_TABLE)
    rows: dict[str, Rows] = {}
    table.upsert(arrow([*change(0), Row("gone", "oslo", 0, 0)]))
    table.upsert(arrow(change(1)))
    table.delete_partitions(["oslo"])
    for turn in range(2, 5):
        table.upsert(arrow(change(turn)))
    for instant in table.timeline():
        if instant.action in ("commit", "replacecommit"):
            rows[instant.requested] = found(table.scan(as_of=instant.requested).to_arrow())
    assert len(rows) == 6
    return storage, rows


def found(answer: object) -> Rows:
    return frozenset(of.row for of in read_rows(answer).values())


def by_storage(disk: MemoryStorage) -> MemoryStorage:
    """The same table, listed by its storage."""
    copy = disk.copy()
    properties = decode_table_properties(copy.get(PROPERTIES), path=PROPERTIES)
    copy.put(
        PROPERTIES, encode_table_properties({**properties, METADATA_PARTITIONS: ""}, epoch_ms=START, is_update=True)
    )
    return copy


def commits_on(disk: MemoryStorage) -> int:
    """Commits that have landed, of which `before` has five."""
    return sum(1 for file in disk.list(".hoodie/timeline") if file.path.endswith(".commit"))


def clean(storage: Storage) -> None:
    handle(storage, later_ms=60_000).clean()


def upsert_and_clean(storage: Storage) -> None:
    handle(storage, later_ms=60_000).upsert(arrow(change(7)), options=CLEANED)


def beside_others(operation: Callable[[Storage], None]) -> Callable[[Storage], None]:
    """The same operation, with a clean that lets go of the table while it deletes files."""

    def run(storage: Storage) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pyhudi.services.clean.run.IN_TURN_FILES_MAX", 0)
            operation(storage)

    return run


OPERATIONS = {
    "a clean that is asked for": clean,
    "a clean that follows a write": upsert_and_clean,
    "a clean beside others": beside_others(clean),
    "a clean beside others that follows a write": beside_others(upsert_and_clean),
}


def check_readers(disk: MemoryStorage, rows: dict[str, Rows]) -> None:
    for storage in (disk, by_storage(disk)):
        table = handle(storage, later_ms=120_000)
        commits = [i.requested for i in table.timeline() if i.action in ("commit", "replacecommit") and i.completed]
        known = {**rows, **({commits[-1]: frozenset(change(7))} if commits[-1] not in rows else {})}
        assert found(table.scan().to_arrow()) == known[commits[-1]]
        for at, requested in enumerate(commits):
            try:
                rows_then = found(table.scan(as_of=requested).to_arrow())
            except NotFound:
                rows_then = None
            assert rows_then == known[requested] or (rows_then is None and at < len(commits) - RETAINED)
        assert found(table.incremental().to_arrow()) == known[commits[-1]]


def check_next_write(disk: MemoryStorage) -> None:
    """The next commit finishes the clean."""
    table = handle(disk, later_ms=180_000)
    table.upsert(arrow(change(8)), options=CLEANED)
    assert found(table.scan().to_arrow()) == frozenset(change(8))
    assert problems_on(disk) == []
    assert found(handle(by_storage(disk), later_ms=240_000).scan().to_arrow()) == frozenset(change(8))
    # Each of the two live groups has the files of the two retained commits, and the one that readers of the first saw.
    assert len(list(without_metadata_table(disk))) == 2 * (RETAINED + 1)
    assert [path for path in without_metadata_table(disk) if path.startswith("oslo/")] == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_clean_that_dies_takes_nothing_from_readers_and_is_finished(name: str) -> None:
    disk, rows = before()
    states: set[frozenset[str]] = set()
    for what, after in distinct(crash_points(OPERATIONS[name], disk.copy)):
        if "follows a write" in name and commits_on(after) == 5:
            continue  # a write like any other until then, which other tests stop everywhere
        try:
            check_readers(after, rows)
            states.add(frozenset(i.state for i in handle(after).timeline() if i.action == "clean"))
            check_next_write(after)
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise
    assert states == {frozenset(), frozenset({"REQUESTED"}), frozenset({"INFLIGHT"}), frozenset({"COMPLETED"})}


def test_a_clean_that_dies_while_it_is_finished_is_finished_all_the_same() -> None:
    """Two crashes in a row, at a sample of pairs."""
    disk, rows = before()
    for number, (first, once) in enumerate(distinct(crash_points(clean, disk.copy))):
        if number % 5:
            continue
        for second, twice in list(crash_points(clean, once.copy))[number % 9 :: 9]:
            try:
                check_readers(twice, rows)
                check_next_write(twice)
            except Exception as error:
                error.add_note(f"crash at {first}, then at {second}")
                raise


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "lands,times",
    [
        pytest.param(True, 1, id="lands once"),
        pytest.param(False, 1, id="lost once", marks=LONG),
        pytest.param(True, 1_000_000, id="lands for good", marks=LONG),
        pytest.param(False, 1_000_000, id="lost for good", marks=LONG),
    ],
)
def test_a_store_that_fails_while_a_write_is_cleaned_up_after_fails_no_write(lands: bool, times: int) -> None:
    """Whatever fails after the commit, the write returns; the outcome of the commit itself is told as ever."""
    disk, rows = before()
    returned = 0
    for storage, after in failures(disk, lands, times):
        raised: type[Exception] | None = None
        try:
            upsert_and_clean(storage)
        except (Unavailable, OutcomeUnknown) as error:
            raised = type(error)
        has_landed = commits_on(after) > 5
        assert raised is not Unavailable or not has_landed, f"{storage.failed}: Unavailable says: call again"
        returned += raised is None and bool(storage.failed)
        if has_landed:  # until then it is a write like any other, which other tests stop everywhere
            check_once(after, rows)
    assert returned > 10


@pytest.mark.parametrize("lands", [True, pytest.param(False, marks=LONG)], ids=["lands", "lost"])
def test_a_clean_that_is_asked_for_says_that_the_store_failed(lands: bool) -> None:
    disk, rows = before()
    told = 0
    for storage, after in failures(disk, lands, times=1):
        try:
            clean(storage)
        except Unavailable:
            told += 1
        check_once(after, rows)
    assert told > 10


def failures(disk: MemoryStorage, lands: bool, times: int) -> Iterator[tuple[FailingStorage, MemoryStorage]]:
    """A storage a request that fails, and the disk beneath it, until none fails any more."""
    for fails_at in count():
        after = disk.copy()
        storage = FailingStorage(after, fails_at, lands, times)
        yield storage, after
        if not storage.failed:
            return


_checked: set[int] = set()


def check_once(disk: MemoryStorage, rows: dict[str, Rows]) -> None:
    """Many requests leave one and the same disk when they fail: a look at it is enough."""
    content = hash(frozenset((file.path, disk.get(file.path)) for file in disk.list("", recursive=True)))
    if content not in _checked:
        _checked.add(content)
        check_readers(disk, rows)
        check_next_write(disk)
