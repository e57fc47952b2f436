"""What changed in a range of commits: which instants, which files, which rows."""

from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa

from pyhudi.errors import Unsupported
from pyhudi.format.instants import EARLIEST_WORDS, instant_from_user
from pyhudi.format.names import join
from pyhudi.model.instant import Instant
from pyhudi.storage.protocol import Storage
from pyhudi.table.commits import read_commit, written_files
from pyhudi.table.predicate import Predicate
from pyhudi.table.read_plan import PlannedFile, ReadPlan, make_plan, partition_can_hold
from pyhudi.table.snapshot import Snapshot
from pyhudi.timeline.layout import TimelineLayout


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
    """Completed writes in the range, by completion time on layout 2, by requested time on layout 1.

    Spec: format/timeline.md section 8.
    """
    by_completion = snapshot.config.layout.has_completion_times
    chosen = []
    for instant in snapshot.timeline.completed_writes:
        time = instant.completed if by_completion else instant.requested
        assert time is not None
        if span.covers(time):
            chosen.append(instant)
    return chosen


def plan_incremental(
    snapshot: Snapshot,
    span: CommitRange,
    *,
    schema: pa.Schema,
    predicate: Predicate | None,
    where: str | None,
) -> ReadPlan:
    """Rows that a commit of the range wrote last, as they stood at its end.

    Of each file group the range's last file is read and its rows chosen by `_hoodie_commit_time`;
    groups that the range replaced are left out. Where such a file was cleaned away, the newest later
    file of its group stands in: rows that were written again after the range are then missing.

    Spec: format/queries.md section 2. Raises: Unsupported when the range reaches into the archived
    timeline or the table has no meta fields.
    """
    if not snapshot.config.has_meta_fields:
        raise Unsupported(
            "incremental: the table has hoodie.populate.meta.fields=false, so its rows carry no commit time"
        )
    _refuse_archived(snapshot, span)
    chosen = instants_in(snapshot, span)
    latest: dict[tuple[str, str], PlannedFile] = {}
    for instant in chosen:
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                latest.pop((partition, file_id), None)
        for file in written_files(metadata):
            if not file.path.endswith(".cdc"):
                latest[file.partition, file.file_id] = PlannedFile(file.path, file.partition, file.size_bytes)
    partitions = sorted({file.partition for file in latest.values()})
    kept = {p for p in partitions if partition_can_hold(snapshot, predicate, p)}
    files = _present(snapshot, {key: file for key, file in latest.items() if file.partition in kept})
    return make_plan(
        snapshot, files, schema=schema, predicate=predicate, where=where, query=f"incremental {span}",
        commit_times=frozenset(i.requested for i in chosen), partitions=len(partitions),
        partitions_pruned=len(partitions) - len(kept), files_pruned=0,
    )  # fmt: skip


def _present(snapshot: Snapshot, latest: dict[tuple[str, str], PlannedFile]) -> list[PlannedFile]:
    """The files, each replaced by the newest of its group where it was cleaned away."""
    files: list[PlannedFile] = []
    for partition in sorted({partition for partition, _ in latest}):
        names = {join(partition, file.name) for file in snapshot.listing.files(partition)}
        wanted = {file_id: file for (of, file_id), file in latest.items() if of == partition}
        missing = {file_id for file_id, file in wanted.items() if file.path not in names}
        files += [file for file_id, file in wanted.items() if file_id not in missing]
        if missing:
            files += [
                PlannedFile(join(partition, piece.base_file.name.format()), partition, piece.base_file.size_bytes)
                for piece in snapshot.slices(partition)
                if piece.file_id in missing and piece.base_file is not None
            ]
    return files


def _refuse_archived(snapshot: Snapshot, span: CommitRange) -> None:
    writes = snapshot.timeline.completed_writes
    first = writes[0] if writes else None
    if first is None or not has_history(snapshot.storage, snapshot.config.layout):
        return
    if span.start is None or span.start < first.requested:
        raise Unsupported(
            f"incremental {span}: older commits than '{first.requested}' are archived, and this release reads the "
            "active timeline only; start at or after that time, or take a snapshot"
        )


def has_history(storage: Storage, layout: TimelineLayout) -> bool:
    """Whether instants have been archived. One list request."""
    return any(True for _ in storage.list(layout.history_folder))
