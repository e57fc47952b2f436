"""The timeline as rows: each instant with its states, and what it wrote."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyhudi.api.table import HudiTable
from pyhudi.format.timeline.instant import Instant
from pyhudi.inspect.commits import Totals, find_metadata, totals_of


@dataclass(frozen=True, slots=True)
class ShownInstant:
    """An instant. `file_name`: of its latest state. `totals`: None for what is no completed write."""

    instant: Instant
    file_name: str
    totals: Totals | None
    is_archived: bool


def read_instants(table: HudiTable, *, archived: bool = False) -> Iterator[ShownInstant]:
    """The instants by requested time; `archived`: those of the history, too. One get for each write."""
    snapshot = table._access.snapshot()
    timeline = snapshot.timeline
    for instant in timeline.with_archived() if archived else timeline.instants:
        is_active = timeline.is_active(instant)
        metadata = find_metadata(snapshot, instant)
        totals = None
        if metadata is not None:
            stats = [stat for of in metadata.partition_to_write_stats.values() for stat in of]
            totals = totals_of(stats, len(metadata.partition_to_write_stats))
        yield ShownInstant(instant, timeline.layout.format(instant), totals, not is_active)
