"""Warnings that a table's logs pile up, because nothing compacts them. Given once per table and process."""

import logging
import threading
from collections.abc import Sequence
from typing import Final

from pyhudi.services.compaction.settings import CompactionSettings
from pyhudi.services.compaction.trigger import since_compaction
from pyhudi.table.read.plan import PlannedFile
from pyhudi.timeline.active import Timeline

log = logging.getLogger("pyhudi")

LOGS_MANY: Final = 50
"""Logs of a slice that are worth a warning.

With so many, and a small base file, reading the logs takes several times as long as reading the base file.
"""

COMMITS_MANY: Final = 20
"""Delta commits without a compaction that are worth a warning. Apache Hudi's own default is to compact after five.

Archiving by its defaults leaves at least so many commits on the timeline, so the count can be seen there.
"""

_WHAT_TO_DO: Final = (
    "each query merges their logs: call compact() now and then, or let a compaction follow writes by the option "
    "hoodie.compact.inline=true"
)
_told: set[str] = set()
_lock = threading.Lock()


def tell_of_logs(uri: str, files: Sequence[PlannedFile]) -> None:
    """Log a warning if a slice that a query reads has many logs."""
    worst = max(files, key=lambda file: len(file.logs), default=None)
    if worst is not None and len(worst.logs) >= LOGS_MANY and _is_first(uri):
        log.warning("%s: '%s' has %d logs; %s", uri, worst.path, len(worst.logs), _WHAT_TO_DO)


def tell_of_commits(uri: str, timeline: Timeline, settings: CompactionSettings) -> None:
    """Log a warning after many delta commits without a compaction, unless one is pending or follows writes."""
    if settings.is_inline or settings.is_scheduled_inline or settings.logs_inline:
        return
    if any(instant.action in ("compaction", "logcompaction") for instant in timeline.pending):
        return
    count = len(since_compaction(timeline).deltacommits)
    if count >= COMMITS_MANY and _is_first(uri):
        log.warning("%s: %d delta commits and more since the last compaction: %s", uri, count, _WHAT_TO_DO)


def _is_first(uri: str) -> bool:
    with _lock:
        is_first = uri not in _told
        _told.add(uri)
    return is_first
