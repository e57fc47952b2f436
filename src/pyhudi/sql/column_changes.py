"""What `ALTER TABLE` says of columns, as values: RENAME, DROP, ALTER, CHANGE and ADD COLUMN."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from pyhudi.sql.words import Cursor, Kind, Word, split_list, words_of


class Verb(Enum):
    ADD = auto()
    RENAME = auto()
    DROP = auto()
    ALTER = auto()


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One change. `path`: names joined by dots, as written. `type`: Spark's text of a type; empty: it stays.

    `name`: the new name; empty: it stays. `comment`: None: it stays. `after`: the column that it goes behind; None: it
    stays, unless `is_first`. `drops_not_null`: it may be null from now on.
    """

    verb: Verb
    path: str
    name: str = ""
    type: str = ""
    comment: str | None = None
    after: str | None = None
    is_first: bool = False
    drops_not_null: bool = False

    @property
    def has_place(self) -> bool:
        return self.is_first or self.after is not None


_STOPS: Final = (("COMMENT",), ("FIRST",), ("AFTER",), ("NOT", "NULL"), ("DEFAULT",))


def read_column_changes(cursor: Cursor) -> tuple[ColumnChange, ...] | None:
    """The changes of columns that a statement asks for; None for one that is about something else.

    Raises: Invalid for a clause that is cut short, or that is none.
    """
    if cursor.take("RENAME", "COLUMN"):
        path = _path(cursor)
        cursor.expect("TO")
        name = cursor.part("the new name")
        cursor.end()
        return (ColumnChange(Verb.RENAME, path, name=name),)
    if cursor.take("DROP", "COLUMN") or cursor.take("DROP", "COLUMNS"):
        texts = split_list(cursor.brackets() if cursor.sees("(") else cursor.rest())
        cursor.end()
        return tuple(ColumnChange(Verb.DROP, _whole_path(text)) for text in texts)
    if cursor.take("ALTER"):
        cursor.take("COLUMN")
        return (_altered(cursor, _path(cursor)),)
    if cursor.take("CHANGE"):
        cursor.take("COLUMN")
        path, name = _path(cursor), cursor.part("the name after the change")
        own = path.rpartition(".")[2]
        return (_described(cursor, Verb.ALTER, path, name="" if name.lower() == own.lower() else name),)
    return None


def read_added_columns(text: str) -> tuple[ColumnChange, ...]:
    """The columns of `ADD COLUMNS (…)`. Raises: Invalid."""
    found = []
    for piece in _split(text):
        cursor = Cursor(piece)
        found.append(_described(cursor, Verb.ADD, _path(cursor)))
    return tuple(found)


def _split(text: str) -> list[str]:
    """The columns of a list. Commas within the type of a struct or a map separate nothing."""
    pieces, start, depth = [], 0, 0
    for word in words_of(text):
        if word.kind is not Kind.SIGN:
            continue
        depth += _levels(word)
        if word.text == "," and depth == 0:
            pieces.append(text[start : word.start])
            start = word.end
    return [*pieces, text[start:]]


def _levels(word: Word) -> int:
    """How many brackets a word opens, less those that it closes. Those of types are `<` and `>`."""
    if word.kind is not Kind.SIGN:
        return 0
    return sum((sign in "(<") - (sign in ")>") for sign in word.text)


def _type(cursor: Cursor) -> str:
    """The text of a type: to the next clause. Fields of a struct may be called as clauses, and have comments."""
    start, depth = cursor.at, 0
    while (word := cursor.word()) is not None and (depth or not any(cursor.sees(*stop) for stop in _STOPS)):
        depth += _levels(word)
        cursor.at += 1
    return cursor.slice(start, cursor.at)


def _altered(cursor: Cursor, path: str) -> ColumnChange:
    """What follows `ALTER COLUMN name`: one clause."""
    if cursor.take("TYPE"):
        change = ColumnChange(Verb.ALTER, path, type=cursor.rest())
    elif cursor.take("COMMENT"):
        change = ColumnChange(Verb.ALTER, path, comment=cursor.string("a comment"))
    elif cursor.take("FIRST"):
        change = ColumnChange(Verb.ALTER, path, is_first=True)
    elif cursor.take("AFTER"):
        change = ColumnChange(Verb.ALTER, path, after=_path(cursor))
    elif cursor.take("DROP", "NOT", "NULL"):
        change = ColumnChange(Verb.ALTER, path, drops_not_null=True)
    else:
        raise cursor.wrong("TYPE, COMMENT, FIRST, AFTER or DROP NOT NULL")
    cursor.end()
    return change


def _described(cursor: Cursor, verb: Verb, path: str, name: str = "") -> ColumnChange:
    """A column as it is to be: its type, and what else is said of it."""
    kind = _type(cursor)
    if not kind:
        raise cursor.wrong("a type")
    comment, after, is_first = None, None, False
    while not cursor.is_done:
        if cursor.take("COMMENT"):
            comment = cursor.string("a comment")
        elif cursor.take("FIRST"):
            is_first = True
        elif cursor.take("AFTER"):
            after = _path(cursor)
        else:
            raise cursor.wrong("COMMENT, FIRST or AFTER (stored rows have no value: neither NOT NULL nor DEFAULT)")
    return ColumnChange(verb, path, name=name, type=kind, comment=comment, after=after, is_first=is_first)


def _path(cursor: Cursor) -> str:
    return ".".join(cursor.name("a column"))


def _whole_path(text: str) -> str:
    cursor = Cursor(text)
    path = _path(cursor)
    cursor.end()
    return path
