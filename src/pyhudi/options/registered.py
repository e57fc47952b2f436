"""What users register by name: key generators, payload classes, indexes, mergers. Options then name them."""

from collections.abc import Callable, Collection
from enum import StrEnum
from functools import partial
from typing import Generic, TypeVar

from pyhudi.errors import Invalid

T = TypeVar("T")

PAYLOAD_CLASSES = (
    "DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "EventTimeAvroPayload", "PartialUpdateAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload", "AWSDmsAvroPayload", "PostgresDebeziumAvroPayload",
    "MySqlDebeziumAvroPayload",
)  # fmt: skip
"""Payload classes of Apache Hudi that are known here, without their packages."""

KEY_GENERATOR_CLASSES = tuple(
    f"{kind}{avro}KeyGenerator"
    for kind in ("Simple", "Complex", "Nonpartitioned", "TimestampBased", "Custom")
    for avro in ("", "Avro")
)
"""Key generators of Apache Hudi that are known here, without their packages."""


class OwnKind(StrEnum):
    """What can be registered."""

    MERGER = "merge strategy"
    PAYLOAD_CLASS = "payload class"
    KEY_GENERATOR = "key generator"
    INDEX = "index"


class Registered(Generic[T]):
    """Things of one kind that this process registered, by name.

    `known_by`: the function or class by which two registrations are compared. Registering the same definition again, as
    when a notebook's cell is run twice, replaces the earlier one: a definition is known by its module and name.
    """

    def __init__(self, kind: OwnKind, known_by: Callable[[T], object]) -> None:
        self._kind, self._known_by = kind, known_by
        self._things: dict[str, T] = {}

    def add(self, name: str, thing: T) -> None:
        """Raises: Invalid for a name that is taken by another definition."""
        taken = self._things.get(name)
        if taken is not None and _definition(self._known_by(taken)) != _definition(self._known_by(thing)):
            raise Invalid(f"{self._kind} '{name}': already registered with {self._known_by(taken)!r}")
        self._things[name] = thing
        _names.setdefault(self._kind, set()).add(name)

    def find(self, name: str) -> T | None:
        """None if nothing is registered under this name."""
        return self._things.get(name)


_names: dict[OwnKind, set[str]] = {}


def is_registered(kind: OwnKind, name: str) -> bool:
    """Whether this process registered something of this kind under this name."""
    return name in _names.get(kind, ())


def checked_name(kind: OwnKind, name: object, built_in: Collection[str]) -> str:
    """A name under which something may be registered, without spaces around it.

    `built_in`: names without packages that mean something without a registration.
    Raises: Invalid for a name that an option could not state, or that is built in.
    """
    text = name.strip() if isinstance(name, str) else ""
    if not text or any(char in text for char in ", \t\n=:"):
        raise Invalid(f"{kind} {name!r}: expected a name without spaces, commas, colons and '='")
    if text.rpartition(".")[2].upper() in {known.upper() for known in built_in}:
        raise Invalid(f"{kind} '{text}': expected a name of your own, this one is Apache Hudi's")
    return text


def _definition(factory: object) -> object:
    """What identifies a function or class: its module and name, or the object itself if it has no name."""
    if isinstance(factory, partial):
        return (_definition(factory.func), factory.args, tuple(sorted(factory.keywords.items())))
    name = getattr(factory, "__qualname__", None)
    is_named = name is not None and "<lambda>" not in name
    return (getattr(factory, "__module__", None), name) if is_named else factory
