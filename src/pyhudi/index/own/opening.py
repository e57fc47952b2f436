"""Opening an index of one's own. What it raises is told with its name, and with what it was asked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from pyhudi.errors import HudiError, Invalid, Unavailable
from pyhudi.index.own.protocol import IndexOf, LocationChanges, OwnIndex, RegisteredIndex

T = TypeVar("T")

_METHODS = ("state", "locate", "update", "clear", "close")


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index that is open. Its methods are those of `OwnIndex`. Raises: Unavailable for whatever the index raises."""

    name: str
    own: OwnIndex

    def state(self) -> str | None:
        return _asked(self.name, "state", self.own.state)

    def locate(self, keys: pa.Table) -> pa.Table:
        return _asked(self.name, "locate", lambda: self.own.locate(keys))

    def update(self, changes: LocationChanges) -> None:
        _asked(self.name, "update", lambda: self.own.update(changes))

    def clear(self) -> None:
        _asked(self.name, "clear", self.own.clear)

    def close(self) -> None:
        _asked(self.name, "close", self.own.close)


@contextmanager
def opened(registered: RegisteredIndex, table: IndexOf) -> Iterator[OpenIndex]:
    """The index of a table, closed afterwards. Raises: Invalid where what was opened lacks a method."""
    own = _asked(registered.name, "opening", lambda: registered.factory(table))
    lacks = [name for name in _METHODS if not callable(getattr(own, name, None))]
    if lacks:
        raise Invalid(
            f"index '{registered.name}': expected an object with the methods {', '.join(_METHODS)}, found "
            f"{type(own).__name__} without {', '.join(lacks)}"
        )
    index = OpenIndex(registered.name, own)
    try:
        yield index
    finally:
        index.close()


def _asked(name: str, what: str, ask: Callable[[], T]) -> T:
    try:
        return ask()
    except HudiError:
        raise
    except Exception as error:
        raise Unavailable(f"index '{name}': {what} raised {type(error).__name__}: {error}") from error
