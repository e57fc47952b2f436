"""Where in a text a name may be that of a table: names of WITH clauses hide tables, and some FROM name no table."""

from collections.abc import Collection
from dataclasses import dataclass, field

from pyhudi.sql.words import Cursor

_FUNCTIONS_WITH_FROM = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY"})
"""Functions whose brackets may hold FROM in front of a value: `extract(day FROM d)`."""


@dataclass(slots=True)
class _Scope:
    """A pair of brackets. `names`: of the WITH clause there. `defines`: the name whose query the brackets are."""

    of_function: bool = False
    names: set[str] = field(default_factory=set)
    defines: str | None = None


class Scopes:
    """The brackets that are open at a place of a text, and the names that their WITH clauses give."""

    def __init__(self, hidden: Collection[str] = ()) -> None:
        self._open = [_Scope(names=set(hidden))]
        self._defined: str | None = None

    @property
    def hidden(self) -> set[str]:
        """Names, in small letters, that are those of WITH clauses here."""
        return set().union(*(scope.names for scope in self._open))

    def reads_tables(self, cursor: Cursor) -> bool:
        """Whether the word that comes next stands behind a FROM or JOIN of a query."""
        before = [word.upper for word in cursor.words[max(0, cursor.at - 2) : cursor.at]]
        if before[-1:] == ["JOIN"]:
            return True
        is_comparison = before == ["DISTINCT", "FROM"]  # `a IS DISTINCT FROM b`; no table follows SELECT DISTINCT FROM
        return before[-1:] == ["FROM"] and not is_comparison and not self._open[-1].of_function

    def step(self, cursor: Cursor) -> None:
        """Move on by a word; by several in a WITH clause, to the query of a name."""
        word = cursor.words[cursor.at]
        before = cursor.words[cursor.at - 1].upper if cursor.at else ""
        cursor.at += 1
        if word.upper == "(":
            self._open.append(_Scope(of_function=before in _FUNCTIONS_WITH_FROM, defines=self._defined))
            self._defined = None
        elif word.upper == ")":
            self._close(cursor)
        elif word.upper == "WITH":
            self._define(cursor, is_recursive=cursor.take("RECURSIVE"))

    def _close(self, cursor: Cursor) -> None:
        if len(self._open) == 1:
            return
        closed = self._open.pop()
        if closed.defines is not None:
            self._open[-1].names.add(closed.defines)
            if cursor.take(","):
                self._define(cursor)

    def _define(self, cursor: Cursor, *, is_recursive: bool = False) -> None:
        """Read `name [(columns)] AS`, if that comes next. A name is known behind its own query."""
        at, word = cursor.at, cursor.word()
        if word is None or not word.is_name:
            return
        cursor.at += 1
        if cursor.sees("(") and not cursor.sees("(", "SELECT"):  # WITH a (x, y) AS; AS may be left out
            cursor.brackets()
        if cursor.take("MAX", "RECURSION", "LEVEL"):
            cursor.at += 1
        cursor.take("AS")
        if not cursor.sees("("):  # GROUP BY a WITH ROLLUP
            cursor.at = at
            return
        self._defined = word.text.lower()
        if is_recursive:
            self._open[-1].names.add(self._defined)


def given_names(text: str) -> set[str]:
    """The names that a WITH clause gives, in small letters."""
    cursor, scopes = Cursor(text), Scopes()
    while not cursor.is_done:
        scopes.step(cursor)
    return scopes.hidden
