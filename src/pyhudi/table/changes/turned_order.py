"""Which file groups a compaction turned the order of two writes in: the one that began first wins from then on.

Example, of writers without blocking: A is requested at 2 and B at 3. B completes, a compaction that is requested at 4
takes its log, and then A completes. Up to time 3 the log of B follows that of A. From 4 on the log of A lies upon the
base file with the rows of B. So a row that both wrote changes at 4. Ranges of change data and time travel go by
requested times: the compaction tells that change.

Seen: Apache Hudi sorts by requested time, too, and takes the state before a log from its own commit (1.0.2, 1.2.0,
`HoodieCDCExtractor`), so that its changes end in the row of B.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import MOVES, REWRITES, CommitMetadata, WriteStat
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.pending import FileGroup
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import LogNaming


@dataclass(frozen=True, slots=True)
class TurnedGroup:
    """A file group in which a compaction turned the order. `late`: requested times of the writes that win from then on.

    `logs`: the log files of these writes. `taken`: the log files of the writes that the compaction took before them.
    """

    late: frozenset[str]
    logs: tuple[WriteStat, ...]
    taken: tuple[WriteStat, ...]


@dataclass(frozen=True, slots=True)
class _LoggedBy:
    requested: str
    stats: tuple[WriteStat, ...]


class TurnedOrder:
    """Finds these file groups, compaction after compaction.

    Requests: what reading the times of archived writes costs, once. Where writes ran beside a compaction and the order
    of two may be turned: a get for each of them.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._archived: tuple[Instant, ...] | None = None

    def of_compaction(self, compaction: Instant, metadata: CommitMetadata) -> dict[FileGroup, TurnedGroup]:
        """The file groups in which this compaction turned the order. Compactions come by requested time."""
        config = self._snapshot.config
        if config.version.log_naming is not LogNaming.AFTER_WRITE or not config.layout.has_completion_times:
            return {}
        before = [one for one in self._writes(compaction.requested) if one.requested < compaction.requested]
        late = [one for one in before if (one.completed or "") >= compaction.requested]
        if not late:
            return {}
        since = min(one.requested for one in late)
        before += self._archived_between(since, compaction.requested)
        taken = [one for one in before if one.requested > since and (one.completed or "") < compaction.requested]
        if not taken:
            return {}

        groups = {
            (partition, stat.file_id or "")
            for partition, stats in metadata.partition_to_write_stats.items()
            for stat in stats
        }
        late_logs, taken_logs = self._logs_of(late), self._logs_of(taken)
        found = ((group, _turned(late_logs.get(group, ()), taken_logs.get(group, ()))) for group in sorted(groups))
        return {group: turned for group, turned in found if turned is not None}

    def _writes(self, requested: str) -> list[Instant]:
        """The completed writes, and those archived ones that completed after this time."""
        timeline = self._snapshot.timeline
        if self._archived is None:
            may_have = timeline.may_have_archived_after(None)
            self._archived = timeline.archived_writes(completed_after=requested) if may_have else ()
        return [*self._archived, *timeline.completed_writes]

    def _archived_between(self, start: str, end: str) -> tuple[Instant, ...]:
        timeline = self._snapshot.timeline
        if not timeline.may_have_archived_after(start):
            return ()
        return timeline.archived_writes(requested_from=start, requested_until=end)

    def _logs_of(self, writes: Sequence[Instant]) -> dict[FileGroup, list[_LoggedBy]]:
        """The log files of these writes, by file group, each write once. Services have none."""
        found: dict[FileGroup, list[_LoggedBy]] = {}
        for requested, write in sorted({one.requested: one for one in writes}.items()):
            metadata = read_commit(self._snapshot.storage, self._snapshot.timeline, write)
            if metadata.operation_type in REWRITES | MOVES:
                continue
            for partition, stats in metadata.partition_to_write_stats.items():
                for file_id in sorted({stat.file_id or "" for stat in stats if stat.is_log}):
                    own = tuple(stat for stat in stats if stat.is_log and stat.path and stat.file_id == file_id)
                    found.setdefault((partition, file_id), []).append(_LoggedBy(requested, own))
        return found


def _turned(late: Sequence[_LoggedBy], taken: Sequence[_LoggedBy]) -> TurnedGroup | None:
    """What is turned of the writes to one file group; None if every taken write began before the late ones."""
    if not late or not taken:
        return None
    turned = [one for one in late if one.requested < max(other.requested for other in taken)]
    if not turned:
        return None
    return TurnedGroup(
        frozenset(one.requested for one in turned),
        tuple(stat for one in turned for stat in one.stats),
        tuple(stat for one in taken for stat in one.stats),
    )
