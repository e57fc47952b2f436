"""A column that a query uses could be taken for one that it cannot use, and the query fail or answer with less."""

import pytest

from pyhudi.sql.names_used import names_used


@pytest.mark.parametrize(
    "text,expected",
    [
        ("SELECT a, T.b FROM t WHERE id = 'x'", {"select", "a", "t", "b", "from", "where", "id"}),
        ("SELECT count(*) FROM t", {"select", "count", "from", "t"}),
        ("SELECT `a` FROM t", {"select", "a", "from", "t"}),
        ("SELECT a * b FROM t", None),
        ("SELECT * FROM t", None),
        ("SELECT t.* FROM t", None),
        ("SELECT struct(*) FROM t", None),
        ("SELECT count(DISTINCT *) FROM t", None),
        ("SELECT `(a|b)` FROM t", None),
        ("SELECT IDENTIFIER('a') FROM t", None),
        ("SELECT 'open FROM t", None),
    ],
)
def test_every_column_that_a_query_may_use_is_named(text: str, expected: set[str] | None) -> None:
    assert names_used(text) == (None if expected is None else frozenset(expected))
