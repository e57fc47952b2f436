"""A table that went to another version and came back could tell other times, or merge logs upon base files that hold
them already. Small tables go both ways here, in memory."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.names import METADATA_TABLE
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.slices.slice_log import any_write, log_sources, slice_blocks
from tests.support.model import Handles, Row, StepClock, arrow, read_rows, seeded_uuids

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def new_table(version: int, kind: str, **properties: str) -> HudiTable:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    return Handles(storage, clock, seeded_uuids(version), SerialExecutor()).create(
        table_version=version, table_type=kind, properties={"hoodie.metadata.enable": "false", **properties}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_comes_back_from_version_6_has_its_completion_times(kind: str) -> None:
    table = new_table(8, kind)
    first = table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "oslo", 1, 1)]))
    second = table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    times = {i.requested: i.completed for i in table.timeline()}

    table.downgrade(6)
    table.upgrade(8)

    assert {i.requested: i.completed for i in table.timeline() if i.requested in times} == times
    changed = table.incremental(start=first.completed).to_arrow()
    assert changed["id"].to_pylist() == ["a"]
    assert table.incremental(start=second.completed).count() == 0
    newest = table.scan()
    assert not [file for file in newest.files() if ".log." in file], "logs that a base file holds are read again"
    assert table.upgrade(9, dry_run=True).steps


def test_on_local_disk_a_downgrade_to_version_6_dates_its_files(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    for ts in (1, 2):
        table.upsert(arrow([Row("a", "oslo", ts, ts)]))
    times = {i.requested: i.completed for i in table.timeline()}
    table.downgrade(6)
    assert {i.requested: i.completed for i in table.timeline() if i.requested in times} == times


COLUMN_STATS = "hoodie.metadata.index.column.stats.enable"
RECORD_INDEX = "hoodie.metadata.global.record.level.index.enable"
UNFIT = [
    (8, 6, "hoodie.metadata.index.partition.stats.enable", "true", {COLUMN_STATS: "true"}),
    (6, 5, RECORD_INDEX, "true", {"hoodie.index.type": "RECORD_INDEX"}),
    (9, 6, "hoodie.metadata.record.level.index.enable", "true", {}),
    (9, 7, "hoodie.metadata.index.secondary.column", "v", {RECORD_INDEX: "true"}),
    (8, 6, "hoodie.metadata.index.expression.column", "note", {
        "hoodie.metadata.index.expression.enable": "true", "hoodie.metadata.index.expression.options": "expr=upper",
    }),
    (9, 5, "hoodie.metadata.log.compaction.enable", "true", {}),
    (8, 6, "hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL", {
        "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1",
    }),
]  # fmt: skip
"""Versions before and after, an option that the table stores and the later version cannot follow, and others."""


@pytest.mark.parametrize("before,after,name,text,others", UNFIT, ids=[row[2] for row in UNFIT])
def test_options_that_the_other_version_cannot_follow_go_with_the_change(
    before: int, after: int, name: str, text: str, others: dict[str, str]
) -> None:
    """The change ended in an error, at the other version and without its indexes, and no write worked any more."""
    table = new_table(before, "MERGE_ON_READ", **{"hoodie.metadata.enable": "true", name: text, **others})
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    change = table.upgrade if after > before else table.downgrade

    steps = change(after, dry_run=True).steps
    assert [step for step in steps if name in step] == [f"take away options that version {after} cannot follow: {name}"]
    change(after)

    assert table.table_version == after
    assert name not in table.properties
    assert table.properties.items() >= {name: text for name, text in others.items() if name != RECORD_INDEX}.items()
    table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    assert table.lookup(["a"])["v"].to_pylist() == [2]
    assert table.metadata.validate().differences == ()


def test_a_stored_version_goes_with_the_change() -> None:
    """A release stored it, and each write was refused once the table had another one."""
    table = new_table(6, "COPY_ON_WRITE")
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    storage, name = table._access.storage, ".hoodie/hoodie.properties"
    storage.put(name, storage.get(name) + b"hoodie.write.table.version=6\n")
    table.upgrade(9)
    table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    assert "hoodie.write.table.version" not in table.properties


@pytest.mark.parametrize(
    "options,said",
    [
        (
            {"hoodie.metadata.index.partition.stats.enable": "true"},
            "partition_stats: tables of version 6 have none such",
        ),
        ({"hoodie.write.table.version": "8"}, "which is to get version 6: option 'hoodie.write.table.version'='8'"),
    ],
)
@pytest.mark.parametrize("is_handle", [False, True], ids=["of the call", "of the handle"])
def test_options_of_the_caller_that_the_other_version_cannot_follow_are_refused_before_anything_is_done(
    options: dict[str, str], said: str, is_handle: bool
) -> None:
    table = new_table(8, "COPY_ON_WRITE", **{"hoodie.metadata.enable": "true"})
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    before = table.properties
    asked: dict[str, object] = dict(options)
    opened = HudiTable.open("", storage=table._access.storage, options=asked) if is_handle else table

    for dry_run in (True, False):
        with pytest.raises((Invalid, Unsupported), match=re.escape(said)):
            opened.downgrade(6, options=None if is_handle else asked, dry_run=dry_run)
    assert table.properties == before
    assert table.metadata.validate().differences == ()


@pytest.mark.parametrize("is_planned", [False, True], ids=["no plan", "a compaction is planned"])
@pytest.mark.parametrize("before,after", [(5, 9), (6, 8), (6, 7)])
def test_what_a_restore_behind_an_upgrade_takes_back_stays_away(before: int, after: int, is_planned: bool) -> None:
    """Logs of before the upgrade are named after their slice, or after the compaction that was planned. They came back
    with the next write, because no name said that they were taken back."""
    table = new_table(before, "MERGE_ON_READ", **{"hoodie.metadata.enable": "true"})
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "oslo", 1, 1)]))
    kept = table.savepoint()
    rows = read_rows(table.scan().to_arrow())
    table.upsert(arrow([Row("a", "oslo", 2, 2), Row("b", "oslo", 2, 2)]))
    if is_planned:
        assert table.schedule_compaction().requested
    table.upsert(arrow([Row("a", "oslo", 3, 3), Row("b", "oslo", 3, 3)]))
    table.upgrade(after)

    table.restore(kept.requested)

    assert read_rows(table.scan().to_arrow()) == rows
    snapshot = table._access.snapshot()
    for file_slice in snapshot.slices("oslo"):  # for readers that go by names and command blocks alone
        assert not slice_blocks(log_sources(snapshot.storage, file_slice), any_write)
    table.upsert(arrow([Row("c", "oslo", 1, 1), Row("a", "oslo", 4, 4)]))
    table.upsert(arrow([Row("c", "oslo", 2, 2)]))
    assert sorted((row.row.id, row.row.ts) for row in read_rows(table.scan().to_arrow()).values()) == [
        ("a", 4), ("b", 1), ("c", 2)
    ]  # fmt: skip
    assert table.metadata.validate().differences == ()


def test_a_write_whose_table_is_upgraded_while_its_input_is_read_says_so() -> None:
    table = new_table(8, "COPY_ON_WRITE")
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    rows = arrow([Row("b", "oslo", 1, 1)])

    def batches() -> Iterator[pa.RecordBatch]:
        table.upgrade(9)
        yield from rows.to_batches()

    with pytest.raises(Conflict, match=r"version was 8 .* is 9 now; run the write again"):
        table.upsert(pa.RecordBatchReader.from_batches(rows.schema, batches()))
    assert table.upsert(rows).inserted == 1


def test_a_downgrade_leaves_no_log_behind_that_would_be_taken_for_a_newer_one() -> None:
    """`tests/interop/test_versions.py` shows what Apache Hudi would make of it."""
    table = new_table(8, "MERGE_ON_READ")
    for ts in (1, 2):
        table.upsert(arrow([Row("a", "oslo", ts, ts)]))
    saved = table.savepoint()
    table.compact()
    table.upsert(arrow([Row("a", "oslo", 3, 3), Row("b", "oslo", 3, 3)]))
    before = read_rows(table.scan().to_arrow())

    with pytest.raises(Conflict, match=r"the log 'oslo/.*' of an older file slice is still there.*savepoints"):
        table.downgrade(6)
    assert table.table_version == 8
    table.delete_savepoint(saved.requested)
    table.downgrade(6)

    assert read_rows(table.scan().to_arrow()) == before
    assert not [f.path for f in table._access.storage.list("oslo") if ".log." in f.path]


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_after_the_upgrade_of_a_copied_table_takes_back_what_came_later(kind: str) -> None:
    """The files of the copy are dated in the order in which they were copied, here the newest first."""
    first = new_table(6, kind, **{"hoodie.compact.inline": "false"})
    commits = [first.upsert(arrow([Row(f"k{n}", "oslo", n, n)])).requested for n in range(4)]
    clock = StepClock(first._access.clock.now_ms() + 60_000)
    copied = MemoryStorage(clock_ms=clock.now_ms)
    for file in sorted(first._access.storage.list("", recursive=True), key=lambda one: one.path, reverse=True):
        copied.put(file.path, first._access.storage.get(file.path))
    table = Handles(copied, clock, seeded_uuids(1), SerialExecutor()).open()
    table.upgrade(8)

    completed = [i.completed or "" for i in table.timeline() if i.requested in commits]
    assert completed == sorted(set(completed))
    result = table.restore(commits[1] or "")

    assert set(commits[2:]) <= set(result.rolled_back)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["k0", "k1"]


@pytest.mark.parametrize("before", [5, 6])
def test_late_rows_stay_behind_newer_ones_where_the_payload_class_compared_event_times(before: int) -> None:
    """Seen: 1.2.0 chooses the mode by the class that the table had before the first step, as for version 9 itself."""
    payload = "org.apache.hudi.common.model.EventTimeAvroPayload"
    table = new_table(before, "COPY_ON_WRITE", **{"hoodie.compaction.payload.class": payload})
    table.upsert(arrow([Row("a", "oslo", 10, 1)]))

    table.upgrade(9)
    table.upsert(arrow([Row("a", "oslo", 5, 2)]))

    assert table.properties["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert table.scan().to_arrow()["ts"].to_pylist() == [10]


@pytest.mark.parametrize("before,after", [(8, 6), (9, 6), (8, 5)])
def test_rows_stay_where_cleans_follow_a_restore_to_before_a_downgrade(tmp_path: Path, before: int, after: int) -> None:
    """Logs of version 8 are named after their write. A clean took each for a slice, and took the base file away."""
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        table_version=before,
        properties={"hoodie.metadata.enable": "false", "hoodie.clean.commits.retained": "1"},
    )  # fmt: skip
    table.bulk_insert(arrow([Row("a", "oslo", 1, 1), Row("b", "oslo", 1, 1)]))
    saved = table.upsert(arrow([Row("a", "oslo", 2, 2)])).requested
    assert saved is not None
    table.savepoint(saved)
    table.downgrade(after)
    table.restore(saved)
    table.delete_savepoint(saved)
    for ts in (3, 4, 5):
        table.upsert(arrow([Row("a", "oslo", ts, ts)]))
        table.clean()

        found = read_rows(table.scan().to_arrow()).values()
        assert [stored.row for stored in found] == [Row("a", "oslo", ts, ts), Row("b", "oslo", 1, 1)]


def test_a_slice_of_before_an_upgrade_ends_before_the_next_one_whatever_the_dates_of_copied_files_say() -> None:
    """Logs of version 6 are named after the write that made their slice. If that seemed to complete after the next base
    file began, Apache Hudi would lay them upon it (`tests/interop/test_versions.py`)."""
    first = new_table(6, "MERGE_ON_READ")
    for ts in (1, 2):
        first.upsert(arrow([Row("a", "oslo", ts, ts)]))
    first.compact()
    copied = MemoryStorage(clock_ms=lambda: first._access.clock.now_ms() + 60_000)
    for file in first._access.storage.list("", recursive=True):
        copied.put(file.path, first._access.storage.get(file.path))
    table = Handles(copied, StepClock(first._access.clock.now_ms()), seeded_uuids(1), SerialExecutor()).open()

    table.upgrade(8)

    slice_of_logs, _, compaction = table.timeline()[:3]
    assert slice_of_logs.completed is not None
    assert slice_of_logs.requested <= slice_of_logs.completed < compaction.requested


@pytest.mark.parametrize("before,after", [(8, 6), (9, 6), (8, 7), (9, 8)])
def test_a_record_index_by_partition_does_not_become_one_of_the_whole_table(before: int, after: int) -> None:
    """Such an index knows one row of a key. The rows of other partitions were found no more, after the way back too."""
    rows = [Row("a", "oslo", 1, 1), Row("a", "rome", 1, 2)]
    table = new_table(before, "COPY_ON_WRITE", **{"hoodie.metadata.enable": "true"})
    table.insert(arrow(rows))
    table.build_index("partitioned_record_index")
    steps = table.downgrade(after, dry_run=True).steps
    is_said = any("leave out indexes" in step and "record_index" in step for step in steps)

    table.downgrade(after)
    indexes = table.properties["hoodie.table.metadata.partitions"].split(",")
    assert is_said == ("record_index" not in indexes) == (after in (6, 7)), (steps, indexes)
    for _ in range(2):
        assert table.scan(where="id = 'a'").count() == len(table.lookup(["a"])) == 2
        assert not table.metadata.validate().differences
        table.upgrade(9)


def test_nor_does_it_where_the_metadata_table_is_lost() -> None:
    table = new_table(8, "COPY_ON_WRITE", **{"hoodie.metadata.enable": "true"})
    table.insert(arrow([Row("a", "oslo", 1, 1), Row("a", "rome", 1, 2)]))
    table.build_index("partitioned_record_index")
    table._access.storage.delete_prefix(METADATA_TABLE)
    assert any("leave out indexes" in step for step in table.downgrade(6, dry_run=True).steps)

    table.downgrade(6)
    table.upsert(arrow([Row("b", "oslo", 1, 1)]))  # makes the metadata table anew
    assert "record_index" not in table.properties["hoodie.table.metadata.partitions"]
    assert table.scan(where="id = 'a'").count() == len(table.lookup(["a"])) == 2


@pytest.mark.parametrize("before, after", [(6, 8), (8, 9), (8, 6)])
def test_a_pending_clean_is_finished_first_and_no_other_begins(
    monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    properties = {"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"}
    storage = MemoryStorage()
    table = HudiTable.create(
        "", name="t", record_key="id", table_version=before, properties=properties, storage=storage
    )
    for value in range(4):
        table.upsert(pa.table({"id": ["a"], "v": [value]}))
    with monkeypatch.context() as dying:
        dying.setattr("pyhudi.services.clean.run.carry_out_clean", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            table.clean()
    (planned,) = (i.requested for i in table.timeline() if i.action == "clean")
    for value in range(4):
        table.upsert(pa.table({"id": ["a"], "v": [value]}))

    change = table.upgrade if after > before else table.downgrade
    assert change(after, dry_run=True).steps[0] == f"finish clean '{planned}', which is pending"
    assert change(after).after == after

    cleans = [(i.requested, i.is_completed) for i in table.timeline() if i.action == "clean"]
    assert cleans == [(planned, True)]
    assert table.scan(["v"]).to_arrow()["v"].to_pylist() == [3]


@pytest.mark.parametrize("before, after", [(6, 9), (8, 6)])
def test_buckets_of_several_key_columns_are_refused_in_words_about_them(before: int, after: int) -> None:
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    table = HudiTable.create(
        "", name="t", record_key=["a", "b"], table_version=before, properties=properties, storage=MemoryStorage()
    )
    table.upsert(pa.table({"a": ["x"], "b": ["y:1"], "v": [1]}))
    with pytest.raises(Unsupported, match="its buckets hold keys of several columns"):
        (table.upgrade if after > before else table.downgrade)(after)
