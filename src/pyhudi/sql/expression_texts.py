"""Expressions as SQL text, of the texts of their parts.

Operators are functions to PySpark; in text they stand between or before their arguments.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyhudi.errors import Unsupported
from pyhudi.sql.words import quoted_name

_BETWEEN: Final[Mapping[str, str]] = {
    **{sign: sign for sign in ("=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|", "^")},
    "==": "=", "and": "AND", "or": "OR", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE",
}  # fmt: skip
_BEHIND: Final[Mapping[str, str]] = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_BEFORE: Final[Mapping[str, str]] = {"!": "NOT", "not": "NOT", "negative": "-", "~": "~"}
_PLAIN_NAME: Final = re.compile(r"\w+", re.ASCII)


def call_text(name: str, arguments: Sequence[str]) -> str | None:
    """The call of a function with these texts as arguments; None for a name that no text can have."""
    match name.lower(), arguments:
        case called, [first, second] if called in _BETWEEN:
            return f"({first} {_BETWEEN[called]} {second})"
        case called, [only] if called in _BEHIND:
            return f"({only} {_BEHIND[called]})"
        case called, [only] if called in _BEFORE:
            return f"({_BEFORE[called]} {only})"
        case "in", [first, *others] if others:
            return f"({first} IN ({', '.join(others)}))"
    return f"{name}({', '.join(arguments)})" if _PLAIN_NAME.fullmatch(name) else None


def cast_text(value: str, kind: str, *, is_try: bool) -> str:
    """`CAST(value AS kind)`. `is_try`: null for a value that does not fit."""
    return f"{'TRY_CAST' if is_try else 'CAST'}({value} AS {kind})"


def case_text(branches: Sequence[tuple[str, str]], otherwise: str | None) -> str:
    """`CASE WHEN condition THEN value … END`."""
    whens = " ".join(f"WHEN {when} THEN {then}" for when, then in branches)
    return f"CASE {whens}{'' if otherwise is None else f' ELSE {otherwise}'} END"


def field_text(value: str, names: Sequence[str]) -> str:
    """An argument of `struct`: its name, where it has one, is that of a field."""
    return f"{value} AS {quoted_name(names[0])}" if len(names) == 1 else value


def no_text(shown: object, *, what: str) -> Unsupported:
    """What is told of a column that has no text. `what`: the call that it was given to."""
    return Unsupported(
        f"{what}: a column that has no SQL text: {shown}; write it as expr('…'), or use spark.sql('MERGE INTO …')"
    )
