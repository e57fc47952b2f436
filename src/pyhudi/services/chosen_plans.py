"""Pending plans that a caller chooses by their requested times."""

from collections.abc import Collection, Iterable, Sequence

from pyhudi.errors import NotFound
from pyhudi.format.timeline.instant import Instant
from pyhudi.options.arguments import several_texts


def chosen_of(pending: Sequence[Instant], only: Collection[str] | None) -> list[Instant]:
    """The pending instants of these requested times; None: all of them."""
    return [instant for instant in pending if only is None or instant.requested in only]


def asked_plans(pending: Sequence[Instant], instants: Iterable[str], *, uri: str, service: str) -> tuple[str, ...]:
    """The requested times of the pending plans that a caller asks for.

    Raises: NotFound for one that no pending plan has; Invalid for what are no texts.
    """
    only = several_texts(instants, what="instants", of="requested times")
    known = [instant.requested for instant in pending]
    if missing := [one for one in only if one not in known]:
        there = f"pending are {', '.join(known)}" if known else "none is pending"
        raise NotFound(f"{uri}: expected a pending {service} of '{missing[0]}', found none; {there}")
    return only
