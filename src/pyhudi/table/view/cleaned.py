"""What cleans have deleted or are about to delete, and so which moments a reader can no longer go back to."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pyhudi.errors import NotFound
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.format.timeline.action_files import decode_cleaner_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanerPlan, CleanMetadata, CommitMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.commits import read_clean
from pyhudi.table.view.restores import read_restores
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline


def pending_cleans(timeline: Timeline) -> list[Instant]:
    """Cleans that were requested and not completed, oldest first."""
    return [instant for instant in timeline.pending if instant.action == "clean"]


def read_pending_plan(storage: Storage, timeline: Timeline, instant: Instant) -> CleanerPlan | None:
    """The plan of a pending clean. None if its writer died before writing the plan; then nothing was deleted.

    Seen: 0.15 and 1.0.2 copy the plan into the inflight file, 1.2.0 leaves that empty. One get, or two.
    """
    for state in ("REQUESTED", "INFLIGHT"):
        path = timeline.layout.path(Instant(instant.requested, "clean", state))
        try:
            content = storage.get(path)
        except NotFound:
            continue
        if content:
            return decode_cleaner_plan(content, path=path)
    return None


def planned_names(plan: CleanerPlan) -> dict[str, list[str]]:
    """Partition -> names of the files that a plan of any version deletes, bootstrap sources left out.

    The plan's paths begin with the table's path when it was planned. Only partition and name are used, so that a table
    that was moved is cleaned where it is now.
    """
    names: dict[str, list[str]] = {}
    for partition, paths in (plan.files_to_be_deleted_per_partition or {}).items():
        names.setdefault(partition, []).extend(path.rpartition("/")[2] for path in paths)
    for partition, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items():
        own = (info.file_path for info in infos if info.file_path and not info.is_bootstrap_base_file)
        names.setdefault(partition, []).extend(path.rpartition("/")[2] for path in own)
    return names


def paths_being_cleaned(snapshot: Snapshot) -> frozenset[str]:
    """The files of pending cleans: still listed, but maybe gone already. No request if no clean is pending."""
    plans = (read_pending_plan(snapshot.storage, snapshot.timeline, i) for i in pending_cleans(snapshot.timeline))
    named = (planned_names(plan) for plan in plans if plan is not None)
    return frozenset(
        join(partition, name) for by_partition in named for partition, names in by_partition.items() for name in names
    )


def read_cleans_since(snapshot: Snapshot, since: str) -> list[tuple[str, Mapping[str, tuple[str, ...]]]]:
    """The requested times of the cleans after a moment, each with the files that it deletes: names by partition.

    Requests: one get for each clean since then, and one for each restore.
    """
    return [(clean.requested, clean.names) for clean in _cleans_after(snapshot, since)]


def refuse_cleaned(snapshot: Snapshot, until: str, *, asked: str) -> None:
    """Refuse a reader that goes back to `until` if files that it would need were cleaned away.

    Every clean since then counts, archived and pending ones too: the retention may have changed in between. A clean
    that keeps a number of versions names no earliest commit; then the deleted files tell. They tell, too, of a commit
    with a savepoint, which cleans keep however old it is. `asked`: what the reader asked for, in words. Requests: one
    get for each clean since then, and one for each restore. Raises: NotFound.
    """
    deleted: dict[str, set[str]] = {}
    is_saved = _is_saved(snapshot.timeline, until)
    for clean in _cleans_after(snapshot, until):
        if clean.earliest is None or is_saved:
            for partition, own_names in clean.names.items():
                deleted.setdefault(partition, set()).update(own_names)
        elif until < clean.earliest:
            raise NotFound(f"{asked}: its files were cleaned away; the earliest kept commit is '{clean.earliest}'")

    for partition, names in sorted(deleted.items()):
        missed = _missed(snapshot, partition, names, until)
        if missed is not None:
            raise NotFound(
                f"{asked}: its files were cleaned away, such as '{join(partition, missed)}'; go back less far"
            )


def refuse_cleaned_below(snapshot: Snapshot, write: Instant, metadata: CommitMetadata, *, asked: str) -> None:
    """Refuse to take a write back if a slice that it was built upon, or a group that it replaced, was cleaned away.

    Cleans count commits by their requested times. A write that was requested early and completed late is older to them
    than to readers, so that the slice below it may go while it is the newest. Raises: NotFound.
    """
    leaving = paths_being_cleaned(snapshot)
    for partition, stats in metadata.partition_to_write_stats.items():
        there = _left(snapshot, partition, leaving)
        for stat in stats:
            written = BaseFileName.parse((stat.path or "").rpartition("/")[2])
            below = stat.prev_commit
            if written is not None and below not in (None, "", "null") and (written.file_id, below) not in there:
                raise NotFound(
                    f"{asked}: its files were cleaned away: of file group '{written.file_id}' in partition "
                    f"'{partition}' the slice of '{below}', upon which '{written.requested}' was written"
                )

    for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
        replaced = snapshot.replaced.get(partition, {})
        back = {file_id for file_id in file_ids if replaced.get(file_id) == write.requested}
        gone = back - {file_id for file_id, _ in _left(snapshot, partition, leaving)}
        if gone:
            raise NotFound(
                f"{asked}: its files were cleaned away: file group '{min(gone)}' in partition '{partition}', which was "
                "replaced later"
            )


def refuse_cleaned_of(snapshot: Snapshot, metadata: CommitMetadata, *, undone: Collection[str], asked: str) -> None:
    """Refuse to take the writes `undone` back if a file of this write, which stays, was cleaned away.

    That is no matter where another write that stays has replaced the file. Raises: NotFound.
    """
    leaving, timeline = paths_being_cleaned(snapshot), snapshot.timeline
    for partition, stats in metadata.partition_to_write_stats.items():
        there = _left(snapshot, partition, leaving)
        replaced = {f for f, by in snapshot.replaced.get(partition, {}).items() if by not in undone}
        for stat in stats:
            name = (stat.path or "").rpartition("/")[2]
            file_id, instant = group_and_instant(name)
            later = (at for f, at in there if f == file_id and at > instant and at not in undone)
            is_there = (file_id, instant) in there or file_id in replaced or not file_id
            if not is_there and not any(map(timeline.is_committed, later)):
                raise NotFound(f"{asked}: its files were cleaned away, such as '{join(partition, name)}'")


def _is_saved(timeline: Timeline, until: str) -> bool:
    """Whether the newest commit that a reader of this moment sees has a savepoint."""
    newest = max((i.requested for i in timeline.completed_writes if i.requested <= until), default=None)
    return any(i.action == "savepoint" and i.is_completed and i.requested == newest for i in timeline)


def _left(snapshot: Snapshot, partition: str, leaving: Collection[str]) -> set[tuple[str, str]]:
    """File group and instant of each file of a partition that no pending clean is about to delete."""
    names = (file.name for file in snapshot.listing.files(partition))
    return {group_and_instant(name) for name in names if join(partition, name) not in leaving}


def group_and_instant(name: str) -> tuple[str, str]:
    """The file group and the instant in the name of a data file."""
    if base := BaseFileName.parse(name):
        return base.file_id, base.requested
    log = LogFileName.parse(name)
    return (log.file_id, log.instant) if log is not None else ("", "")


@dataclass(frozen=True, slots=True)
class _Clean:
    """What one clean kept and deleted, and when it was requested.

    `earliest`: the first commit that it retains; None if it keeps a number of versions. `names`: deleted files by
    partition.
    """

    requested: str
    earliest: str | None
    names: Mapping[str, tuple[str, ...]]


def _cleans_after(snapshot: Snapshot, until: str) -> Iterator[_Clean]:
    """The cleans requested after a moment, newest first. Earlier cleans deleted nothing that was visible then.

    Cleans before a restore to an earlier moment do not count either: a reader sees what the restore found.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    restored = max((after for to, after in read_restores(storage, timeline) if to <= until), default="")

    for instant in reversed(timeline.instants):
        if instant.action != "clean" or instant.requested <= max(until, restored):
            continue
        if instant.is_completed:
            metadata = read_clean(storage, timeline, instant)
            if metadata is not None:
                yield _completed(instant, metadata)
        elif (plan := read_pending_plan(storage, timeline, instant)) is not None:
            earliest = plan.earliest_instant_to_retain
            names = {partition: tuple(own_names) for partition, own_names in planned_names(plan).items()}
            yield _Clean(instant.requested, earliest.requested if earliest is not None else None, names)

    if timeline.may_have_archived_after(until):
        for instant in reversed(timeline.history.instants(requested_from=until)):
            if instant.action == "clean" and instant.requested > restored and not timeline.is_active(instant):
                metadata = timeline.history.read_clean(instant)
                if metadata is not None:
                    yield _completed(instant, metadata)


def _completed(instant: Instant, metadata: CleanMetadata) -> _Clean:
    names = {partition: cleaned.delete_path_patterns for partition, cleaned in metadata.partition_metadata.items()}
    return _Clean(instant.requested, metadata.earliest_commit_to_retain or None, names)


def _missed(snapshot: Snapshot, partition: str, deleted: set[str], until: str) -> str | None:
    """A deleted file that belonged to the newest slice of its file group at the moment `until`.

    This is the slice's base file, or a log of a slice that has none. None if there is no such file.
    """
    newest: dict[str, BaseFileName] = {}
    for name in sorted({*deleted, *(file.name for file in snapshot.listing.files(partition))}):
        base = BaseFileName.parse(name)
        if base is None or base.requested > until:
            continue
        if base.file_id not in newest or base.requested > newest[base.file_id].requested:
            newest[base.file_id] = base

    # Cleans delete whole slices, so that only a slice without a base file is known by its logs.
    logs = (log for log in map(LogFileName.parse, sorted(deleted)) if log is not None and not log.is_cdc)
    needed = (
        *((base.file_id, base.format()) for base in newest.values() if base.format() in deleted),
        *((log.file_id, log.format()) for log in logs if log.instant <= until and log.file_id not in newest),
    )

    # A group that was replaced by then is not read, so that it misses nothing.
    replaced = snapshot.replaced.get(partition, {})
    return next((name for file_id, name in needed if file_id not in replaced or replaced[file_id] > until), None)
