"""A statement could give Spark the folder of a Hudi table in words that nobody looks at, and Spark would empty it."""

import pytest

from pyhudi.sql.heads import find_head
from pyhudi.sql.written_folders import WrittenFolder, written_folders

OPTION = "OPTIONS path"


@pytest.mark.parametrize(
    "text,expected",
    [
        ("CREATE TABLE p (location INT) USING csv LOCATION '/a'", WrittenFolder("LOCATION", "/a")),
        ("CREATE TABLE p LOCATION '/a' /* b */ 'b' USING orc", WrittenFolder("LOCATION", "/ab")),
        ("CREATE TABLE p USING csv OPTIONS (sep = ',', path '/a') AS SELECT 1", WrittenFolder(OPTION, "/a")),
        ("REPLACE TABLE p USING csv OPTIONS ('PATH' = \"/a\")", WrittenFolder(OPTION, "/a")),
        ("CREATE TABLE p USING csv OPTIONS (`path` '/a' || 'b')", WrittenFolder(OPTION, "'/a' || 'b'", True)),
        ("ALTER TABLE p SET LOCATION '/a'", WrittenFolder("LOCATION", "/a")),
        ("ALTER TABLE p PARTITION (d = 'x') SET LOCATION '/a'", WrittenFolder("LOCATION", "/a")),
        ("ALTER TABLE p ADD PARTITION (d = 'x') LOCATION '/a'", WrittenFolder("LOCATION", "/a")),
        ("INSERT OVERWRITE DIRECTORY 'a' SELECT 1", WrittenFolder("DIRECTORY", "a", is_of_table=False)),
        (
            "WITH c AS (SELECT 1) INSERT OVERWRITE DIRECTORY USING csv OPTIONS (path = 'a') SELECT 1",
            WrittenFolder(OPTION, "a", is_of_table=False),
        ),
        ("BEGIN CREATE TABLE p (i INT) USING csv LOCATION '/a'; END", WrittenFolder("LOCATION", "/a")),
    ],
)
def test_a_folder_that_spark_may_write_to_is_found(text: str, expected: WrittenFolder) -> None:
    head = find_head(text)

    assert head is not None
    assert written_folders(head) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE p (path STRING COMMENT 'LOCATION \\'/a\\'') USING csv OPTIONS (sep ',')",
        "INSERT INTO p SELECT location FROM options",
        "ALTER TABLE p SET TBLPROPERTIES (path = '/a')",
        "CREATE TABLE p AS SELECT options(1, (2)), location",
    ],
)
def test_other_words_are_no_folders(text: str) -> None:
    head = find_head(text)

    assert head is not None
    assert written_folders(head) == []
