"""The verdict on an action that is about to complete, given what others did since it began.

A judge is a pure function. The caller that begins the action hands it in; `WriteSession.complete` gathers the facts.
The judge of writes is in `writes.py`; those of services are here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant import Instant
from pyhudi.table.view.pending import FileGroup
from pyhudi.txn.conflicts.changes import Change


@dataclass(frozen=True, slots=True)
class TableState:
    """The facts about a table that a judge decides by.

    `uri`, `version`: the table's. `committed`: requested times of the completed writes. `pending`: the actions that are
    not complete, each in its highest state. `planned`: the file groups in the plans of pending services, each with its
    service. `changes`: what others completed since the judged action was planned, by completion time.
    """

    uri: str
    version: int
    committed: frozenset[str]
    pending: tuple[Instant, ...]
    planned: Mapping[FileGroup, Instant] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Mine:
    """The action that is judged.

    `target`: its inflight instant. `upon`: the table's state on which it was planned. `change`: what it is about to
    complete with. `written`: the data files that it says it wrote. `marked`: the data files that its markers name.
    `is_requested`: whether the requested file of its instant is still there.
    """

    target: Instant
    upon: TableState
    change: Change
    written: frozenset[str]
    marked: frozenset[str]
    is_requested: bool = True


@dataclass(frozen=True, slots=True)
class Proceed:
    """Nothing conflicts with the action: it completes."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The action must not complete. `why`: what another writer did, and what to do now.

    `is_mendable`: a new plan, made from the same input upon the table as it is now, may succeed. `by_keys`: the
    requested times of the others that are in the way only if they wrote a key that the action wrote, too; empty where
    something else is in the way.
    """

    why: str
    is_mendable: bool = False
    by_keys: frozenset[str] = frozenset()


Verdict: TypeAlias = Proceed | Refused
Judge: TypeAlias = Callable[[Mine, TableState], Verdict]
"""The second argument is the table as it is now."""


class PlanOutdated(Conflict):
    """Another writer changed what this write was planned upon. The write can be planned anew, from the same input."""


def judge_service(mine: Mine, now: TableState) -> Verdict:
    """Judge a pending service. Others may commit while it runs, but they must not end it or do it anew.

    Whoever does a service anew deletes the markers of the earlier attempt. A written file without its marker
    therefore means that this attempt was given up.
    """
    target = mine.target
    what = f"{target.action} '{target.requested}'"
    if not any(i.requested == target.requested and i.state == "INFLIGHT" for i in now.pending):
        return Refused(f"{what}: another writer completed it, or rolled it back, meanwhile")

    if not mine.written <= mine.marked:
        return Refused(f"{what}: another run took it for dead and does it anew")
    return Proceed()


def judge_clustering(
    mine: Mine,
    now: TableState,
    *,
    groups: frozenset[FileGroup],
    becoming: Mapping[FileGroup, frozenset[FileGroup]] | None = None,
) -> Verdict:
    """Judge a clustering. `groups`: the file groups of its plan, whose rows it has moved as they were when it began.

    A row that was written to one of these groups since then would be lost, unless it was also written to what the group
    becomes. `becoming`: file group of a ring -> the file groups that a resizing makes of it.
    """
    verdict = judge_service(mine, now)
    if isinstance(verdict, Refused):
        return verdict

    for other in now.changes:
        doubled = {group for group, new in (becoming or {}).items() if new & other.appended}
        if taken := (other.touched & groups) - (doubled & other.appended):
            partition, file_id = min(taken)
            return Refused(
                f"{now.uri}: {other.operation or 'a write'} '{other.requested}' changed file group '{file_id}' in "
                f"partition '{partition}' while it was clustered; the clustering '{mine.target.requested}' is taken "
                "off the timeline; run it again",
                is_mendable=True,
            )
    return Proceed()


def judge_log_compaction(mine: Mine, now: TableState, *, overtaken_by: str | None) -> Verdict:
    """Judge a log compaction.

    `overtaken_by`: the requested time of a compaction that meanwhile took one of the same file groups. The merged log
    would then lie upon that compaction's base file, and would bring back records that the base file has merged already.
    """
    if overtaken_by is not None:
        return Refused(
            f"{mine.target.action} '{mine.target.requested}': the compaction '{overtaken_by}' took file groups of its "
            "meanwhile; its next run gives it up"
        )
    return judge_service(mine, now)


def refuse(verdict: Verdict) -> None:
    """Return for an action that may complete.

    Raises: Conflict for an action that must not complete; PlanOutdated if it may be planned anew.
    """
    match verdict:
        case Proceed():
            return
        case Refused(why, is_mendable, _):
            raise PlanOutdated(why) if is_mendable else Conflict(why)
        case _:
            assert_never(verdict)
