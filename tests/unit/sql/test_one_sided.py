"""A clause of a merge could ask Spark for a name that both sides have, or for one of the side that has no row."""

import pytest

from pyhudi.sql.one_sided import Side, with_side

SOURCE = Side("the source", "s", frozenset({"id", "name", "na me", "info", "date", "tags"}))
TARGET = Side("the table", "t", frozenset({"id", "name", "ts"}))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("id", "`s`.id"),
        ("s.id + S.id", "s.id + S.id"),
        ("'é' || name || `na me`", "'é' || `s`.name || `s`.`na me`"),
        ("info.name", "`s`.info.name"),
        ("transform(tags, name -> name + id)", "transform(`s`.tags, name -> name + `s`.id)"),
        ("CAST(name AS date)", "CAST(`s`.name AS date)"),
        ("named_struct('name', name)", "named_struct('name', `s`.name)"),
        ("id IN (SELECT name FROM q WHERE q.id = name)", "`s`.id IN (SELECT name FROM q WHERE q.id = name)"),
        ("current_date() > date '2020-01-01'", "current_date() > date '2020-01-01'"),
        ("unknown + 1", "unknown + 1"),
        ("name SOUNDS LIKE (", "name SOUNDS LIKE ("),
    ],
)
def test_columns_get_the_side_that_their_rows_have(text: str, expected: str) -> None:
    assert with_side(text, SOURCE, TARGET, what="MERGE") == expected
