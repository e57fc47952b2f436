"""Conditions of a join as pairs of columns, where they are no more than that."""

from pyhudi.sql.words import Cursor


def equal_columns(condition: str, target: str, source: str) -> dict[str, str] | None:
    """Column of the target -> column of the source, in small letters, for a condition of equal columns joined by AND.

    `target`, `source`: the aliases. None for any other condition. Names of the target's columns are given as written.
    Example: `t.id = s.key AND s.day = t.day` gives `{"id": "key", "day": "day"}`.
    """
    cursor = Cursor(condition)
    while cursor.sees("(") and condition.rstrip().endswith(")"):
        inner = cursor.brackets()
        if not cursor.is_done:
            return None
        return equal_columns(inner, target, source)
    found: dict[str, str] = {}
    while True:
        pair = _pair(cursor, target.lower(), source.lower())
        if pair is None:
            return None
        found[pair[0]] = pair[1].lower()
        if cursor.is_done:
            return found
        if not cursor.take("AND"):
            return None


def _pair(cursor: Cursor, target: str, source: str) -> tuple[str, str] | None:
    sides: dict[str, str] = {}
    for at in range(2):
        word = cursor.word()
        if word is None or not word.is_name:
            return None
        name = cursor.name()
        if len(name) != 2:
            return None
        sides[name[0].lower()] = name[1]
        if at == 0 and not cursor.take("="):
            return None
    return (sides[target], sides[source]) if set(sides) == {target, source} and target != source else None
