"""Queries so plain that their rows can be told without Spark: some columns of one table, by comparisons alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pyhudi.errors import Invalid
from pyhudi.sql.words import Cursor, Kind, Name, Word

_NO_COLUMNS: Final = frozenset({
    "ALL", "CASE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "DEFAULT", "DISTINCT", "FALSE",
    "INTERVAL", "LOCALTIME", "LOCALTIMESTAMP", "NOT", "NULL", "SESSION_USER", "TRUE", "USER",
})  # fmt: skip
"""Words that Spark may take for something else than the column of that name, unless they are in backticks."""


@dataclass(frozen=True, slots=True)
class PlainSelect:
    """`SELECT columns FROM table [AS alias] WHERE condition`, and nothing else. `columns`: None for `*`."""

    columns: tuple[str, ...] | None


def find_plain_select(text: str, called: str, where: str) -> PlainSelect | None:
    """What a query of one table selects, if that is columns by their own names. None for any other query.

    `called`: how the query may call the table. `where`: its WHERE clause, as in the text.
    """
    try:
        return _select(Cursor(text), called.lower(), len(Cursor(where).words))
    except Invalid:
        return None


def names_are(condition: str, known: Collection[str]) -> bool:
    """Whether each column of a condition of comparisons is spelled as one of these names.

    Spark says of other spellings, by its settings, that there is no such column.
    """
    words = Cursor(condition).words
    return all(
        _is_column(word) and word.text in known
        for word, after in zip(words, [*words[1:], None], strict=True)
        if word.is_name and word.upper not in ("AND", "IN") and (after is None or after.upper != ".")
    )


def _select(cursor: Cursor, called: str, condition_words: int) -> PlainSelect | None:
    cursor.expect("SELECT")
    columns: list[str] | None = None
    if not cursor.take("*"):
        columns = [_column(cursor, called)]
        while cursor.take(","):
            columns.append(_column(cursor, called))
    cursor.expect("FROM")
    cursor.name()
    if not cursor.sees("WHERE"):
        cursor.take("AS")
        cursor.part()
    cursor.expect("WHERE")
    if len(cursor.words) - cursor.at != condition_words or (columns and len({*columns}) < len(columns)):
        return None
    return PlainSelect(None if columns is None else tuple(columns))


def _column(cursor: Cursor, called: str) -> str:
    first = cursor.word()
    name: Name = cursor.name()
    if len(name) > 2 or (len(name) == 2 and name[0].lower() != called) or first is None or not _is_column(first):
        raise cursor.wrong("a column")
    return name[-1]


def _is_column(word: Word) -> bool:
    return word.kind is Kind.NAME or word.upper not in _NO_COLUMNS
