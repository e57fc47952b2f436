"""What changed in a range of commits: which instants, which files, which rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa

from pyhudi.errors import NotFound, Unsupported
from pyhudi.format.instants import EARLIEST_WORDS, instant_from_user
from pyhudi.format.names import join
from pyhudi.model.instant import Instant
from pyhudi.table.cleaned import paths_being_cleaned
from pyhudi.table.commits import read_commit, written_files
from pyhudi.table.predicate import Predicate
from pyhudi.table.read_plan import PlannedFile, ReadPlan, make_plan, partitions_that_can_hold, planned_slice
from pyhudi.table.shown_columns import AS_STORED, ShownColumns
from pyhudi.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CommitRange:
    """`(start, end]` as instant texts; None is the beginning, or the latest."""

    start: str | None
    end: str | None

    def covers(self, time: str) -> bool:
        return (self.start is None or time > self.start) and (self.end is None or time <= self.end)

    def __str__(self) -> str:
        return f"({self.start or 'earliest'}, {self.end or 'latest'}]"


def commit_range(
    snapshot: Snapshot, start: str | date | datetime | None, end: str | date | datetime | None
) -> CommitRange:
    """The range that a caller's bounds stand for. Raises: Invalid for a text that is no time."""
    is_earliest = start is None or (isinstance(start, str) and start.lower() in EARLIEST_WORDS)
    first = None if is_earliest else instant_from_user(start, snapshot.zone, what="start")  # type: ignore[arg-type]
    last = None if end is None else instant_from_user(end, snapshot.zone, what="end")
    return CommitRange(first, last)


def instants_in(snapshot: Snapshot, span: CommitRange) -> list[Instant]:
    """Completed writes in the range, archived ones included, by requested time. The range is of completion times on
    layout 2, of requested times on layout 1.

    Spec: format/timeline.md section 8.
    """
    by_completion = snapshot.config.layout.has_completion_times
    chosen = []
    for instant in (*_archived_in(snapshot, span), *snapshot.timeline.completed_writes):
        time = instant.completed if by_completion else instant.requested
        assert time is not None
        if span.covers(time):
            chosen.append(instant)
    return sorted(chosen, key=lambda instant: instant.requested)


def _archived_in(snapshot: Snapshot, span: CommitRange) -> tuple[Instant, ...]:
    """Archived writes that may lie in the range; the history is left alone where none can.

    Requested times bound what is archived: all of them lie before the active timeline. Completion times do not:
    a slow write may have completed after later ones, so that the history has to be asked.
    """
    timeline = snapshot.timeline
    if timeline.start is None:
        return ()
    if snapshot.config.layout.has_completion_times:
        return timeline.archived_writes(completed_after=span.start, requested_until=span.end)
    if span.start is not None and span.start >= timeline.start:
        return ()
    return timeline.archived_writes(requested_from=span.start, requested_until=span.end)


def plan_incremental(
    snapshot: Snapshot,
    span: CommitRange,
    *,
    schema: pa.Schema,
    predicate: Predicate | None,
    where: str | None,
    shown: ShownColumns = AS_STORED,
) -> ReadPlan:
    """Rows that a commit of the range wrote last, as they stood at its end.

    Of each file group the range's last file is read and its rows chosen by `_hoodie_commit_time`;
    groups that the range replaced are left out. Where such a file was cleaned away, the newest later
    file of its group stands in: rows that were written again after the range are then missing.

    Spec: format/queries.md section 2. Raises: Unsupported when the table has no meta fields; NotFound where not even a
    later file is left.
    """
    if not snapshot.config.has_meta_fields:
        raise Unsupported(
            "incremental: the table has hoodie.populate.meta.fields=false, so its rows carry no commit time"
        )
    chosen = instants_in(snapshot, span)
    latest = _latest_files(snapshot, chosen)
    partitions = sorted({file.partition for file in latest.values()})
    kept = set(partitions_that_can_hold(snapshot, predicate, partitions, shown))
    wanted = {key: file for key, file in latest.items() if file.partition in kept}
    then = snapshot.at(chosen[-1].requested) if chosen else snapshot
    has_logs = snapshot.config.table_type == "MERGE_ON_READ"
    files = _slices_at(then, wanted, snapshot) if has_logs else _present(snapshot, wanted)
    return make_plan(
        snapshot, files, schema=schema, predicate=predicate, where=where, query=f"incremental {span}",
        commit_times=frozenset(i.requested for i in chosen), partitions=len(partitions),
        partitions_pruned=len(partitions) - len(kept), files_pruned=0, shown=shown, logs_as_of=then.timeline,
    )  # fmt: skip


def _latest_files(snapshot: Snapshot, chosen: Sequence[Instant]) -> dict[tuple[str, str], PlannedFile]:
    """By partition and file id the last file that these writes wrote, without groups that they replaced."""
    latest: dict[tuple[str, str], PlannedFile] = {}
    for instant in chosen:
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                latest.pop((partition, file_id), None)
        for file in written_files(metadata):
            if not file.path.endswith(".cdc"):
                latest[file.partition, file.file_id] = PlannedFile(file.path, file.partition, file.size_bytes)
    return latest


def _slices_at(then: Snapshot, latest: Mapping[tuple[str, str], PlannedFile], now: Snapshot) -> list[PlannedFile]:
    """The slices of these file groups as a reader of then sees them, to be merged with their logs.

    Where such a slice was cleaned away, the newest one of its group stands in, as for base files; not an older one that
    a savepoint kept, which does not have the last file of the range.
    """
    files: list[PlannedFile] = []
    for partition, kept in _kept_paths(now, latest):
        newest = {piece.file_id: planned_slice(piece, with_logs=True) for piece in now.slices(partition)}
        past = {piece.file_id: planned_slice(piece, with_logs=True) for piece in then.slices(partition)}
        for file_id in sorted(file_id for of, file_id in latest if of == partition):
            found = past.get(file_id)
            if found is None or not kept.issuperset([*found.paths, latest[partition, file_id].path]):
                found = newest.get(file_id)
            if found is None:
                raise _gone(partition, file_id)
            files.append(found)
    return files


def _present(snapshot: Snapshot, latest: Mapping[tuple[str, str], PlannedFile]) -> list[PlannedFile]:
    """The files, each replaced by the newest of its group where it was cleaned away."""
    files: list[PlannedFile] = []
    for partition, kept in _kept_paths(snapshot, latest):
        wanted = {file_id: file for (of, file_id), file in latest.items() if of == partition}
        missing = {file_id for file_id, file in wanted.items() if file.path not in kept}
        files += [file for file_id, file in wanted.items() if file_id not in missing]
        if missing:
            files += _stand_ins(snapshot, partition, missing)
    return files


def _kept_paths(snapshot: Snapshot, latest: Mapping[tuple[str, str], PlannedFile]) -> Iterator[tuple[str, set[str]]]:
    """Each partition of these files, in order, with the paths in it that no clean took away or is taking."""
    if not latest:
        return
    going = paths_being_cleaned(snapshot)
    for partition in sorted({partition for partition, _ in latest}):
        yield partition, {join(partition, file.name) for file in snapshot.listing.files(partition)} - going


def _stand_ins(snapshot: Snapshot, partition: str, missing: set[str]) -> list[PlannedFile]:
    """The newest files of file groups whose files of the range were cleaned away.

    Raises: NotFound for a group that was replaced after the range, and is gone: its rows are nowhere.
    """
    newest = {piece.file_id: piece.base_file for piece in snapshot.slices(partition) if piece.base_file is not None}
    gone = sorted(missing - newest.keys())
    if gone:
        raise _gone(partition, gone[0])
    found = (newest[file_id] for file_id in sorted(missing))
    return [PlannedFile(join(partition, file.name.format()), partition, file.size_bytes) for file in found]


def _gone(partition: str, file_id: str) -> NotFound:
    return NotFound(
        f"incremental: the files of file group '{file_id}' in partition '{partition}', which the range wrote, were "
        "replaced after it and cleaned away; let the range end later, or take a snapshot"
    )
