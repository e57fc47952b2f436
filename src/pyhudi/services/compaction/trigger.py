"""When a compaction is due. Pure rules over the timeline."""

from dataclasses import dataclass
from datetime import tzinfo
from typing import assert_never

from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.instant_text import parse_instant_ms
from pyhudi.services.compaction.settings import CompactionSettings, CompactionTrigger
from pyhudi.timeline.active import Timeline


@dataclass(frozen=True, slots=True)
class SinceCompaction:
    """Completed delta commits since a compaction.

    `start`: the requested time of the compaction; before the first compaction, that of the first delta commit; None
    when there is neither.
    """

    deltacommits: tuple[Instant, ...]
    start: str | None


def newest_compaction(timeline: Timeline) -> Instant | None:
    """The completed compaction of a merge-on-read table that was requested last."""
    return next((w for w in reversed(timeline.completed_writes) if w.action == "commit"), None)


def since_compaction(timeline: Timeline) -> SinceCompaction:
    """The delta commits that completed after the newest completed compaction was requested.

    Seen: 1.0.2, 1.2.0 (`CompactionUtils.getDeltaCommitsSinceLatestCompaction`).
    """
    deltas = [w for w in timeline.completed_writes if w.action == "deltacommit"]
    newest = newest_compaction(timeline)
    if newest is None:
        first = next((i.requested for i in timeline if i.comparable_action == "deltacommit"), None)
        return SinceCompaction(tuple(deltas), first)

    since = (w for w in deltas if timeline.effective_time(w) > newest.requested)
    return SinceCompaction(tuple(since), newest.requested)


def since_compaction_request(timeline: Timeline) -> SinceCompaction:
    """The completed delta commits that were requested after the newest pending compaction.

    If none is pending, the newest completed compaction counts instead.

    Seen: 1.0.2, 1.2.0 (`CompactionUtils.getDeltaCommitsSinceLatestCompactionRequest`).
    """
    pending = [i.requested for i in timeline.pending if i.action == "compaction"]
    newest = newest_compaction(timeline)
    last = max(pending, default=newest.requested if newest is not None else None)
    if last is None:
        return since_compaction(timeline)
    later = (w for w in timeline.completed_writes if w.action == "deltacommit" and w.requested > last)
    return SinceCompaction(tuple(later), last)


def why_not_due(timeline: Timeline, settings: CompactionSettings, *, now_ms: int, zone: tzinfo) -> str:
    """Why no compaction is due, for people; empty when one is due."""
    since = since_compaction(timeline)
    if since.start is None:
        return "there is no delta commit yet"

    few = _too_few(since, settings)
    elapsed_s = (now_ms - parse_instant_ms(since.start, zone)) // 1_000
    early = ""
    if elapsed_s < settings.seconds_max:
        early = (
            f"{elapsed_s:,} seconds since '{since.start}': expected {settings.seconds_max:,} "
            "(hoodie.compact.inline.max.delta.seconds)"
        )

    match settings.trigger:
        case CompactionTrigger.COMMITS:
            return few
        case CompactionTrigger.COMMITS_AFTER_REQUEST:
            return _too_few(since_compaction_request(timeline), settings)
        case CompactionTrigger.TIME:
            return early
        case CompactionTrigger.COMMITS_OR_TIME:
            return f"{few}; {early}" if few and early else ""
        case CompactionTrigger.COMMITS_AND_TIME:
            return few or early
        case _:
            assert_never(settings.trigger)


def since_log_compaction(timeline: Timeline) -> tuple[Instant, ...]:
    """The delta commits that completed since the newest compaction or log compaction was requested."""
    deltas = since_compaction(timeline).deltacommits
    done = [i.requested for i in deltas if i.requested in timeline.log_compactions]
    newest = max(done, default="")
    return tuple(i for i in deltas if i.requested != newest and timeline.effective_time(i) > newest)


def why_logs_not_due(timeline: Timeline, log_blocks_min: int) -> str:
    """Why no log compaction can be due, for people; empty when one may be due.

    Whether one is due is then seen from the logs. Seen: 1.2.0 (`ScheduleCompactionActionExecutor`); 1.0.2 looks into
    the logs at every write.
    """
    count = len(since_log_compaction(timeline))
    if count >= log_blocks_min:
        return ""
    return (
        f"{count:,} delta commits since the last compaction or log compaction: expected {log_blocks_min:,} "
        "(hoodie.log.compaction.blocks.threshold)"
    )


def _too_few(since: SinceCompaction, settings: CompactionSettings) -> str:
    count = len(since.deltacommits)
    if count >= settings.deltacommits_max:
        return ""
    return (
        f"{count:,} delta commits since the last compaction: expected {settings.deltacommits_max:,} "
        "(hoodie.compact.inline.max.delta.commits)"
    )
