"""A change could miss its file group, survive its rollback in one of the partitions, or be lost by a compaction.

Deltacommits of several partitions are written, undone, rolled back and compacted in memory, against a dict.
"""

import random
from datetime import UTC

import pyarrow as pa
import pytest

from pyhudi.engine.local.executors import LocalExecutor, SerialExecutor
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.metadata.keys import KeyHashing
from pyhudi.format.metadata.record import FILES_TYPE, FilesRecord, encode_files_record
from pyhudi.format.timeline.instant import Instant
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange, cells_of
from pyhudi.metadata.kinds.registry import get_kind
from pyhudi.metadata.store.current_cells import read_current_cells
from pyhudi.metadata.store.groups import group_ids, list_groups, rows_by_group
from pyhudi.metadata.store.table import MetadataTable, open_metadata_table
from pyhudi.services.metadata.compaction import MetadataCompactor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.facts.config import table_config
from pyhudi.table.facts.properties_file import read_table_properties
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.write.metadata.creation import create_metadata_table, create_partition
from pyhudi.write.metadata.deltacommit import Spreading, undo_deltacommit, undo_log_compactions, write_deltacommit
from pyhudi.write.metadata.rollback import roll_back_deltacommit
from tests.support.model import Handles, StepClock, seeded_uuids

VALUE = encode_files_record(FilesRecord(FILES_TYPE, {}), metadata_record_schema(8))
EXECUTOR = LocalExecutor(2)
PARTITIONS = {"record_index": 10, "bloom_filters": 2, "secondary_index_a_b": 3}


def sure() -> None:
    """Nobody else is at the table."""


class Table:
    """A data table without rows, whose metadata table has partitions of cells that stand for themselves."""

    def __init__(self, version: int = 9) -> None:
        self.storage = MemoryStorage()
        handles = Handles(self.storage, StepClock(), seeded_uuids(1), SerialExecutor())
        handles.create(properties={"hoodie.metadata.enable": "true"}, table_version=version)
        self.config = table_config(read_table_properties(self.storage), path="t")
        self.times = iter(f"{20261121000000000 + n:017d}" for n in range(10**6))
        create_metadata_table(
            self.storage, self.config, (), data_timeline=self.data_timeline, epoch_ms=0, zone=UTC,
            executor=EXECUTOR, issue_instant=self.now, confirm=sure,
        )  # fmt: skip
        for partition, count in PARTITIONS.items():
            initial = InitialPartition(partition, [change(partition, {f"first {partition}": b"0"})], {None: count})
            create_partition(
                self.metadata, initial, data_timeline=self.data_timeline, epoch_ms=0, executor=EXECUTOR,
                issue_instant=self.now, confirm=sure,
            )  # fmt: skip

    def now(self) -> str:
        return next(self.times)

    @property
    def metadata(self) -> MetadataTable:
        return open_metadata_table(self.storage, UTC)

    @property
    def data_timeline(self) -> Timeline:
        return read_timeline(self.storage, self.config.layout, UTC)

    def write(self, *changes: PartitionChange) -> str:
        requested = self.now()
        write_deltacommit(self.metadata, requested, changes, Spreading(EXECUTOR), issue_instant=self.now, confirm=sure)
        return requested

    def cells(self, partition: str) -> dict[str, bytes]:
        """What a reader sees, each cell in the group that its key belongs to."""
        table, found = self.metadata, {}
        groups = list_groups(table, partition)
        assert groups == group_ids(table.config.version, partition, PARTITIONS[partition])
        for piece in table.slices(partition):
            cells = read_current_cells(table, piece, self.data_timeline, stats_type=get_kind(partition).stats_type)
            keys = cells.column("key").combine_chunks()
            rows = rows_by_group(keys, len(groups), KeyHashing.WHOLE)
            assert len(rows[groups.index(piece.file_id)]) == len(keys)
            found.update({k.decode(): v for k, v in zip(keys.to_pylist(), cells["value"].to_pylist(), strict=True)})
        return found

    @property
    def compactor(self) -> MetadataCompactor:
        of = [*PARTITIONS, "files"]
        return MetadataCompactor(self.metadata, self.data_timeline, of, EXECUTOR, self.now, sure)

    def compact(self) -> bool:
        return self.compactor.compact_when_due(1)

    def log_compact(self) -> bool:
        return self.compactor.log_compact_when_due(2)


def change(partition: str, cells: dict[str, bytes], deletes: tuple[str, ...] = ()) -> PartitionChange:
    keys = pa.array([key.encode() for key in deletes], pa.large_binary())
    return PartitionChange(partition, cells_of(cells), keys)


@pytest.mark.parametrize("version", [8, 9])
def test_random_changes_of_three_partitions_with_compactions_between_them(version: int) -> None:
    table, draw, log_compactions = Table(version), random.Random(version), 0
    model = {partition: {f"first {partition}": b"0"} for partition in PARTITIONS}
    for turn in range(16):
        changes = []
        for partition in draw.sample(sorted(PARTITIONS), draw.randint(1, 3)):
            of = model[partition]
            gone = tuple(draw.sample(sorted(of), min(len(of), draw.randint(0, 3))))
            new = {f"schlüssel 𝄞 {draw.randint(0, 40)}": b"%d" % turn for _ in range(draw.randint(0, 12))}
            new = {key: value for key, value in new.items() if key not in gone}
            changes.append(change(partition, new, gone))
            for key in gone:
                del of[key]
            of.update(new)
        table.write(*changes)
        if draw.random() < 0.2:
            assert table.compact()
        elif draw.random() < 0.7:
            log_compactions += table.log_compact()
        assert {partition: table.cells(partition) for partition in PARTITIONS} == model
    assert log_compactions > 2


def test_one_log_file_a_touched_group_and_its_numbers_in_the_commit() -> None:
    table = Table()
    requested = table.write(change("record_index", {"a": b"1", "b": b"2"}, ("first record_index",)))
    logs = [f.path for f in table.metadata.storage.list("record_index") if f"_{requested}.log.1_" in f.path]
    assert 1 < len(logs) <= 3
    assert [f.path for f in table.metadata.storage.list("bloom_filters") if requested in f.path] == []


def test_a_rollback_takes_the_logs_of_every_partition_and_the_next_deltacommit_is_whole() -> None:
    table = Table()
    table.write(*(change(partition, {"kept": b"1"}) for partition in PARTITIONS))
    requested = table.write(*(change(partition, {"gone": b"2", "kept": b"3"}) for partition in PARTITIONS))
    target = next(i for i in table.metadata.timeline if i.requested == requested)
    assert target == Instant(requested, "deltacommit", "COMPLETED", target.completed)

    roll_back_deltacommit(table.metadata, target, table.now(), issue_instant=table.now, confirm=sure)

    for partition in PARTITIONS:
        assert table.cells(partition) == {f"first {partition}": b"0", "kept": b"1"}
    assert [f.path for f in table.metadata.storage.list("", recursive=True) if requested in f.path] == []


def test_a_rollback_takes_log_compactions_back_that_hold_what_it_takes() -> None:
    table = Table()
    for n in range(2):
        table.write(*(change(partition, {f"kept {n}": b"1"}) for partition in PARTITIONS))
    assert table.log_compact()
    [before] = table.metadata.timeline.log_compactions
    requested = table.write(
        *(change(partition, {"gone": b"2", "kept 0": b"3"}, ("kept 1",)) for partition in PARTITIONS)
    )
    for n in range(2, 4):
        table.write(*(change(partition, {f"kept {n}": b"1"}) for partition in PARTITIONS))
    assert table.log_compact()
    assert len(table.metadata.timeline.log_compactions) == 2
    undo_log_compactions(table.metadata, since=requested, confirm=sure)
    assert table.metadata.timeline.log_compactions == {before}
    target = next(i for i in table.metadata.timeline if i.requested == requested)
    roll_back_deltacommit(table.metadata, target, table.now(), issue_instant=table.now, confirm=sure)
    for partition in PARTITIONS:
        assert table.cells(partition) == {f"first {partition}": b"0", **{f"kept {n}": b"1" for n in range(4)}}


def test_an_undone_deltacommit_is_written_anew_under_its_time() -> None:
    table = Table()
    requested = table.write(*(change(partition, {"stale": b"1"}) for partition in PARTITIONS))
    undo_deltacommit(table.metadata, requested, confirm=sure)
    write_deltacommit(
        table.metadata, requested, [change("record_index", {"fresh": b"2"})], Spreading(EXECUTOR),
        issue_instant=table.now, confirm=sure,
    )  # fmt: skip
    assert table.cells("record_index") == {"first record_index": b"0", "fresh": b"2"}
    assert table.cells("bloom_filters") == {"first bloom_filters": b"0"}


def test_a_new_data_partition_of_a_partitioned_record_index_gets_all_of_its_groups() -> None:
    table = Table()
    requested = table.now()
    cells = cells_of({"k": b"1"})
    spreading = Spreading(EXECUTOR, new_groups=3)
    write_deltacommit(
        table.metadata, requested, [PartitionChange("record_index", cells, data_partition="p=a-b/c0")], spreading,
        issue_instant=table.now, confirm=sure,
    )  # fmt: skip
    assert list_groups(table.metadata, "record_index", "p=a-b/c0") == [
        f"record-index-p%3Da%2Db%2Fc0-{n:04d}-0" for n in range(3)
    ]


@pytest.mark.parametrize("dies_early", [False, True])
def test_the_groups_of_a_new_data_partition_outlive_the_dead_writer_that_made_them(dies_early: bool) -> None:
    """Its deltacommit is rolled back after another wrote to the partition: keys are sought in one of all groups."""
    table, spreading = Table(), Spreading(EXECUTOR, new_groups=3)

    def write(key: str) -> str:
        changed = PartitionChange("record_index", cells_of({key: b"1"}), data_partition="oslo")
        requested = table.now()
        write_deltacommit(
            table.metadata, requested, [changed], spreading, issue_instant=table.now, confirm=sure
        )  # fmt: skip
        return requested

    dead = next(i for requested in [write("k")] for i in table.metadata.timeline if i.requested == requested)
    table.metadata.storage.delete(table.metadata.timeline.layout.path(dead))  # it never completed
    if dies_early:
        for number in (0, 2):
            table.metadata.storage.delete(
                f"record_index/.record-index-oslo-{number:04d}-0_{dead.requested}.log.1_0-0-0"
            )
    for key in ("a", "b"):
        write(key)
    dead = next(i for i in table.metadata.timeline if i.requested == dead.requested)
    roll_back_deltacommit(table.metadata, dead, table.now(), issue_instant=table.now, confirm=sure)

    assert list_groups(table.metadata, "record_index", "oslo") == [f"record-index-oslo-{n:04d}-0" for n in range(3)]
    logs = [f.path for f in table.metadata.storage.list("record_index") if "record-index-oslo" in f.path]
    assert len(logs) == 3 + 1, "the first write after the dead one opens every group, the second logs its key"


def test_a_compaction_of_what_the_metadata_table_does_not_need_to_compact_is_none() -> None:
    table = Table()
    assert table.compact()
    before = {f.path for f in table.storage.list("", recursive=True)}
    assert not table.compact()
    assert {f.path for f in table.storage.list("", recursive=True)} == before
