"""The verdict on an action that is about to complete, given what others did since it began.

A judge is a pure function. The caller that begins the action hands it in; `ActionRun.complete` gathers the facts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class TableState:
    """The facts about a table that a judge decides by.

    `uri`, `version`: the table's. `committed`: requested times of the completed writes. `pending`: the actions that are
    not complete, each in its highest state.
    """

    uri: str
    version: int
    committed: frozenset[str]
    pending: tuple[Instant, ...]


@dataclass(frozen=True, slots=True)
class Mine:
    """The action that is judged.

    `target`: its inflight instant. `upon`: the table's state on which it was planned. `written`: the data files that
    it says it wrote. `marked`: the data files that its markers name.
    """

    target: Instant
    upon: TableState
    written: frozenset[str]
    marked: frozenset[str]


@dataclass(frozen=True, slots=True)
class Proceed:
    """Nothing conflicts with the action: it completes."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The action must not complete. `why`: what another writer did, and what to do now."""

    why: str


Verdict: TypeAlias = Proceed | Refused
Judge: TypeAlias = Callable[[Mine, TableState], Verdict]
"""The second argument is the table as it is now."""


def judge_write(mine: Mine, now: TableState) -> Verdict:
    """Judge a write that holds the guard throughout.

    If another write completed meanwhile, its writer ignored the guard.
    """
    requested = mine.target.requested
    others = sorted(now.committed - mine.upon.committed)

    if now.version != mine.upon.version:
        return Refused(
            f"{now.uri}: table version {mine.upon.version} when this write began, now {now.version}: it was upgraded "
            "meanwhile; run the write again"
        )
    if others:
        return Refused(
            f"{now.uri}: another writer committed '{others[0]}' while this write ran, without heeding its guard; run "
            "the write again"
        )
    if not any(instant.requested == requested for instant in now.pending):
        return Refused(
            f"{now.uri}: another writer took this write ('{requested}') for dead and rolled it back; run it again, and "
            "let only one writer at the table at a time"
        )
    return Proceed()


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
        return Refused(f"{what}: another process took it for dead and does it anew")
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
    """Return for an action that may complete. Raises: Conflict for one that must not."""
    match verdict:
        case Proceed():
            return
        case Refused(why):
            raise Conflict(why)
        case _:
            assert_never(verdict)
