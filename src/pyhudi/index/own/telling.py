"""Telling an index of one's own what it has missed, so that it is true to a snapshot.

The caller holds the table's guard. So nobody completes a write meanwhile, and the states of an index follow one
another.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import REWRITES, CommitMetadata, WriteStat
from pyhudi.index.own.known import Known
from pyhudi.index.own.opening import OpenIndex
from pyhudi.index.own.protocol import GONE, GROUPS, LOCATIONS, LocationChanges
from pyhudi.metadata.derive.changed_groups import ChangedGroup, has_only_updates, may_change_keys
from pyhudi.metadata.derive.keys import RowReading, key_changes, located_keys
from pyhudi.table.read.plan import log_reading
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline

log = logging.getLogger("pyhudi")

Group: TypeAlias = tuple[str, str]
"""Partition path and file id."""

_SLICES_TOGETHER = 32


def bring_up_to_date(
    index: OpenIndex, snapshot: Snapshot, executor: Executor, readers: Executor, *, own: str | None = None
) -> None:
    """Tell an index what it has missed, or build it anew. Does nothing where it is true to the snapshot.

    `executor`: reads the files of missed commits. `readers`: read those of the whole table, where the index is built.
    `own`: the requested time of a write that just completed in this process, and that looked its keys up: what it
    counts as updates are updates.
    Cost: a get for each write that was missed, and the key columns of file groups whose keys it may have changed, as
    they were and as they are; a build reads the key columns of the whole table.
    Memory: the keys that are new or gone; in a build those of a few file groups.
    """
    stated = Known.parse(index.state())
    now = Known.of(snapshot.timeline)
    missed = None if stated is None else stated.missed(snapshot.timeline)
    if stated is None or missed is None:
        _build(index, snapshot, now, readers)
    elif stated != now:
        _tell(index, snapshot, stated, missed, now, executor, own=own)


def _build(index: OpenIndex, snapshot: Snapshot, now: Known, readers: Executor) -> None:
    log.info("%s: its own index is built from the files", snapshot.config.name)
    index.clear()
    slices = [one for partition in snapshot.listing.partitions() for one in snapshot.slices(partition)]
    reading, newest = _reading(snapshot), max(now.writes, default="")

    def instant_of(one: FileSlice) -> str:
        return one.base_instant if snapshot.timeline.is_committed(one.base_instant) else newest

    def tables() -> Iterator[pa.Table]:
        for start in range(0, len(slices), _SLICES_TOGETHER):
            some = slices[start : start + _SLICES_TOGETHER]
            located = pa.concat_tables(located_keys(reading, some, readers))
            yield _with_instants(located, {(one.partition, one.file_id): instant_of(one) for one in some})

    index.update(LocationChanges(now.text, GROUPS.empty_table(), GONE.empty_table(), _reader(tables())))


def _tell(
    index: OpenIndex, snapshot: Snapshot, stated: Known, missed: Sequence[Instant], now: Known, executor: Executor,
    *, own: str | None,
) -> None:  # fmt: skip
    touched = _touched(snapshot, missed)
    before = replace(snapshot, timeline=_hidden(snapshot, missed))
    parts = _parts(before, snapshot, touched, files_may_be_gone=stated.may_have_lost_files(now), only_own=own)
    changed = key_changes(_reading(snapshot), parts.compared, executor, before=_reading(before))
    told_anew = located_keys(_reading(snapshot), parts.told_anew, executor)
    located = _with_instants(
        pa.concat_tables([changed.located, *told_anew]), {group: touch.newest for group, touch in touched.items()}
    )

    gone = changed.gone.rename_columns(GONE.names).cast(GONE)
    emptied = pa.table([list(names) for names in zip(*parts.emptied, strict=True)] or [[], []], schema=GROUPS)
    index.update(LocationChanges(now.text, emptied, gone, _reader([located])))


@dataclass(slots=True)
class _Touch:
    """What missed writes did to a file group. `newest`: the latest of them. `rewritten`: a compaction is among them."""

    newest: str
    stats: list[WriteStat]
    writes: set[str]
    rewritten: bool = False


def _touched(snapshot: Snapshot, missed: Iterable[Instant]) -> dict[Group, _Touch]:
    """The file groups whose keys missed writes may have changed. Compactions alone change none."""
    found: dict[Group, _Touch] = {}
    rewritten: set[Group] = set()
    for instant in missed:
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        groups = set(_groups_of(metadata))
        if metadata.operation_type in REWRITES:
            rewritten |= groups
            continue
        for group in groups:
            touch = found.setdefault(group, _Touch(instant.requested, [], set()))
            touch.newest = max(touch.newest, instant.requested)
            touch.writes.add(instant.requested)
            touch.stats += [
                stat for stat in metadata.partition_to_write_stats.get(group[0], ()) if stat.file_id == group[1]
            ]
    for group in rewritten & found.keys():
        found[group].rewritten = True
    return found


def _groups_of(metadata: CommitMetadata) -> Iterator[Group]:
    for partition, stats in metadata.partition_to_write_stats.items():
        yield from ((partition, stat.file_id) for stat in stats if stat.path and stat.file_id)
    for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
        yield from ((partition, file_id) for file_id in file_ids)


def _hidden(snapshot: Snapshot, missed: Collection[Instant]) -> Timeline:
    """The timeline as it was before these writes completed."""
    timeline, hidden = snapshot.timeline, set(missed)
    pending = (replace(i, state="INFLIGHT", completed=None) if i in hidden else i for i in timeline)
    return replace(timeline, instants=tuple(pending))


@dataclass(frozen=True, slots=True)
class _Parts:
    """How the keys of touched file groups are told.

    `emptied`: groups whose keys are forgotten first. `compared`: as they were and as they are. `told_anew`: slices all
    of whose keys are told, after the group was emptied.
    """

    emptied: list[Group]
    compared: list[ChangedGroup]
    told_anew: list[FileSlice]


def _parts(
    before: Snapshot, after: Snapshot, touched: dict[Group, _Touch], *, files_may_be_gone: bool, only_own: str | None
) -> _Parts:
    """A group is told anew where its earlier rows cannot be told: a clean may have taken files of before, or a
    compaction put missed logs into a base file that counts as older than they are.
    """
    by_partition: dict[str, set[str]] = {}
    for partition, file_id in touched:
        by_partition.setdefault(partition, set()).add(file_id)
    after.listing.expect(sorted(by_partition))

    parts = _Parts([], [], [])
    for partition, file_ids in sorted(by_partition.items()):
        now = {one.file_id: one for one in after.slices(partition, file_ids)}
        then = {one.file_id: one for one in before.slices(partition, file_ids)}
        for file_id in sorted(file_ids):
            touch, was, is_now = touched[partition, file_id], then.get(file_id), now.get(file_id)
            if is_now is None:
                parts.emptied.append((partition, file_id))
            elif files_may_be_gone or touch.rewritten:
                parts.emptied.append((partition, file_id))
                parts.told_anew.append(is_now)
            else:
                only_updates = touch.writes == {only_own} and has_only_updates(was, is_now, touch.stats)
                may_change = may_change_keys(was, is_now, touch.stats)
                parts.compared.append(ChangedGroup(partition, file_id, was, is_now, may_change, only_updates))
    return parts


def _reading(snapshot: Snapshot) -> RowReading:
    stored = snapshot.schema_with_meta
    if RECORD_KEY not in stored.names:  # the keys of such tables are computed
        stored = pa.schema([pa.field(RECORD_KEY, pa.string()), *stored])
    return RowReading(snapshot.storage, stored, log_reading(snapshot), snapshot.as_written)


def _with_instants(located: pa.Table, groups: Mapping[Group, str]) -> pa.Table:
    """Keys as `LOCATIONS`. `located`: as `LOCATED`. `groups`: the instant of each file group."""
    names = pc.binary_join_element_wise(located.column("partition"), located.column("file_id"), "/")
    own = pa.array([f"{partition}/{file_id}" for partition, file_id in groups], pa.string())
    instants = pa.array(list(groups.values()), pa.string()).take(pc.index_in(names, value_set=own))
    return located.append_column("instant", instants).rename_columns(LOCATIONS.names).cast(LOCATIONS)


def _reader(tables: Iterable[pa.Table]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(LOCATIONS, (batch for table in tables for batch in table.to_batches()))
