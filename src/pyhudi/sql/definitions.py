"""Statements that define tables, as values: CREATE TABLE, ALTER TABLE, and their clauses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from pyhudi.errors import Unsupported
from pyhudi.sql.changes import PartitionValue, partition_values
from pyhudi.sql.column_changes import ColumnChange, read_column_changes
from pyhudi.sql.heads import Head, Statement
from pyhudi.sql.words import Cursor, Kind, Name, split_list

_FORMATS = ("hudi", "org.apache.hudi")


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`CREATE TABLE … USING hudi`. `columns`: as written, None for none. `like`: the table of `CREATE TABLE LIKE`.

    `partition_by`: names; the texts of columns that are declared there, in the way of Hive, are added to `columns`.
    """

    name: Name
    is_lenient: bool
    replaces: bool
    columns: str | None = None
    partition_by: tuple[str, ...] = ()
    location: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    query: str | None = None
    like: Name | None = None


def is_of_hudi(head: Head) -> bool:
    """Whether a CREATE or REPLACE TABLE says `USING hudi`."""
    cursor = Cursor(head.cursor.text, head.cursor.words)
    cursor.at = head.cursor.at
    if cursor.sees("("):
        cursor.brackets()  # columns, where AS and USING are other words
    for word, following in pairwise(cursor.words[cursor.at :]):
        cursor.at += 1
        if word.upper in ("AS", "SELECT"):
            return False
        if word.upper == "USING":
            return following.is_name and ".".join(cursor.name()).lower() in _FORMATS
    return False


def like_of(head: Head) -> Name | None:
    """The table that `CREATE TABLE … LIKE` names, or None."""
    cursor = Cursor(head.cursor.text, head.cursor.words)
    cursor.at = head.cursor.at
    return cursor.name() if cursor.take("LIKE") else None


def read_create(head: Head) -> CreateTable:
    """Raises: Invalid for a clause that is unknown or comes twice."""
    cursor, found = head.cursor, _Clauses()
    found.like = cursor.name() if cursor.take("LIKE") else None
    if cursor.sees("("):
        found.columns = cursor.brackets()
    while not cursor.is_done:
        _read_clause(cursor, found)
    return CreateTable(
        name=head.target,
        is_lenient=head.is_lenient,
        replaces=head.statement is Statement.REPLACE_TABLE,
        columns=found.columns,
        partition_by=tuple(found.partition_by),
        location=found.location,
        comment=found.comment,
        properties=found.properties,
        query=found.query,
        like=found.like,
    )


@dataclass(slots=True)
class _Clauses:
    columns: str | None = None
    partition_by: list[str] = field(default_factory=list)
    location: str | None = None
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    query: str | None = None
    like: Name | None = None


def _read_clause(cursor: Cursor, found: _Clauses) -> None:
    if cursor.take("USING"):
        cursor.name("a format")
    elif cursor.take("PARTITIONED", "BY"):
        for piece in split_list(cursor.brackets()):
            one = Cursor(piece)
            found.partition_by.append(one.part("a partition column"))
            if one.sees("."):
                raise one.wrong(
                    "a column: Spark's SQL names no field of a struct here; make such a table by HudiTable.create or a "
                    "DataFrame's write"
                )
            if one.sees("("):
                raise one.wrong("a column: partitions by functions of columns do not exist in a Hudi table")
            if not one.is_done:  # PARTITIONED BY (dt STRING)
                found.columns = piece if not found.columns else f"{found.columns}, {piece}"
    elif cursor.take_one("TBLPROPERTIES", "OPTIONS"):
        found.properties |= properties(cursor.brackets())
    elif cursor.take("LOCATION"):
        found.location = cursor.string("a location")
    elif cursor.take("COMMENT"):
        found.comment = cursor.string("a comment")
    elif cursor.sees("CLUSTERED") or cursor.sees("CLUSTER"):
        raise cursor.wrong("another clause: buckets of a Hudi table are TBLPROPERTIES ('hoodie.index.type' = 'BUCKET')")
    elif cursor.take("AS") or any(cursor.sees(word) for word in ("SELECT", "WITH", "(", "VALUES", "TABLE")):
        found.query = cursor.rest()
    else:
        raise cursor.wrong("a clause of CREATE TABLE")


def properties(text: str) -> dict[str, str]:
    """The properties of `TBLPROPERTIES (…)`: names with or without quotes, and `=` or nothing between the two."""
    found = {}
    for piece in split_list(text):
        cursor = Cursor(piece)
        name = property_name(cursor)
        cursor.take("=")
        found[name] = _value(cursor)
    return found


def property_name(cursor: Cursor) -> str:
    """The name of a property: a text in quotes, or words with dots between them."""
    word = cursor.word()
    if word is not None and word.kind is Kind.STRING:
        return cursor.string("a property")
    start = cursor.at
    cursor.name("a property")
    return cursor.slice(start, cursor.at).replace(" ", "").replace("`", "")


def _value(cursor: Cursor) -> str:
    word = cursor.word()
    if word is None:
        return ""
    text = cursor.rest()
    return word.text if word.kind is Kind.STRING and len(text) == word.end - word.start else text


@dataclass(frozen=True, slots=True)
class AlterTable:
    """`ALTER TABLE`: what it does, as the words that say so, and its arguments.

    `what`: `RENAME TO`, `ADD COLUMNS`, `CHANGE COLUMNS`, `SET TBLPROPERTIES`, `UNSET TBLPROPERTIES`, `ADD PARTITION`,
    `DROP PARTITION`, or the words of what is not carried out. `columns`: those to add, as written. `changes`: of
    columns.
    """

    target: Name
    what: str
    name: Name = ()
    columns: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    partitions: tuple[tuple[PartitionValue, ...], ...] = ()
    is_lenient: bool = False
    changes: tuple[ColumnChange, ...] = ()


_OTHERS_WORDS = 2


def read_alter(head: Head) -> AlterTable:
    """Raises: Invalid for a clause that is cut short."""
    cursor, target = head.cursor, head.target
    if cursor.take("RENAME", "TO"):
        name = cursor.name()
        cursor.end()
        return AlterTable(target, "RENAME TO", name=name)
    if cursor.take("SET", "TBLPROPERTIES"):
        return AlterTable(target, "SET TBLPROPERTIES", properties=properties(cursor.brackets()))
    if cursor.take("UNSET", "TBLPROPERTIES"):
        is_lenient = cursor.take("IF", "EXISTS")
        names = tuple(property_name(Cursor(piece)) for piece in split_list(cursor.brackets()))
        return AlterTable(target, "UNSET TBLPROPERTIES", removed=names, is_lenient=is_lenient)
    if cursor.take("ADD", "COLUMNS") or cursor.take("ADD", "COLUMN"):
        columns = cursor.brackets() if cursor.sees("(") else cursor.rest()
        return AlterTable(target, "ADD COLUMNS", columns=columns)
    for verb, lenient in (("ADD", ("IF", "NOT", "EXISTS")), ("DROP", ("IF", "EXISTS"))):
        if cursor.sees(verb, "PARTITION") or cursor.sees(verb, *lenient, "PARTITION"):
            cursor.take(verb)
            is_lenient = cursor.take(*lenient)
            return AlterTable(target, f"{verb} PARTITION", partitions=_partitions(cursor), is_lenient=is_lenient)
    changes = read_column_changes(cursor)
    if changes is not None:
        return AlterTable(target, "CHANGE COLUMNS", changes=changes)
    words = [word.upper for word in cursor.words[cursor.at : cursor.at + _OTHERS_WORDS]]
    return AlterTable(target, " ".join(words))


def _partitions(cursor: Cursor) -> tuple[tuple[PartitionValue, ...], ...]:
    found = []
    while cursor.take("PARTITION"):
        found.append(partition_values(cursor.brackets(), needs_values=True))
        if cursor.take("LOCATION"):
            raise Unsupported(
                f"PARTITION … LOCATION {cursor.rest()}: expected no LOCATION: a partition of a Hudi table lies in the "
                "folder of its table"
            )
        cursor.take(",")
    cursor.take("PURGE")
    cursor.end()
    return tuple(found)
