"""What pyhudi wrote could be readable by pyhudi alone: each write operation, and what is done to a table beside them,
runs on a table, on a dict, and before the eyes of hudi-rs, which lists the files by our metadata table and by the
storage.

Where hudi-rs answers otherwise, the test says exactly how; if it has learnt better, that test fails and is to go.
"""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from pyhudi import NotFound
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.index.choice import IndexType
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.write.settings import SortMode
from tests.second_reader.watched import (
    Watched,
    batch,
    bounds,
    check_past,
    check_range,
    check_snapshot,
    of_active_commits,
)
from tests.support.compare import assert_same_rows
from tests.support.crashes import crash_points
from tests.support.hudi_rs import VERSIONS, HudiRsError, read_hudi_rs, read_hudi_rs_by_storage
from tests.support.model import Handles, StepClock, arrow, dump, read_rows, seeded_uuids

OPERATIONS: dict[str, Callable[[Watched], object]] = {
    **{
        f"bulk_insert {mode}": lambda table, mode=mode: table.add(  # type: ignore[misc]
            batch(59, 20, step=-1, turn=2), **{"hoodie.bulkinsert.sort.mode": mode}
        )
        for mode in get_args(SortMode)
    },
    "insert": lambda table: table.add(batch(20, 40, turn=2), "insert"),
    "insert of stored keys, dropped": lambda table: table.add(
        batch(20, 40, turn=2), "insert", **{"hoodie.datasource.insert.dup.policy": "drop"}
    ),
    "upsert": lambda table: table.upsert(batch(10, 40, turn=2)),
    "upsert that comes late": lambda table: table.upsert(batch(10, 40, turn=0)),
    "delete": lambda table: table.delete(batch(0, 20, step=3, turn=0)),
    "delete that comes late": lambda table: table.delete(batch(0, 20, step=3, turn=0), ordered=True),
    "delete of every row": lambda table: table.delete(batch(0, 20, turn=0)),
    "insert_overwrite": lambda table: table.overwrite(batch(20, 40, step=2, turn=2)),
    "insert_overwrite_table": lambda table: table.overwrite(batch(20, 30, turn=2), whole=True),
    "insert_overwrite_table by nothing": lambda table: table.overwrite([], whole=True),
    "delete_partitions": lambda table: table.delete_partitions("oslo"),
    "delete_partitions of all": lambda table: table.delete_partitions("oslo", "rome"),
}


@VERSIONS
@pytest.mark.parametrize("operation", OPERATIONS)
def test_hudi_rs_follows_every_operation(tmp_path: Path, operation: str, version: int) -> None:
    table = Watched(tmp_path / "t", table_version=version)
    table.add(batch(0, 20, turn=1))

    OPERATIONS[operation](table)
    check_snapshot(table.path, table.table, table.model)

    table.upsert(batch(0, 60, step=7, turn=3))
    table.check()


@VERSIONS
@pytest.mark.parametrize("index", get_args(IndexType))
def test_hudi_rs_finds_a_key_where_the_index_put_it(tmp_path: Path, index: str, version: int) -> None:
    is_global = index.startswith("GLOBAL_") or index == "RECORD_INDEX"
    kept = "global.record.level.index" if is_global else "record.level.index"
    properties = {"hoodie.index.type": index, "hoodie.record.index.update.partition.path": "true"}
    if "RECORD" in index:
        properties[f"hoodie.metadata.{kept}.enable"] = "true"
    table = Watched(tmp_path / "t", table_version=version, properties=properties)
    table.add(batch(0, 20, turn=1))
    elsewhere = batch(0, 20, step=3, turn=2, city="york")

    if is_global:
        table.move(elsewhere)
        assert len(table.model.rows) == 20
        table.move(batch(0, 10, turn=3, city="oslo"))
    else:
        table.upsert(elsewhere)
        assert len(table.model.rows) == 27
        table.upsert(batch(0, 10, turn=3, city="oslo"))

    table.check()


@VERSIONS
def test_hudi_rs_reads_tables_without_metadata_table(tmp_path: Path, version: int) -> None:
    table = Watched(tmp_path / "t", table_version=version, properties={"hoodie.metadata.enable": "false"})
    table.add(batch(0, 20, turn=1))
    table.upsert(batch(10, 30, turn=2))
    table.overwrite(batch(40, 50, step=2, turn=3))
    assert not (table.path / ".hoodie" / "metadata").exists()
    table.check()

    table.upsert(batch(0, 30, turn=4), **{"hoodie.metadata.enable": "true"})  # makes one of a table that has grown
    assert (table.path / ".hoodie" / "metadata" / "files").exists()
    table.check()


@VERSIONS
def test_hudi_rs_does_read_our_metadata_table(tmp_path: Path, version: int) -> None:
    """Also when it is compacted; or else what is compared above would be two listings of the storage."""
    table = Watched(
        tmp_path / "t", table_version=version, properties={"hoodie.metadata.compact.max.delta.commits": "2"}
    )
    for turn in range(1, 7):
        table.upsert(batch(0, 20, step=turn, turn=turn))
        check_snapshot(table.path, table.table, table.model)
    folder = table.path / ".hoodie" / "metadata" / "files"
    compacted = sorted(file for file in folder.glob("*.hfile") if "_00000000000000000." not in file.name)
    assert len(compacted) >= 2

    compacted[-1].write_bytes(b"")

    with HudiRsError("HudiCoreError", f"Failed to read base file 'files/{compacted[-1].name}'").expected():
        read_hudi_rs(table.path)
    assert read_rows(read_hudi_rs_by_storage(table.path)) == table.model.rows


# Cleaning and archiving.


@VERSIONS
def test_hudi_rs_reads_what_a_clean_leaves(tmp_path: Path, version: int) -> None:
    """Where a clean took files, pyhudi raises; hudi-rs shows the rows of those that are left."""
    table = Watched(tmp_path / "t", table_version=version, properties={"hoodie.clean.commits.retained": "2"})
    table.add(batch(0, 20, turn=1))
    for turn in range(2, 9):
        table.upsert(batch(0, 20, step=2 if turn % 3 else 1, turn=turn))
        check_snapshot(table.path, table.table, table.model)
    assert any(instant.action == "clean" for instant in table.table.timeline())

    for at in (6, 7):
        check_past(table.path, table.table, table.model.past[at])
        check_range(table.path, table.table, table.model, at, 8)
    for past in table.model.past[:4]:
        with pytest.raises(NotFound, match="its files were cleaned away"):
            table.table.scan(as_of=past.requested)
        found = read_rows(read_hudi_rs(table.path, as_of=past.requested))
        assert found.items() < past.rows.items()


@VERSIONS
def test_hudi_rs_reads_an_archived_table_but_finds_no_change_of_an_archived_commit(
    tmp_path: Path, version: int
) -> None:
    table = Watched(
        tmp_path / "t", table_version=version,
        properties={
            "hoodie.keep.max.commits": "4", "hoodie.keep.min.commits": "3", "hoodie.clean.automatic": "false",
            "hoodie.clean.commits.retained": "2", "hoodie.timeline.compaction.batch.size": "2",
            "hoodie.metadata.compact.max.delta.commits": "2",
        },
    )  # fmt: skip
    table.add(batch(0, 20, turn=1))
    for turn in range(2, 12):
        table.upsert(batch(turn, 20, step=3, turn=turn))
    check_snapshot(table.path, table.table, table.model)
    model = table.model
    active = {instant.requested for instant in table.table.timeline()}
    first = next(at for at, past in enumerate(model.past) if past.requested in active)
    assert first >= 5
    assert list((table.path / ".hoodie" / "timeline" / "history").glob("*.parquet"))

    for past in model.past:
        check_past(table.path, table.table, past)
    for start in range(first, len(model.past)):
        check_range(table.path, table.table, model, start, len(model.past))
    for start, end in ((0, len(model.past)), (0, first), (2, 4), (first - 1, first + 1)):
        after, until = bounds(model, start, end)
        ours = read_rows(table.table.incremental(after, until).to_arrow())
        assert ours == model.between(start, end)
        found = read_rows(read_hudi_rs(table.path, incremental=(after, until)))
        assert found == of_active_commits(table.table, ours)
        assert found != ours


# Writers that died.


def on_disk(storage: Storage, folder: Path) -> Path:
    """The storage's files as a folder."""
    for path, content in dump(storage).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


def test_hudi_rs_sees_nothing_of_a_write_that_died_before_or_after_it_is_rolled_back(tmp_path: Path) -> None:
    clock = StepClock()
    disk = MemoryStorage(clock_ms=lambda: clock.ms)

    def handles(storage: Storage, seed: int) -> Handles:
        return Handles(storage, clock, seeded_uuids(seed), SerialExecutor())

    created = handles(disk, 1).create(properties={"hoodie.metadata.compact.max.delta.commits": "2"})
    for turn in (1, 2):
        created.upsert(arrow(batch(0, 10, turn=turn)))
    before = read_rows(created.scan().to_arrow()).keys()
    wanted = arrow([*batch(5, 15, turn=3), *batch(0, 4, turn=3, city="york")])
    seen = set()

    def write(storage: Storage) -> None:
        handles(storage, 2).open().upsert(wanted)

    for number, (crash, after) in enumerate(crash_points(write, disk.copy)):
        ours = handles(after, 3).open().scan().to_arrow()
        seen.add(len(ours))
        path = on_disk(after, tmp_path / f"{number}-dead")
        assert_same_rows(read_hudi_rs(path), ours)
        assert_same_rows(read_hudi_rs_by_storage(path), ours)
        if number % 6 == 0:
            table = handles(after, 4).open()
            table.upsert(arrow(batch(20, 22, turn=4)))
            path = on_disk(after, tmp_path / f"{number}-rolled-back")
            assert_same_rows(read_hudi_rs(path), table.scan().to_arrow())
            assert len(read_rows(read_hudi_rs_by_storage(path))) == len(ours) + 2, crash

    assert seen == {len(before), len(before) + 9}
