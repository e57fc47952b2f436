"""A table of a moment could be taken for a table of now, or a word in a text for a table."""

import pytest

from pyhudi.errors import Invalid
from pyhudi.sql.calls import Argument, Call, CreateIndex, read_call, read_create_index
from pyhudi.sql.heads import Head, find_head
from pyhudi.sql.parameters import with_literals
from pyhudi.sql.relations import find_relations, with_short_columns, with_table_as
from pyhudi.sql.scopes import given_names
from pyhudi.sql.words import quoted_name, quoted_text, split_list, words_of


def head_of(text: str) -> Head:
    head = find_head(text)
    assert head is not None
    return head


def found(text: str) -> list[tuple[str, str | None, str | None, bool]]:
    return [(text[r.start : r.end], r.path, r.as_of, r.has_alias) for r in find_relations(text)]


def test_tables_of_a_moment_are_found() -> None:
    text = "SELECT * FROM db.t TIMESTAMP AS OF '2026' a JOIN u VERSION AS OF 12 ON a.x = u.x WHERE 'x VERSION AS OF 1'"

    assert found(text) == [
        ("db.t TIMESTAMP AS OF '2026'", None, "'2026'", True),
        ("u VERSION AS OF 12", None, "12", False),
    ]
    assert found("SELECT * FROM t FOR SYSTEM_TIME AS OF current_timestamp() AS x") == [
        ("t FOR SYSTEM_TIME AS OF current_timestamp()", None, "current_timestamp()", True)
    ]


def test_paths_are_found() -> None:
    assert found("SELECT hudi.x FROM hudi.`/a b` h, `org`.apache.hudi.`s3://c/d` TIMESTAMP AS OF :when") == [
        ("hudi.`/a b`", "/a b", None, True),
        ("`org`.apache.hudi.`s3://c/d` TIMESTAMP AS OF :when", "s3://c/d", ":when", False),
    ]


@pytest.mark.parametrize("moment", [
    "now() - INTERVAL 1 day", "current_timestamp() - INTERVAL '1 00' DAY TO HOUR", "'2024-01-01' || :x", "-1 + (2)",
    "now() - INTERVAL 1 DAY 2 HOURS + INTERVAL - 3 second", "a.b.f(1)::string", "TIMESTAMP '2024-01-01 00:00:00'",
])  # fmt: skip
def test_a_moment_may_be_an_expression(moment: str) -> None:
    for alias in ("a", "AS a"):
        (found,) = find_relations(f"SELECT 1 FROM t TIMESTAMP AS OF {moment} {alias} JOIN b")
        assert (found.as_of, found.has_alias) == (moment, True)


def test_a_column_of_a_table_that_is_called_hudi_is_no_path() -> None:
    assert find_relations("SELECT `hudi`.`id`, hudi.`v` FROM x") == []


def test_a_table_is_replaced_by_a_view_where_it_is_read() -> None:
    text = "SET a = t.b WHERE x IN (SELECT t.x FROM t JOIN DB.T u) AND (SELECT 1 FROM t VERSION AS OF 1, 't' FROM s)"

    assert with_table_as(text, {"t", "db.t"}, "v") == (
        "SET a = t.b WHERE x IN (SELECT t.x FROM `v` AS `t` JOIN `v` u) "
        "AND (SELECT 1 FROM t VERSION AS OF 1, 't' FROM s)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "(WITH t AS (SELECT * FROM T!) SELECT * FROM t) FROM T!",
        "(WITH a (x) AS (SELECT 1), T AS (SELECT 2 FROM T!) SELECT * FROM a JOIN t)",
        "(WITH RECURSIVE t MAX RECURSION LEVEL 9 AS (SELECT 1 UNION SELECT 1 FROM t) SELECT 1 FROM t)",
        "a IS DISTINCT FROM t AND trim(BOTH 'x' FROM t) = extract(DAY FROM t)",
        "(SELECT 1 FROM s GROUP BY a WITH ROLLUP HAVING max(a) > (SELECT 1 FROM T!))",
    ],
)
def test_names_of_with_clauses_hide_tables(text: str) -> None:
    """`T!` stands for each table that is read."""
    assert with_table_as(text.replace("T!", "t"), {"t", "db.t"}, "v") == text.replace("T!", "`v` AS `t`")


def test_names_of_a_with_clause_in_front_hide_tables() -> None:
    assert given_names("WITH a AS (WITH b AS (SELECT 1) SELECT 2), `T` (x) AS (SELECT 1)") == {"a", "t"}
    assert with_table_as("SELECT * FROM t", {"t"}, "v", hidden={"t"}) == "SELECT * FROM t"
    assert with_table_as("SELECT * FROM db.t", {"db.t"}, "v", hidden={"t"}) == "SELECT * FROM `v` AS `t`"


def test_columns_lose_the_database_in_front_of_their_table() -> None:
    text = "SET db.T.a = `DB`.t.s.f + c.db.t.x WHERE (SELECT max(db.t.b) FROM db.t) > spark_catalog.db.t.a + db.u.a"

    assert with_short_columns(text, {"t", "db.t", "spark_catalog.db.t"}) == (
        "SET T.a = t.s.f + c.db.t.x WHERE (SELECT max(t.b) FROM db.t) > t.a + db.u.a"
    )


def test_a_moment_that_is_missing_is_refused() -> None:
    with pytest.raises(Invalid, match="expected a moment, found the end"):
        find_relations("SELECT * FROM t TIMESTAMP AS OF")


def test_calls_are_read() -> None:
    call = read_call(head_of("CALL system.Run_Compaction(op => 'run, (x', table => 't', 10, m => map('a', 'b'));"))

    assert call == Call(
        "run_compaction",
        (Argument("op", "'run, (x'"), Argument("table", "'t'"), Argument(None, "10"), Argument("m", "map('a', 'b')")),
    )
    assert read_call(head_of("CALL help")) == Call("help", ())


def test_indexes_are_read() -> None:
    text = "CREATE INDEX IF NOT EXISTS i ON db.t USING column_stats(ts) OPTIONS(expr='from_unixtime', format = 'yyyy')"
    expected = CreateIndex(("db", "t"), "i", "column_stats", ("ts",), {"expr": "from_unixtime", "format": "yyyy"}, True)

    assert read_create_index(head_of(text)) == expected
    assert read_create_index(head_of("create index record_index on t (id, s.a)")).columns == ("id", "s.a")


def test_parameters_become_literals() -> None:
    assert with_literals("a = :x AND b = ':x' AND c = :y", {"x": "1", "y": "'z'"}) == "a = 1 AND b = ':x' AND c = 'z'"
    assert with_literals("VALUES (?, '?', ?)", ["1", "2"]) == "VALUES (1, '?', 2)"
    assert with_literals("a::int, x ? 1", []) == "a::int, x ? 1"
    with pytest.raises(Invalid, match=":y"):
        with_literals(":y", {"x": "1"})
    with pytest.raises(Invalid, match="found 1"):
        with_literals("? ?", ["1"])


def test_lists_are_split_at_commas_of_their_own() -> None:
    assert split_list("a < b, f(1, 2), 'x,y', c > d, m[1, 2], cast(x as map<int, int>)") == [
        "a < b", "f(1, 2)", "'x,y'", "c > d", "m[1, 2]", "cast(x as map<int, int>)",
    ]  # fmt: skip


def test_names_and_texts_are_quoted() -> None:
    assert quoted_name("a`b", "c") == "`a``b`.`c`"
    assert quoted_text("it's \\ x") == "'it\\'s \\\\ x'"


def test_numbers_with_a_type_are_one_word() -> None:
    assert [word.text for word in words_of("1L + 10BD;")] == ["1L", "+", "10BD"]
