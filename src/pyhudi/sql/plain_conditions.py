"""The parts of a condition that any engine reads alike: a column compared with a literal.

They tell which files may hold rows that a statement changes. The whole condition is left to Spark.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from pyhudi.errors import Invalid
from pyhudi.sql.words import Cursor, Kind, Word, quoted_name, quoted_text

Plain: TypeAlias = Literal["text", "integer"]
"""The types of columns that are compared here."""

_COMPARISONS: Final = ("<=", ">=", "=", "<", ">")


def plain_conditions(condition: str, alias: str, types: Mapping[str, Plain]) -> str | None:
    """The part of a condition that compares columns with literals, as SQL text that the condition implies; None: none.

    `alias`: what may stand before a column. `types`: of the columns that may be compared, by their names, which are
    told apart in any case of letters; the text has them as they stand there. Example: `t.ID IN (1, 2) AND rand() > 0.5`
    gives "`id` IN (1, 2)".
    """
    found = [one for one in _comparisons(condition, alias, types) if one is not None]
    return " AND ".join(found) or None


def whole_condition(condition: str, alias: str, types: Mapping[str, Plain]) -> str | None:
    """A condition that does nothing but compare columns with literals, as SQL text that means the same; else None.

    Arguments: as of `plain_conditions`.
    """
    found = _comparisons(condition, alias, types)
    whole = [one for one in found if one is not None]
    return " AND ".join(whole) if whole and len(whole) == len(found) else None


def _comparisons(condition: str, alias: str, types: Mapping[str, Plain]) -> list[str | None]:
    """The parts of a condition between its ANDs: None for each that is no plain comparison."""
    spelled = {name.lower(): name for name in types}
    try:
        cursor = Cursor(condition)
        pieces = [cursor.until(("AND",), ("OR",), ("BETWEEN",), ("NOT",))]
        while cursor.take("AND"):
            pieces.append(cursor.until(("AND",), ("OR",), ("BETWEEN",), ("NOT",)))
        return [_plain(piece, alias.lower(), types, spelled) for piece in pieces] if cursor.is_done else []
    except Invalid:
        return []


def _plain(text: str, alias: str, types: Mapping[str, Plain], spelled: Mapping[str, str]) -> str | None:
    """A comparison of a column with a literal, or None. `spelled`: the columns by their names in small letters."""
    cursor = Cursor(text)
    word = cursor.word()
    if word is None or not word.is_name:
        return None
    name = cursor.name()
    column = spelled.get(name[-1].lower())
    if column is None or len(name) > 2 or (len(name) == 2 and name[0].lower() != alias):
        return None
    kind = types[column]
    if cursor.take("IN"):
        inner = Cursor(cursor.brackets())
        values = [_literal(inner, kind)]
        while inner.take(","):
            values.append(_literal(inner, kind))
        if not inner.is_done or not cursor.is_done or None in values:
            return None
        return f"{quoted_name(column)} IN ({', '.join(value for value in values if value is not None)})"
    sign = next((one for one in _COMPARISONS if cursor.take(one)), None)
    value = None if sign is None else _literal(cursor, kind)
    return f"{quoted_name(column)} {sign} {value}" if value is not None and cursor.is_done else None


def _literal(cursor: Cursor, kind: Plain) -> str | None:
    """The literal that comes next, if it is of the column's own type."""
    sign = "-" if cursor.take("-") else ""
    word: Word | None = cursor.word()
    cursor.at += 1
    if word is None:
        return None
    written = cursor.text[word.start : word.end]
    if kind == "text":  # escapes are Spark's to read
        is_plain = word.kind is Kind.STRING and written[1:-1] == word.text and "\\" not in written and not sign
        return quoted_text(word.text) if is_plain else None
    return sign + word.text if word.kind is Kind.NUMBER and word.text.isdigit() else None
