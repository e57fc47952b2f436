"""Instants that lie ahead of the clock: a writer must come after some of them, and ignores others.

A new instant must be later than every instant that stays on the timeline. Completed instants and the plans of services
stay. A writer whose clock is far behind such an instant cannot go on. Any other pending instant will be finished,
rolled back or left alone, whatever its time is. A writer ignores it if it lies further ahead than clocks may differ.
"""

import logging
from datetime import tzinfo

from pyhudi.format.timeline.instant import PENDING_SERVICE_ACTIONS, Instant
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.clock import SKEW_MAX_MS, Clock

log = logging.getLogger("pyhudi")


def newest_heeded(timeline: Timeline, clock: Clock, zone: tzinfo, *, taken_back: str | None = None) -> str | None:
    """The time that new instants must come after; None if the timeline has no such time.

    `taken_back`: an instant that the caller is about to roll back. It is ignored as well.
    """
    newest = timeline.newest
    limit = format_instant(clock.now_ms() + SKEW_MAX_MS, zone)
    if newest is None or newest <= limit:
        return newest

    kept: list[str] = []
    for instant in timeline:
        times = _times(timeline, instant)
        if max(times) <= limit or (instant.requested != taken_back and _stays(instant)):
            kept += times
        elif instant.requested != taken_back:
            log.warning(
                "%s '%s' (%s) lies in the future and is stepped over; a clock was wrong, or somebody put it there",
                instant.action, instant.requested, instant.state.lower(),
            )  # fmt: skip

    return max(kept, default=None)


def _times(timeline: Timeline, instant: Instant) -> tuple[str, ...]:
    """The times of an instant that count: on layout 1 only the requested time, as in `Timeline.newest`."""
    if timeline.layout.has_completion_times and instant.completed:
        return instant.requested, instant.completed
    return (instant.requested,)


def _stays(instant: Instant) -> bool:
    return instant.is_completed or instant.action in PENDING_SERVICE_ACTIONS
