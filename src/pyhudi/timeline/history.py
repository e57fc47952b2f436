"""Archived instants as readers of the timeline see them. They are read only when a reader asks for them."""

from typing import Protocol

from pyhudi.errors import NotFound
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata


class History(Protocol):
    """The completed instants that were archived. There is no request before the first question.

    List the active timeline first, then ask here. An instant that is archived meanwhile is then in one of the two, or
    in both, and never missed. Not safe for several threads at once.
    """

    def instants(
        self,
        *,
        requested_from: str | None = None,
        requested_until: str | None = None,
        completed_after: str | None = None,
    ) -> tuple[Instant, ...]:
        """The instants within bounds, by requested time, each once. Bounds are inclusive, except `completed_after`."""

    def read_commit(self, instant: Instant) -> CommitMetadata:
        """The metadata of an archived write. Raises: NotFound if the history does not have the write."""

    def read_clean(self, instant: Instant) -> CleanMetadata | None:
        """The metadata of an archived clean; None if its files were empty. Raises: NotFound as `read_commit`."""


class NoHistory:
    """The history of a timeline from which nothing was archived."""

    def instants(
        self,
        *,
        requested_from: str | None = None,
        requested_until: str | None = None,
        completed_after: str | None = None,
    ) -> tuple[Instant, ...]:
        return ()

    def read_commit(self, instant: Instant) -> CommitMetadata:
        raise not_archived(instant)

    def read_clean(self, instant: Instant) -> CleanMetadata | None:
        raise not_archived(instant)


def not_archived(instant: Instant) -> NotFound:
    return NotFound(
        f"{instant.action} '{instant.requested}': neither on the active timeline nor among the archived instants"
    )


def within(
    instant: Instant, requested_from: str | None, requested_until: str | None, completed_after: str | None
) -> bool:
    """Whether an archived instant lies within the bounds that `History.instants` takes."""
    if requested_from is not None and instant.requested < requested_from:
        return False
    if requested_until is not None and instant.requested > requested_until:
        return False
    return completed_after is None or (instant.completed or instant.requested) > completed_after


def in_order(instants: set[Instant]) -> tuple[Instant, ...]:
    """Instants by requested time, each action once: an upgrade and a downgrade may leave an instant in two files."""
    once = {
        (i.requested, i.comparable_action): i for i in sorted(instants, key=lambda i: (i.completed or "", i.action))
    }
    return tuple(sorted(once.values(), key=lambda i: (i.requested, i.action)))
