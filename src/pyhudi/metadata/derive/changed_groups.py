"""The file groups of the data table that an action changes, as they stood before it and as they stand after it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.schema.conversion import META_FIELDS, arrow_from_avro
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import MOVES, REWRITES, CommitMetadata, WriteStat
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.view.commits import SCHEMA, SERVICES
from pyhudi.table.view.file_system_view import BaseFile, FileSlice, LogFile
from pyhudi.table.view.pending import CLUSTERINGS
from pyhudi.table.view.schema_on_read import LATEST_SCHEMA, parse_latest
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline


@dataclass(frozen=True, slots=True)
class ChangedGroup:
    """A file group before and after an action. A side is None where the group did not exist, or was replaced.

    `may_change_keys`: the action may have added record keys to the group, or taken some away. `only_updates`: the
    action only logged new versions of rows that the group had already, in its base file or in older logs.
    """

    partition: str
    file_id: str
    before: FileSlice | None
    after: FileSlice | None
    may_change_keys: bool
    only_updates: bool = False


def changed_groups(
    snapshot: Snapshot, metadata: CommitMetadata, *, with_rewrites: bool = False, finds_keys: bool = False
) -> list[ChangedGroup]:
    """The file groups that an action wrote to or replaced, by partition and file id.

    `with_rewrites`: also those of an action that only rewrites rows. `finds_keys`: the action looked up which keys are
    stored, so what it counts as updates are updates. A write by bucket looks up nothing: it counts each row that goes
    to an existing file group as an update.

    Logs that a write put beside a pending resizing, for the file groups that it will make, are seen from its own commit
    on. Until then such a group is left out.

    `snapshot`: the table right before the action. Cost: one look-up of the listing for each partition of the action.
    """
    if metadata.operation_type in REWRITES and not with_rewrites:
        return []

    replaced = metadata.partition_to_replace_file_ids or {}
    found, partitions = [], sorted({*metadata.partition_to_write_stats, *replaced})
    snapshot.listing.expect(partitions)
    is_move = metadata.operation_type in MOVES
    moving = {instant.requested for instant in snapshot.timeline.pending if instant.action in CLUSTERINGS}

    for partition in partitions:
        stats: dict[str, list[WriteStat]] = {}
        for stat in metadata.partition_to_write_stats.get(partition, ()):
            if stat.path:
                stats.setdefault(stat.file_id or "", []).append(stat)

        file_ids = {*stats, *replaced.get(partition, ())}
        slices = {file_slice.file_id: file_slice for file_slice in snapshot.slices(partition, file_ids)}

        for file_id in sorted(file_ids):
            before, own_stats = slices.get(file_id), stats.get(file_id, [])
            if before is None and not is_move and _log_instants(own_stats) & moving:
                continue
            after = (
                None if file_id in replaced.get(partition, ()) else slice_after(partition, file_id, before, own_stats)
            )
            if is_move and before is None and after is not None:
                after = _with_doubled(snapshot, after)
            may_change, only_updates = (
                may_change_keys(before, after, own_stats),
                finds_keys and has_only_updates(before, after, own_stats),
            )
            found.append(ChangedGroup(partition, file_id, before, after, may_change, only_updates))
    return found


def slice_after(partition: str, file_id: str, before: FileSlice | None, stats: Iterable[WriteStat]) -> FileSlice | None:
    """A file group's newest slice with these files in it. Logs of changes (CDC) are no part of it."""
    after = before
    for stat in sorted(stats, key=lambda stat: stat.is_log):
        name, size_bytes = (stat.path or "").rpartition("/")[2], stat.file_size_in_bytes or 0
        if base := BaseFileName.parse(name):
            after = FileSlice(partition, file_id, base.requested, BaseFile(base, size_bytes))
        elif (log := LogFileName.parse(name)) and not log.is_cdc:
            if after is None:
                after = FileSlice(partition, file_id, log.instant, None)
            logs = (*after.log_files, LogFile(log, size_bytes))
            after = replace(after, log_files=tuple(sorted(logs, key=lambda log: log.name.order)))
    return after


def _log_instants(stats: Iterable[WriteStat]) -> set[str]:
    """The instants that the names of logs carry."""
    logs = (LogFileName.parse((stat.path or "").rpartition("/")[2]) for stat in stats)
    return {log.instant for log in logs if log is not None}


def _with_doubled(snapshot: Snapshot, made: FileSlice) -> FileSlice:
    """The slice that a resizing made, with the logs that writers put beside it meanwhile."""
    logs = list(made.log_files)
    for file in snapshot.listing.files(made.partition):
        name = LogFileName.parse(file.name)
        if name is not None and (name.file_id, name.instant) == (made.file_id, made.base_instant) and not name.is_cdc:
            logs.append(LogFile(name, file.size_bytes))
    return replace(made, log_files=tuple(sorted(logs, key=lambda log: log.name.order)))


def slices_after(snapshot: Snapshot, partition: str, changed: Iterable[ChangedGroup]) -> list[FileSlice]:
    """The newest slices of a partition, with the changed groups instead of what they were."""
    slices = {file_slice.file_id: file_slice for file_slice in snapshot.slices(partition)}
    for group in changed:
        if group.partition == partition:
            slices.pop(group.file_id, None)
            if group.after is not None:
                slices[group.file_id] = group.after
    return [slices[file_id] for file_id in sorted(slices)]


def schema_after(snapshot: Snapshot, metadata: CommitMetadata) -> pa.Schema:
    """The columns of rows once the action is complete, meta fields first.

    A service on a table whose columns have numbers states those by which its files are read, not those of today.
    """
    text = metadata.extra_metadata.get(SCHEMA)
    if not text or (LATEST_SCHEMA in metadata.extra_metadata and metadata.operation_type in SERVICES):
        return snapshot.schema_with_meta
    own = arrow_from_avro(text)
    meta = [pa.field(name, pa.string()) for name in META_FIELDS] if snapshot.config.has_meta_fields else []
    return pa.schema([*meta, *(field for field in own if field.name not in META_FIELDS)])


def evolution_after(snapshot: Snapshot, metadata: CommitMetadata) -> Evolution | None:
    """How files are read whose columns had other names, once the action is complete. None if none had.

    An action on a table whose columns have numbers states them. No request for another.
    """
    latest = metadata.extra_metadata.get(LATEST_SCHEMA)
    if latest is None:
        return None
    history = snapshot.history
    if history is None or metadata.operation_type in SERVICES:
        return snapshot.evolution
    newest = parse_latest(latest)
    return Evolution.of(history if newest.since <= history.schemas[0].since else history.with_newest(newest))


def reading_after(
    snapshot: Snapshot, requested: str, action: str, evolution: Evolution | None
) -> LogReading | None:  # fmt: skip
    """How logs are read as of right after the action at `requested`; None for a table without logs."""
    reading = log_reading(snapshot, timeline_after(snapshot.timeline, requested, action))
    return None if reading is None else reading.with_evolution(evolution)


def timeline_after(timeline: Timeline, requested: str, action: str) -> Timeline:
    """The timeline as it will be when the pending action at `requested` is complete."""
    done = Instant(requested, action, "COMPLETED", max(requested, timeline.newest or requested))
    others = (instant for instant in timeline if instant.requested != requested)
    return replace(timeline, instants=tuple(sorted((*others, done), key=lambda instant: instant.requested)))


def may_change_keys(before: FileSlice | None, after: FileSlice | None, stats: Iterable[WriteStat]) -> bool:
    """Whether writes with these statements may have added keys to a group, or taken some away.

    For base files the writer's counts tell. In a log, a key may come back that an older log deleted.
    """
    if before is None or after is None:
        return True
    return any(stat.is_log or stat.num_inserts or stat.num_deletes or not stat.num_writes for stat in stats)


def has_only_updates(before: FileSlice | None, after: FileSlice | None, stats: Iterable[WriteStat]) -> bool:
    """Whether writes that look keys up only logged new versions of rows that the group had already."""
    if before is None or after is None or before.base_file != after.base_file:
        return False
    return all(stat.is_log and not stat.num_inserts and not stat.num_deletes for stat in stats)
