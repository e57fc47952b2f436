"""Which files tell what changed in a range of commits: one piece for each file group that each write changed.

Spec: format/queries.md section 3. A range holds the writes that were requested after its start, up to its end. So it is
on every table version, and the state before and after each write is what time travel shows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa

from pyhudi.errors import NotFound, Unsupported
from pyhudi.format.log.changes import ChangeMode
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELDS, RECORD_KEY
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import COMPACTION, MOVES, REWRITES, CommitMetadata, WriteStat
from pyhudi.predicate import Predicate
from pyhudi.table.changes.incremental import CommitRange
from pyhudi.table.changes.turned_order import TurnedOrder
from pyhudi.table.read.plan import PlannedFile, ReadPlan, log_reading, make_plan, planned_slice
from pyhudi.table.view.cleaned import group_and_instant, paths_being_cleaned, read_cleans_since
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.pending import FileGroup, read_clustering_plans
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline


class PieceKind(StrEnum):
    """How the changes of a file group are found.

    REPLACED: each row of the slice before was deleted. INSERTED: each row of the new base file is new. LOGGED: change
    logs tell. APPENDED: log files name the keys. REWRITTEN: the rows before and after are compared.
    """

    REPLACED = "replaced"
    INSERTED = "inserted"
    LOGGED = "logged"
    APPENDED = "appended"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePiece:
    """What one write did to one file group, and the files that tell it.

    `before`, `after`: the file slice before and after the write; None where there is none, or where it is not needed.
    `logs`: path and size of the change logs (LOGGED) or of the log files with the keys (APPENDED). `log_instants`: the
    writes whose blocks in these log files name keys: the write itself, or those that a compaction put above others.
    """

    kind: PieceKind
    requested: str
    completed: str
    partition: str
    file_id: str
    before: PlannedFile | None = None
    after: PlannedFile | None = None
    logs: tuple[tuple[str, int], ...] = ()
    log_instants: frozenset[str] = frozenset()

    @property
    def size_bytes(self) -> int:
        """Bytes of the files that may be read."""
        slices = sum(file.size_bytes for file in (self.before, self.after) if file is not None)
        return slices + sum(size for _, size in self.logs)

    @property
    def paths(self) -> list[str]:
        slices = [path for file in (self.before, self.after) if file is not None for path in file.paths]
        return list(dict.fromkeys([*(path for path, _ in self.logs), *slices]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """What to read for the changes of a range.

    `images`: the columns of the rows before and after. `rows`: how slices are read: the columns of the images and of
    the predicate, key and commit time. `predicate`: a change is kept if its row before or its row after meets it.
    """

    pieces: tuple[ChangePiece, ...]
    images: pa.Schema
    rows: ReadPlan
    predicate: Predicate | None
    span: CommitRange

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        image = pa.struct(list(self.images))
        texts = [pa.field(name, pa.string()) for name in ("op", "requested", "completed")]
        return pa.schema([*texts, pa.field("before", image), pa.field("after", image)])


def plan_changes(
    snapshot: Snapshot, span: CommitRange, *, images: pa.Schema, predicate: Predicate | None
) -> ChangePlan:
    """Plans to read the changes of a range.

    Order of the pieces: by requested time; of a write, groups that it replaced come first.
    Requests: a get for each write of the range, and what `TurnedOrder` asks for where the range has a compaction. The
    listing of a partition is used for all writes.
    Raises: Unsupported when the table has no meta fields. NotFound where files that tell a change were cleaned away,
    with the earliest start that can be answered.
    """
    if not snapshot.config.has_meta_fields:
        raise Unsupported(
            "cdc: the table has hoodie.populate.meta.fields=false, so its rows carry neither key nor time"
        )

    planning = _Planning(snapshot)
    pieces: list[ChangePiece] = []
    lost: list[tuple[str, str]] = []
    for instant in _writes_in(snapshot, span):
        for piece, missing in planning.of_write(instant):
            pieces.append(piece)
            if missing is not None:
                lost.append((instant.requested, missing))
    if lost:
        requested, path = lost[-1]
        raise NotFound(
            f"cdc {span}: files that tell a change were cleaned away, such as '{path}'; the earliest start that can be "
            f"answered with this end is '{requested}'"
        )

    needed = {RECORD_KEY, COMMIT_TIME, *images.names, *(predicate.columns if predicate is not None else ())}
    if planning.makes_rows_of_several:
        needed |= set(snapshot.schema.names)
    stored = snapshot.schema_with_meta
    rows = make_plan(
        snapshot, [], schema=pa.schema([field for field in stored if field.name in needed]), predicate=None, where=None,
        query="cdc", commit_times=None, partitions=0, partitions_pruned=0, files_pruned=0,
    )  # fmt: skip
    return ChangePlan(
        pieces=tuple(pieces), images=images, rows=replace(rows, log_reading=planning.logs), predicate=predicate,
        span=span,
    )  # fmt: skip


def image_columns(snapshot: Snapshot) -> pa.Schema:
    """The columns that the rows before and after may have: the table's, without meta fields."""
    return pa.schema([field for field in snapshot.schema if field.name not in META_FIELDS])


def just_before(requested: str) -> str:
    """A text that sorts before a requested time, and after every earlier one."""
    return f"{requested[:-1]}{chr(ord(requested[-1]) - 1)}~"


def _writes_in(snapshot: Snapshot, span: CommitRange) -> Iterator[Instant]:
    """Completed writes that were requested in the range, archived ones included, by requested time."""
    timeline = snapshot.timeline
    archived: Sequence[Instant] = ()
    if timeline.may_have_archived_after(span.start):
        archived = timeline.archived_writes(requested_from=span.start, requested_until=span.end)
    found = (instant for instant in (*archived, *timeline.completed_writes) if span.covers(instant.requested))
    yield from sorted(found, key=lambda instant: instant.requested)


class _Planning:
    """Plans write after write. `makes_rows_of_several`: whether one row may be made of several, column by column."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._going = paths_being_cleaned(snapshot)
        self._kept: dict[str, dict[str, int]] = {}
        self._bases: dict[str, dict[str, str]] = {}
        self._replaced: dict[str, frozenset[FileGroup]] = {}
        self._cleans: list[tuple[str, Mapping[str, tuple[str, ...]]]] | None = None
        self.logs = log_reading(snapshot)
        self.makes_rows_of_several = self.logs is not None and not self.logs.rules.wins_whole
        self._turned = TurnedOrder(snapshot)
        self._logs_hold_images = snapshot.config.change_mode in (None, ChangeMode.BEFORE_AFTER)

    def of_write(self, instant: Instant) -> Iterator[tuple[ChangePiece, str | None]]:
        """The pieces of a write, each with the path of a file that was cleaned away, if one was."""
        snapshot = self._snapshot
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        before, after = just_before(instant.requested), instant.requested
        base = ChangePiece(
            kind=PieceKind.REPLACED, requested=instant.requested, completed=instant.completed or "", partition="",
            file_id="", log_instants=frozenset({instant.requested}),
        )  # fmt: skip
        if _is_of_service(metadata):
            if metadata.operation_type == COMPACTION:
                yield from self._of_compaction(instant, metadata, base)
            return

        for partition, file_ids in sorted((metadata.partition_to_replace_file_ids or {}).items()):
            slices = _slices(snapshot, before, partition, file_ids)
            for file_id in sorted(file_ids):
                piece = replace(base, partition=partition, file_id=file_id, before=slices.get(file_id))
                yield piece, self._missing_of_replaced(piece)

        doubled = self._doubled_by(instant.requested, metadata)
        for partition, stats in sorted(metadata.partition_to_write_stats.items()):
            by_group: dict[str, list[WriteStat]] = {}
            for stat in stats:
                if stat.path and _log_without_base(stat) not in doubled:
                    by_group.setdefault(stat.file_id or "", []).append(stat)
            old, new = (_slices(snapshot, moment, partition, by_group) for moment in (before, after))
            for file_id, own in sorted(by_group.items()):
                piece = replace(base, partition=partition, file_id=file_id)
                yield self._of_group(piece, own, old.get(file_id), new.get(file_id))

    def _of_compaction(
        self, instant: Instant, metadata: CommitMetadata, base: ChangePiece
    ) -> Iterator[tuple[ChangePiece, str | None]]:
        """The pieces of a compaction: it changes rows only where it turned the order of two writes."""
        for (partition, file_id), turned in self._turned.of_compaction(instant, metadata).items():
            old, new = (
                _slices(self._snapshot, moment, partition, {file_id}).get(file_id)
                for moment in (just_before(instant.requested), instant.requested)
            )
            piece = replace(
                base, kind=PieceKind.APPENDED, partition=partition, file_id=file_id, log_instants=turned.late,
                logs=tuple((str(stat.path), self._size(partition, stat)) for stat in turned.logs),
            )  # fmt: skip
            made = [one for one in metadata.partition_to_write_stats[partition] if one.file_id == file_id]
            yield self._with_slices(piece, [*made, *turned.logs, *turned.taken], old, new)

    def _doubled_by(self, requested: str, metadata: CommitMetadata) -> set[str]:
        """The resizings of buckets beside which a write logged its rows twice: the second log tells nothing new.

        A write did so if it also wrote to a file group that the resizing replaced, or is about to replace.
        """
        timeline = self._snapshot.timeline
        stats = [stat for of_path in metadata.partition_to_write_stats.values() for stat in of_path]
        named = {log for log in map(_log_without_base, stats) if log is not None} - {requested}
        touched = {(path, stat.file_id) for path, of in metadata.partition_to_write_stats.items() for stat in of}
        return {one for one in named if touched & self._replaced_by(timeline, one)}

    def _replaced_by(self, timeline: Timeline, requested: str) -> frozenset[FileGroup]:
        """The file groups that a clustering replaces. Requests: a get, once for each."""
        if requested not in self._replaced:
            plan = read_clustering_plans(self._snapshot.storage, timeline, {requested}).get(requested)
            if plan is not None:
                slices = (one for group in plan.input_groups or () for one in group.slices)
                found = {(one.partition_path or "", one.file_id or "") for one in slices}
            else:
                done = [one for one in timeline.completed_writes if one.requested == requested]
                done = done or list(timeline.archived_writes(requested_from=requested, requested_until=requested))
                replaced = read_commit(self._snapshot.storage, timeline, done[0]) if done else None
                ids = (replaced.partition_to_replace_file_ids if replaced is not None else None) or {}
                found = {(partition, file_id) for partition, of_path in ids.items() for file_id in of_path}
            self._replaced[requested] = frozenset(found)
        return self._replaced[requested]

    def _of_group(
        self, piece: ChangePiece, stats: Sequence[WriteStat], before: PlannedFile | None, after: PlannedFile | None
    ) -> tuple[ChangePiece, str | None]:
        changes = {path: size for stat in stats for path, size in (stat.cdc_stats or {}).items()}
        if changes:
            piece = replace(piece, kind=PieceKind.LOGGED, logs=tuple(changes.items()))
            missing = self._missing(piece.partition, changes)
            if self._logs_hold_images or missing is not None:
                return piece, missing
            return self._with_slices(piece, stats, before, after)

        logs = tuple((str(stat.path), self._size(piece.partition, stat)) for stat in stats if stat.is_log)
        if len(logs) == len(stats):
            appended = replace(piece, kind=PieceKind.APPENDED, logs=logs)
            appended, missing = self._with_slices(appended, stats, before, after)
            return appended, missing or self._missing_below(appended)

        if before is None and all(_previous(stat) is None for stat in stats):
            piece = replace(piece, kind=PieceKind.INSERTED, after=after)
            return piece, self._missing(piece.partition, [str(stat.path) for stat in stats])
        return self._with_slices(replace(piece, kind=PieceKind.REWRITTEN), stats, before, after)

    def _with_slices(
        self, piece: ChangePiece, stats: Sequence[WriteStat], before: PlannedFile | None, after: PlannedFile | None
    ) -> tuple[ChangePiece, str | None]:
        """The piece with its slices. Missing: a file of the write, or the slice that it changed."""
        missing = self._missing(piece.partition, [str(stat.path) for stat in stats])
        for stat in stats:
            previous = _previous(stat)
            # A later slice that counts already then holds the same rows: a compaction had merged the older one.
            if previous is not None and (before is None or _slice_instant(before) < previous[0]):
                missing = missing or join(piece.partition, previous[1])
        if before is not None:
            missing = missing or self._missing(piece.partition, before.paths)
        if after is not None:
            missing = missing or self._missing(piece.partition, after.paths)
        return replace(piece, before=before, after=after), missing

    def _missing_of_replaced(self, piece: ChangePiece) -> str | None:
        """A file of the slice that a write replaced, if it is no more.

        The write does not name that slice. So a newer file of the group that a clean has deleted since tells that the
        slice is gone; an older slice may still be there for a savepoint. A group of which neither a file is there nor
        a clean deleted one had no row: a writer that died had begun it.
        """
        cleaned = self._cleaned_before(piece)
        return cleaned or (None if piece.before is None else self._missing(piece.partition, piece.before.paths))

    def _missing_below(self, piece: ChangePiece) -> str | None:
        """The base file that a log lay upon, if it is no more.

        The log itself stays if a compaction and a clean ran while its write did: it lies upon the new base file then,
        which is later than the write. A group of logs alone never had a base file.
        """
        if piece.before is not None and LogFileName.parse(piece.before.path.rpartition("/")[2]) is None:
            return None
        newest = self._newest_bases(piece.partition).get(piece.file_id, "")
        return self._cleaned_before(piece) if newest > piece.requested else None

    def _newest_bases(self, partition: str) -> Mapping[str, str]:
        """File id -> the instant of the newest base file that is stored."""
        if partition not in self._bases:
            names = (BaseFileName.parse(path.rpartition("/")[2]) for path in self._files(partition))
            bases = sorted((base.requested, base.file_id) for base in names if base is not None)
            self._bases[partition] = {file_id: requested for requested, file_id in bases}
        return self._bases[partition]

    def _cleaned_before(self, piece: ChangePiece) -> str | None:
        """A file of a write's group that is newer than the slice before, and that a clean has deleted since."""
        if self._cleans is None:  # writes come by requested time, so that none before this one asks
            self._cleans = read_cleans_since(self._snapshot, just_before(piece.requested))
        stands = "" if piece.before is None else _slice_instant(piece.before)
        for requested, names in self._cleans:
            for name in names.get(piece.partition, ()) if requested > piece.requested else ():
                file_id, instant = group_and_instant(name)
                if file_id == piece.file_id and stands < instant < piece.requested:
                    return join(piece.partition, name)
        return None

    def _missing(self, partition: str, paths: Iterable[str]) -> str | None:
        """The first of these paths that is no more, or about to be deleted by a pending clean."""
        kept = self._files(partition)
        for path in paths:
            is_going = path in self._going
            if is_going or (path not in kept and self._snapshot.storage.head(path) is None):
                return path
        return None

    def _size(self, partition: str, stat: WriteStat) -> int:
        return max(self._files(partition).get(str(stat.path), 0), stat.file_size_in_bytes or 0)

    def _files(self, partition: str) -> Mapping[str, int]:
        if partition not in self._kept:
            files = self._snapshot.listing.files(partition)
            self._kept[partition] = {join(partition, file.name): file.size_bytes for file in files}
        return self._kept[partition]


def _log_without_base(stat: WriteStat) -> str | None:
    """The instant that a log's name carries, where the log has no base file to lie upon."""
    log = LogFileName.parse((stat.path or "").rpartition("/")[2])
    return log.instant if log is not None and not stat.base_file else None


def _is_of_service(metadata: CommitMetadata) -> bool:
    """Whether the write is of a service: a compaction or a clustering."""
    return metadata.operation_type in REWRITES | MOVES or metadata.compacted


def _slices(snapshot: Snapshot, moment: str, partition: str, file_ids: Iterable[str]) -> dict[str, PlannedFile]:
    """The slices of these file groups at a moment, with their logs, whether or not a write replaced them since.

    Up to version 6 a log is named after its slice, so that the logs of a later slice look like a slice of that moment
    once the files of the real one were cleaned away. They are none.
    """
    found = snapshot.at(moment).slices(partition, set(file_ids), even_replaced=True)
    planned = ((one.file_id, planned_slice(one, with_logs=True)) for one in found if one.base_instant <= moment)
    return {file_id: file for file_id, file in planned if file is not None}


def _slice_instant(file: PlannedFile) -> str:
    if file.base_instant:
        return file.base_instant
    log = LogFileName.parse(file.path.rpartition("/")[2])
    return log.instant if log is not None else ""


def _previous(stat: WriteStat) -> tuple[str, str] | None:
    """The instant and the name of the base file that a write changed. None for a new group, or one of logs only."""
    named = stat.base_file if stat.is_log else stat.prev_base_file
    base = BaseFileName.parse((named or "").rpartition("/")[2])
    if base is not None:
        return base.requested, base.format()
    if stat.is_log or stat.prev_commit in (None, "", "null"):
        return None
    return str(stat.prev_commit), f"{stat.file_id}_*_{stat.prev_commit}"
