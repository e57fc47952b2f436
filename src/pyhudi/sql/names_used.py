"""The names that a query uses, so that columns it cannot use need not be read."""

import re

from pyhudi.errors import Invalid
from pyhudi.sql.words import Cursor, Kind

_PLAIN = re.compile(r"\w+")


def names_used(text: str) -> frozenset[str] | None:
    """Every word of a query that may be a column's name, in small letters; None where it may use any column.

    It may where it has a `*` that is not of `count(*)`, where it computes names, or where it has a pattern of them.
    """
    try:
        words = Cursor(text).words
    except Invalid:
        return None
    names = set()
    for at, word in enumerate(words):
        if word.kind is Kind.SIGN and "*" in word.text:
            before = [one.upper for one in words[max(at - 2, 0) : at]]
            if before != ["COUNT", "("]:
                return None
        if word.upper == "IDENTIFIER" or (word.kind is Kind.NAME and not _PLAIN.fullmatch(word.text)):
            return None
        if word.is_name:
            names.add(word.text.lower())
    return frozenset(names)
