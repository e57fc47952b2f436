"""Archived instants as readers of the timeline see them: taken off it, and read when somebody asks."""

from typing import Protocol

from pyhudi.errors import NotFound
from pyhudi.model.commit import CleanMetadata, CommitMetadata
from pyhudi.model.instant import Instant


class History(Protocol):
    """The completed instants that were archived. No request before the first question.

    Ask after the active timeline was listed: then an instant that is archived meanwhile is on one of the
    two, or on both. One thread at a time.
    """

    def instants(
        self,
        *,
        requested_from: str | None = None,
        requested_until: str | None = None,
        completed_after: str | None = None,
    ) -> tuple[Instant, ...]:
        """Those within bounds (inclusive, `completed_after` exclusive), by requested time, each once."""

    def read_commit(self, instant: Instant) -> CommitMetadata:
        """What an archived write did. Raises: NotFound when the history does not have it."""

    def read_clean(self, instant: Instant) -> CleanMetadata | None:
        """What an archived clean did; None where its files were empty. Raises: NotFound as `read_commit`."""


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
    """Whether an archived instant lies in bounds as `History.instants` takes them."""
    if requested_from is not None and instant.requested < requested_from:
        return False
    if requested_until is not None and instant.requested > requested_until:
        return False
    return completed_after is None or (instant.completed or instant.requested) > completed_after


def in_order(instants: set[Instant]) -> tuple[Instant, ...]:
    """By requested time, each action once: an upgrade and back may leave an instant in two files."""
    once = {
        (i.requested, i.comparable_action): i for i in sorted(instants, key=lambda i: (i.completed or "", i.action))
    }
    return tuple(sorted(once.values(), key=lambda i: (i.requested, i.action)))
