"""What completed writes did, as rows: by commit, by partition, by file.

Names of columns are those of Apache Hudi's procedures, 1.2.0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyhudi.api.table import HudiTable
from pyhudi.errors import NotFound
from pyhudi.format.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import NEW_FILE_GROUP, CommitMetadata, WriteStat
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.snapshot import Snapshot

_NEWS = ("", "null", None, NEW_FILE_GROUP)


@dataclass(frozen=True, slots=True)
class Commit:
    """A completed write and its metadata."""

    instant: Instant
    metadata: CommitMetadata

    @property
    def stats(self) -> Iterator[tuple[str, WriteStat]]:
        """The files that it wrote, with their partitions."""
        for partition, stats in self.metadata.partition_to_write_stats.items():
            for stat in stats:
                yield partition, stat

    @property
    def totals(self) -> "Totals":
        return totals_of([stat for _, stat in self.stats], len(self.metadata.partition_to_write_stats))


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the files of a write. `updated_records`: rows that replaced others."""

    size_bytes: int
    files_added: int
    files_updated: int
    partitions: int
    records: int
    inserted_records: int
    updated_records: int
    errors: int


def totals_of(stats: list[WriteStat], partitions: int = 1) -> Totals:
    """The sums over files."""
    added = sum(stat.prev_commit in _NEWS for stat in stats)
    return Totals(
        size_bytes=sum(stat.total_write_bytes or 0 for stat in stats),
        files_added=added,
        files_updated=len(stats) - added,
        partitions=partitions,
        records=sum(stat.num_writes or 0 for stat in stats),
        inserted_records=sum(stat.num_inserts or 0 for stat in stats),
        updated_records=sum(stat.num_update_writes or 0 for stat in stats),
        errors=sum(stat.total_write_errors or 0 for stat in stats),
    )


def read_commits(table: HudiTable, *, archived: bool = False) -> Iterator[Commit]:
    """The completed writes on the active timeline, newest first; `archived`: those of the history instead.

    One get each, as they are asked for.
    """
    snapshot = table._access.snapshot()
    timeline = snapshot.timeline
    found = timeline.archived_writes() if archived else timeline.completed_writes
    for instant in reversed(found):
        yield Commit(instant, read_commit(snapshot.storage, timeline, instant))


def get_commit(table: HudiTable, requested: str) -> Commit:
    """A completed write, active or archived. Raises: NotFound."""
    snapshot = table._access.snapshot()
    timeline = snapshot.timeline
    for instants in (timeline.completed_writes, timeline.archived_writes()):
        for instant in instants:
            if instant.requested == requested:
                return Commit(instant, read_commit(snapshot.storage, timeline, instant))
    raise NotFound(f"instant '{requested}': expected a completed write of table '{table.name}', found none")


def find_metadata(snapshot: Snapshot, instant: Instant) -> CommitMetadata | None:
    """What a write states, or None for other actions and pending ones."""
    if not instant.is_completed or instant.action not in WRITE_ACTIONS:
        return None
    return read_commit(snapshot.storage, snapshot.timeline, instant)


def shown_action(instant: Instant) -> str:
    """The action as Apache Hudi names it."""
    return COMPLETED_ACTION.get(instant.action, instant.action) if instant.is_completed else instant.action


def file_counts(stats: Mapping[str, tuple[WriteStat, ...]]) -> dict[str, Totals]:
    """The sums by partition."""
    return {partition: totals_of(list(of)) for partition, of in stats.items()}
