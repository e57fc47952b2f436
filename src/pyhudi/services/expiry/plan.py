"""Which partitions have expired, and which of them must stay for now."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

from pyhudi.errors import Invalid, NotFound
from pyhudi.format.names import BASE_FILE_EXTENSIONS, PARTITION_METAFILE, join
from pyhudi.format.properties import parse_properties
from pyhudi.format.timeline.instant_text import format_instant, parse_instant_ms
from pyhudi.services.expiry.settings import DAYS, ExpirySettings, ExpiryTime
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.pending import read_pending_groups
from pyhudi.table.view.snapshot import Snapshot

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class ExpiredPartition:
    """A partition whose days are over. `since`: the instant of its newest write, or of its creation.

    `file_groups`, `size_bytes`: what goes with it: the newest slices of its file groups.
    """

    partition: str
    since: str
    file_groups: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KeptPartition:
    """A partition that would go, but stays for now. `why`: in words."""

    partition: str
    why: str


@dataclass(frozen=True, slots=True)
class ExpiryPlan:
    """What to delete. `expired`: oldest first. `reason`: why nothing is to be deleted; empty otherwise."""

    expired: tuple[ExpiredPartition, ...] = ()
    kept: tuple[KeptPartition, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """What an expiry of partitions did, or would do.

    `requested`, `completed`: times of its commit; None for a dry run, and where nothing was deleted. `expired`: the
    partitions that went, or would go, oldest first. `kept`: those that would have gone, but stay for now. `reason`: why
    nothing was deleted; empty otherwise.
    """

    requested: str | None
    completed: str | None
    expired: tuple[ExpiredPartition, ...]
    kept: tuple[KeptPartition, ...]
    reason: str


def plan_expiry(snapshot: Snapshot, settings: ExpirySettings, *, now_ms: int) -> ExpiryPlan:
    """The partitions that have expired, as many as one run deletes.

    A partition has expired when its time lies more than `settings.days` back; a day has 24 hours. A partition without
    rows is none. One with a file group that a pending service is about to rewrite stays until the service has run.

    Requests: what listing every partition takes; one get for each pending service; by creation one get for each
    partition; where logs do not tell when they were written (up to version 6), one get for each write of these days.
    A time of the year 0, as bootstraps and Apache Hudi's own first instants have it, tells nothing.
    Seen: Apache Hudi 1.2.0 takes the newest base file for the newest write (`KeepByTimeStrategy`), so that rows in logs
    do not prolong a partition; here they do. One pending service makes it delete nothing at all.
    """
    if settings.days is None:
        return ExpiryPlan(reason=f"no partition expires: {DAYS} is not set")
    if not snapshot.config.partition_by:
        return ExpiryPlan(reason="the table has no partitions")

    chosen, kept = _chosen(snapshot, settings)
    snapshot.listing.expect(chosen)
    slices = {path: found for path in chosen if (found := snapshot.slices(path))}
    before = format_instant(max(0, now_ms - settings.days * _DAY_MS), snapshot.zone)
    times = (
        _by_write(snapshot, slices, before) if settings.by is ExpiryTime.LAST_WRITE else _by_creation(snapshot, slices)
    )

    told = {path: since for path, since in times.items() if parse_instant_ms(since, snapshot.zone)}
    kept += [KeptPartition(path, "nothing tells its time") for path in slices if path not in told]
    before_ms = parse_instant_ms(before, snapshot.zone)
    old = sorted((since, path) for path, since in told.items() if parse_instant_ms(since, snapshot.zone) < before_ms)

    held = _held(snapshot) if old else {}
    kept += [KeptPartition(path, held[path]) for _, path in old if path in held]
    free = [(since, path) for since, path in old if path not in held]
    expired = tuple(_expired(path, since, slices[path]) for since, path in free[: settings.partitions_max])
    kept += [KeptPartition(path, f"one run deletes at most {settings.partitions_max:,}") for _, path in
             free[settings.partitions_max :]]  # fmt: skip
    if expired:
        return ExpiryPlan(expired, tuple(kept))
    why = "each older partition stays for now" if old else "no partition is older"
    return ExpiryPlan(kept=tuple(kept), reason=f"{why}: {settings.days:,} days are kept")


def _chosen(snapshot: Snapshot, settings: ExpirySettings) -> tuple[list[str], list[KeptPartition]]:
    """The partitions that may expire, and those that the settings name and the table has not."""
    existing = snapshot.listing.partitions()
    if settings.selected is None:
        return existing, []
    known = set(existing)
    missing = [KeptPartition(path, "there is no such partition") for path in settings.selected if path not in known]
    return [path for path in settings.selected if path in known], missing


def _expired(partition: str, since: str, slices: list[FileSlice]) -> ExpiredPartition:
    sizes = ((piece.base_file.size_bytes if piece.base_file else 0) + piece.log_bytes for piece in slices)
    return ExpiredPartition(partition, since, len(slices), sum(sizes))


def _by_write(snapshot: Snapshot, slices: dict[str, list[FileSlice]], before: str) -> dict[str, str]:
    """Partition -> the instant of its newest write, as far as it may lie before a moment."""
    times = {path: max(map(_newest, found)) for path, found in slices.items()}
    unsure = {path for path, since in times.items() if since < before and any(map(_hides_writes, slices[path]))}
    for path, since in _written_since(snapshot, before, unsure):
        times[path] = max(times[path], since)
    return times


def _newest(piece: FileSlice) -> str:
    return max([piece.base_instant, *(log.name.instant for log in piece.log_files)])


def _hides_writes(piece: FileSlice) -> bool:
    """Whether the name of a log does not tell its write, but the slice that it belongs to."""
    return any(log.name.instant == piece.base_instant for log in piece.log_files)


def _written_since(snapshot: Snapshot, moment: str, partitions: set[str]) -> Iterable[tuple[str, str]]:
    """The newest write to each of these partitions since a moment, for those that had one."""
    timeline, left = snapshot.timeline, set(partitions)
    if not left:
        return
    writes = [i for i in timeline.completed_writes if i.requested >= moment]
    writes += timeline.archived_writes(requested_from=moment)
    for instant in sorted(writes, key=lambda write: write.requested, reverse=True):
        stats = read_commit(snapshot.storage, timeline, instant).partition_to_write_stats
        for path in left & {path for path, of_path in stats.items() if of_path}:
            left.discard(path)
            yield path, instant.requested
        if not left:
            return


def _by_creation(snapshot: Snapshot, partitions: Iterable[str]) -> dict[str, str]:
    """Partition -> the instant of its creation, where its metadata file tells."""
    times = {}
    for path in partitions:
        try:
            since = _created(snapshot.storage, path)
            parse_instant_ms(since, snapshot.zone)
        except (NotFound, Invalid, ValueError):  # no such file, no such line, or a torn one
            continue
        times[path] = since
    return times


def _created(storage: Storage, partition: str) -> str:
    """The instant in a partition's metadata file: a text, or else a base file without rows. Raises: NotFound."""
    name = join(partition, PARTITION_METAFILE)
    try:
        return parse_properties(storage.get(name)).get("commitTime", "")
    except NotFound:
        for extension in BASE_FILE_EXTENSIONS:
            if storage.head(f"{name}{extension}") is not None:
                with closing(open_base_file(storage, f"{name}{extension}")) as file:
                    return file.entries.get(b"commitTime", b"").decode()
        raise


def _held(snapshot: Snapshot) -> dict[str, str]:
    """Partition -> the pending service that is about to rewrite one of its file groups, in words."""
    pending = read_pending_groups(snapshot.storage, snapshot.timeline)
    return {path: f"{instant.action} '{instant.requested}' is pending there" for (path, _), instant in pending.items()}
