"""The folders that a statement gives to Spark's own formats: they write there, or later statements let them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile

from pyhudi.errors import Invalid
from pyhudi.sql.definitions import property_name
from pyhudi.sql.heads import Head, Statement
from pyhudi.sql.words import Cursor, Kind, Word, split_list

_GIVING = frozenset(
    {Statement.CREATE_TABLE, Statement.REPLACE_TABLE, Statement.ALTER_TABLE, Statement.WRITE_FOLDER, Statement.SCRIPT}
)


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """A folder in a statement. `clause`: the word in front. `path`: its text, or if `is_expression` SQL that gives it.

    `is_of_table`: a path without a root lies below the folder of the table's database.
    """

    clause: str
    path: str
    is_expression: bool = False
    is_of_table: bool = True


def written_folders(head: Head) -> list[WrittenFolder]:
    """The folders of LOCATION and DIRECTORY, and of the option `path`, in the order of the text.

    Words of a query count, too: it is safer to look at one folder more.
    """
    if head.statement not in _GIVING:
        return []
    found, words = [], head.cursor.words
    for at, word in enumerate(words):
        if word.upper in ("LOCATION", "DIRECTORY"):
            if path := _joined(words[at + 1 :]):
                found.append(WrittenFolder(word.upper, path, is_of_table=word.upper == "LOCATION"))
        elif word.upper == "OPTIONS":
            found += _path_options(Cursor(head.cursor.text, words[at + 1 :]), head.statement)
    return found


def _joined(words: Sequence[Word]) -> str:
    """The text that begins here. Spark takes several behind each other as one."""
    return "".join(word.text for word in takewhile(lambda one: one.kind is Kind.STRING, words))


def _path_options(cursor: Cursor, statement: Statement) -> list[WrittenFolder]:
    """The option `path` in brackets that come next. Spark says what is wrong with brackets that are no options."""
    found = []
    with suppress(Invalid):
        for piece in split_list(cursor.brackets()):
            one = Cursor(piece)
            if property_name(one).lower() != "path":
                continue
            one.take("=")
            path, value = _joined(one.words[one.at :]), one.rest()
            is_text = all(word.kind is Kind.STRING for word in Cursor(value).words)
            found.append(
                WrittenFolder(
                    "OPTIONS path", path if is_text else value, is_expression=not is_text,
                    is_of_table=statement is not Statement.WRITE_FOLDER,
                )
            )  # fmt: skip
    return found
