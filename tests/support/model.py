"""A table as a dict, and what of a table's storage must hold after every write, whatever happened before it."""

import random
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import TypeAlias

import pyarrow as pa

from pyhudi import HudiTable
from pyhudi.executor import Executor
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.headers import instant_time, rolled_back_instant
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.names import HEARTBEATS, HOODIE, PARTITION_METAFILE, TEMP, LogFileName, join
from pyhudi.format.timeline.action_files import decode_restore_metadata, decode_rollback_metadata
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import RollbackMetadata
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.commits import read_clean, read_commit
from pyhudi.table.view.listing import FileListing, StorageListing
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.markers import empty_log

Key: TypeAlias = tuple[str, str]
"""Partition path and record key."""

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("note", pa.string())]
)

SMALL_FILES = {
    "hoodie.parquet.max.file.size": "6000",
    "hoodie.copyonwrite.record.size.estimate": "600",
    "hoodie.index.bloom.num_entries": "10",
}
"""Five rows a new file, and room for some more in files that are there; tests with it write little."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `SCHEMA`."""

    id: str
    city: str
    ts: int
    v: int
    note: str | None = None


@dataclass(eq=False)
class StepClock:
    """A clock that goes on by a millisecond whenever it is asked."""

    ms: int = 1_780_000_000_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def sleep_ms(self, wait_ms: int) -> None:
        self.ms += wait_ms


def seeded_uuids(seed: int) -> Callable[[], str]:
    """A source of UUID texts that repeats itself."""
    numbers = random.Random(seed)
    return lambda: str(uuid.UUID(int=numbers.getrandbits(128)))


@dataclass
class Handles:
    """Handles on one table, with the same clock and randomness; each call gives a new one."""

    storage: Storage
    clock: StepClock = field(default_factory=StepClock)
    random: Callable[[], str] = field(default_factory=lambda: seeded_uuids(1))
    executor: Executor | None = None

    def open(self, options: Mapping[str, object] | None = None) -> HudiTable:
        return HudiTable.open(
            "", options=options, storage=self.storage, clock=self.clock, random=self.random,
            executor=self.executor,
        )  # fmt: skip

    def create(
        self,
        *,
        partition_by: str | None = "city",
        ordering: str | None = "ts",
        properties: Mapping[str, object] | None = None,
        schema: pa.Schema | None = None,
        table_version: int = 8,
        table_type: str = "COPY_ON_WRITE",
    ) -> HudiTable:
        return HudiTable.create(
            "", name="t", record_key="id", partition_by=partition_by, ordering=ordering, schema=schema,
            table_version=table_version, table_type=table_type, properties={**SMALL_FILES, **(properties or {})},
            storage=self.storage, clock=self.clock, random=self.random, executor=self.executor,
        )  # fmt: skip


def arrow(rows: Iterable[Row], columns: Iterable[str] | None = None) -> pa.Table:
    """Rows as Arrow, all columns or some."""
    listed = list(rows)
    whole = pa.table({name: [getattr(row, name) for row in listed] for name in SCHEMA.names}, SCHEMA)
    return whole if columns is None else whole.select(list(columns))


@dataclass(frozen=True, slots=True)
class Stored:
    """A row as the table holds it: who wrote it last."""

    row: Row
    requested: str


@dataclass(frozen=True, slots=True)
class Past:
    """The table as a commit left it."""

    requested: str
    completed: str
    rows: Mapping[Key, Stored]


@dataclass
class Model:
    """What a table should hold. `event_time`: a stored row that is greater stays; `ordered`: within a batch the
    greatest row of a key counts, and not just the last."""

    is_partitioned: bool
    ordered: bool
    event_time: bool
    rows: dict[Key, Stored] = field(default_factory=dict)
    past: list[Past] = field(default_factory=list)

    def key(self, row: Row) -> Key:
        return (row.city if self.is_partitioned else "", row.id)

    def settle(self, batch: Iterable[Row], *, ordered: bool) -> dict[Key, Row]:
        """One row a key."""
        settled: dict[Key, Row] = {}
        for row in batch:
            before = settled.get(self.key(row))
            if before is None or not ordered or row.ts >= before.ts:
                settled[self.key(row)] = row
        return settled

    def wins(self, row: Row, *, ordered: bool) -> bool:
        stored = self.rows.get(self.key(row))
        return stored is None or not (ordered and self.event_time) or row.ts >= stored.row.ts

    def upsert(self, batch: Iterable[Row]) -> tuple[dict[Key, Row], int, int]:
        """What an upsert puts, and how many of them are new and how many replace a row."""
        put = {
            key: row
            for key, row in self.settle(batch, ordered=self.ordered).items()
            if self.wins(row, ordered=self.ordered)
        }
        new = sum(key not in self.rows for key in put)
        return put, new, len(put) - new

    def delete(self, batch: Iterable[Row], *, ordered: bool) -> set[Key]:
        """Keys that a delete takes away; `ordered`: it carries the ordering column."""
        ordered = ordered and self.ordered
        settled = self.settle(batch, ordered=ordered)
        return {key for key, row in settled.items() if key in self.rows and self.wins(row, ordered=ordered)}

    def insert_new(self, batch: Iterable[Row]) -> tuple[dict[Key, Row], int, int]:
        """As `upsert`, of rows whose key is not stored."""
        settled = self.settle(batch, ordered=self.ordered)
        put = {key: row for key, row in settled.items() if key not in self.rows}
        return put, len(put), 0

    def dropped(self, partitions: Iterable[str]) -> set[Key]:
        """Keys that go with these partitions."""
        return {key for key in self.rows if key[0] in set(partitions)}

    def none_beaten_by_deleted(self, batch: Iterable[Row]) -> list[Row]:
        """The batch, its rows of deleted keys no older than what a file still holds of the key."""
        return list(batch)

    def distinct(self, batch: Iterable[Row]) -> list[Row]:
        """The last row of each key."""
        return list(self.settle(batch, ordered=False).values())

    def overwritten(self, batch: Iterable[Row], *, whole: bool) -> set[Key]:
        """Keys that go when rows overwrite their partitions, or the whole table."""
        partitions = {self.key(row)[0] for row in batch}
        return {key for key in self.rows if whole or key[0] in partitions}

    def committed(self, requested: str, completed: str, put: Mapping[Key, Row], gone: set[Key]) -> None:
        for key in gone:
            del self.rows[key]
        for key, row in put.items():
            self.rows[key] = Stored(row, requested)
        self.note(requested, completed)

    def insert_counts(self, keys: Iterable[Key]) -> tuple[int, int]:
        """Of an insert of new keys, the rows that count as inserted and as updated."""
        return len(list(keys)), 0

    def note(self, requested: str, completed: str) -> None:
        """Keep the table as it now is."""
        self.past.append(Past(requested, completed, dict(self.rows)))

    def between(self, start: int, end: int) -> dict[Key, Stored]:
        """What the commits `past[start:end]` wrote last, as it stood at their end."""
        writers = {past.requested for past in self.past[start:end]}
        return {key: of for key, of in self.past[end - 1].rows.items() if of.requested in writers}


def read_rows(rows: pa.Table) -> dict[Key, Stored]:
    """An answer with meta fields as the model shows it. Fails when a key is in it twice."""
    found: dict[Key, Stored] = {}
    for values in rows.to_pylist():
        key = values["_hoodie_partition_path"], values["_hoodie_record_key"]
        assert key not in found, f"{key} is there twice"
        row = Row(**{name: values[name] for name in SCHEMA.names})
        assert row.id == key[1]
        found[key] = Stored(row, values["_hoodie_commit_time"])
    return found


def dump(storage: Storage) -> dict[str, bytes]:
    """Every file with its bytes; the guard's own file is left out."""
    paths = [file.path for file in storage.list("", recursive=True)]
    return {path: storage.get(path) for path in paths if not path.endswith("_guard")}


def without_metadata_table(storage: Storage) -> Iterator[str]:
    """Paths of data files, by the storage."""
    for file in storage.list("", recursive=True):
        if not file.path.startswith(f"{HOODIE}/") and PARTITION_METAFILE not in file.path:
            yield file.path


def problems_on(storage: Storage, *, has_metadata_table: bool | None = True) -> list[str]:
    """What is amiss on a table's storage that no write is busy with; none when all is well.

    Nothing pending on either timeline, no marker, no heartbeat, no properties under way, every data file
    of a completed commit and known to the metadata table, which knows no other, and none that a clean deleted.
    `has_metadata_table` None: there may be one or none.
    """
    problems = []
    snapshot = read_snapshot(storage, UTC, open_listing)
    if has_metadata_table not in (None, snapshot.config.has_metadata_table):
        problems.append(f"has a metadata table: {snapshot.config.has_metadata_table}")
    timelines = [("table", snapshot.timeline)]
    if snapshot.config.has_metadata_table:
        timelines.append(("metadata table", open_metadata_table(storage, snapshot.zone).timeline))
    problems += [f"{what}: pending {i.action} {i.requested}" for what, of in timelines for i in of.pending]
    problems += [f"completed twice: {path}" for path in completed_twice(storage)]
    for folder in (TEMP, HEARTBEATS):
        problems += [f"left: {file.path}" for file in storage.list(folder, recursive=True)]
    if storage.head(f"{HOODIE}/hoodie.properties.backup") is not None:
        problems.append("left: the backup of the properties")
    written = {
        path: instant.requested
        for instant in (*snapshot.timeline.archived_writes(), *snapshot.timeline.completed_writes)
        for path in _paths_of(snapshot, instant)
    }
    empty = set(empty_logs(snapshot))
    stored = set(without_metadata_table(storage)) - set(voided_logs(snapshot)) - empty
    stored -= set(withdrawn_logs(storage, stored - written.keys()))
    problems += [f"no completed commit knows {path}" for path in sorted(stored - written.keys())]
    cleaned = cleaned_paths(snapshot)
    problems += [f"cleaned away, and still there: {path}" for path in sorted(stored & cleaned)]
    problems += [f"missing: {path}" for path in sorted(written.keys() - stored - cleaned)]
    by_storage, by_table = _listed(StorageListing(storage), empty), _listed(snapshot.listing, empty)
    if by_storage != by_table:
        problems.append(f"the metadata table lists {by_table}, the storage {by_storage}")
    return problems


def empty_logs(snapshot: Snapshot) -> Iterator[str]:
    """Logs without a record of writers that died before they could put the marker: before version 8."""
    if not snapshot.config.layout.has_completion_times:
        listing, form = StorageListing(snapshot.storage), snapshot.config.version.log_content
        size_bytes = len(empty_log("0" * 17, form))
        for partition in listing.partitions():
            for path in (join(partition, file.name) for file in listing.files(partition)):
                content = snapshot.storage.get(path)
                if LogFileName.parse(path.rpartition("/")[2]) is not None and len(content) == size_bytes:
                    (block,) = read_blocks(content, path=path)
                    if block.type is BlockType.DELETE and content == empty_log(instant_time(block), form):
                        yield path


def voided_logs(snapshot: Snapshot) -> Iterator[str]:
    """Logs that rollbacks left, where they are not deleted, and those that say so: before version 8.

    A rollback that was planned before the table moved names them by their place of then.
    """
    for rollback in completed_rollbacks(snapshot.storage, snapshot.timeline):
        for partition, of in rollback.partition_metadata.items():
            logs = {**(of.rollback_log_files or {}), **(of.log_files_from_failed_commit or {})}
            yield from (join(partition, log.rpartition("/")[2]) for log in logs)


def withdrawn_logs(storage: Storage, paths: Iterable[str]) -> Iterator[str]:
    """Those of the logs whose every block is a rollback command, or is taken back by one in a log of its file group.

    So they lie where a restore took the rollback, which named them, off the timeline: before version 8.
    """
    by_group: dict[str, dict[str, list[LogBlock]]] = {}
    for path in paths:
        name = LogFileName.parse(path.rpartition("/")[2])
        if name is not None:
            by_group.setdefault(name.file_id, {})[path] = list(read_blocks(storage.get(path), path=path))
    for logs in by_group.values():
        commands = [block for blocks in logs.values() for block in blocks if block.type is BlockType.COMMAND]
        targets = {rolled_back_instant(block) for block in commands}
        for path, blocks in logs.items():
            if all(block.type is BlockType.COMMAND or instant_time(block) in targets for block in blocks):
                yield path


def completed_rollbacks(storage: Storage, timeline: Timeline) -> Iterator[RollbackMetadata]:
    """What rollbacks did that completed, those within restores too."""
    for instant in timeline:
        if not instant.is_completed or instant.action not in ("rollback", "restore"):
            continue
        path = timeline.layout.path(instant)
        content = storage.get(path)
        if instant.action == "rollback":
            yield decode_rollback_metadata(content, path=path)
        else:
            for of in decode_restore_metadata(content, path=path).rollbacks.values():
                yield from (one for one in of if one is not None)


def completed_twice(storage: Storage) -> list[str]:
    """Completed files of actions that have another one, on the table's timeline and the metadata table's."""
    twice, seen = [], set()
    for folder in (f"{HOODIE}/timeline", f"{HOODIE}/metadata/{HOODIE}/timeline"):
        for file in storage.list(folder):
            times, _, action = file.path.rpartition("/")[2].partition(".")
            requested, _, completed = times.partition("_")
            if completed and (folder, requested, action) in seen:
                twice.append(file.path)
            seen.add((folder, requested, action))
    return twice


def cleaned_paths(snapshot: Snapshot) -> set[str]:
    """The files that completed cleans deleted, archived ones too."""
    timeline = snapshot.timeline
    cleans = [read_clean(snapshot.storage, timeline, i) for i in timeline if i.action == "clean" and i.is_completed]
    archived = (i for i in timeline.history.instants() if i.action == "clean" and not timeline.is_active(i))
    cleans += [timeline.history.read_clean(i) for i in archived]
    return {
        join(partition, name)
        for metadata in cleans
        if metadata is not None
        for partition, of in metadata.partition_metadata.items()
        for name in of.delete_path_patterns
    }


def _paths_of(snapshot: Snapshot, instant: Instant) -> list[str]:
    metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
    stats = [stat for of_partition in metadata.partition_to_write_stats.values() for stat in of_partition]
    return [path for stat in stats for path in (stat.path, *(stat.cdc_stats or ())) if path]


def _listed(listing: FileListing, but: Container[str]) -> dict[str, list[tuple[str, int]]]:
    """Files with sizes by partition, without some. A partition without any may be the leftover of a dead write."""
    by_partition = {
        partition: [(f.name, f.size_bytes) for f in listing.files(partition) if join(partition, f.name) not in but]
        for partition in listing.partitions()
    }
    return {partition: files for partition, files in by_partition.items() if files}
