"""Which instants may leave the active timeline. Pure rules over the timeline."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import CleanMetadata
from pyhudi.services.clean.plan import earliest_to_retain
from pyhudi.services.clean.settings import CleanPolicy, CleanSettings
from pyhudi.services.compaction.trigger import newest_compaction, since_compaction
from pyhudi.timeline.active import Timeline

_COMPANIONS = frozenset({"clean", "rollback"})
_STAYING = frozenset({"savepoint", "restore", "indexing"})


@dataclass(frozen=True, slots=True)
class Keep:
    """`commits_min`: completed writes that stay. `commits_max`: completed writes beyond which archiving begins."""

    commits_min: int
    commits_max: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """Instants from this requested time on must stay on the timeline. `why`: the reason, for people.

    `is_left`: for files that a clean deletes only if it is asked for.
    """

    requested: str
    why: str
    is_left: bool = False


@dataclass(frozen=True, slots=True)
class ArchivalPlan:
    """Completed instants to archive, by requested time. `reason`: why there are none; empty otherwise.

    `is_held_by_left`: more instants might go, were it not for replaced files that cleans have left.
    """

    instants: tuple[Instant, ...]
    reason: str = ""
    is_held_by_left: bool = False


def is_due(timeline: Timeline, keep: Keep) -> bool:
    """Whether the timeline has more than `keep.commits_max` completed writes."""
    return len(timeline.completed_writes) > keep.commits_max


def plan_archival(
    timeline: Timeline,
    keep: Keep,
    barriers: Sequence[Barrier],
    *,
    is_beyond_savepoint: bool = False,
) -> ArchivalPlan:
    """The plan to archive the oldest completed writes, and the cleans and rollbacks older than the last of them.

    `keep.commits_min` writes stay, and so does every write from the earliest barrier on. Savepoints, restores and
    indexings stay. Without `is_beyond_savepoint` a savepoint is a barrier, and so is the oldest write that completed
    after it; with it, only commits that have a savepoint stay.
    Example: 35 writes, `commits_min` 20, and a barrier at the tenth write: the first nine are archived.
    Spec: format/actions.md section 10.
    """
    writes = timeline.completed_writes
    if not is_due(timeline, keep):
        return ArchivalPlan(
            (), f"{len(writes)} completed writes: expected more than {keep.commits_max} before any goes"
        )

    pinned = {i.requested for i in timeline if i.action == "savepoint"}
    limits = list(barriers)
    if pinned and not is_beyond_savepoint:
        limits += [_restore_barrier(timeline, requested) for requested in pinned]
    first = min(limits, key=lambda barrier: barrier.requested, default=None)

    going = [
        write
        for write in writes
        if write.requested not in pinned and (first is None or write.requested < first.requested)
    ][: len(writes) - keep.commits_min]
    if not going:
        assert first is not None or pinned
        return ArchivalPlan((), f"everything is held by {first.why if first else 'savepoints'}")

    return ArchivalPlan(tuple(sorted((*going, *_companions(timeline, going[-1])), key=_order)))


def _restore_barrier(timeline: Timeline, saved: str) -> Barrier:
    """The barrier for a restore to a savepoint: the oldest write that completed after it, and its commit itself."""
    commit = next((write for write in timeline.completed_writes if write.requested == saved), None)
    since = timeline.effective_time(commit) if commit is not None else saved
    later = (write.requested for write in timeline.completed_writes if timeline.effective_time(write) > since)
    return Barrier(min((saved, *later)), f"the savepoint at '{saved}'")


def _companions(timeline: Timeline, newest: Instant) -> list[Instant]:
    """The completed cleans and rollbacks that were requested before `newest`, the newest write to be archived.

    Where instants have completion times, every one of them goes: see `stored_logs_barrier`. Elsewhere the newest clean
    stays, because it tells readers which files are gone, and an archive of layout 1 takes long to read.
    """
    done = [i for i in timeline if i.is_completed and i.action in _COMPANIONS and i.requested < newest.requested]
    if timeline.layout.has_completion_times:
        return done
    newest_clean = max((i.requested for i in timeline if i.is_completed and i.action == "clean"), default="")
    return [i for i in done if not (i.action == "clean" and i.requested == newest_clean)]


def _order(instant: Instant) -> tuple[str, str]:
    return instant.requested, instant.action


def commits_kept(timeline: Timeline, keep: Keep, clean: CleanSettings, *, hours_start: str) -> Keep:
    """`keep`, raised if cleaning retains more commits.

    Cleaning counts commits on the active timeline, so the commits that it retains must stay there. Example: `keep` is
    (20, 30) and cleaning retains 24 commits; then (25, 35) is kept. `hours_start`: the instant that lies the
    retained hours ago. Seen: 1.0.2 leaves one commit more than cleaning retains
    (`ArchivalUtils.getMinAndMaxInstantsToKeep`).
    """
    match clean.policy:
        case CleanPolicy.VERSIONS:
            retained = 0
        case CleanPolicy.COMMITS:
            retained = clean.commits_retained
        case CleanPolicy.HOURS:
            earliest = earliest_to_retain(timeline, clean, hours_start=hours_start, previous=None)
            since = earliest.requested if earliest is not None else hours_start
            retained = sum(1 for write in timeline.completed_writes if write.requested >= since)

    raised = max(keep.commits_min, retained + 1) - keep.commits_min if retained else 0
    return Keep(keep.commits_min + raised, keep.commits_max + raised)


def pending_barrier(timeline: Timeline) -> Barrier | None:
    """The barrier for pending actions: the last completed write before the oldest pending action of any kind.

    If no completed write comes before that action, the barrier is the action itself.
    """
    oldest = min(timeline.pending, key=_order, default=None)
    if oldest is None:
        return None
    before = [write.requested for write in timeline.completed_writes if write.requested < oldest.requested]
    return Barrier(before[-1] if before else oldest.requested, f"the pending {oldest.action} '{oldest.requested}'")


def compaction_barrier(timeline: Timeline, deltacommits_max: int) -> Barrier | None:
    """The barrier for what decides when the next compaction of a merge-on-read table is due.

    That is the newest compaction and the delta commits since then, of which `deltacommits_max` are enough.
    Seen: 1.0.2 (`CompactionUtils.getEarliestInstantToRetainForCompaction`).
    """
    deltas = since_compaction(timeline).deltacommits
    if len(deltas) >= deltacommits_max:
        kept = deltas[len(deltas) - deltacommits_max]
        return Barrier(kept.requested, f"the {deltacommits_max} delta commits that make a compaction due")

    first = newest_compaction(timeline) or next(iter(deltas), None)
    return Barrier(first.requested, "the newest compaction") if first is not None else None


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A stored file whose file group was replaced.

    `is_left`: cleans have passed it over, and look no more for it unless they are asked to. `saved_by`: the savepoints
    one of which keeps it; empty: none does.
    """

    path: str
    is_left: bool = False
    saved_by: tuple[str, ...] = ()


def replace_barrier(going: Iterable[Instant], find_stored: Callable[[Instant], StoredFile | None]) -> Barrier | None:
    """The barrier for replaced files that are still stored: the first of the instants `going` that replaced such files.

    Readers need that action to leave the files out. Cleans do not tell whether they are gone: they spare files for
    savepoints and pending actions, miss those that were replaced while they ran, and may fail to delete one.
    `find_stored`: a file that the instant replaced and that is stored; asked of each replacecommit, by requested time,
    until one has such a file.
    """
    for instant in going:
        stored = find_stored(instant) if instant.action == "replacecommit" else None
        if stored is not None:
            return Barrier(instant.requested, _why_stored(instant, stored), is_left=stored.is_left)
    return None


def _why_stored(instant: Instant, stored: StoredFile) -> str:
    if stored.saved_by:
        names = " or ".join(f"'{requested}'" for requested in stored.saved_by)
        return (
            f"savepoint {names}, which keeps files that '{instant.requested}' replaced, such as '{stored.path}', until "
            "the savepoint is deleted"
        )
    rest = "which cleans have left: clean() deletes them" if stored.is_left else "which no clean has deleted yet"
    return f"the files that '{instant.requested}' replaced, such as '{stored.path}', {rest}"


def clean_barrier(clean: CleanMetadata | None) -> Barrier | None:
    """The barrier for the last clean: the earliest commit that it retained."""
    earliest = clean.earliest_commit_to_retain if clean is not None else ""
    return Barrier(earliest, f"the last clean, which retained '{earliest}'") if earliest else None


def metadata_barrier(timeline: Timeline, metadata: Timeline) -> Barrier | None:
    """The barrier for the metadata table's logs.

    It is the first write, clean or rollback that completed after the newest compaction of the metadata table was
    requested. A block in these logs is valid only if the data table's timeline has its action. Before the first
    compaction of the metadata table every write must stay.
    """
    newest = newest_compaction(metadata)
    if newest is None:
        return Barrier("", "the metadata table, which was not compacted yet")
    later = [i for i in timeline if _may_go(i) and timeline.effective_time(i) > newest.requested]
    first = min(later, key=_order, default=None)
    if first is None:
        return None
    return Barrier(first.requested, f"the newest compaction of the metadata table ('{newest.requested}')")


def _may_go(instant: Instant) -> bool:
    return instant.is_completed and (instant.action in WRITE_ACTIONS or instant.action in _COMPANIONS)


def first_staying(timeline: Timeline) -> Instant | None:
    """The oldest completed action that archiving leaves on the timeline, however old it is."""
    return min((i for i in timeline if i.is_completed and i.action in _STAYING), key=_order, default=None)


def stored_logs_barrier(timeline: Timeline, logs: Iterable[str]) -> Barrier | None:
    """The barrier for logs that are stored, if an action older than their writes stays on the timeline.

    `logs`: requested times of the writes whose logs are stored. The oldest of these on the timeline is held.
    Seen: 1.2.0 takes an archived write for pending if the active timeline begins before it (`getCompletionTime` of
    `CompletionTimeQueryViewV2`). Then its compactions leave out the write's logs, and its readers lay them upon the
    newest base file of their group.
    """
    staying = first_staying(timeline)
    if staying is None:
        return None
    active = {write.requested for write in timeline.completed_writes if write.requested > staying.requested}
    first = min(active.intersection(logs), default=None)
    if first is None:
        return None
    return Barrier(
        first,
        f"the logs of '{first}', until they are compacted and cleaned away; for the {staying.action} "
        f"'{staying.requested}' stays before them",
    )


def savepoint_barrier(timeline: Timeline, stored: Iterable[str], *, from_slice: str | None = None) -> Barrier | None:
    """The barrier for files that are stored, where archiving goes on behind a commit with a savepoint, which stays.

    `stored`: requested times of the writes whose files are stored. `from_slice`: the base instant of the oldest slice
    whose logs do not tell their writes by name; None: all logs do.
    Seen: Apache Hudi reads no file of a write that is archived and later than a commit with a savepoint, of its own
    tables either (0.15.0, 1.0.2, 1.2.0): for its views of files the timeline begins with that commit
    (`isBeforeTimelineStarts` of a timeline without savepoints). So does ours, once the savepoint is deleted.
    """
    pinned = {i.requested for i in timeline if i.action == "savepoint"}
    if not pinned:
        return None
    active = [w.requested for w in timeline.completed_writes if w.requested > min(pinned) and w.requested not in pinned]
    known = frozenset(stored)
    first = next((one for one in active if one in known or (from_slice is not None and one >= from_slice)), None)
    if first is None:
        return None
    return Barrier(
        first, f"the files of '{first}', until they are cleaned away; for the savepoint '{min(pinned)}' stays before it"
    )


def quiet_barrier(bases: Iterable[str]) -> Barrier | None:
    """The barrier for the metadata table's base files that no compaction has replaced, for their groups have no logs.

    `bases`: the instants of the newest base files. Seen: 1.0.2 and 1.2.0 make an index that the table lacks at the
    first of the instants `00000000000000000`, `…001` that the active timeline lacks. Then the timeline begins there,
    and an archived instant counts as one that never completed: file groups vanish, keys are sought in others, and
    stored keys are inserted again.
    """
    oldest = min(bases, default=None)
    return None if oldest is None else Barrier(oldest, f"the metadata table's base files of '{oldest}'")


def data_barrier(data: Timeline, *, is_beyond_savepoint: bool) -> Barrier | None:
    """The barrier for the metadata table's timeline: where the data table's active timeline begins.

    That is the data table's first write on the timeline, or its first pending action if that is earlier. With
    `is_beyond_savepoint`, completed commits that have a savepoint do not count.
    Seen: 1.0.2 (`TimelineUtils.getEarliestInstantForMetadataArchival`).
    """
    pinned = {i.requested for i in data if i.action == "savepoint"} if is_beyond_savepoint else set()
    held = [i for i in data if not i.is_completed or (i.action in WRITE_ACTIONS and i.requested not in pinned)]
    oldest = min(held, key=_order, default=None)
    return Barrier(oldest.requested, f"the data table's {oldest.action} '{oldest.requested}'") if oldest else None
