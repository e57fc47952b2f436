"""`CALL name(argument => value, …)` and statements about indexes, as values."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.sql.definitions import properties
from pyhudi.sql.heads import Head
from pyhudi.sql.words import Cursor, Name, split_list


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a procedure. `name`: None where it is told by its position. `value`: SQL text."""

    name: str | None
    value: str


@dataclass(frozen=True, slots=True)
class Call:
    """`CALL [system.]procedure(…)`."""

    procedure: str
    arguments: tuple[Argument, ...]


def read_call(head: Head) -> Call:
    """Raises: Invalid for arguments that cannot be read."""
    cursor = head.cursor
    text = cursor.brackets() if cursor.sees("(") else ""
    cursor.end()
    return Call(head.target[-1].lower(), tuple(_argument(piece) for piece in split_list(text)))


def _argument(text: str) -> Argument:
    cursor = Cursor(text)
    word = cursor.word(1)
    if word is not None and word.text in ("=>", "="):
        name = cursor.part("an argument's name")
        cursor.at += 1
        return Argument(name.lower(), cursor.rest())
    return Argument(None, text)


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """`CREATE INDEX name ON t [USING kind] (column, …) [OPTIONS (…)]`. `kind`: empty where none is said."""

    target: Name
    name: str
    kind: str
    columns: tuple[str, ...]
    options: Mapping[str, str]
    is_lenient: bool


def read_create_index(head: Head) -> CreateIndex:
    """Raises: Invalid for clauses that cannot be read."""
    cursor = head.cursor
    kind = cursor.part("a kind of index").lower() if cursor.take("USING") else ""
    columns = tuple(".".join(Cursor(piece).name("a column")) for piece in split_list(cursor.brackets()))
    options = properties(cursor.brackets()) if cursor.take("OPTIONS") else {}
    cursor.end()
    return CreateIndex(head.target, head.index, kind, columns, options, head.is_lenient)
