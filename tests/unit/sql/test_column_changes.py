"""A clause about a column could be lost, or be taken for another."""

import pytest

from pyhudi.errors import Invalid
from pyhudi.sql.column_changes import ColumnChange, Verb, read_added_columns, read_column_changes
from pyhudi.sql.words import Cursor

CHANGES: dict[str, tuple[ColumnChange, ...] | None] = {
    "RENAME COLUMN a.`b c` TO d": (ColumnChange(Verb.RENAME, "a.b c", name="d"),),
    "DROP COLUMN a": (ColumnChange(Verb.DROP, "a"),),
    "drop columns (a, b.c)": (ColumnChange(Verb.DROP, "a"), ColumnChange(Verb.DROP, "b.c")),
    "ALTER COLUMN a TYPE DECIMAL(10, 2)": (ColumnChange(Verb.ALTER, "a", type="DECIMAL(10, 2)"),),
    "ALTER a COMMENT 'it, x'": (ColumnChange(Verb.ALTER, "a", comment="it, x"),),
    "ALTER COLUMN a.b FIRST": (ColumnChange(Verb.ALTER, "a.b", is_first=True),),
    "ALTER COLUMN a AFTER b": (ColumnChange(Verb.ALTER, "a", after="b"),),
    "ALTER COLUMN a DROP NOT NULL": (ColumnChange(Verb.ALTER, "a", drops_not_null=True),),
    "CHANGE a A BIGINT": (ColumnChange(Verb.ALTER, "a", type="BIGINT"),),
    "CHANGE COLUMN a b INT COMMENT 'x' AFTER c": (
        ColumnChange(Verb.ALTER, "a", name="b", type="INT", comment="x", after="c"),
    ),
    "CHANGE a A STRUCT<first: INT, comment: ARRAY<STRUCT<after: INT COMMENT 'x'>>> COMMENT 'y'": (
        ColumnChange(
            Verb.ALTER, "a", type="STRUCT<first: INT, comment: ARRAY<STRUCT<after: INT COMMENT 'x'>>>", comment="y"
        ),
    ),
    "RENAME TO b": None,
    "SET TBLPROPERTIES ('a'='b')": None,
}


@pytest.mark.parametrize("text", CHANGES)
def test_a_change_is_told_by_its_words(text: str) -> None:
    assert read_column_changes(Cursor(text)) == CHANGES[text]


def test_added_columns_have_types_comments_and_places() -> None:
    text = "a STRUCT<x: INT, y: MAP<STRING, INT>> COMMENT 'a, b', s.d STRING AFTER c, e INT FIRST"
    assert read_added_columns(text) == (
        ColumnChange(Verb.ADD, "a", type="STRUCT<x: INT, y: MAP<STRING, INT>>", comment="a, b"),
        ColumnChange(Verb.ADD, "s.d", type="STRING", after="c"),
        ColumnChange(Verb.ADD, "e", type="INT", is_first=True),
    )  # fmt: skip


@pytest.mark.parametrize(
    "text,message",
    [
        ("RENAME COLUMN a b", "expected TO"),
        ("ALTER COLUMN a SET NOT NULL", "expected TYPE, COMMENT, FIRST, AFTER or DROP NOT NULL"),
        ("CHANGE a b", "expected a type"),
        ("ALTER COLUMN a AFTER b c", "expected the end"),
    ],
)
def test_what_is_cut_short_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        read_column_changes(Cursor(text))


def test_new_columns_may_be_null() -> None:
    with pytest.raises(Invalid, match="neither NOT NULL nor DEFAULT"):
        read_added_columns("a INT NOT NULL")
