"""Pending plans that a caller chooses by their requested times."""

from collections.abc import Collection, Sequence

from pyhudi.errors import Invalid, NotFound
from pyhudi.format.timeline.instant import Instant


def chosen_of(pending: Sequence[Instant], only: Collection[str] | None) -> list[Instant]:
    """The pending instants of these requested times; None: all of them."""
    return [instant for instant in pending if only is None or instant.requested in only]


def refuse_absent(pending: Sequence[Instant], only: Collection[str], *, uri: str, service: str) -> None:
    """Raises: NotFound for a requested time that no pending plan has; Invalid for a text in place of several."""
    if isinstance(only, str):
        raise Invalid(f"instants='{only}': expected a sequence of requested times, such as ['{only}']")
    known = [instant.requested for instant in pending]
    if missing := [one for one in only if one not in known]:
        there = f"pending are {', '.join(known)}" if known else "none is pending"
        raise NotFound(f"{uri}: expected a pending {service} of '{missing[0]}', found none; {there}")
