"""A partition could be deleted that somebody wrote to, or before its days are over. One that has expired could stay. A
dry run could delete.

Tables of every version whose clock is moved on by days, with writes, logs, compactions, archivals and other writers in
between.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Conflict, Invalid
from pyhudi.format.names import PARTITION_METAFILE
from pyhudi.options.entries import Kind
from pyhudi.options.verdicts import find_entry
from pyhudi.services.after_commit import SERVICES_ENABLED, AfterCommitSettings
from pyhudi.services.expiry.settings import ExpirySettings, ExpiryTime
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids
from tests.support.versions import EVERY_VERSION, with_types

DAY_MS = 86_400_000
DAYS = "hoodie.partition.ttl.strategy.days.retain"
INLINE = "hoodie.partition.ttl.inline"
STRATEGY = "hoodie.partition.ttl.management.strategy.type"
SELECTED = "hoodie.partition.ttl.strategy.partition.selected"
MAX = "hoodie.partition.ttl.strategy.max.delete.partitions"
BY_CREATION = {STRATEGY: "KEEP_BY_CREATION_TIME"}
THREE = {DAYS: "3"}

CREATION_CLASS = "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy"
ONLY_NEWEST = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
LATEST = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"}
every_table = pytest.mark.parametrize("version,table_type", with_types(TYPES))


class HookedStorage(MemoryStorage):
    """Runs something once, right before the inflight file of a replacement is put."""

    hook: Callable[[], object] | None = None

    def put_new(self, path: str, data: bytes) -> bool:
        self._meet(path)
        return super().put_new(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._meet(path)
        super().put(path, data)

    def _meet(self, path: str) -> None:
        if path.endswith(".replacecommit.inflight") and self.hook is not None:
            hook, self.hook = self.hook, None
            hook()


@dataclass
class Bench:
    """A table by city, in memory, and its clock."""

    version: int = 8
    table_type: str = "COPY_ON_WRITE"
    properties: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = StepClock()
        self.storage = HookedStorage(clock_ms=lambda: self.clock.ms)
        self.handles = Handles(self.storage, self.clock, seeded_uuids(1), SerialExecutor())
        self.table = self.handles.create(
            table_version=self.version, table_type=self.table_type,
            properties={**(LATEST if self.version == 6 else {}), **self.properties},
        )  # fmt: skip

    def write(self, *cities: str, v: int = 0, options: Mapping[str, object] | None = None) -> str:
        rows = [Row(f"key of {city}", city, v, v) for city in cities]
        return self.table.upsert(arrow(rows), options=options).requested or ""

    def pass_days(self, days: float) -> None:
        self.clock.ms += int(days * DAY_MS)

    def cities(self) -> list[str]:
        return sorted(set(self.table.scan().to_arrow().column("city").to_pylist()))

    def expired(self, options: Mapping[str, object] = THREE, *, dry_run: bool = False) -> list[str]:
        return [one.partition for one in self.table.expire_partitions(options=options, dry_run=dry_run).expired]


@every_table
def test_partitions_that_nobody_wrote_to_for_their_days_go_in_one_commit(version: int, table_type: str) -> None:
    bench = Bench(version, table_type)
    first = bench.write("bari", "oslo")
    bench.pass_days(2)
    bench.write("rome", "york")
    bench.pass_days(2)

    found = bench.table.expire_partitions(options=THREE)

    assert [(one.partition, one.since, one.file_groups) for one in found.expired] == [
        ("bari", first, 1), ("oslo", first, 1),
    ]  # fmt: skip
    assert all(one.size_bytes > 0 for one in found.expired)
    assert (found.kept, found.reason) == ((), "")
    newest = bench.table.timeline()[-1]
    assert (newest.requested, newest.completed, newest.action) == (found.requested, found.completed, "replacecommit")
    assert bench.cities() == ["rome", "york"]
    assert problems_on(bench.storage) == []

    again = bench.table.expire_partitions(options=THREE)
    assert (again.requested, again.expired, again.reason) == (None, (), "no partition is older: 3 days are kept")
    bench.pass_days(2)
    assert bench.expired() == ["rome", "york"]
    assert bench.cities() == []


def test_a_partition_goes_when_its_last_day_is_over_and_not_a_moment_before() -> None:
    bench = Bench()
    written = int(datetime.strptime(bench.write("oslo") + "+0000", "%Y%m%d%H%M%S%f%z").timestamp() * 1000)
    bench.clock.ms = written + 3 * DAY_MS - 100
    assert bench.expired(dry_run=True) == []
    bench.clock.ms = written + 3 * DAY_MS
    assert bench.expired(dry_run=True) == ["oslo"]


def test_a_dry_run_says_what_would_go_and_leaves_the_table_as_it_is() -> None:
    bench = Bench()
    bench.write("oslo", "rome")
    bench.pass_days(4)
    before = sorted(info.path for info in bench.storage.list(""))

    found = bench.table.expire_partitions(options=THREE, dry_run=True)

    assert [one.partition for one in found.expired] == ["oslo", "rome"]
    assert (found.requested, found.completed, found.reason) == (None, None, "a dry run deletes nothing")
    assert sorted(info.path for info in bench.storage.list("")) == before
    assert bench.expired() == ["oslo", "rome"]


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("archived", [False, True])
def test_rows_in_logs_prolong_a_partition(version: int, archived: bool) -> None:
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    bench = Bench(version, "MERGE_ON_READ", few if archived else {})
    bench.write("oslo", "rome")
    bench.pass_days(2)
    late = bench.write("oslo", v=1)
    for turn in range(8 if archived else 0):
        bench.write("york", v=turn)
    assert archived is not any(i.requested == late for i in bench.table.timeline())
    bench.pass_days(2)

    assert bench.expired() == ["rome"]
    assert "oslo" in bench.cities()
    bench.pass_days(2)
    assert "oslo" in bench.expired()
    assert problems_on(bench.storage) == []


@every_table
def test_by_creation_later_writes_prolong_nothing(version: int, table_type: str) -> None:
    bench = Bench(version, table_type)
    first = bench.write("oslo")
    bench.pass_days(2)
    bench.write("oslo", "rome", v=1)
    bench.pass_days(2)
    assert bench.expired(dry_run=True) == []

    found = bench.table.expire_partitions(options={**THREE, **BY_CREATION})
    assert [(one.partition, one.since) for one in found.expired] == [("oslo", first)]
    assert bench.cities() == ["rome"]


@pytest.mark.parametrize(
    "content", [None, b"", b"commitTime=\\u00", b"commitTime=00000000000001\n", b"commitTime=soon"]
)
def test_a_partition_whose_time_nothing_tells_stays(content: bytes | None) -> None:
    bench = Bench()
    bench.write("oslo")
    bench.storage.delete(f"oslo/{PARTITION_METAFILE}")
    if content is not None:
        bench.storage.put(f"oslo/{PARTITION_METAFILE}", content)
    bench.pass_days(4)

    found = bench.table.expire_partitions(options={**THREE, **BY_CREATION})
    assert [(one.partition, one.why) for one in found.kept] == [("oslo", "nothing tells its time")]
    assert bench.cities() == ["oslo"]


def test_only_selected_partitions_and_no_more_than_one_run_may_take_go() -> None:
    bench = Bench()
    for city in ("york", "rome", "oslo", "bari"):
        bench.write(city)
    bench.pass_days(4)

    some = bench.table.expire_partitions(options={**THREE, SELECTED: "oslo, rome,cork"}, dry_run=True)
    assert [one.partition for one in some.expired] == ["rome", "oslo"]
    assert [(one.partition, one.why) for one in some.kept] == [("cork", "there is no such partition")]

    two = bench.table.expire_partitions(options={**THREE, MAX: "2"})
    assert [one.partition for one in two.expired] == ["york", "rome"]
    assert [(one.partition, one.why) for one in two.kept] == [
        ("oslo", "one run deletes at most 2"), ("bari", "one run deletes at most 2"),
    ]  # fmt: skip
    assert bench.table.expire_partitions(options={**THREE, MAX: "0"}).requested is None
    assert bench.expired() == ["oslo", "bari"]


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_partition_with_a_pending_compaction_stays_until_it_has_run(version: int) -> None:
    bench = Bench(version, "MERGE_ON_READ")
    bench.write("oslo", "rome")
    bench.write("oslo", v=1)
    plan = bench.table.schedule_compaction().requested
    bench.pass_days(4)

    found = bench.table.expire_partitions(options=THREE)
    assert [one.partition for one in found.expired] == ["rome"]
    assert [(one.partition, one.why) for one in found.kept] == [("oslo", f"compaction '{plan}' is pending there")]

    only = bench.table.expire_partitions(options=THREE)
    assert only.reason == "each older partition stays for now: 3 days are kept"
    assert bench.table.compact().completed is not None
    assert bench.expired() == ["oslo"]
    assert problems_on(bench.storage) == []


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_savepoint_keeps_the_files_of_an_expired_partition(version: int) -> None:
    bench = Bench(version)
    bench.write("oslo")
    bench.table.savepoint()
    bench.pass_days(4)
    for turn in range(3):
        bench.write("rome", v=turn)

    assert bench.expired() == ["oslo"]
    bench.table.clean(
        options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    )
    assert bench.cities() == ["rome"]

    bench.table.restore(bench.table.savepoints()[0].requested)
    assert bench.cities() == ["oslo"]
    assert problems_on(bench.storage) == []


@every_table
def test_a_partition_that_is_written_to_meanwhile_stays(version: int, table_type: str) -> None:
    bench = Bench(version, table_type)
    bench.write("oslo", "rome")
    bench.pass_days(4)
    met: list[str] = []

    def write() -> None:
        try:
            met.append(bench.handles.open().upsert(arrow([Row("new", "oslo", 1, 1)])).requested or "")
        except Conflict:  # the expiry holds such a table throughout
            met.append("")

    bench.storage.hook = write
    found = bench.table.expire_partitions(options=THREE)

    assert len(met) == 1
    if met == [""]:
        assert (version <= 6, table_type) == (True, "MERGE_ON_READ")
        assert [one.partition for one in found.expired] == ["oslo", "rome"]
        return
    assert [one.partition for one in found.expired] == ["rome"]
    assert bench.cities() == ["oslo"]
    assert bench.table.scan().to_arrow().num_rows == 2
    assert problems_on(bench.storage) == []


def test_without_another_attempt_a_conflict_gives_the_expiry_up() -> None:
    bench = Bench()
    bench.write("oslo", "rome")
    bench.pass_days(4)
    bench.storage.hook = lambda: bench.handles.open().upsert(arrow([Row("new", "oslo", 1, 1)]))
    with pytest.raises(Conflict, match="oslo"):
        bench.table.expire_partitions(options={**THREE, "hoodie.write.num.retries.on.conflict.failures": "0"})
    assert bench.cities() == ["oslo", "rome"]
    assert problems_on(bench.storage) == []


@every_table
def test_it_follows_each_write_where_it_is_inline(version: int, table_type: str) -> None:
    bench = Bench(version, table_type, {**THREE, INLINE: "true"})
    bench.write("oslo")
    bench.pass_days(4)
    bench.write("rome", options={INLINE: "false"})
    bench.write("rome", v=1, options={SERVICES_ENABLED: "false"})
    assert bench.cities() == ["oslo", "rome"]

    written = bench.write("rome", v=2)
    assert bench.cities() == ["rome"]
    assert [i.action for i in bench.table.timeline() if i.requested > written][:1] == ["replacecommit"]
    assert problems_on(bench.storage) == []


def test_an_expiry_that_fails_fails_no_write(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(properties={**THREE, INLINE: "true"})
    bench.write("oslo")
    bench.pass_days(4)

    def fail() -> None:
        raise RuntimeError("the lights went out")

    bench.storage.hook = fail
    assert bench.write("rome")
    assert "the expiry of partitions after it failed" in caplog.text
    assert bench.cities() == ["oslo", "rome"]
    bench.write("rome", v=1)
    assert bench.cities() == ["rome"]


def test_nothing_expires_without_days_or_partitions() -> None:
    bench = Bench(properties={INLINE: "true"})
    bench.write("oslo")
    bench.pass_days(4_000)
    bench.write("rome")
    assert bench.cities() == ["oslo", "rome"]
    assert bench.table.expire_partitions().reason == f"no partition expires: {DAYS} is not set"
    assert bench.table.expire_partitions(options={DAYS: "-1"}).reason == f"no partition expires: {DAYS} is not set"

    storage = MemoryStorage()
    plain = HudiTable.create("", name="t", record_key="id", storage=storage, clock=bench.clock)
    plain.upsert(arrow([Row("a", "oslo", 1, 1)]))
    bench.pass_days(4)
    assert plain.expire_partitions(options=THREE).reason == "the table has no partitions"


EACH = [
    ("is_inline", INLINE, "true", True),
    ("by", STRATEGY, "keep_by_creation_time", ExpiryTime.CREATION),
    ("by", "hoodie.partition.ttl.strategy.class", CREATION_CLASS, ExpiryTime.CREATION),
    ("days", DAYS, "7", 7),
    ("selected", SELECTED, "a=1/b=2, a=1/b=3,", ("a=1/b=2", "a=1/b=3")),
    ("partitions_max", MAX, "0", 0),
]  # fmt: skip


@pytest.mark.parametrize("name,option,text,value", EACH)
def test_an_option_arrives_in_its_field(name: str, option: str, text: str, value: object) -> None:
    settings = ExpirySettings.from_options({option: text})
    assert getattr(settings, name) == value
    assert ExpirySettings.from_options({option: ""}) == ExpirySettings()
    assert find_entry(option).kind is Kind.SETTING
    assert AfterCommitSettings.from_options({option: text}).expiry == settings


@pytest.mark.parametrize(
    "option,text,expected",
    [
        (DAYS, "soon", "a whole number"),
        (DAYS, "99999999", "at most 3,660,000"),
        (MAX, "-1", "a whole number of at least 0"),
        (INLINE, "maybe", "true or false"),
        (STRATEGY, "KEEP_BY_EVENT_TIME", "KEEP_BY_TIME"),
        ("hoodie.partition.ttl.strategy.class", "com.example.Mine", "KeepByTimeStrategy"),
    ],
)
def test_bad_values_are_refused_by_name_before_anything_is_read(option: str, text: str, expected: str) -> None:
    bench = Bench()
    bench.write("oslo")
    bench.pass_days(4)
    calls: list[Callable[[Mapping[str, Any]], object]] = [
        lambda options: bench.table.expire_partitions(options=options),
        lambda options: bench.write("rome", options=options),
    ]
    for call in calls:
        with pytest.raises(Invalid, match=option) as error:
            call({**THREE, option: text})
        assert expected in str(error.value)
    assert bench.cities() == ["oslo"]
