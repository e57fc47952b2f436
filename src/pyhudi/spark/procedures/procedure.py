"""What a procedure is: its arguments, the columns of its answer, and what gives the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid
from pyhudi.spark.session import SqlSession
from pyhudi.spark.table_names import table_of
from pyhudi.sql.calls import Call
from pyhudi.sql.words import split_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row: TypeAlias = tuple[Any, ...]


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()
"""The default of an argument that must be given."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a procedure. `default`: `REQUIRED` for one that must be given."""

    name: str
    default: object = None


@dataclass(frozen=True)
class Invocation:
    """A call of a procedure: the session and the values of all arguments."""

    session: SqlSession
    procedure: str
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def spark(self) -> SparkSession:
        return self.session.spark

    @cached_property
    def table(self) -> HudiTable:
        """The table that `table` or `path` names. Raises: Invalid, NotFound."""
        named, path = self.values.get("table"), self.values.get("path")
        if named is None and path is None:
            raise Invalid(f"CALL {self.procedure}: expected table => 'name' or path => '…', found neither")
        return table_of(self.session, named or path, what=f"CALL {self.procedure}", is_written=True)

    def limited(self, rows: Iterable[Row]) -> list[Row]:
        """At most as many rows as `limit` says, read no further than that."""
        limit = self._limit
        found: list[Row] = []
        for row in rows:
            if limit is not None and len(found) >= limit:
                break
            found.append(row)
        return found

    @property
    def _limit(self) -> int | None:
        said = self.values.get("limit")
        try:
            found = None if said is None else int(said)
        except ValueError:
            found = -1
        if found is not None and found < 0:
            raise Invalid(f"CALL {self.procedure}: limit => '{said}': expected a number of rows, 0 or more")
        return found

    def options(self, **stated: object) -> dict[str, str]:
        """The options of `options => 'name=value, …'`, and those that arguments state, without the absent ones."""
        found = {name: str(value) for name, value in stated.items() if value is not None}
        for piece in split_list(str(self.values.get("options") or "")):
            name, equals, value = piece.partition("=")
            if not equals:
                raise Invalid(f"CALL {self.procedure}: options: expected name=value, found '{piece}'")
            found[name.strip()] = value.strip().strip("'\"")
        return found


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure. `columns`: of its answer, as in `CREATE TABLE`. `about`: one sentence for `CALL help`."""

    about: str
    arguments: tuple[Argument, ...]
    columns: str
    run: Callable[[Invocation], Sequence[Row]]


TABLE: Final = Argument("table", None)
PATH: Final = Argument("path", None)


def limit(count: int | None) -> Argument:
    return Argument("limit", count)


def bound(name: str, procedure: Procedure, call: Call, session: SqlSession) -> Invocation:
    """The values of a call's arguments. Raises: Invalid for one that is unknown, missing or given twice."""
    known = [one.name for one in procedure.arguments]
    values: dict[str, Any] = {}
    for at, given in enumerate(call.arguments):
        argument = given.name
        if argument is None:
            if at >= len(known):
                raise Invalid(f"CALL {name}: expected at most {len(known)} arguments ({', '.join(known)})")
            argument = known[at]
        if argument not in known or argument in values:
            raise Invalid(f"CALL {name}: expected the arguments {', '.join(known)}, each once, found '{argument}'")
        values[argument] = session.value(given.value)
    for one in procedure.arguments:
        if one.name not in values:
            if one.default is REQUIRED:
                raise Invalid(f"CALL {name}: expected a value for '{one.name}', found none")
            values[one.name] = one.default
    return Invocation(session, name, values)
