"""The timeline as rows: each instant with its states, and what it wrote."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyhudi.api.table import HudiTable
from pyhudi.format.timeline.instant import Instant, State
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.inspect.commits import Totals, find_metadata, totals_of
from pyhudi.inspect.services import read_rollbacks
from pyhudi.table.view.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ShownInstant:
    """An instant. `file_name`: of its latest state. `totals`: None for what is no completed write.

    `put_at`: when the file of each state was put, in the form of an instant; none for archived instants.
    """

    instant: Instant
    file_name: str
    totals: Totals | None
    is_archived: bool
    put_at: Mapping[State, str] = field(default_factory=dict)


def read_instants(table: HudiTable, *, archived: bool = False) -> Iterator[ShownInstant]:
    """The instants by requested time; `archived`: those of the history, too. One get for each write."""
    snapshot = table._access.snapshot()
    timeline = snapshot.timeline
    put_at = _put_at(snapshot)
    for instant in timeline.with_archived() if archived else timeline.instants:
        is_active = timeline.is_active(instant)
        metadata = find_metadata(snapshot, instant)
        totals = None
        if metadata is not None:
            stats = [stat for of in metadata.partition_to_write_stats.values() for stat in of]
            totals = totals_of(stats, len(metadata.partition_to_write_stats))
        times = put_at.get((instant.requested, instant.comparable_action), {})
        yield ShownInstant(instant, timeline.layout.format(instant), totals, not is_active, times)


def read_undone(table: HudiTable) -> dict[str, tuple[str, ...]]:
    """What each completed rollback of the active timeline took back, by its requested time. One get each."""
    return {instant.requested: done.commits_rollback for instant, done in read_rollbacks(table)}


def _put_at(snapshot: Snapshot) -> dict[tuple[str, str], dict[State, str]]:
    """When the states of active instants were put, by the modification times of their files. One list request."""
    layout = snapshot.timeline.layout
    found: dict[tuple[str, str], dict[State, str]] = {}
    for file in snapshot.storage.list(layout.folder):
        instant = layout.parse(file.path.rpartition("/")[2])
        if instant is not None:
            times = found.setdefault((instant.requested, instant.comparable_action), {})
            times[instant.state] = format_instant(file.modified_ms, snapshot.zone)
    return found
