"""The tables that a query reads, with their places in its text: by name, by path, of a moment, or by a function."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyhudi.errors import Invalid
from pyhudi.sql.relations import is_path, take_moment
from pyhudi.sql.scopes import Scopes
from pyhudi.sql.words import Cursor, Name, Word

_MAY_STATE = re.compile(r"\bWITH\b", re.IGNORECASE)
_ENDS_FROM = frozenset({
    "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "MINUS", "WINDOW", "SORT", "CLUSTER",
    "DISTRIBUTE", "OFFSET", "SELECT", "SET", "WHEN", "INSERT", "QUALIFY",
})  # fmt: skip
"""Words behind which a comma is none between tables."""

_NO_ALIAS = _ENDS_FROM | {
    "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ANTI", "SEMI", "ON", "USING", "LATERAL",
    "TABLESAMPLE", "PIVOT", "UNPIVOT", "VALUES",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Read:
    """A table in a query. `start`, `end`: its place in the text, the end excluded.

    `arguments`: the text in the brackets of a table function, None for a table. `as_of`: SQL text of a moment, None
    for now. `has_alias`: whether an alias follows. `alone_where`: the text of the WHERE clause that holds for this
    table alone, because the query reads no other there; None where there is none. `called`: how that clause may call
    the table.
    """

    name: Name
    start: int
    end: int
    arguments: str | None = None
    as_of: str | None = None
    has_alias: bool = False
    alone_where: str | None = None
    called: str = ""

    @property
    def path(self) -> str | None:
        """Where the table lies, if the query says that instead of a name."""
        return self.name[-1] if is_path(self.name) else None


@dataclass(slots=True)
class _Query:
    """A pair of brackets, or the whole text. `in_from`: whether a comma is one between tables."""

    in_from: bool = False


@dataclass(slots=True)
class _Reader:
    cursor: Cursor
    found: list[Read] = field(default_factory=list)
    scopes: Scopes = field(default_factory=Scopes)
    queries: list[_Query] = field(default_factory=lambda: [_Query()])

    def run(self) -> list[Read]:
        cursor = self.cursor
        while not cursor.is_done:
            word = cursor.words[cursor.at]
            is_behind = self._is_behind_from()
            if is_behind:
                self.queries[-1].in_from = True
            if is_behind and word.is_name and word.upper not in ("SELECT", "VALUES", "LATERAL"):
                self._table()
                continue
            self._note(word)
            self.scopes.step(cursor)
        return self.found

    def _is_behind_from(self) -> bool:
        if self.scopes.reads_tables(self.cursor):
            return True
        before = self.cursor.words[self.cursor.at - 1].upper if self.cursor.at else ""
        return before == "," and self.queries[-1].in_from

    def _note(self, word: Word) -> None:
        if word.upper == "(":
            self.queries.append(_Query())
        elif word.upper == ")":
            if len(self.queries) > 1:
                self.queries.pop()
        elif word.upper in _ENDS_FROM or (word.upper == "LATERAL" and self.cursor.sees("LATERAL", "VIEW")):
            self.queries[-1].in_from = False

    def _table(self) -> None:
        cursor, first = self.cursor, self.cursor.words[self.cursor.at]
        before = cursor.words[cursor.at - 1].upper if cursor.at else ""
        name = cursor.name()
        end = cursor.words[cursor.at - 1].end
        if len(name) == 1 and name[0].lower() in self.scopes.hidden:
            return
        if cursor.sees("("):
            arguments = cursor.brackets()
            self.found.append(
                Read(name, first.start, cursor.words[cursor.at - 1].end, arguments, has_alias=self._alias() is not None)
            )
            return
        as_of = take_moment(cursor)
        if as_of is not None:
            end = cursor.words[cursor.at - 1].end
        alias = self._alias()
        where = self._where(alias) if before == "FROM" else None
        self.found.append(
            Read(name, first.start, end, None, as_of, alias is not None, where, (alias or name[-1]).lower())
        )

    def _alias(self) -> str | None:
        """The alias that comes next, which is not passed over."""
        at = self.cursor.at
        self.cursor.take("AS")
        word = self.cursor.word()
        self.cursor.at = at
        return word.text if word is not None and word.is_name and word.upper not in _NO_ALIAS else None

    def _where(self, alias: str | None) -> str | None:
        """The WHERE clause of a query of this one table, which is not passed over."""
        cursor, at = self.cursor, self.cursor.at
        if alias is not None:
            cursor.take("AS")
            cursor.at += 1
        try:
            if not cursor.take("WHERE"):
                return None
            stops = tuple((word,) for word in _ENDS_FROM if word != "WHERE")
            start, depth = cursor.at, 0
            while not cursor.is_done:
                word = cursor.words[cursor.at]
                depth += (word.upper == "(") - (word.upper == ")")
                if depth < 0 or (depth == 0 and (word.text == "|>" or any(cursor.sees(*stop) for stop in stops))):
                    break  # "|>": what follows may give names to other columns
                cursor.at += 1
            return None if self._sees_or() else cursor.slice(start, cursor.at) or None
        finally:
            cursor.at = at

    def _sees_or(self) -> bool:
        """Whether an OR comes further on in these brackets.

        A word that ends the clause may be a column or part of a CASE: `id = 1 AND limit = 2 OR id = 3`.
        """
        depth = 0
        for word in self.cursor.words[self.cursor.at :]:
            depth += (word.upper == "(") - (word.upper == ")")
            if depth < 0:
                return False
            if depth == 0 and word.upper == "OR":
                return True
        return False


def find_reads(text: str) -> list[Read]:
    """The tables that a text reads behind FROM and JOIN, but for names of its WITH clauses, in their order.

    A text that cannot be read has none: Spark says what is wrong with it.
    """
    try:
        return _Reader(Cursor(text)).run()
    except Invalid:
        return []


def states_options(text: str) -> bool:
    """Whether `WITH (…)` stands behind something: a table's name, or what gives one, such as `IDENTIFIER(…)`."""
    return _MAY_STATE.search(text) is not None and bool(_options(_words(text)))


def names_with_options(text: str) -> list[Name]:
    """The tables behind which `WITH (…)` states options of one read or write, wherever they stand (Spark 4)."""
    words, found = _words(text), []
    for at in _options(words):
        if not words[at - 1].is_name:
            continue
        first = at - 1
        while first >= 2 and words[first - 1].upper == "." and words[first - 2].is_name:
            first -= 2
        found.append(tuple(word.text for word in words[first:at:2]))
    return found


def _options(words: Sequence[Word]) -> list[int]:
    """The places of `WITH (` behind other words."""
    return [at for at in range(1, len(words) - 1) if words[at].upper == "WITH" and words[at + 1].upper == "("]


def _words(text: str) -> Sequence[Word]:
    try:
        return Cursor(text).words
    except Invalid:
        return ()
