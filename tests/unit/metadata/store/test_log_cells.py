"""A log compaction of the metadata table could forget what the base file still has: a tombstone that found its file in
the log already, a record that was deleted and came back, statistics that replace others. Random logs are merged by
themselves, and then into their base file: that must give what their blocks give one by one.
"""

import random
from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.format.log.headers import merged_instants
from pyhudi.format.metadata.groups import COLUMN_STATS_TYPE
from pyhudi.format.metadata.record import (
    PARTITIONS_KEY,
    FilesRecord,
    FileState,
    decode_files_record,
    encode_files_record,
)
from pyhudi.format.metadata.stats import decode_column_stats, encode_column_stats
from pyhudi.format.metadata.stats_values import StatsVersion
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.metadata.derive.changes import cells_of, no_keys
from pyhudi.metadata.derive.column_bounds import ColumnBounds, FileBounds, IndexedColumn
from pyhudi.metadata.derive.stats_changes import column_stats_change
from pyhudi.metadata.kinds.registry import get_kind
from pyhudi.metadata.store.current_cells import current_cells
from pyhudi.metadata.store.files_partition import MetadataListing
from pyhudi.metadata.store.log_cells import LogCells
from pyhudi.metadata.store.partition import MetadataPartition
from pyhudi.metadata.store.slice_records import open_slice
from pyhudi.metadata.store.table import MetadataTable, open_metadata_table
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.file_system_view import BaseFile, FileSlice, LogFile
from pyhudi.write.metadata.group_files import GroupTarget, write_group_base, write_group_log
from tests.support.model import Handles, StepClock, seeded_uuids

COLUMN = IndexedColumn("v", pa.int64())
Log = tuple[dict[str, bytes], tuple[str, ...]]
"""What a log file puts, by key, and the keys that it deletes."""


@pytest.fixture(scope="module", params=[9, 6])
def table(request: pytest.FixtureRequest) -> MetadataTable:
    storage = MemoryStorage()
    handles = Handles(storage, StepClock(), seeded_uuids(1))
    made = handles.create(table_version=request.param, table_type="MERGE_ON_READ", properties={})
    made.metadata.update()
    return open_metadata_table(storage, UTC)


class Group:
    """A file group of its own, on a disk of its own."""

    def __init__(self, table: MetadataTable, partition: str, base: dict[str, bytes]) -> None:
        self.table = MetadataTable(MemoryStorage(), table.config, table.timeline)
        self.partition, self.file_id = partition, f"{partition}-0000-0"
        write_group_base(self._target(0), cells_of(base))
        self.logs: list[LogFile] = []

    def put(self, log: Log) -> None:
        deletes = pa.array([key.encode() for key in log[1]], pa.large_binary())
        write_group_log(self._target(len(self.logs) + 1), cells_of(log[0]), deletes)
        self._add()

    def merged(self) -> LogCells | None:
        return get_kind(self.partition).merge_log(
            self.table, open_slice(self.table.storage, self.piece(0), lambda _: True)
        )

    def compact_log(self, of: LogCells) -> None:
        instants = merged_instants(of.blocks)
        write_group_log(self._target(len(self.logs) + 1), of.cells, of.deletes, compacted=instants)
        self._add()

    def piece(self, logs_from: int) -> FileSlice:
        base = BaseFile(BaseFileName(self.file_id, "0-0-0", "1000", ".hfile"), 1)
        return FileSlice(self.partition, self.file_id, "1000", base, tuple(self.logs[logs_from:]))

    def content(self) -> dict[str, Any]:
        if self.partition == "files":
            partition = MetadataPartition(self.table.storage, "files", (self.piece(0),), lambda _: True)
            version = self.table.config.version
            cells = MetadataListing(partition).live_cells(table_version=version, base_file="b").to_pylist()
            records = ((of["key"], decode_files_record(of["value"], self.table.record_schema)) for of in cells)
            return {key.decode(): record.live for key, record in records if record.live}
        found: dict[str, Any] = {}
        for part in open_slice(self.table.storage, self.piece(0), lambda _: True).read():
            cells = current_cells(self.table, part, stats_type=get_kind(self.partition).stats_type)
            stats = decode_column_stats(cells["value"].combine_chunks().cast(pa.binary()), self.table.record_schema)
            rows = zip(cells["key"].to_pylist(), stats.to_pylist(), strict=True)
            found.update({key: row for key, row in rows if not row["is_deleted"]})
        return found

    def _target(self, number: int) -> GroupTarget:
        requested = f"{1000 + number}"
        content = self.table.config.version.log_content
        return GroupTarget(
            self.table.storage, self.partition, self.file_id, requested, self.table.record_schema, content
        )

    def _add(self) -> None:
        name = LogFileName(self.file_id, f"{1001 + len(self.logs)}", 1, "0-0-0")
        size = len(self.table.storage.get(f"{self.partition}/{name.format()}"))
        self.logs.append(LogFile(name, size))


def check(group: Group, logs: list[Log]) -> LogCells | None:
    for log in logs:
        group.put(log)
    before, merged = group.content(), group.merged()
    if merged is None:
        return None
    group.compact_log(merged)
    assert len(open_slice(group.table.storage, group.piece(0), lambda _: True).blocks) <= 2
    assert group.content() == before
    group.put((logs[0][0], ()))  # what comes after it counts as ever
    after = group.content()
    group.logs = group.logs[: len(logs)]
    group.put((logs[0][0], ()))
    assert group.content() == after
    return merged


def files(table: MetadataTable, key: str, **states: int | None) -> bytes:
    """None: a tombstone."""
    record_type = 1 if key == PARTITIONS_KEY else 2
    entries = {name: FileState(size or 0, size is None) for name, size in states.items()}
    return encode_files_record(FilesRecord(record_type, entries), table.record_schema)


def stats(table: MetadataTable, low: int | None, *, tight: bool, deleted: bool = False) -> bytes:
    bounds = ColumnBounds(4, 1, pa.scalar(low, pa.int64()), pa.scalar(low and low + 2, pa.int64()))
    version = table.config.version
    kind = StatsVersion.V2 if version.number == 9 else StatsVersion.V1
    change = column_stats_change(
        [FileBounds("p", "f", {"v": bounds})], [COLUMN], kind, table_version=version, index="column_stats"
    )
    said = decode_column_stats(change.cells["value"].combine_chunks().cast(pa.binary()), table.record_schema)
    for name, value in (("is_tight_bound", tight), ("is_deleted", deleted)):
        at = said.schema.get_field_index(name)
        said = said.set_column(at, said.schema.field(at), pa.array([value]))
    value = encode_column_stats(said, table_version=version.number, record_type=COLUMN_STATS_TYPE)[0].as_py()
    assert isinstance(value, bytes)
    return value


@pytest.mark.parametrize("seed", range(3))
def test_random_lists_of_files(table: MetadataTable, seed: int) -> None:
    draw, kept = random.Random(seed), 0

    def record(key: str) -> bytes:
        of_files = {f"f{draw.randint(0, 9)}": draw.choice([None, 3, 5, 9]) for _ in range(draw.randint(0, 4))}
        return files(table, key, **({n: v and 0 for n, v in of_files.items()} if key == PARTITIONS_KEY else of_files))

    def log() -> Log:
        keys = draw.sample(["a", "b", "c", PARTITIONS_KEY], draw.randint(1, 3))
        gone = [key for key in ("a", "d") if key not in keys and draw.random() < 0.3]
        return {key: record(key) for key in keys}, tuple(gone)

    for _ in range(5):
        group = Group(table, "files", {key: record(key) for key in ("a", "b", PARTITIONS_KEY)})
        kept += check(group, [log() for _ in range(draw.randint(1, 4))]) is not None
    assert kept > 0


@pytest.mark.parametrize("seed", range(3))
def test_random_statistics(table: MetadataTable, seed: int) -> None:
    draw = random.Random(seed)

    def record() -> bytes:
        low = draw.choice([None, 1, 5, 9])
        return stats(
            table, low, tight=table.config.version.number > 6 and draw.random() < 0.3, deleted=draw.random() < 0.2
        )

    def log() -> Log:
        keys = draw.sample(["a", "b", "c", "d"], draw.randint(1, 3))
        gone = [key for key in ("a", "d") if key not in keys and draw.random() < 0.3]
        return {key: record() for key in keys}, tuple(gone)

    for _ in range(5):
        group = Group(table, "column_stats", {key: stats(table, 2, tight=False) for key in ("a", "b", "d")})
        assert check(group, [log() for _ in range(draw.randint(1, 5))]) is not None


def test_a_file_that_came_back_is_left_to_the_compaction_and_a_partition_is_not(table: MetadataTable) -> None:
    base = {"a": files(table, "a", f=9), PARTITIONS_KEY: files(table, PARTITIONS_KEY, a=0)}
    gone: Log = {"a": files(table, "a", f=None)}, ()
    back: Log = {"a": files(table, "a", f=3)}, ()
    assert check(Group(table, "files", base), [gone, back]) is None
    left: Log = {PARTITIONS_KEY: files(table, PARTITIONS_KEY, a=None)}, ()
    again: Log = {PARTITIONS_KEY: files(table, PARTITIONS_KEY, a=0)}, ()
    assert check(Group(table, "files", base), [left, again]) is not None


def test_tombstones_stay_and_deletes_come_before_what_is_put_again(table: MetadataTable) -> None:
    base = {key: files(table, key, old=9) for key in ("a", "b", "c")}
    logs: list[Log] = [
        ({"a": files(table, "a", new=1), "c": files(table, "c", late=1)}, ("b",)),
        ({"a": files(table, "a", new=None, old=None), "b": files(table, "b", new=2)}, ("c",)),
    ]
    group = Group(table, "files", base)
    merged = check(group, logs)
    assert merged is not None
    assert merged.cells["key"].to_pylist() == [b"a", b"b"]
    assert sorted(merged.deletes.to_pylist()) == [b"b", b"c"]
    assert group.content() == {"a": {"new": 1}, "b": {"new": 2}, "c": {"late": 1}}  # the first log came once more


def test_records_that_replace_each_other_need_no_delete_before(table: MetadataTable) -> None:
    group = Group(table, "record_index", {"a": b"0"})
    group.put(({"b": b"1"}, ("a",)))
    group.put(({"a": b"2"}, ("b",)))
    merged = group.merged()
    assert merged is not None
    assert dict(zip(*(column.to_pylist() for column in merged.cells.columns), strict=True)) == {b"a": b"2"}
    assert merged.deletes.to_pylist() == [b"b"]
    assert merged.deletes.type == no_keys().type
