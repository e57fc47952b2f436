"""What changed in a range of commits: which instants, which files, which rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, TypeAlias

import pyarrow as pa

from pyhudi.errors import Invalid, NotFound, Unsupported
from pyhudi.format.names import BaseFileName, join
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.instant_text import EARLIEST_WORDS, bound_from_user
from pyhudi.format.timeline.records import REWRITES
from pyhudi.options.read_options import FALLBACK
from pyhudi.predicate import Predicate
from pyhudi.table.read.plan import PlannedFile, ReadPlan, make_plan, partitions_that_can_hold, planned_slice
from pyhudi.table.read.shown_columns import AS_STORED, ShownColumns
from pyhudi.table.view.cleaned import paths_being_cleaned
from pyhudi.table.view.commits import read_commit, written_files
from pyhudi.table.view.snapshot import Snapshot

OnCleaned: TypeAlias = Literal["error", "rows"]
"""What an incremental query does if files of its range were cleaned away: refuse, or give the rows that are left."""


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The instants after `start`, up to and including `end`. None: from the beginning, or up to the latest."""

    start: str | None
    end: str | None

    def covers(self, time: str) -> bool:
        return (self.start is None or time > self.start) and (self.end is None or time <= self.end)

    def __str__(self) -> str:
        return f"({self.start or 'earliest'}, {self.end or 'latest'}]"


def commit_range(
    snapshot: Snapshot,
    start: str | date | datetime | None,
    end: str | date | datetime | None,
    *,
    query: str = "incremental",
) -> CommitRange:
    """The range that a caller's bounds stand for. `query`: names it in errors. Raises: Invalid for a text that is no
    time."""
    is_earliest = start is None or (isinstance(start, str) and start.lower() in EARLIEST_WORDS)
    first = None if is_earliest else bound_from_user(start, snapshot.zone, what="start")  # type: ignore[arg-type]
    last = None if end is None else bound_from_user(end, snapshot.zone, what="end")
    if first is not None and last is not None and first > last:
        raise Invalid(f"{query}: expected a start at or before the end, found start='{start}', end='{end}'")
    return CommitRange(first, last)


def instants_in(snapshot: Snapshot, span: CommitRange) -> list[Instant]:
    """Completed writes in the range, archived ones included, sorted by requested time.

    The range means completion times on timeline layout 2, requested times on layout 1.
    Spec: format/timeline.md section 8.
    """
    chosen = []
    for instant in (*_archived_in(snapshot, span), *snapshot.timeline.completed_writes):
        if span.covers(_time(snapshot, instant)):
            chosen.append(instant)
    return sorted(chosen, key=lambda instant: instant.requested)


def _archived_in(snapshot: Snapshot, span: CommitRange) -> tuple[Instant, ...]:
    """Archived writes that may lie in the range. The archive is not read if none can.

    A requested time may rule the archive out. A completion time cannot: a slow write that is archived may have
    completed after writes that are active.
    """
    timeline = snapshot.timeline
    by_completion = snapshot.config.layout.has_completion_times
    if not timeline.may_have_archived_after(None if by_completion else span.start):
        return ()
    if by_completion:
        return timeline.archived_writes(completed_after=span.start, requested_until=span.end)
    return timeline.archived_writes(requested_from=span.start, requested_until=span.end)


def plan_incremental(
    snapshot: Snapshot,
    span: CommitRange,
    *,
    schema: pa.Schema,
    predicate: Predicate | None,
    where: str | None,
    shown: ShownColumns = AS_STORED,
    on_cleaned: OnCleaned = "error",
) -> ReadPlan:
    """Plans to read the rows whose last writer in the table, at the range's end, is a commit of the range.

    For each file group, the last file that the range wrote is read, and rows are chosen by `_hoodie_commit_time`.
    File groups that a write of the range replaced are left out.

    `on_cleaned`: what happens if such a file was cleaned away. With `rows`, the newest file of its group is read
    instead. Then rows that were rewritten after the range are missing, and so are the rows of a group that was replaced
    since. With `error`, a range that would miss rows is refused. A file that only compactions followed misses none.

    Spec: format/queries.md section 2. Raises: Unsupported when the table has no meta fields; NotFound for a range that
    is refused, with the earliest start that can be answered.
    """
    if not snapshot.config.has_meta_fields:
        raise Unsupported(
            "incremental: the table has hoodie.populate.meta.fields=false, so its rows carry no commit time"
        )

    chosen = instants_in(snapshot, span)
    latest = _latest_files(snapshot, chosen)
    then = _at_end_of(snapshot, span, chosen)
    has_logs = snapshot.config.table_type == "MERGE_ON_READ"
    cleaned = _cleaned_groups(then if has_logs else None, latest, snapshot)
    if cleaned and on_cleaned == "error":
        _refuse_lost_rows(snapshot, span, {group: latest[group] for group in cleaned})

    partitions = sorted({partition for partition, _ in latest})
    kept = set(partitions_that_can_hold(snapshot, predicate, partitions, shown))
    wanted = {group: last for group, last in latest.items() if group[0] in kept}
    files = _slices_at(then, wanted, cleaned, snapshot) if has_logs else _present(snapshot, wanted, cleaned)
    return make_plan(
        snapshot, files, schema=schema, predicate=predicate, where=where, query=f"incremental {span}",
        commit_times=frozenset(i.requested for i in chosen), partitions=len(partitions),
        partitions_pruned=len(partitions) - len(kept), files_pruned=0, shown=shown, logs_as_of=then.timeline,
    )  # fmt: skip


def _at_end_of(snapshot: Snapshot, span: CommitRange, chosen: Sequence[Instant]) -> Snapshot:
    """The table as it was at the end of a range. A write that began in the range may have completed after it."""
    if span.end is None or not chosen:
        return snapshot
    if snapshot.config.layout.has_completion_times:
        return snapshot.completed_by(span.end)
    return snapshot.at(chosen[-1].requested)


@dataclass(frozen=True, slots=True)
class _LastFile:
    """The last file of a file group that the range wrote, and the instant that wrote it."""

    file: PlannedFile
    instant: Instant


Group: TypeAlias = tuple[str, str]
"""Partition path and file id."""


def _latest_files(snapshot: Snapshot, chosen: Sequence[Instant]) -> dict[Group, _LastFile]:
    """The last file that these writes wrote of each file group. Groups that one of them replaced are left out.

    A group that was only compacted has nothing new. Seen: a log compaction of 1.2.0 stamps rows of before with its own
    instant.
    """
    latest: dict[Group, _LastFile] = {}
    for instant in chosen:
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                latest.pop((partition, file_id), None)

        is_rewrite = metadata.operation_type in REWRITES
        for file in written_files(metadata):
            if not file.path.endswith(".cdc") and not (is_rewrite and (file.partition, file.file_id) not in latest):
                planned = _planned(snapshot, file.path, file.partition, file.size_bytes)
                latest[file.partition, file.file_id] = _LastFile(planned, instant)
    return latest


def _planned(snapshot: Snapshot, path: str, partition: str, size_bytes: int) -> PlannedFile:
    """A base file alone."""
    base = BaseFileName.parse(path.rpartition("/")[2])
    source = None if base is None else snapshot.source_of(partition, base)
    return PlannedFile(path, partition, size_bytes, source=source)


def _cleaned_groups(then: Snapshot | None, latest: Mapping[Group, _LastFile], now: Snapshot) -> set[Group]:
    """The file groups that lost a file to a clean: one that a reader at the end of the range would have read.

    Files that a pending clean is about to delete count as lost. `then`: the table at the end of the range, to find the
    logs of slices. None: the table has no logs.
    """
    cleaned: set[Group] = set()
    for partition, kept in _kept_paths(now, latest):
        past = {} if then is None else _slices(then, partition)
        for group in (group for group in latest if group[0] == partition):
            needed = [latest[group].file.path]
            if then is not None:
                file_id = group[1]
                needed = [*past[file_id].paths, *needed] if file_id in past else [""]
            if not kept.issuperset(needed):
                cleaned.add(group)
    return cleaned


def _refuse_lost_rows(snapshot: Snapshot, span: CommitRange, cleaned: Mapping[Group, _LastFile]) -> None:
    """Raises: NotFound if a row of the range may be in no file any more: its group was written again or replaced.

    Requests: a get for each write after the range.
    """
    changed: set[Group] = set()
    for instant in instants_in(snapshot, CommitRange(span.end, None)) if span.end is not None else ():
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        if metadata.operation_type not in REWRITES:
            changed |= {(file.partition, file.file_id) for file in written_files(metadata)}
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            changed |= {(partition, file_id) for file_id in file_ids}

    lost = {group: last for group, last in cleaned.items() if group in changed}
    if not lost:
        return
    partition, file_id = min(lost)
    start = max(_time(snapshot, last.instant) for last in lost.values())
    raise NotFound(
        f"incremental {span}: files that the range wrote were cleaned away after their rows had changed again, such "
        f"as those of file group '{file_id}' in partition '{partition}'; the earliest start that can be answered with "
        f"this end is '{start}'; begin there, let the range end later, or take what is left with on_cleaned='rows' "
        f"(on Spark the option '{FALLBACK}')"
    )


def _time(snapshot: Snapshot, instant: Instant) -> str:
    """The time of an instant that is compared with a range: completion time on layout 2, requested time on layout 1."""
    time = instant.completed if snapshot.config.layout.has_completion_times else instant.requested
    assert time is not None
    return time


def _slices(snapshot: Snapshot, partition: str) -> dict[str, PlannedFile]:
    """The newest slices of a partition with their logs, by file id."""
    planned = (
        (file_slice.file_id, planned_slice(file_slice, with_logs=True)) for file_slice in snapshot.slices(partition)
    )
    return {file_id: file for file_id, file in planned if file is not None}


def _slices_at(
    then: Snapshot, latest: Mapping[Group, _LastFile], cleaned: set[Group], now: Snapshot
) -> list[PlannedFile]:
    """The slices of these file groups, with logs, as a reader at the end of the range sees them.

    A slice that was cleaned away is replaced by the newest slice of its group, if there is one. An older slice that a
    savepoint kept cannot stand in: it lacks the last file of the range.
    """
    files: list[PlannedFile] = []
    for partition in sorted({partition for partition, _ in latest}):
        file_ids = sorted(group[1] for group in latest if group[0] == partition)
        past = _slices(then, partition)
        newest = _slices(now, partition) if any((partition, file_id) in cleaned for file_id in file_ids) else {}
        for file_id in file_ids:
            found = newest.get(file_id) if (partition, file_id) in cleaned else past[file_id]
            if found is not None:
                files.append(found)
    return files


def _present(snapshot: Snapshot, latest: Mapping[Group, _LastFile], cleaned: set[Group]) -> list[PlannedFile]:
    """The files. One that was cleaned away is replaced by the newest base file of its group, if there is one."""
    files = [last.file for group, last in latest.items() if group not in cleaned]
    for partition in sorted({partition for partition, file_id in latest if (partition, file_id) in cleaned}):
        for file_slice in snapshot.slices(partition):
            if file_slice.base_file is not None and (partition, file_slice.file_id) in cleaned & latest.keys():
                name = file_slice.base_file.name.format()
                files.append(_planned(snapshot, join(partition, name), partition, file_slice.base_file.size_bytes))
    return files


def _kept_paths(snapshot: Snapshot, latest: Mapping[Group, _LastFile]) -> Iterator[tuple[str, set[str]]]:
    """Each partition of these files, in order, with the paths in it that no clean deleted or is about to delete."""
    if not latest:
        return
    going = paths_being_cleaned(snapshot)
    for partition in sorted({partition for partition, _ in latest}):
        yield partition, {join(partition, file.name) for file in snapshot.listing.files(partition)} - going
