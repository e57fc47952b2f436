"""A clause of a statement could be cut at the wrong word, so that Spark evaluates something else than was written.

CASE expressions, strings and brackets hold the words at which clauses end; each is tried.
"""

import pytest

from pyhudi.errors import Invalid, Unsupported
from pyhudi.sql.changes import (
    Action,
    Assigned,
    Delete,
    Insert,
    Match,
    Merge,
    PartitionValue,
    Update,
    partition_values,
    read_delete,
    read_insert,
    read_merge,
    read_update,
)
from pyhudi.sql.heads import Head, find_head
from pyhudi.sql.join_conditions import equal_columns


def head_of(text: str) -> Head:
    head = find_head(text)
    assert head is not None
    return head


def insert(text: str) -> Insert:
    return read_insert(head_of(text))


def merge(text: str) -> Merge:
    return read_merge(head_of(text))


def test_an_insert_is_its_parts() -> None:
    found = insert("INSERT INTO t PARTITION (dt = '2,0)20', hh) SELECT a, 'x' FROM s -- end")

    assert found.partition == (PartitionValue("dt", "'2,0)20'"), PartitionValue("hh", None))
    assert (found.columns, found.by_name, found.query) == (None, False, "SELECT a, 'x' FROM s")
    assert insert("INSERT INTO t (id, `a b`) VALUES (1, 2)").columns == ("id", "a b")
    assert insert("INSERT INTO t (SELECT 1)").query == "(SELECT 1)"
    assert insert("INSERT INTO t (id) (SELECT 1)").query == "(SELECT 1)"
    assert insert("INSERT INTO t BY NAME SELECT 1 AS id").by_name
    assert insert("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a").query == "WITH a AS (SELECT 1) SELECT * FROM a"
    assert insert("INSERT INTO t TABLE s").query == "TABLE s"
    assert insert("INSERT OVERWRITE t VALUES (1)").overwrites


@pytest.mark.parametrize(
    "text", ["INSERT INTO t", "INSERT INTO t REPLACE WHERE a = 1 SELECT 1", "INSERT INTO t (a, b)"]
)
def test_an_insert_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="expected VALUES or a query"):
        insert(text)


@pytest.mark.parametrize("text", ["INTO t PARTITION (a = 1)", "OVERWRITE t", "OVERWRITE t PARTITION (a = 1, b)"])
def test_only_the_overwrite_of_one_partition_may_ask_whether_it_is_there(text: str) -> None:
    assert insert("INSERT OVERWRITE t PARTITION (a = 1) IF NOT EXISTS SELECT 1").is_lenient
    with pytest.raises(Invalid, match="expected no IF NOT EXISTS"):
        insert(f"INSERT {text} IF NOT EXISTS SELECT 1")


def test_an_update_is_its_parts() -> None:
    text = """UPDATE db.t AS x SET x.a = CASE WHEN b = 'where' THEN 1 ELSE f(1, 2) END, `c d` = (SELECT 1 WHERE 2)
        WHERE k IN (1)"""
    expected = Update(
        ("db", "t"),
        "x",
        (
            Assigned(("a",), "CASE WHEN b = 'where' THEN 1 ELSE f(1, 2) END"),
            Assigned(("c d",), "(SELECT 1 WHERE 2)"),
        ),
        "k IN (1)",
        "",
    )

    assert read_update(head_of(text)) == expected
    assert read_update(head_of("update t set t.a = 1")).assigned == (Assigned(("a",), "1"),)
    assert read_update(head_of("update t set s.a = 1")).assigned == (Assigned(("s", "a"), "1"),)


def test_a_delete_is_its_parts() -> None:
    assert read_delete(head_of("DELETE FROM t")) == Delete(("t",), "t", None, "")
    assert read_delete(head_of("DELETE FROM t x WHERE x.a > 1")) == Delete(("t",), "x", "x.a > 1", "")


def test_a_merge_is_its_parts() -> None:
    found = merge(
        """MERGE INTO db.t AS target USING (SELECT id, 'ON when' w FROM s) AS source
        ON target.id = source.id AND CASE WHEN target.a THEN 1 END = 1
        WHEN MATCHED AND CASE WHEN source.w = 'x' THEN true ELSE false END THEN UPDATE SET *
        WHEN MATCHED AND source.w = 'THEN' THEN DELETE
        WHEN MATCHED THEN UPDATE SET target.a = target.a + source.a, b = 2
        WHEN NOT MATCHED BY TARGET AND source.id > 1 THEN INSERT (id, t.a) VALUES (source.id, coalesce(1, 2))
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND target.a = 1 THEN UPDATE SET a = 0
        WHEN NOT MATCHED BY SOURCE THEN DELETE;"""
    )

    assert (found.target, found.alias, found.source_alias) == (("db", "t"), "target", "source")
    assert found.source == "(SELECT id, 'ON when' w FROM s)"
    assert found.on == "target.id = source.id AND CASE WHEN target.a THEN 1 END = 1"
    assert [(c.match, c.action, c.condition) for c in found.clauses] == [
        (Match.MATCHED, Action.UPDATE, "CASE WHEN source.w = 'x' THEN true ELSE false END"),
        (Match.MATCHED, Action.DELETE, "source.w = 'THEN'"),
        (Match.MATCHED, Action.UPDATE, None),
        (Match.NOT_MATCHED, Action.INSERT, "source.id > 1"),
        (Match.NOT_MATCHED, Action.INSERT, None),
        (Match.BY_SOURCE, Action.UPDATE, "target.a = 1"),
        (Match.BY_SOURCE, Action.DELETE, None),
    ]
    assert [c.assigned for c in found.clauses[:5]] == [
        None,
        None,
        (Assigned(("a",), "target.a + source.a"), Assigned(("b",), "2")),
        (Assigned(("id",), "source.id"), Assigned(("a",), "coalesce(1, 2)")),
        None,
    ]


def test_a_source_may_have_no_alias() -> None:
    assert merge("MERGE INTO t USING db.s ON t.a = s.a WHEN MATCHED THEN DELETE").source_alias == "s"
    assert merge("MERGE INTO t USING s x ON t.a = x.a WHEN MATCHED THEN DELETE").source_alias == "x"


@pytest.mark.parametrize(
    "text,expected",
    [
        ("MERGE INTO t USING s ON t.a = s.a", "expected WHEN"),
        ("MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN DELETE", "expected INSERT"),
        ("MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", "2 values"),
        ("MERGE INTO t USING s WHEN MATCHED THEN DELETE", "expected ON"),
    ],
)
def test_a_merge_that_is_none_is_refused(text: str, expected: str) -> None:
    with pytest.raises(Invalid, match=expected):
        merge(text)


@pytest.mark.parametrize(
    "condition,expected",
    [
        ("t.id = s.key", {"id": "key"}),
        ("s.Key = T.id AND t.day = s.day", {"id": "key", "day": "day"}),
        ("(t.id = s.id)", {"id": "id"}),
        ("t.id = s.id OR t.a = s.a", None),
        ("t.id = s.id + 1", None),
        ("id = s.id", None),
        ("t.id = 1", None),
        ("t.id = t.a", None),
        ("t.id <=> s.id", None),
    ],
)
def test_a_condition_of_equal_columns_is_told_from_others(condition: str, expected: dict[str, str] | None) -> None:
    assert equal_columns(condition, "t", "s") == expected


def test_a_column_after_a_dot_ends_no_clause() -> None:
    found = merge("MERGE INTO t USING s ON s.when = t.when WHEN MATCHED AND s.then = 1 AND s.end = 2 THEN DELETE")

    assert (found.on, found.clauses[0].condition) == ("s.when = t.when", "s.then = 1 AND s.end = 2")


def test_a_merge_that_is_to_add_columns_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"MERGE WITH SCHEMA EVOLUTION INTO db\.t: MERGE adds no columns"):
        merge("MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")


def test_what_deletes_partitions_needs_a_value_of_each_column_that_it_names() -> None:
    assert partition_values("y = 1", needs_values=True) == (PartitionValue("y", "1"),)
    assert partition_values("y = 1, p")[1] == PartitionValue("p", None)
    with pytest.raises(Invalid, match=r"PARTITION \(y = 1, p\): expected a value of 'p', found none"):
        partition_values("y = 1, p", needs_values=True)
    with pytest.raises(Invalid, match=r"PARTITION \(\): expected a partition column"):
        partition_values(" ")
