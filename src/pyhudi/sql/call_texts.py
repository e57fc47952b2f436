"""Calls of functions as SQL text: operators are functions to PySpark, and stand between or before their arguments."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

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
