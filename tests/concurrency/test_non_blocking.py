"""Writers without blocking could lose a row, double a key, or open two file groups of one bucket.

Writers stop where their files are written and their commits are not, while others run from beginning to end. Then the
rows, the file groups and the metadata table are looked at, before and after a compaction.
"""

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid, Unsupported
from pyhudi.storage.memory import MemoryStorage
from pyhudi.testing.counting import CountingStorage
from pyhudi.testing.crashing import Crash, CrashingStorage
from pyhudi.write import judge
from tests.concurrency.test_pairs import is_at_work
from tests.concurrency.test_second_writer import watched
from tests.support.model import Row, StepClock, arrow, problems_on, seeded_uuids

MODE = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
NO_WAIT = {"hoodie.write.lock.wait_time_ms": 0, "hoodie.write.num.retries.on.conflict.failures": 0}
INDEXED = {
    "hoodie.metadata.record.index.enable": "true", "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.secondary.enable": "true",
}  # fmt: skip
UUIDS = seeded_uuids(7)
PROJECT = Path(__file__).parents[2]

Step = Callable[[HudiTable], object]


class Place:
    """A table in memory, and its writers. Each has no retry, so that whatever is planned anew fails the test."""

    def __init__(self, version: int = 9, ordering: str | None = "ts", **properties: str) -> None:
        self.clock = StepClock()
        self.storage = MemoryStorage(clock_ms=lambda: self.clock.ms)
        HudiTable.create(
            "", name="t", record_key="id", partition_by="city", ordering=ordering, table_type="MERGE_ON_READ",
            table_version=version, storage=self.storage, clock=self.clock, random=UUIDS, executor=SerialExecutor(),
            properties={**BUCKETS, **properties},
        )  # fmt: skip

    def writer(self, storage: Any = None, **options: object) -> HudiTable:
        return HudiTable.open(
            "", storage=storage or self.storage, clock=self.clock, random=UUIDS, executor=SerialExecutor(),
            options={**NO_WAIT, **MODE, **options},
        )  # fmt: skip

    def nested(self, first: Step, *others: Step, retries: int = 0) -> None:
        """Each writer begins, and completes after all that come behind it in the list.

        `retries`: how often the first may be planned anew.
        """
        if not others:
            first(self.writer())
            return
        begun: list[str] = []
        other = self.writer()

        def meanwhile(what: str) -> None:
            if not begun and is_at_work(other):
                begun.append(what)
                self.nested(*others)

        # Its first change without the guard comes when it is planned.
        options = {"hoodie.write.num.retries.on.conflict.failures": retries}
        first(self.writer(watched(self.storage, meanwhile), **options))
        assert begun, "the others never ran"

    def rows(self) -> dict[str, int]:
        found = self.writer().scan(["id", "v"]).to_arrow().to_pylist()
        rows = {row["id"]: row["v"] for row in found}
        assert len(rows) == len(found), "a key is there twice"
        return rows

    def check(self, expected: dict[str, int]) -> None:
        """The rows are these, now and compacted, and the metadata table is true."""
        for _ in range(2):
            assert self.rows() == expected
            assert problems_on(self.storage) == []
            assert self.writer().metadata.validate().differences == ()
            self.writer().compact()

    def check_pending(self) -> None:
        """A compaction that is still pending changes no row when it is carried out."""
        rows = self.rows()
        self.writer().compact()
        assert self.rows() == rows
        assert self.writer().metadata.validate().differences == ()

    def groups(self) -> list[str]:
        names = [file.path for file in self.storage.list("", recursive=True) if not file.path.startswith(".hoodie")]
        return sorted({name.partition("_")[0] for name in names if ".log." in name})


def up(value: int, *keys: str, ts: int = 9) -> Step:
    return lambda table: table.upsert(arrow([Row(key, "oslo", ts, value) for key in keys]))


def put(value: int, *keys: str) -> Step:
    return lambda table: table.insert(arrow([Row(key, "oslo", 9, value) for key in keys]))


def gone(*keys: str, ts: int = 9) -> Step:
    return lambda table: table.delete(arrow([Row(key, "oslo", ts, 0) for key in keys]))


def compacting(table: HudiTable) -> None:
    table.compact()


KEYS = tuple(f"k{number}" for number in range(8))
VERSIONS = pytest.mark.parametrize("version", [8, 9])


@VERSIONS
def test_two_writers_open_the_same_buckets_as_one_file_group_each(version: int) -> None:
    place = Place(version)
    place.nested(up(1, *KEYS), up(2, *KEYS[2:], "mine"))
    assert place.groups() == [f"oslo/.0000000{n}-0000-0000-0000-000000000000-0" for n in (0, 1)]
    place.check({"k0": 1, "k1": 1, **dict.fromkeys(KEYS[2:], 2), "mine": 2})


@VERSIONS
@pytest.mark.parametrize("ordering", ["ts", None])
def test_four_writers_of_the_same_keys_are_one_after_the_other(version: int, ordering: str | None) -> None:
    place = Place(version, ordering, **INDEXED)
    place.writer().bulk_insert(arrow([Row(key, "oslo", 1, 0) for key in KEYS]))
    place.nested(*(up(value, *KEYS[value:], f"n{value}") for value in (1, 2, 3, 4)))
    expected = {key: min(number, 4) for number, key in enumerate(KEYS)}
    place.check({**expected, **{f"n{value}": value for value in (1, 2, 3, 4)}})


@pytest.mark.parametrize("version", [8, 9])
def test_a_pending_compaction_of_logs_alone_brings_no_deleted_row_back(version: int) -> None:
    place = Place(version)
    place.nested(
        lambda table: table.upsert(arrow([Row("a", "oslo", 3, 3)])),
        lambda table: table.upsert(arrow([Row("b", "oslo", 3, 3)])),
    )
    table = place.writer()
    assert all(".log." in name for name in table.metadata.list_files()["name"].to_pylist())
    table.schedule_compaction()
    table.delete(arrow([Row("a", "oslo", 0, 0)], ["id", "city"]))

    table.upsert(arrow([Row("a", "oslo", 2, 7)]))

    expected = [{"id": "a", "v": 7}, {"id": "b", "v": 3}]
    assert sorted(table.scan().to_arrow().select(["id", "v"]).to_pylist(), key=str) == expected
    table.compact()
    assert sorted(table.scan().to_arrow().select(["id", "v"]).to_pylist(), key=str) == expected


def test_the_greater_ordering_value_wins_whoever_completes_first() -> None:
    place = Place()
    place.nested(up(1, "a", "b", ts=20), up(2, "a", "b", ts=30), up(3, "a", ts=25))
    place.check({"a": 2, "b": 2})


@VERSIONS
@pytest.mark.parametrize("ordering", ["ts", None])
@pytest.mark.parametrize(
    "steps",
    [
        (up(1, *KEYS), compacting, up(2, "k0", "new")),
        (up(1, *KEYS), up(2, "k0", "new"), compacting),
        (compacting, up(1, *KEYS), up(2, "k0", "new")),
        (up(1, *KEYS), lambda t: (t.schedule_compaction(), up(2, "k0", "new")(t))),
    ],
    ids=["between", "inside", "around", "scheduled only"],
)
def test_a_compaction_beside_writers_loses_nothing(version: int, ordering: str | None, steps: tuple[Step, ...]) -> None:
    place = Place(version, ordering, **INDEXED)
    for value in (-2, -1):
        place.writer().upsert(arrow([Row(key, "oslo", 1, value) for key in KEYS[:4]]))
    place.nested(*steps)

    place.check_pending()
    rows = place.rows()
    assert rows.pop("k0") in (1, 2), "the row of the one or of the other"
    assert rows == {**dict.fromkeys(KEYS[1:], 1), "new": 2}
    place.check(place.rows())


@pytest.mark.parametrize(
    "steps", [(gone(*KEYS), up(2, *KEYS)), (up(2, *KEYS), gone(*KEYS)), (put(1, *KEYS), gone("k0"))]
)
@pytest.mark.parametrize("ordering", ["ts", None])
def test_indexes_stay_true_where_one_deletes_what_the_other_writes(
    ordering: str | None, steps: tuple[Step, ...]
) -> None:
    place = Place(9, ordering, **INDEXED)
    place.writer().upsert(arrow([Row(key, "oslo", 1, 0) for key in KEYS]))
    place.nested(*steps)
    place.check(place.rows())
    assert set(place.rows()) in (set(KEYS), set(), set(KEYS[1:]))


@pytest.mark.parametrize("inner", [up(2, "k0"), gone("k0"), up(2, "k0", ts=30)])
@pytest.mark.parametrize("ordering", ["ts", None])
def test_a_compaction_that_would_turn_the_order_of_two_logs_has_the_later_planned_anew(
    ordering: str | None, inner: Step
) -> None:
    """The compaction takes the log of the inner writer. The outer one's came to lie upon it, and won from then on."""
    place = Place(9, ordering, **INDEXED)
    for value in (-2, -1):
        place.writer().upsert(arrow([Row(key, "oslo", 1, value) for key in KEYS]))

    def planned_after(table: HudiTable) -> None:
        inner(table)
        table.schedule_compaction()

    def outer(table: HudiTable) -> None:
        up(1, *KEYS)(table)

    place.nested(outer, planned_after, retries=1)
    place.check_pending()
    place.check(place.rows())


def test_beside_one_that_blocks_the_one_that_blocks_is_planned_anew(caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    place.writer().upsert(arrow([Row("a", "oslo", 1, 0)]))
    blocking = {"hoodie.write.concurrency.mode": "SINGLE_WRITER", "hoodie.write.num.retries.on.conflict.failures": 3}

    def first(table: HudiTable) -> None:
        table.upsert(arrow([Row("a", "oslo", 9, 1)]), options=blocking)

    with caplog.at_level(logging.INFO, "pyhudi"):
        place.nested(first, up(2, "a"))
    assert "planned anew" in caplog.text
    place.check({"a": 1})


@pytest.mark.parametrize("replacing", ["insert_overwrite", "delete_partitions"])
def test_what_replaces_file_groups_meanwhile_is_in_the_way(replacing: str, caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    place.writer().upsert(arrow([Row("a", "oslo", 1, 0), Row("b", "oslo", 1, 0)]))
    blocking = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}

    def other(table: HudiTable) -> None:
        if replacing == "delete_partitions":
            table.delete_partitions(["oslo"])
        else:
            table.insert_overwrite(arrow([Row("b", "oslo", 9, 2)]), options=blocking)

    def first(table: HudiTable) -> None:
        table.upsert(arrow([Row("a", "oslo", 9, 1)]), options={"hoodie.write.num.retries.on.conflict.failures": 3})

    with caplog.at_level(logging.INFO, "pyhudi"):
        place.nested(first, other)
    assert "planned anew" in caplog.text
    place.check({"a": 1} if replacing == "delete_partitions" else {"a": 1, "b": 2})


def stored(place: Place) -> Place:
    """Rows and logs to compact, to merge and to replace, in the buckets of `k0` to `k3`."""
    place.writer().upsert(arrow([Row(f"k{n}", "oslo", 1, 0) for n in range(4)]))
    for value in (1, 2):
        place.writer().upsert(arrow([Row(f"k{n}", "oslo", 2, value) for n in range(4)]))
    return place


BLOCKING = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
RETRYING = {"hoodie.write.num.retries.on.conflict.failures": 3}
MANY = {"hoodie.log.compaction.blocks.threshold": "2"}
K0, NEW = Row("k0", "oslo", 9, 9), Row("k9", "oslo", 9, 9)
CALLS: dict[str, Step] = {
    "non-blocking upsert": lambda t: t.upsert(arrow([K0, NEW]), options=RETRYING),
    "non-blocking insert": lambda t: t.insert(arrow([K0, NEW]), options=RETRYING),
    "non-blocking delete": lambda t: t.delete(arrow([K0]), options=RETRYING),
    "upsert": lambda t: t.upsert(arrow([K0, NEW]), options={**BLOCKING, **RETRYING}),
    "delete": lambda t: t.delete(arrow([K0]), options={**BLOCKING, **RETRYING}),
    "bulk_insert": lambda t: t.bulk_insert(arrow([NEW]), options=RETRYING),
    "compaction": lambda t: t.compact(),
    "log compaction": lambda t: t.log_compact(options=MANY),
    "delete_partitions": lambda t: t.delete_partitions(["oslo"]),
    "insert_overwrite": lambda t: t.insert_overwrite(arrow([K0]), options=BLOCKING),
    "insert_overwrite_table": lambda t: t.insert_overwrite_table(arrow([K0]), options=BLOCKING),
    "clean": lambda t: t.clean(),
    "savepoint": lambda t: t.savepoint(),
}
FREE = ("non-blocking upsert", "non-blocking insert", "non-blocking delete")
BESIDE: dict[str, tuple[str, ...]] = {
    "another non-blocking upsert, insert or delete": FREE,
    "a compaction": ("compaction",),
    "a write without the option, or a `bulk_insert`": ("upsert", "delete", "bulk_insert"),
    "`delete_partitions`, `insert_overwrite`, `insert_overwrite_table`": (
        "delete_partitions", "insert_overwrite", "insert_overwrite_table",
    ),
    "log compaction": ("log compaction",),
    "whatever else": ("clean", "savepoint"),
}  # fmt: skip
"""The lines of the table in docs/concurrency.md, each with the calls that it is about."""
REPLACING = ("delete_partitions", "insert_overwrite", "insert_overwrite_table")
ANEW = {
    *((free, name) for free in FREE for name in REPLACING),
    # It completes later, and the keys of both meet.
    *(("upsert", free) for free in FREE), *(("delete", free) for free in FREE), ("bulk_insert", "non-blocking upsert"),
    ("bulk_insert", "non-blocking insert"),
}  # fmt: skip
"""The first of two calls that is planned anew, where the second comes meanwhile."""


def test_the_table_of_the_page_has_the_lines_that_are_played() -> None:
    page = (PROJECT / "docs" / "concurrency.md").read_text(encoding="utf-8")
    table = page.partition("| beside a non-blocking upsert")[2].partition("\n\n")[0]
    lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:])
    cells = {line[0]: line[1] for line in lines}
    assert list(cells) == list(BESIDE)
    assert cells["another non-blocking upsert, insert or delete"] == "both"
    assert cells["a compaction"].startswith("both. One case is planned anew: ")
    assert "the one without the option is planned anew where their keys meet" in cells[list(BESIDE)[2]]
    assert cells[list(BESIDE)[3]].startswith("the non-blocking write is planned anew.")
    assert cells["log compaction"] == "not now"
    assert cells["whatever else"] == "as in the table above"


PLAYED = [(free, name) for free in FREE for names in BESIDE.values() for name in names]
PLAYED += [(name, free) for name in ("upsert", "delete", "bulk_insert") for free in FREE]


@pytest.mark.parametrize("first,second", PLAYED)
def test_a_pair_does_what_the_table_of_the_page_says(first: str, second: str, caplog: pytest.LogCaptureFixture) -> None:
    """The second call comes from its beginning to its end while the first is at work."""
    place, ends = stored(Place()), list[object]()
    with caplog.at_level(logging.INFO, "pyhudi"):
        place.nested(CALLS[first], lambda table: ends.append(CALLS[second](table)))

    assert ("planned anew" in caplog.text) == ((first, second) in ANEW)
    assert (getattr(ends[0], "requested", "") is None) == (second in ("log compaction", "clean"))
    assert problems_on(place.storage) == []
    assert place.writer().metadata.validate().differences == ()


def test_a_commit_that_met_another_one_reads_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*_: object, **__: object) -> None:
        raise AssertionError("keys were compared")

    monkeypatch.setattr(judge, "find_apart", compared)
    place = Place()
    place.writer().upsert(arrow([Row("a", "oslo", 1, 0)]))
    place.nested(up(1, "a"), up(2, "a"))
    place.check({"a": 2})


def test_a_commit_costs_no_more_requests_than_one_that_blocks() -> None:
    counts = []
    for mode in ("SINGLE_WRITER", MODE["hoodie.write.concurrency.mode"]):
        place = Place()
        place.writer().upsert(arrow([Row("a", "oslo", 1, 0)]))
        counted = CountingStorage(place.storage)
        table = place.writer(counted, **{"hoodie.write.concurrency.mode": mode})
        counted.reset()
        up(1, "a")(table)
        counts.append(sum(counted.counts.values()))
    assert counts[1] <= counts[0]


@pytest.mark.parametrize("lands", [False, True])
@VERSIONS
def test_a_writer_that_dies_at_any_step_leaves_the_others_rows(version: int, lands: bool) -> None:
    """The dead one's rows are there as a whole or not at all, and the next write of another clears up."""
    for survives in range(200):
        place = Place(version)
        place.writer().upsert(arrow([Row("a", "oslo", 1, 0)]))
        dying = CrashingStorage(place.storage, survives, lands)
        try:
            up(1, "a", "b", "c", "d")(place.writer(dying))
        except Crash:
            up(2, "b", "e")(place.writer())
            rows = place.rows()
            dead = {key: value for key, value in rows.items() if value == 1}
            assert dead in ({}, {"a": 1, "c": 1, "d": 1})
            place.check({"a": 0, "b": 2, "e": 2, **dead})
        else:
            assert survives > 5
            return
    raise AssertionError("the write has no end")


@pytest.mark.parametrize(
    "made,asked,error,told",
    [
        ({"table_type": "COPY_ON_WRITE"}, "upsert", Invalid, "MERGE_ON_READ, found COPY_ON_WRITE"),
        ({"table_version": 6}, "upsert", Unsupported, "table version 8 or 9, found 6"),
        ({"properties": {}}, "upsert", Invalid, "bucket index with a fixed number of buckets, found SIMPLE"),
        (
            {"properties": {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}}, "insert", Invalid,
            "found 'hoodie.index.bucket.engine'='CONSISTENT_HASHING'",
        ),
        ({}, "insert_overwrite", Invalid, "found insert_overwrite, which replaces file groups"),
        ({"table_type": "COPY_ON_WRITE"}, "delete_partitions", Invalid, "MERGE_ON_READ, found COPY_ON_WRITE"),
        ({"table_version": 6}, "delete_partitions", Unsupported, "table version 8 or 9, found 6"),
        ({"properties": {}}, "delete_partitions", Invalid, "bucket index with a fixed number of buckets, found SIMPLE"),
    ],
)  # fmt: skip
def test_where_it_cannot_be_it_is_refused_before_the_first_byte(
    made: dict[str, Any], asked: str, error: type[Exception], told: str
) -> None:
    storage = MemoryStorage()
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", storage=storage,
        **{"table_type": "MERGE_ON_READ", "properties": BUCKETS, **made},
    )  # fmt: skip
    before = [file.path for file in storage.list("", recursive=True)]
    what = ["oslo"] if asked == "delete_partitions" else arrow([Row("a", "oslo", 1, 0)])
    with pytest.raises(error, match=f"{told}.*; .*leave the option out"):
        getattr(table, asked)(what, options=MODE)
    assert [file.path for file in storage.list("", recursive=True)] == before


WRITING = """
import sys
from tests.concurrency.test_non_blocking import write_in_loop
write_in_loop(sys.argv[1], int(sys.argv[2]))
"""
ROUNDS = 6


def write_in_loop(path: str, writer: int) -> None:
    """Upsert keys that all writers share, and keys of this writer. Ordering values of a shared key are never equal."""
    table = HudiTable.open(path, options=MODE)
    for turn in range(ROUNDS):
        ts = 4 * turn + writer
        shared = [Row(f"shared{number}", "oslo", ts, ts) for number in range(5)]
        table.upsert(arrow([*shared, Row(f"{writer}-{turn}", "oslo", ts, ts)]))


@pytest.mark.parametrize("version", [pytest.param(8, marks=pytest.mark.long), 9])
def test_four_processes_in_loops_beside_compactions_lose_nothing(version: int, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        table_version=version, properties={**BUCKETS, **INDEXED},
    )  # fmt: skip
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITING, path, str(writer)], stderr=subprocess.PIPE, cwd=PROJECT)
        for writer in range(4)
    ]
    while any(writer.poll() is None for writer in writers):
        table.compact()
    told = [writer.communicate()[1].decode() for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, told

    newest = 4 * (ROUNDS - 1) + 3
    expected = {f"{writer}-{turn}": 4 * turn + writer for writer in range(4) for turn in range(ROUNDS)}
    expected |= {f"shared{number}": newest for number in range(5)}
    found = [(row["id"], row["v"]) for row in table.scan(["id", "v"]).to_arrow().to_pylist()]
    assert sorted(found) == sorted(expected.items())
    assert table.metadata.validate().is_valid
