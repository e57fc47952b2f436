"""The call that changes a table's columns."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Self

import pyarrow as pa

from pyhudi.api.access import commit_texts
from pyhudi.api.handle import TableHandle
from pyhudi.errors import Invalid
from pyhudi.format.schema.alterations import (
    Add,
    Alteration,
    ChangeType,
    Comment,
    Drop,
    MakeNullable,
    Move,
    Place,
    Rename,
)
from pyhudi.format.schema.differences import describe_alterations
from pyhudi.metrics.measuring import told
from pyhudi.services.alter.run import AlterResult, run_alteration
from pyhudi.services.clean.settings import CleanSettings

_DECIMAL: Final = re.compile(r"decimal\s*\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)", re.IGNORECASE)

_OF_SQL: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(), "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(), "long": pa.int64(),
    "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
}  # fmt: skip
"""Types by names that Arrow has not."""


class TableAlteration:
    """Changes of a table's columns, gathered one after the other. `commit` carries all of them out as one commit.

    A column is named by its path: `fare`, or `home.city` for a field of a struct, `tags.element.name` within a list,
    `prices.value.amount` within the values of a map. Stored files stay as they are: readers match columns by numbers
    that the table keeps. Raises at once: Invalid for arguments that are none; the rest is said by `commit`.
    """

    def __init__(self, handle: TableHandle, schema_before: str | None) -> None:
        """Use `HudiTable.alter`."""
        self._handle, self._schema_before = handle, schema_before
        self._changes: list[Alteration] = []
        self._committed: str | None = None

    def __repr__(self) -> str:
        changes = describe_alterations(self._changes) or "no changes yet"
        done = "commit() carries this out" if self._committed is None else f"committed as '{self._committed}'"
        return f"TableAlteration('{self._handle.name}': {changes}; {done})"

    def add(
        self,
        path: str,
        type: pa.DataType | str,
        *,
        after: str | None = None,
        before: str | None = None,
        first: bool = False,
        comment: str | None = None,
    ) -> Self:
        """Add a column, or a field of a struct: last, or at a place. Stored rows have null there.

        `type`: an Arrow type, or the name of a simple one, such as `"int64"`, `"string"` or `"decimal(10, 2)"`.
        """
        place = _place(path, after, before, first)
        return self._with(Add(_path(path), _type(path, type), place, _text(path, comment)))

    def rename(self, path: str, name: str) -> Self:
        """Give a column another name. `name`: without the path."""
        return self._with(Rename(_path(path), _path(name)))

    def drop(self, path: str) -> Self:
        """Take a column out of the table. A column that is added under this name later on is another one."""
        return self._with(Drop(_path(path)))

    def move(self, path: str, *, after: str | None = None, before: str | None = None, first: bool = False) -> Self:
        """Put a column right behind or before another one of the same struct, or first."""
        if after is None and before is None and not first:
            raise Invalid(f"column '{path}': expected a place to move it to: after, before or first")
        return self._with(Move(_path(path), _place(path, after, before, first)))

    def change_type(self, path: str, type: pa.DataType | str) -> Self:
        """Make a column's type another one: a wider one, or one that each stored value fits.

        int32 becomes int64, float, double, text or a decimal with 10 digits before the point; int64 float, double, text
        or a decimal with 19; float double or text; double text; a date text; a decimal one with no fewer digits before
        and behind the point, or text. Where each stored value fits, float and double become a decimal, and text a
        decimal or a date: `commit` reads the column to see it.
        """
        return self._with(ChangeType(_path(path), _type(path, type)))

    def make_nullable(self, path: str) -> Self:
        """Let a column have nulls. There is no way back: stored rows might have nulls by then."""
        return self._with(MakeNullable(_path(path)))

    def comment(self, path: str, text: str | None) -> Self:
        """Say what a column means; None takes the comment away."""
        return self._with(Comment(_path(path), _text(path, text)))

    def commit(
        self, *, options: Mapping[str, object] | None = None, extra_metadata: Mapping[str, str] | None = None
    ) -> AlterResult:
        """Carry out all changes, in the order in which they were asked for, as one commit without rows.

        A write that runs meanwhile ends in a Conflict that says what was changed. A compaction or clustering that was
        planned before goes on. Statistics of columns in the metadata table are dropped where they would tell of
        another column; an index on a column that is to change stands in the way.
        Raises: Invalid where the table or its stored values forbid a change, by name, and for changes that were
        committed already; Conflict where another writer has changed the columns since `alter` was called, holds the
        table, or builds an index.
        """
        if self._committed is not None:
            raise Invalid(
                f"alter table '{self._handle.name}': this alteration was committed already, as '{self._committed}'; "
                "for other changes call alter() again"
            )
        if not self._changes:
            raise Invalid(f"alter table '{self._handle.name}': expected changes, found none")
        extra = commit_texts(extra_metadata)
        return told(self._handle.access.location.uri, "alter", lambda: self._commit(options, extra))()

    def _commit(self, options: Mapping[str, object] | None, extra: Mapping[str, str]) -> AlterResult:
        _, merged, settings = self._handle.prepare(options)
        with self._handle.session(settings, CleanSettings.from_options(merged), "alter") as session:
            done = run_alteration(session, self._changes, schema_before=self._schema_before, extra_metadata=extra)
        self._committed = done.requested
        return done

    def _with(self, change: Alteration) -> Self:
        self._changes.append(change)
        return self


class AlterCalls:
    """The call about its columns that a table has."""

    _handle: TableHandle

    def alter(self) -> TableAlteration:
        """Change the table's columns: `table.alter().add("city", "string").rename("fare", "price").commit()`.

        The changes are of the columns as they are now. If another writer changes them before `commit`, that ends in a
        Conflict.
        """
        return TableAlteration(self._handle, self._handle.access.snapshot().schema_text)


def _path(path: str) -> str:
    if not isinstance(path, str) or not path or "" in path.split("."):
        raise Invalid(f"column {path!r}: expected the name of a column, or names joined by dots")
    return path


def _type(path: str, given: pa.DataType | str) -> pa.DataType:
    """The type that a caller gives: of Arrow, by its alias there, or by its name in SQL."""
    if isinstance(given, pa.DataType):
        return given
    with suppress(ValueError):  # no alias of Arrow's, or a decimal of too many digits
        if isinstance(given, str) and (digits := _DECIMAL.fullmatch(given.strip())):
            return pa.decimal128(int(digits[1]), int(digits[2]))
        if isinstance(given, str):
            return _OF_SQL.get(given.strip().lower()) or pa.type_for_alias(given)
    raise Invalid(
        f"column '{path}': expected an Arrow type, such as pyarrow.decimal128(10, 2), or the name of a simple one "
        f"(bool, int32, int64, float, double, string, binary, date32, or as in SQL: bigint, date, decimal(10, 2)), "
        f"found {given!r}"
    )


def _place(path: str, after: str | None, before: str | None, first: bool) -> Place:
    if not isinstance(first, bool):
        raise Invalid(f"column '{path}': first: expected True or False, found {first!r}")
    return Place(_neighbour(path, after), _neighbour(path, before), first)


def _neighbour(path: str, given: str | None) -> str | None:
    return None if given is None else _path(given)


def _text(path: str, given: str | None) -> str | None:
    if given is not None and not isinstance(given, str):
        raise Invalid(f"column '{path}': expected a text as its comment, or None, found {given!r}")
    return given
