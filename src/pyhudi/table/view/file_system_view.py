"""File groups and their slices: which of a partition's files a reader of a timeline may see."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.view.listing import ListedFile
from pyhudi.table.view.pending import CLUSTERINGS
from pyhudi.timeline.active import Timeline
from pyhudi.versions import LogNaming


@dataclass(frozen=True, slots=True)
class BaseFile:
    name: BaseFileName
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogFile:
    name: LogFileName
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file from which a bootstrapped base file has all columns but the meta fields. `path`: below `location`.

    `size_bytes`: at the time of the bootstrap; 0: unknown.
    """

    location: StorageLocation
    path: str
    size_bytes: int

    @property
    def uri(self) -> str:
        """The file as plans of services spell it. Seen: `file:/a/b` for a file of this machine (0.15.0, 1.2.0)."""
        root = self.location.uri.rstrip("/")
        return f"{root if '://' in root else f'file:{root}'}/{self.path}"


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file, or none, and the log files that update it, in reading order.

    `source`: of a base file that a bootstrap wrote, and that holds the meta fields only.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()
    source: SourceFile | None = None

    @property
    def base_bytes(self) -> int:
        """Bytes of the base file and of its source; 0 without a base file."""
        own = 0 if self.base_file is None else self.base_file.size_bytes
        return own if self.source is None else own + self.source.size_bytes

    @property
    def log_bytes(self) -> int:
        return sum(log.size_bytes for log in self.log_files)


@dataclass(frozen=True, slots=True)
class NewLog:
    """The parts of the next log file's name, on tables that name logs after their slice.

    `instant`: of the slice. `version`: of the first new log file. `beside`: names of the logs that the slice has.
    """

    instant: str
    version: int
    beside: tuple[str, ...] = ()


class LogSlicing(Protocol):
    """Tells the slice of a log file, by its name or by completion time. `naming`: the log names that it understands."""

    naming: ClassVar[LogNaming]

    def base_instant(self, log: LogFileName, slices: Collection[str], timeline: Timeline) -> str | None:
        """The base instant of the log's slice, which may be a new slice. None if no reader may see the log."""


class SliceByName:
    """For logs that are named after their slice. Reading drops the blocks of writes that did not commit.

    Beside a pending clustering, a writer to rings of buckets may log its rows a second time, for the file groups that
    the clustering is about to make. Nobody sees these before it completes.
    """

    naming: ClassVar[LogNaming] = LogNaming.AFTER_SLICE

    def base_instant(self, log: LogFileName, slices: Collection[str], timeline: Timeline) -> str | None:
        return log.instant if slices or not _is_pending_clustering(log.instant, timeline) else None


class SliceByCompletion:
    """For logs that are named after their write: takes the newest slice that is not later than the log's completion.

    A log from before an upgrade is named after its base file, or after a compaction that was pending then and may be
    pending still. The instants of its blocks tell which of them count. Reading an archived log's completion time costs
    requests, so it is read only if a later slice might take the log.

    Spec: format/timeline.md section 7; format/versions.md section 3, "Hazards".
    """

    naming: ClassVar[LogNaming] = LogNaming.AFTER_WRITE

    def base_instant(self, log: LogFileName, slices: Collection[str], timeline: Timeline) -> str | None:
        if log.instant in slices or _is_pending_compaction(log.instant, timeline):
            return log.instant
        if not timeline.is_committed(log.instant):
            return None
        completed = log.instant
        if any(base > log.instant for base in slices):
            completed = timeline.completion_time(log.instant) or log.instant
        return max((base for base in slices if base <= completed), default=log.instant)


def _is_pending_clustering(requested: str, timeline: Timeline) -> bool:
    """Whether a pending replacement has this time. None but a clustering has logs named after it."""
    return any(i.requested == requested and i.action in CLUSTERINGS for i in timeline.pending)


def _is_pending_compaction(requested: str, timeline: Timeline) -> bool:
    return any(i.requested == requested and i.action == "compaction" for i in timeline.pending_services)


@dataclass
class _Group:
    bases: dict[str, BaseFile] = field(default_factory=dict)
    logs: list[LogFile] = field(default_factory=list)


def latest_slices(
    partition: str,
    files: Iterable[ListedFile],
    timeline: Timeline,
    *,
    slicing: LogSlicing,
    replaced: Mapping[str, str] | None = None,
    valid_tokens: Mapping[tuple[str, str], str] | None = None,
) -> list[FileSlice]:
    """The newest slice of each file group that a reader of `timeline` may see, sorted by file id.

    Left out are base files of uncommitted instants, and groups in `replaced` (file id -> requested time of the
    replacecommit). `valid_tokens` ((file id, requested) -> write token) tells which file was committed if several
    attempts of a task wrote one.

    Spec: format/timeline.md section 7.
    """
    groups = _group(files, timeline, valid_tokens or {})
    found: list[FileSlice] = []
    for file_id in sorted(groups):
        if replaced and file_id in replaced:
            continue
        slices = _logs_by_slice(groups[file_id], timeline, slicing)
        if slices:
            found.append(_latest(partition, file_id, groups[file_id], slices))
    return found


def all_slices(
    partition: str, files: Iterable[ListedFile], timeline: Timeline, *, slicing: LogSlicing
) -> dict[str, tuple[FileSlice, ...]]:
    """Every slice of each file group that has slices, newest first, by file id. Replaced groups are included.

    Left out are base files of uncommitted instants. Change logs (`.cdc`) are among the log files.
    """
    groups = _group(files, timeline, {}, with_change_logs=True)
    found: dict[str, tuple[FileSlice, ...]] = {}
    for file_id in sorted(groups):
        slices = _logs_by_slice(groups[file_id], timeline, slicing)
        newest_first = sorted(slices, reverse=True)
        if slices:
            found[file_id] = tuple(_slice(partition, file_id, groups[file_id], slices, base) for base in newest_first)
    return found


def whole_slices(
    partition: str, files: Iterable[ListedFile], timeline: Timeline, *, slicing: LogSlicing
) -> dict[str, tuple[FileSlice, ...]]:
    """As `all_slices`, but with logs that lie in no slice of a base file put to the base file that a reader needs.

    That is the newest base file before them; logs that are older than every base file make one slice. Such logs are
    those named after a compaction that is pending or was taken back, and those that were named after their own write
    before a downgrade. Who deletes one slice without the other takes rows away.
    """
    found = all_slices(partition, files, timeline, slicing=slicing)
    return {file_id: tuple(reversed(_joined(reversed(slices)))) for file_id, slices in found.items()}


def _joined(slices: Iterable[FileSlice]) -> list[FileSlice]:
    """Each slice without a base file joined to the one before. `slices`: of one file group, oldest first."""
    joined: list[FileSlice] = []
    for piece in slices:
        if joined and piece.base_file is None:
            joined[-1] = replace(joined[-1], log_files=joined[-1].log_files + piece.log_files)
        else:
            joined.append(piece)
    return joined


def _logs_by_slice(group: _Group, timeline: Timeline, slicing: LogSlicing) -> dict[str, list[LogFile]]:
    """Base instant -> log files in reading order, for each slice of a file group."""
    slices: dict[str, list[LogFile]] = {base: [] for base in group.bases}
    for log in sorted(group.logs, key=lambda log: log.name.order):
        base = slicing.base_instant(log.name, slices.keys(), timeline)
        if base is not None:
            slices.setdefault(base, []).append(log)
    return slices


def _latest(partition: str, file_id: str, group: _Group, slices: Mapping[str, list[LogFile]]) -> FileSlice:
    """The slice that a reader sees of a file group: its newest base file and all later logs.

    Up to version 6, logs that are written after a compaction was scheduled carry the compaction's time; so do they
    after an upgrade. Until the compaction has made its base file, these logs belong to the slice before.
    """
    base = max(group.bases, default=min(slices))
    logs = [log for instant in sorted(slices) if instant >= base for log in slices[instant]]
    return FileSlice(partition, file_id, base, group.bases.get(base), tuple(logs))


def _slice(partition: str, file_id: str, group: _Group, slices: Mapping[str, list[LogFile]], base: str) -> FileSlice:
    return FileSlice(partition, file_id, base, group.bases.get(base), tuple(slices[base]))


def _group(
    files: Iterable[ListedFile],
    timeline: Timeline,
    valid_tokens: Mapping[tuple[str, str], str],
    *,
    with_change_logs: bool = False,
) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    for file in files:
        if base := BaseFileName.parse(file.name):
            if not timeline.is_committed(base.requested):
                continue
            if valid_tokens.get((base.file_id, base.requested), base.write_token) != base.write_token:
                continue
            groups.setdefault(base.file_id, _Group()).bases[base.requested] = BaseFile(base, file.size_bytes)
        elif (log := LogFileName.parse(file.name)) and (with_change_logs or log.suffix != ".cdc"):
            groups.setdefault(log.file_id, _Group()).logs.append(LogFile(log, file.size_bytes))
    return groups
