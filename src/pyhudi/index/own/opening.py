"""Opening an index of one's own. What it raises is told with its name, and with what it was asked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from pyhudi.errors import HudiError, Unavailable
from pyhudi.index.own.protocol import IndexOf, LocationChanges, OwnIndex, RegisteredIndex

T = TypeVar("T")


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
    """The index of a table, closed afterwards."""
    index = OpenIndex(registered.name, _asked(registered.name, "opening", lambda: registered.factory(table)))
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
