"""How far a batch of a stream out of a table goes: which commits are new, and how many of them one batch takes."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyhudi.format.timeline.instant import Instant
from pyhudi.table.changes.incremental import CommitRange
from pyhudi.table.view.commits import read_commit, read_earliest_retained
from pyhudi.table.view.pending import is_clustering
from pyhudi.table.view.snapshot import Snapshot

_HOLDS_ROWS = frozenset({"commit", "deltacommit", "replacecommit"})


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much of the history one batch takes. `bytes_max` counts what the commits wrote. None: all that is there."""

    commits_max: int | None = None
    bytes_max: int | None = None

    @property
    def is_none(self) -> bool:
        return self.commits_max is None and self.bytes_max is None


@dataclass(frozen=True, slots=True)
class StreamRange:
    """New commits of a table, as a stream sees them.

    `by_requested`: a commit's place in the stream is its requested time; else its completion time.
    """

    by_requested: bool

    def time(self, instant: Instant) -> str:
        time = instant.requested if self.by_requested else instant.completed
        assert time is not None
        return time

    def newest(self, snapshot: Snapshot) -> str | None:
        """The newest time that a batch may end at; None where the table has no commit."""
        return max(map(self.time, self._visible(snapshot)), default=None)

    def new(self, snapshot: Snapshot, after: str | None, until: str | None, archive: "KnownArchive") -> list[Instant]:
        """The commits in `(after, until]`, in the order of the stream. Of the beginning, None, the active ones only."""
        commits = set(self._visible(snapshot))
        if after is not None:
            commits |= set(archive.commits(snapshot, after, by_requested=self.by_requested))
        span = CommitRange(after, until)
        return sorted((i for i in commits if span.covers(self.time(i))), key=self.time)

    def _visible(self, snapshot: Snapshot) -> Sequence[Instant]:
        """Active commits that no later one can come before.

        By requested times, a write that still runs would come before those that were requested after it. So they wait
        for it, as with the policy BLOCK of Apache Hudi. A clustering adds no rows, and its plan may stay for days.
        Completion times are given under the table's lock.
        """
        commits = snapshot.timeline.completed_writes
        if not self.by_requested:
            return commits
        running = (i for i in snapshot.timeline.pending if i.action in _HOLDS_ROWS)
        first = next((i.requested for i in running if not is_clustering(snapshot.storage, snapshot.timeline, i)), "9")
        return [i for i in commits if i.requested < first]


class KnownArchive:
    """Archived commits, read again only where some may have been archived since.

    A stream looks at its table many times a second. What is archived was the first of the active timeline.
    """

    def __init__(self) -> None:
        self._known: tuple[str | None, str, tuple[Instant, ...]] = (None, "", ())

    def commits(self, snapshot: Snapshot, after: str, *, by_requested: bool) -> tuple[Instant, ...]:
        """The archived commits after a time, and maybe some before it. Memory: an instant for each of them."""
        timeline = snapshot.timeline
        if not timeline.may_have_archived_after(after if by_requested else None):
            return ()
        start, since, found = self._known
        if start != timeline.start or after < since:
            # A slow write may be archived that completed after active ones.
            bound = {"requested_from": after} if by_requested else {"completed_after": after}
            found = timeline.archived_writes(**bound)
            self._known = (timeline.start, after, found)
        return found


def stream_range(snapshot: Snapshot, *, has_changes: bool) -> StreamRange:
    """By what time a stream goes. `has_changes`: it is of change data, whose ranges are of requested times."""
    return StreamRange(has_changes or not snapshot.config.layout.has_completion_times)


def choose_batch(snapshot: Snapshot, commits: Sequence[Instant], limits: BatchLimits, *, is_first: bool) -> Instant:
    """The last commit of a batch that begins with the first of these. At least one is taken.

    `is_first`: the batch begins with the table. Then the commits whose files may be cleaned away are one batch: their
    rows, as they stand at its end, are all there.
    Requests: with a limit of bytes, a get for each commit that is taken.
    """
    assert commits
    if limits.is_none:
        return commits[-1]
    retained = read_earliest_retained(snapshot.storage, snapshot.timeline) if is_first else None
    least = 1 + max((at for at, i in enumerate(commits) if retained is not None and i.requested <= retained), default=0)
    size_bytes = 0
    for at, commit in enumerate(commits):
        is_over = limits.commits_max is not None and at >= limits.commits_max
        if limits.bytes_max is not None:
            size_bytes += _written_bytes(snapshot, commit)
            is_over = is_over or size_bytes > limits.bytes_max
        if is_over and at >= least:
            return commits[at - 1]
    return commits[-1]


def _written_bytes(snapshot: Snapshot, commit: Instant) -> int:
    metadata = read_commit(snapshot.storage, snapshot.timeline, commit)
    stats = (stat for of_path in metadata.partition_to_write_stats.values() for stat in of_path)
    return sum(stat.total_write_bytes or stat.file_size_in_bytes or 0 for stat in stats)
