"""A query that does more than to select columns could be answered as if it did not."""

import pytest

from pyhudi.sql.key_select import find_plain_select, names_are
from pyhudi.sql.reads import find_reads

PLAIN: dict[str, tuple[str, ...] | None] = {
    "SELECT * FROM t WHERE id = 1": None,
    "select a, t.b, `c d` from x.t where id = 1;": ("a", "b", "c d"),
    "SELECT o.a FROM t AS o WHERE o.id = 1 -- all": ("a",),
    "SELECT a FROM t o WHERE id IN (1, 2)": ("a",),
    "SELECT `null` FROM t WHERE id = 1": ("null",),
}

OTHER = (
    "SELECT a AS b FROM t WHERE id = 1",
    "SELECT a b FROM t WHERE id = 1",
    "SELECT a, a FROM t WHERE id = 1",
    "SELECT a + 1 FROM t WHERE id = 1",
    "SELECT *, a FROM t WHERE id = 1",
    "SELECT t.* FROM t WHERE id = 1",
    "SELECT s.a FROM t WHERE id = 1",
    "SELECT t.s.a FROM t WHERE id = 1",
    "SELECT s['a'] FROM t WHERE id = 1",
    "SELECT null FROM t WHERE id = 1",
    "SELECT current_user FROM t WHERE id = 1",
    "SELECT count(*) FROM t WHERE id = 1",
    "SELECT 'a' FROM t WHERE id = 1",
    "SELECT DISTINCT a FROM t WHERE id = 1",
    "SELECT a FROM t WHERE id = 1 LIMIT 1",
    "SELECT a FROM t WHERE id = 1 ORDER BY a",
    "SELECT a FROM t WHERE id = 1 UNION ALL SELECT 1",
    "SELECT a FROM t WHERE id = 1 |> WHERE a = 2",
    "SELECT a FROM t TABLESAMPLE (1 ROWS) WHERE id = 1",
    "SELECT a FROM t AS o (b) WHERE id = 1",
    "SELECT a FROM (SELECT * FROM t WHERE id = 1)",
    "WITH w AS (SELECT 1) SELECT a FROM t WHERE id = 1",
    "FROM t SELECT a WHERE id = 1",
    "EXPLAIN SELECT a FROM t WHERE id = 1",
)


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_select_tells_its_columns(text: str) -> None:
    (read,) = find_reads(text)
    found = find_plain_select(text, read.called, read.alone_where or "")
    assert found is not None
    assert found.columns == PLAIN[text]


@pytest.mark.parametrize("text", OTHER)
def test_anything_else_is_none(text: str) -> None:
    read = find_reads(text)[0]
    assert find_plain_select(text, read.called, read.alone_where or "") is None


@pytest.mark.parametrize(
    "condition,expected",
    [
        ("id = 1 AND t.x IN (2) and `id` > 0", True),
        ("ID = 1", False),
        ("T.id = 1", True),
        ("null = 1", False),
        ("`null` = 1", True),
    ],
)
def test_names_are_spelled_as_the_tables(condition: str, expected: bool) -> None:
    assert names_are(condition, {"id", "x", "null"}) is expected
