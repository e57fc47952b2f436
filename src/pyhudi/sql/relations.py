"""Tables in a query that Spark cannot name: those of a moment (`t TIMESTAMP AS OF …`), and paths (hudi.`/path`)."""

from collections.abc import Collection
from dataclasses import dataclass

from pyhudi.sql.scopes import Scopes
from pyhudi.sql.words import Cursor, Kind, Name, Word, quoted_name

_TIMES = (
    ("TIMESTAMP", "AS", "OF"),
    ("VERSION", "AS", "OF"),
    ("SYSTEM_TIME", "AS", "OF"),
    ("SYSTEM_VERSION", "AS", "OF"),
)
_FORMATS = ("hudi", "org.apache.hudi")
_UNITS = frozenset({
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND",
})  # fmt: skip
"""Units of an interval, without the S of a plural."""

_AFTER_TABLES = frozenset({
    "WHERE", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ANTI", "SEMI", "GROUP", "ORDER", "HAVING",
    "LIMIT", "UNION", "EXCEPT", "INTERSECT", "MINUS", "ON", "USING", "LATERAL", "TABLESAMPLE", "PIVOT", "UNPIVOT",
    "WINDOW", "DISTRIBUTE", "SORT", "CLUSTER", "OFFSET", "WHEN", "SET", "VALUES", "SELECT", "INSERT",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Relation:
    """A table in a query. `path`: where it is said instead of a name. `as_of`: SQL text of the moment, None for now.

    `start`, `end`: its place in the text. `has_alias`: whether an alias follows.
    """

    name: Name
    path: str | None
    as_of: str | None
    start: int
    end: int
    has_alias: bool


def find_relations(text: str) -> list[Relation]:
    """The tables of a moment, and those of a path, in the order of the text. Raises: Invalid for an unreadable text."""
    cursor = Cursor(text)
    found = []
    while not cursor.is_done:
        word = cursor.word()
        if word is None or not word.is_name or _is_behind_dot(cursor):
            cursor.at += 1
            continue
        relation = _relation(cursor)
        if relation is None:
            continue
        found.append(relation)
    return found


def with_table_as(text: str, names: Collection[str], view: str, *, hidden: Collection[str] = ()) -> str:
    """The text with the name of a view in place of a table's, behind FROM and JOIN.

    `names`: how the table may be called, in small letters, with dots. `hidden`: those of them that a WITH clause in
    front of the text has for itself. A table of a moment stays as it is.
    """
    cursor, pieces, start, scopes = Cursor(text), [], 0, Scopes(hidden)
    while not cursor.is_done:
        word = cursor.words[cursor.at]
        if not word.is_name or not scopes.reads_tables(cursor):
            scopes.step(cursor)
            continue
        words = _dotted(cursor)
        following = cursor.word()
        name = ".".join(one.text for one in words).lower()
        is_called = name in names and name not in scopes.hidden
        if not is_called or cursor.sees("(") or cursor.sees("FOR") or any(cursor.sees(*clause) for clause in _TIMES):
            continue
        has_alias = following is not None and following.is_name and following.upper not in _AFTER_TABLES
        alias = "" if has_alias else f" AS {quoted_name(words[-1].text)}"
        pieces += [text[start : word.start], quoted_name(view), alias]
        start = words[-1].end
    return "".join(pieces) + text[start:]


def with_short_columns(text: str, names: Collection[str]) -> str:
    """The text with `t.column` in place of `db.t.column`, for a view that is called `t`.

    `names`: how the table may be called, as in `with_table_as`.
    """
    if not names:
        return text
    cursor, pieces, start = Cursor(text), [], 0
    while not cursor.is_done:
        if not cursor.words[cursor.at].is_name or _is_behind_dot(cursor):
            cursor.at += 1
            continue
        words = _dotted(cursor)
        called = [at for at in range(2, len(words)) if ".".join(w.text for w in words[:at]).lower() in names]
        if called:
            pieces.append(text[start : words[0].start])
            start = words[called[0] - 1].start
    return "".join(pieces) + text[start:]


def is_path(name: Name) -> bool:
    """Whether a name is a table's path: `hudi` and a text with a slash or colon. Not `hudi.id`."""
    return ".".join(name[:-1]).lower() in _FORMATS and bool({"/", ":"} & set(name[-1]))


def take_moment(cursor: Cursor) -> str | None:
    """Pass over `TIMESTAMP AS OF …` or the like, if it comes next: SQL text of the moment."""
    at = cursor.at
    cursor.take("FOR")
    if not any(cursor.take(*clause) for clause in _TIMES):
        cursor.at = at
        return None
    start = cursor.at
    _take_value(cursor)
    return cursor.slice(start, cursor.at)


def _is_behind_dot(cursor: Cursor) -> bool:
    return cursor.at > 0 and cursor.words[cursor.at - 1].upper == "."


def _relation(cursor: Cursor) -> Relation | None:
    """The relation that begins here, or None; the cursor stands behind what was looked at."""
    first = cursor.words[cursor.at]
    words = _dotted(cursor)
    name = tuple(word.text for word in words)
    path = name[-1] if is_path(name) and words[-1].kind is Kind.NAME else None
    end = words[-1].end
    as_of = take_moment(cursor)
    if as_of is not None:
        end = cursor.words[cursor.at - 1].end
    if path is None and as_of is None:
        return None
    following = cursor.word()
    has_alias = following is not None and following.is_name and following.upper not in _AFTER_TABLES
    return Relation(name, path, as_of, first.start, end, has_alias)


def _dotted(cursor: Cursor) -> list[Word]:
    words = [cursor.words[cursor.at]]
    cursor.at += 1
    while cursor.sees(".") and (word := cursor.word(1)) is not None and word.is_name:
        words.append(word)
        cursor.at += 2
    return words


def _take_value(cursor: Cursor) -> None:
    """Pass over a moment: literals, parameters and calls of functions, with signs of arithmetic between them."""
    _take_operand(cursor)
    while cursor.take_one("+", "-", "*", "/", "||", "::"):
        _take_operand(cursor)


def _take_operand(cursor: Cursor) -> None:
    """Pass over a literal, a parameter, a call, or an expression in brackets."""
    cursor.take("-")
    if cursor.sees("("):
        cursor.brackets()
        return
    if cursor.take("INTERVAL"):
        cursor.take("-")
        _take_interval(cursor)
        return
    cursor.take("DATE")
    cursor.take("TIMESTAMP")
    cursor.take(":")
    if cursor.is_done:
        raise cursor.wrong("a moment")
    cursor.at += 1
    while cursor.take(".") and not cursor.is_done:  # `catalog.schema.function()`
        cursor.at += 1
    if cursor.sees("("):
        cursor.brackets()


def _take_interval(cursor: Cursor) -> None:
    """Pass over `1 DAY 2 HOURS`, `'1 day'` or `'1 00' DAY TO HOUR`, behind INTERVAL."""
    first = cursor.word()
    if first is None:
        raise cursor.wrong("an interval")
    while (word := cursor.word()) is not None and (word.kind in (Kind.NUMBER, Kind.STRING) or word.text == "-"):
        cursor.at += 1
        while (unit := cursor.word()) is not None and unit.upper.removesuffix("S") in _UNITS:
            cursor.at += 1
            cursor.take("TO")
