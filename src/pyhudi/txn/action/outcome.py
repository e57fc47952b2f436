"""Putting the completed file of an action. The action has happened once this file is stored.

If the store's answer is lost, the file is looked up; the outcome is never guessed.
"""

from dataclasses import dataclass
from datetime import tzinfo
from typing import TypeAlias, assert_never

from pyhudi.errors import Conflict, OutcomeUnknown, Unavailable
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.layout import TimelineLayout


@dataclass(frozen=True, slots=True)
class Landed:
    """The action is on the timeline."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The name of the completed file is taken by another writer's file."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The store did not answer the put, nor the question whether the file is there."""

    cause: str


CommitOutcome: TypeAlias = Landed | Lost | Unanswered


def put_completed(storage: Storage, layout: TimelineLayout, instant: Instant, content: bytes) -> CommitOutcome:
    """Put the completed file of an instant. Raises: Unavailable when the file is certainly not there."""
    assert instant.is_completed
    path = layout.path(instant)

    try:
        return Landed() if storage.put_new(path, content) else Lost()
    except Unavailable as error:
        try:
            if storage.head(path) is None:
                raise
            return Landed() if storage.get(path) == content else Lost()
        except Unavailable as again:
            if again is error:
                raise
            return Unanswered(str(again))


def refuse_unlanded(outcome: CommitOutcome, instant: Instant) -> None:
    """Return for an action that landed. Raises: Conflict when it lost; OutcomeUnknown when nobody can say."""
    match outcome:
        case Landed():
            return
        case Lost():
            raise Conflict(
                f"{instant.action} '{instant.requested}': another writer completed an action under this name; retry"
            )
        case Unanswered(cause):
            raise OutcomeUnknown(
                f"{instant.action} '{instant.requested}': the store did not say whether the commit landed ({cause}); "
                "look at the timeline before writing again, and delete nothing"
            )
        case _:
            assert_never(outcome)


def completion_time(storage: Storage, layout: TimelineLayout, instant: Instant, zone: tzinfo) -> str:
    """The completion time of an instant that has just completed, as readers see it.

    Timeline layout 1 stores no completion times: there it is the modification time of the file, by one head request.
    """
    assert instant.completed is not None
    if layout.has_completion_times:
        return instant.completed

    info = storage.head(layout.path(instant))
    return format_instant(info.modified_ms, zone) if info is not None else instant.completed
