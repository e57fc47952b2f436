"""A condition could be taken for narrower than it is, so that a file with a row to change is not read."""

import pytest

from pyhudi.sql.plain_conditions import Plain, plain_conditions, whole_condition

TYPES: dict[str, Plain] = {"id": "integer", "name": "text", "Code": "integer"}


@pytest.mark.parametrize(
    "condition,expected",
    [
        ("id = 1", "`id` = 1"),
        ("t.ID >= -5 AND name < 'b'", "`id` >= -5 AND `name` < 'b'"),
        ("id IN (1, 2) AND rand() > 0.5", "`id` IN (1, 2)"),
        ("code = 1 AND t.CODE IN (2)", "`Code` = 1 AND `Code` IN (2)"),
        ("`name` = 'it''s' AND (id = 1 OR id = 2)", None),
        ("name = 'a\\tb' AND id = 1", "`id` = 1"),
        ("name = r'a'", None),
        ("name IN ('a', 'b')", "`name` IN ('a', 'b')"),
        ("-- one \\\n id = 2 AND\nid = 1", "`id` = 1"),
        ("/* one \\\n */ id = 2 -- \\\n", "`id` = 2"),
        ("id = 1 OR id = 2", None),
        ("id = 1 AND id = 2 OR id = 3", None),
        ("NOT id = 1", None),
        ("id BETWEEN 1 AND 2", None),
        ("id = 1 AND NOT name = 'a'", None),
        ("id = '1'", None),
        ("name = 1", None),
        ("id = 1.5", None),
        ("id = 1L", None),
        ("id = 1 + 1", None),
        ("id IN (SELECT 1)", None),
        ("id IN (1, NULL)", None),
        ("other = 1", None),
        ("s.id = 1", None),
        ("id <=> 1", None),
        ("id != 1", None),
        ("name LIKE 'a%'", None),
        ("CASE WHEN id = 1 THEN true END", None),
    ],
)
def test_only_what_the_condition_implies_is_kept(condition: str, expected: str | None) -> None:
    assert plain_conditions(condition, "t", TYPES) == expected


@pytest.mark.parametrize(
    "condition,expected",
    [
        ("t.id = 1 AND name >= 'b' -- so", "`id` = 1 AND `name` >= 'b'"),
        ("id IN (1, 2) AND rand() > 0.5", None),
        ("id = 1 AND (name = 'a')", None),
        ("id = 1 AND", None),
        ("id = 1 OR id = 2", None),
        ("name = 'a' 'b'", None),
        ("", None),
    ],
)
def test_a_whole_condition_has_nothing_else(condition: str, expected: str | None) -> None:
    assert whole_condition(condition, "t", TYPES) == expected
