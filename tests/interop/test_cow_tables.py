"""A table that only we can read is no Hudi table. Here pyhudi and the real Apache Hudi read and write the
same copy-on-write tables, in turns; a stale listing, index or footer, a doubled key, a lost row or a
meta field that differs shows as a difference to the other side's answer, or to the model, a dict."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.timeline.action_files import decode_commit
from pyhudi.storage.local import LocalStorage
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.interop.cow_rows import META_BUT_TIME, Row, key_range, row, rows, table_of
from tests.interop.cow_tables import PLAIN, SHAPES, Shape, Shared, next_ms
from tests.support.compare import assert_same_rows
from tests.support.hudi_rs import read_hudi_rs
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

T = TypeVar("T")

INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
LATER, EIGHTIES = dt.date.max, dt.date(1980, 1, 1)
OTHER_INDEXES = {"column_stats", "partition_stats"}
"""What Apache Hudi adds to the metadata table of any table that it writes, by default since 1.0."""
SKIPPING = {"hoodie.metadata.enable": True, "hoodie.enable.data.skipping": True}
FILTERS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("number > 500000000", lambda row: row["number"] is not None and row["number"] > 500_000_000),
    ("city = 'oslo' AND id < 'key-00100'", lambda row: row["city"] == "oslo" and row["id"] < "key-00100"),
    ("region = 'south/west & so'", lambda row: row["region"] == "south/west & so"),
    ("flag IS NULL OR day < DATE'1980-01-01'", lambda row: row["flag"] is None or (row["day"] or LATER) < EIGHTIES),
)


# Apache Hudi reads what we wrote.


def written_by_us(path: Path, shape: Shape) -> tuple[Shared, list[str]]:
    """Every operation once; some rows of the last upsert are older than those stored."""
    shared = Shared(path, shape)
    commits = [
        shared.bulk_insert(rows(key_range(0, 240), turn=1)),
        shared.upsert(rows(key_range(180, 260), turn=2)),
        shared.delete(key_range(20, 200, 9)),
        shared.insert(rows(key_range(300, 340), turn=3)),
        shared.upsert([row(key, turn=4, ts=n % 4) for n, key in enumerate(key_range(150, 350, 2))]),
    ]
    return shared, commits


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_hudi_reads_our_tables_by_every_query(
    tmp_path: Path, hudi_102: ReferenceHudi, hudi_120: ReferenceHudi, shape: Shape
) -> None:
    shared, commits = written_by_us(tmp_path / "rides", shape)
    path, model = shared.path, shared.model
    assert len(shared.file_groups()) >= 4
    shared.check(hudi_102, hudi_120)
    ours = shared.check_ours()
    assert_same_rows(read_hudi_rs(path), ours)

    for at, requested in enumerate(commits):
        then = shared.ours.scan(as_of=requested).to_arrow()
        assert_same_rows(then, model.table(requested), ignore_columns=META_BUT_TIME)
        assert_same_rows(read_hudi_rs(path, as_of=requested), then)
        hudi = (hudi_102, hudi_120)[at % 2]
        found = hudi.read(path, **{"as.of.instant": requested, "hoodie.metadata.enable": at < 3})
        assert_same_rows(found, then)

    # Apache Hudi takes partition values from the path here, as it is spelled: in its own tables too, see below.
    misspelled = ("region",) if "urlencode" in str(shape.properties) else ()
    for first, last in ((0, 4), (1, 3), (3, 4)):  # after the first, up to the last
        start, end = shared.completed(commits[first]), shared.completed(commits[last])
        changes = shared.ours.incremental(start, end).to_arrow()
        expected = model.changed(commits[first + 1 : last + 1])
        assert_same_rows(changes, expected, ignore_columns=META_BUT_TIME)
        assert_same_rows(read_hudi_rs(path, incremental=(start, end)), changes)
        # 1.0 counts the start in, 1.2 does not.
        found = hudi_102.read(path, **INCREMENTAL, **{BEGIN: next_ms(start), END: end})
        assert_same_rows(found, changes, ignore_columns=misspelled)
        found = hudi_120.read(path, **INCREMENTAL, **{BEGIN: start, END: end})
        assert_same_rows(found, changes, ignore_columns=misspelled)
    everything = shared.ours.incremental().to_arrow()
    found = hudi_120.read(path, **INCREMENTAL, **{BEGIN: "000"})
    assert_same_rows(found, everything, ignore_columns=misspelled)


@pytest.mark.parametrize("name", ["hudi_102", "hudi_120"])
def test_hudi_spells_encoded_partitions_as_their_path_in_an_incremental_query_of_its_own_table(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "rides"
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.partitionpath.urlencode": True,
    }
    written = table_of(rows(key_range(0, 4), turn=1))
    hudi.write(path, written, operation="insert", mode="overwrite", **options)
    assert set(hudi.read(path)["region"].to_pylist()) == {"north", "south/west & so"}
    found = hudi.read(path, **INCREMENTAL, **{BEGIN: "000"})
    assert set(found["region"].to_pylist()) == {"north", "south%2Fwest & so"}
    assert_same_rows(HudiTable.open(path).scan().to_arrow(), hudi.read(path))


# Both write, in turns.


@pytest.mark.parametrize("shape,turns", [(PLAIN, 4), (SHAPES[3], 2)], ids=["plain", "composite_encoded"])
def test_turns_of_both_lose_nothing_and_leave_no_index_stale(
    tmp_path: Path, hudi_102: ReferenceHudi, hudi_120: ReferenceHudi, shape: Shape, turns: int
) -> None:
    shared = Shared(tmp_path / "rides", shape)
    shared.bulk_insert(rows(key_range(0, 160), turn=1))
    for turn in range(2, 2 + turns):
        start = turn * 13
        shared.hudi_write(hudi_102, "upsert", rows(key_range(start, start + 120, 3), turn=10 * turn))
        fresh = key_range(200 * turn, 200 * turn + 30)
        shared.hudi_write(hudi_102, "insert", rows(fresh, turn=10 * turn))
        shared.hudi_delete(hudi_102, fresh[:5])
        assert shared.metadata_partitions() == {"files", *OTHER_INDEXES}
        assert shared.metadata_folders() == {"files", *OTHER_INDEXES}
        assert_same_rows(shared.check_ours(), hudi_102.read(shared.path))

        shared.upsert(rows(key_range(start + 20, start + 180, 5), turn=10 * turn + 1))
        assert shared.metadata_partitions() == {"files", *OTHER_INDEXES}
        assert shared.metadata_folders() == {"files", *OTHER_INDEXES}
        shared.delete(fresh[10:14])
        for n in range(12 if turn == 3 else 1):  # once as many as make us compact the metadata table
            shared.upsert(rows(key_range(start + n, start + 60, 15), turn=10 * turn + 2))
        ours = shared.check_ours()
        assert_same_rows(hudi_102.read(shared.path, **SKIPPING), ours)
        for where, keeps in FILTERS:
            found = hudi_102.read(shared.path, where, **SKIPPING)
            assert_same_rows(found, shared.model.table(where=keeps), ignore_columns=META_BUT_TIME)
            assert_same_rows(shared.ours.scan(where=where).to_arrow(), found)
    shared.hudi_write(hudi_102, "upsert", rows(key_range(0, 160, 9), turn=99))
    shared.check(hudi_102, hudi_120)
    by_us = {name.write_token == "0-0-0" for name in shared.metadata_compactions()}
    assert by_us == {True, False}, "expected compactions of the metadata table by both"
    # These are more commits than Apache Hudi keeps files for: it has cleaned, and we have read what is left.
    assert len(shared.model.past) >= 24
    assert any(instant.action == "clean" for instant in shared.ours.timeline())


def test_we_go_on_after_hudi_cleaned_and_archived(tmp_path: Path, hudi_102: ReferenceHudi) -> None:
    shared = Shared(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 80), turn=1))
    few = {
        "hoodie.clean.commits.retained": 1,
        "hoodie.keep.min.commits": 2,
        "hoodie.keep.max.commits": 3,
        "hoodie.metadata.compact.max.delta.commits": 2,  # what was not compacted there is not archived here
    }
    for turn in range(2, 5):
        shared.hudi_write(hudi_102, "upsert", rows(key_range(turn, 80, 7), turn=10 * turn), **few)
        shared.upsert(rows(key_range(turn, 90, 5), turn=10 * turn + 1))
        shared.check(hudi_102)
    shared.hudi_write(hudi_102, "upsert", rows(key_range(0, 20), turn=99), **few)
    shared.check(hudi_102)
    assert min(shared.model.past) not in {instant.requested for instant in shared.ours.timeline()}
    shared.delete(key_range(0, 10))
    shared.check(hudi_102)


def test_hudi_120_writes_our_table_without_an_upgrade(tmp_path: Path, hudi_120: ReferenceHudi) -> None:
    shared = Shared(tmp_path / "rides")
    stay = {"hoodie.write.auto.upgrade": False, "hoodie.write.table.version": 8}
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    for turn in (2, 3):
        shared.hudi_write(hudi_120, "upsert", rows(key_range(turn, 150, 3), turn=10 * turn), **stay)
        shared.hudi_delete(hudi_120, key_range(3 * turn + turn, 30, 9), **stay)
        assert shared.ours.table_version == 8
        assert_same_rows(shared.check_ours(), hudi_120.read(shared.path))
        shared.upsert(rows(key_range(turn, 160, 4), turn=10 * turn + 1))
        shared.delete(key_range(100 + turn, 120, 6))
        shared.check(hudi_120)


# Footers.


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
def test_hudi_finds_keys_by_our_bloom_filters_and_key_ranges(
    tmp_path: Path, hudi_102: ReferenceHudi, index: str
) -> None:
    shared = Shared(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 300), turn=1))
    shared.upsert(rows(key_range(100, 340, 3), turn=2))  # filters and ranges that a merge carried on
    shared.delete(key_range(0, 40, 4))
    groups = shared.file_groups()
    known = sorted(shared.model.rows)[::2]
    shared.hudi_write(hudi_102, "upsert", rows(known, turn=3), **{"hoodie.index.type": index})
    assert shared.file_groups() == groups, "updates went to new file groups"
    shared.check(hudi_102)
    shared.upsert(rows(key_range(0, 340), turn=4))  # goes on with filters that Apache Hudi made
    again = key_range(0, 340, 3)
    shared.hudi_write(hudi_102, "upsert", rows(again, turn=5), **{"hoodie.index.type": index})
    shared.check(hudi_102)


# Values that Apache Hudi cannot hold by default, or not at all.


def test_null_elements_survive_merges_by_hudi_once_it_writes_lists_of_three_levels(tmp_path: Path) -> None:
    shared = Shared(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 100), turn=1, holes=True))
    levels = {"spark.hadoop.parquet.avro.write-old-list-structure": "false"}
    with ReferenceHudi("1.0.2", spark_settings=levels) as hudi:
        for turn in (2, 3):
            shared.hudi_write(hudi, "upsert", rows(key_range(turn, 130, 4), turn=10 * turn, holes=True))
            assert_same_rows(shared.check_ours(), hudi.read(shared.path))
            shared.upsert(rows(key_range(turn, 130, 3), turn=10 * turn + 1, holes=True))
            shared.check(hudi)
    assert_same_rows(read_hudi_rs(shared.path), shared.check_ours())


def test_hudi_102_refuses_to_merge_null_elements_by_default_and_the_table_stays_whole(
    tmp_path: Path, hudi_102: ReferenceHudi
) -> None:
    shared = Shared(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 40), turn=1, holes=True))
    with pytest.raises(ReferenceFailed, match="HoodieUpsertException"):
        shared.hudi_write(hudi_102, "upsert", rows(key_range(0, 40, 2), turn=2, holes=True))
    shared.check(hudi_102)
    shared.upsert(rows(key_range(0, 50, 3), turn=3, holes=True))
    shared.check(hudi_102)


@pytest.mark.parametrize("name,knows", [("hudi_102", False), ("hudi_120", True)])
def test_a_timestamp_without_zone_is_a_number_to_hudi_10_and_nothing_to_hudi_rs(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, knows: bool
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "moments"
    moments = [dt.datetime(2026, 11, 21, 13, 0, 0, 1), None, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)]
    data = pa.table({"id": ["a", "b", "c"], "local_at": pa.array(moments, pa.timestamp("us"))})
    table = HudiTable.create(path, name="moments", record_key="id")
    table.bulk_insert(data)
    ours = table.scan().to_arrow()
    assert ours["local_at"].to_pylist() == moments
    numbers = ours["local_at"].cast(pa.int64())
    as_numbers = ours.set_column(ours.schema.get_field_index("local_at"), "local_at", numbers)
    assert_same_rows(hudi.read(path), ours if knows else as_numbers)
    with pytest.raises(BaseException, match="not yet implemented"):  # it panics, which is no Exception
        read_hudi_rs(path)


# Writers that died.


@dataclass
class DyingAt(CrashingStorage):
    """Loses power at the first change whose words hold `mark`."""

    mark: str = ""

    def change(self, what: str, apply: Callable[[], T]) -> T:
        if not self.dead and self.mark in what:
            self.survives = self.done
        return super().change(what, apply)


FATAL = (
    (".commit.requested'", True),
    (".inflight'", False),
    (".inflight'", True),
    (".marker.MERGE'", True),
    (".parquet'", True),
    (".hoodie/metadata/files/", True),
    (".deltacommit'", True),
    ("hoodie.properties'", False),
    ("hoodie.properties'", True),
    (".hoodie/metadata/column_stats/", True),
    (".commit'", False),
)
FATAL_TO_COMPACTION = ((".compaction.requested'", True), (".hfile'", True), (".commit'", False))
"""Of the metadata table, before the commit is requested. Apache Hudi then carries our plan out. As early, an index
that the write switches off is dropped, which the table's properties say first.
"""


def test_hudi_rolls_back_what_we_left_when_we_died(tmp_path: Path, hudi_102: ReferenceHudi) -> None:
    shared = Shared(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 40), turn=1))
    shared.hudi_write(hudi_102, "upsert", rows(key_range(20, 60), turn=2))
    moments = [(*moment, False) for moment in FATAL] + [(*moment, True) for moment in FATAL_TO_COMPACTION]
    for turn, (mark, lands, compacts) in enumerate(moments, 3):
        disk = DyingAt(LocalStorage(str(shared.path)), survives=1 << 30, lands=lands, mark=mark)
        often: dict[str, object] = {"hoodie.metadata.compact.max.delta.commits": 1 if compacts else 1_000}
        drops: dict[str, object] = (
            {"hoodie.metadata.index.column.stats.enable": False} if mark == "hoodie.properties'" else {}
        )
        # In one thread: another one's error, that all is over, could come first.
        ours = HudiTable.open(shared.path, storage=disk, options=often | drops, executor=SerialExecutor())
        with pytest.raises(Crash, match=re.escape(mark)):
            ours.upsert(table_of(rows(key_range(0, 70), turn=99)))
        dead = [i.requested for i in shared.ours.timeline() if i.action == "commit" and i.completed is None]
        assert len(dead) == (0 if compacts or drops else 1), disk.fatal
        assert_same_rows(hudi_102.read(shared.path), shared.check_ours())
        shared.hudi_write(hudi_102, "upsert", rows(key_range(turn, turn + 50, 5), turn=turn))
        assert_same_rows(hudi_102.read(shared.path), shared.check_ours())
        assert [file for one in dead for file in leftovers_for_hudi(shared, one)] == []
    shared.check(hudi_102)
    shared.upsert(rows(key_range(0, 80, 3), turn=50))
    shared.check(hudi_102)


@pytest.mark.parametrize("leaves_markers", [True, False])
@pytest.mark.parametrize("listed", [True, False])
def test_we_roll_back_what_hudi_left_when_it_died(
    tmp_path: Path, hudi_102: ReferenceHudi, leaves_markers: bool, listed: bool
) -> None:
    """`listed`: it died after the metadata table took the commit in, otherwise while it did."""
    shared = Shared(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 60), turn=1))
    shared.hudi_write(hudi_102, "upsert", rows(key_range(20, 80), turn=2))
    before = dict(shared.model.rows)
    dead = shared.hudi_write(hudi_102, "upsert", rows(key_range(40, 120), turn=3))
    uncommit(shared, dead, leaves_markers=leaves_markers, listed=listed)
    shared.model.rows = before
    del shared.model.past[dead]
    assert any(dead in file.name for file in shared.base_files())
    assert_same_rows(hudi_102.read(shared.path), shared.check_ours())

    shared.upsert(rows(key_range(10, 50, 3), turn=4))
    assert leftovers(shared, dead) == []
    shared.check(hudi_102)
    shared.hudi_write(hudi_102, "upsert", rows(key_range(30, 100, 4), turn=5))
    shared.check(hudi_102)


def uncommit(shared: Shared, requested: str, *, leaves_markers: bool, listed: bool) -> None:
    """Turn a commit of Apache Hudi into what it leaves when it dies just before completing it."""
    timeline = shared.path / ".hoodie" / "timeline"
    (completed,) = timeline.glob(f"{requested}_*commit")  # a replacecommit, too
    metadata = decode_commit(completed.read_bytes(), path=str(completed))
    for file in (completed, completed.with_name(f".{completed.name}.crc")):
        file.unlink()
    if not listed:
        (taken_in,) = (shared.path / ".hoodie/metadata/.hoodie/timeline").glob(f"{requested}_*.deltacommit")
        taken_in.unlink()
    if leaves_markers:
        folder = shared.path / ".hoodie" / ".temp" / requested
        folder.mkdir(parents=True)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        stats = [stat for of in metadata.partition_to_write_stats.values() for stat in of]
        kinds = ["CREATE" if stat.prev_commit == "null" or stat.is_log else "MERGE" for stat in stats]
        lines = [f"{stat.path}.marker.{kind}\n" for stat, kind in zip(stats, kinds, strict=True)]
        (folder / "MARKERS0").write_text("".join(lines))


def leftovers(shared: Shared, requested: str) -> list[str]:
    """Files that an instant which was rolled back must not leave: of data, markers, heartbeat or timelines.

    The commits after it may name it in their content only; rollbacks have a name of their own.
    """
    found = (str(file.relative_to(shared.path)) for file in shared.path.rglob(f"*{requested}*"))
    return sorted(file for file in found if not file.startswith(".hoodie/metadata/.hoodie/"))


def leftovers_for_hudi(shared: Shared, requested: str) -> list[str]:
    """The leftovers of an instant of ours that Apache Hudi rolled back, but for what tells that its writer is alive.

    A writer of Apache Hudi that rolls back eagerly does not look at that, so it stays.
    """
    found = leftovers(shared, requested)
    return [file for file in found if not file.startswith((".hoodie/.heartbeat/", ".hoodie/.pyhudi_running/"))]
