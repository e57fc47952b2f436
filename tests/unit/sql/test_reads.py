"""A WHERE clause could be taken for shorter than it is, and rows be left out for which the rest of it holds."""

import pytest

from pyhudi.sql.reads import find_reads, names_with_options, states_options


@pytest.mark.parametrize(
    "clause,expected",
    [
        ("id = 1 LIMIT 3", "id = 1"),
        ("id = 1 GROUP BY a UNION SELECT 2", "id = 1"),
        ("id = 1) WHERE a OR b", "id = 1"),
        ("id = 1 AND (a OR b) ORDER BY (a OR b)", "id = 1 AND (a OR b)"),
        ("id = 1 AND CASE WHEN a THEN b END OR c", None),
        ("id = 1 AND limit = 2 OR id = 3", None),
        ("id = 1 UNION SELECT a FROM u WHERE b OR c", None),
        ("a > 0 |> DROP id |> EXTEND 1 AS id |> WHERE a > 0 AND id = 1", "a > 0"),
    ],
)
def test_a_clause_ends_only_where_no_or_can_belong_to_it(clause: str, expected: str | None) -> None:
    assert find_reads(f"SELECT a FROM t WHERE {clause}")[0].alone_where == expected


@pytest.mark.parametrize(
    "text,expected",
    [
        ("SELECT a FROM t WITH ('a' = 'b') WHERE a", [("t",)]),
        ("SELECT a FROM o JOIN hudi.`/p` WITH/**/('a' = 'b') AS x ON o.a = x.a", [("hudi", "/p")]),
        ("DELETE FROM t WHERE a IN (SELECT a FROM d.t WITH -- x\n ('a' = 'b'))", [("d", "t")]),
        ("TABLE c.d.t WITH ('a' = 'b')", [("c", "d", "t")]),
        ("WITH c AS (SELECT 1) SELECT a FROM t AS x", []),
        ("SELECT 'a WITH (b)' FROM t", []),
    ],
)
def test_options_of_a_read_are_seen(text: str, expected: list[tuple[str, ...]]) -> None:
    assert names_with_options(text) == expected
    assert states_options(text) == bool(expected)


def test_options_behind_an_expression_for_a_name_are_seen() -> None:
    assert states_options("SELECT a FROM IDENTIFIER(:name) WITH -- x\n ('a' = 'b')")
    assert not states_options("WITH c AS (SELECT 1) SELECT a FROM IDENTIFIER(:name), c")
