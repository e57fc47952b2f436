"""What a procedure is: its arguments, the columns of its answer, and what gives the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

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


ArgumentType: TypeAlias = Literal["string", "integer", "long", "boolean"]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a procedure. `default`: `REQUIRED` for one that must be given. Names have no case in a call."""

    name: str
    default: object = None
    type: ArgumentType = "string"

    def read(self, value: object) -> object:
        """A given value as the argument's type; null is null. Raises: ValueError for one that is none of it."""
        if value is None:
            return None
        if self.type == "string":
            return str(value)
        text = str(value).strip()
        if self.type == "boolean":
            return _TRUTH[text.lower()] if text.lower() in _TRUTH else self._refuse(text)
        return int(text)

    def _refuse(self, text: str) -> bool:
        raise ValueError(text)


_TRUTH: Final = {"true": True, "false": False}


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
        return self.named(named or path)

    def named(self, said: object) -> HudiTable:
        """The table of a name or path. Raises: Invalid, NotFound."""
        return table_of(self.session, said, what=f"CALL {self.procedure}", is_written=True)

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
        found: int | None = self.values.get("limit")
        if found is not None and found < 0:
            raise Invalid(f"CALL {self.procedure}: limit => '{found}': expected a number of rows, 0 or more")
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
FILTER: Final = Argument("filter", "")
"""A condition on the answer's columns, of the rows that `limit` left."""


def limit(count: int | None) -> Argument:
    return Argument("limit", count, "integer")


def flag(name: str, default: bool = False) -> Argument:
    return Argument(name, default, "boolean")


def number(name: str, default: object = None, type: ArgumentType = "integer") -> Argument:
    return Argument(name, default, type)


def bound(name: str, procedure: Procedure, call: Call, session: SqlSession) -> Invocation:
    """The values of a call's arguments. Raises: Invalid for one that is unknown, missing or given twice."""
    known = {one.name.lower(): one for one in procedure.arguments}
    names = [one.name for one in procedure.arguments]
    values: dict[str, Any] = {}
    for at, given in enumerate(call.arguments):
        if given.name is None and at >= len(names):
            raise Invalid(f"CALL {name}: expected at most {len(names)} arguments ({', '.join(names)})")
        argument = known.get(names[at].lower() if given.name is None else given.name)
        if argument is None or argument.name in values:
            found = given.name or names[at]
            raise Invalid(f"CALL {name}: expected the arguments {', '.join(names)}, each once, found '{found}'")
        said = session.value(given.value)
        try:
            values[argument.name] = argument.read(said)
        except ValueError:
            kind = "true or false" if argument.type == "boolean" else "a number"
            raise Invalid(f"CALL {name}: {argument.name} => '{said}': expected {kind}") from None
    for one in procedure.arguments:
        if values.get(one.name) is None:
            if one.default is REQUIRED:
                raise Invalid(f"CALL {name}: expected a value for '{one.name}', found none")
            values[one.name] = one.default
    return Invocation(session, name, values)
