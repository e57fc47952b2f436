"""Statements that change rows, as values: INSERT, UPDATE, DELETE, MERGE INTO."""

from dataclasses import dataclass
from enum import Enum

from pyhudi.errors import Invalid, Unsupported
from pyhudi.sql.heads import Head
from pyhudi.sql.words import Cursor, Name, split_list

_QUERY = ("SELECT", "VALUES", "WITH", "FROM", "TABLE", "(", "MAP", "REDUCE")


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """One column of `PARTITION (…)`. `value`: SQL text of its value; None where the query's rows say it."""

    column: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT INTO | OVERWRITE`. `columns`: those that the statement lists; None where it lists none.

    `is_lenient`: IF NOT EXISTS, which leaves a partition that is there as it is. Then `partition` says all values.
    """

    target: Name
    overwrites: bool
    partition: tuple[PartitionValue, ...]
    is_lenient: bool
    columns: tuple[str, ...] | None
    by_name: bool
    query: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """`column = value`. `column`: without the table's name or alias. `value`: SQL text."""

    column: Name
    value: str


@dataclass(frozen=True, slots=True)
class Update:
    """`UPDATE t SET … [WHERE …]`. `where`: SQL text, None for all rows."""

    target: Name
    alias: str
    assigned: tuple[Assigned, ...]
    where: str | None
    ctes: str


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE FROM t [WHERE …]`."""

    target: Name
    alias: str
    where: str | None
    ctes: str


class Match(Enum):
    """Which rows a clause of a merge is for."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    BY_SOURCE = "NOT MATCHED BY SOURCE"


class Action(Enum):
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`WHEN … [AND condition] THEN …`. `assigned`: None for `SET *`, `INSERT *` and deletes."""

    match: Match
    condition: str | None
    action: Action
    assigned: tuple[Assigned, ...] | None


@dataclass(frozen=True, slots=True)
class Merge:
    """`MERGE INTO`. `source`: what may stand in a FROM, without its alias."""

    target: Name
    alias: str
    source: str
    source_alias: str
    on: str
    clauses: tuple[MergeClause, ...]
    ctes: str


def read_insert(head: Head) -> Insert:
    """Raises: Invalid for a text that is no INSERT of one table."""
    cursor = head.cursor
    partition = partition_values(cursor.brackets()) if cursor.take("PARTITION") else ()
    is_lenient = cursor.take("IF", "NOT", "EXISTS")
    if is_lenient and (not head.overwrites or any(one.value is None for one in partition) or not partition):
        raise cursor.wrong("no IF NOT EXISTS, but in INSERT OVERWRITE … PARTITION with a value of each column")
    if cursor.take("REPLACE", "WHERE") or cursor.take("REPLACE", "ON"):
        raise cursor.wrong("VALUES or a query: REPLACE WHERE is written as DELETE and INSERT")
    by_name = cursor.take("BY", "NAME")
    columns = None
    if not by_name and _lists_columns(cursor):
        columns = tuple(_one_name(piece) for piece in split_list(cursor.brackets()))
        by_name = False
    if not any(cursor.sees(word) for word in _QUERY):
        raise cursor.wrong("VALUES or a query")
    query = cursor.rest()
    return Insert(head.target, head.overwrites, partition, is_lenient, columns, by_name, f"{head.ctes} {query}".strip())


def _lists_columns(cursor: Cursor) -> bool:
    """Whether the brackets that come next hold names of columns, and not a query."""
    if not cursor.sees("("):
        return False
    word, following = cursor.word(1), cursor.word(2)
    return word is not None and word.is_name and following is not None and following.upper in (",", ")", ".")


def partition_values(text: str, *, needs_values: bool = False) -> tuple[PartitionValue, ...]:
    """What `PARTITION (…)` says of each column.

    `needs_values`: of a statement that deletes what is named, in which a column alone would mean all partitions.
    Raises: Invalid for a column that is named twice, for empty brackets, and for a column without the value it needs.
    """
    found: list[PartitionValue] = []
    for piece in split_list(text):
        cursor = Cursor(piece)
        column = cursor.part("a partition column")
        value = cursor.rest() if cursor.take("=") else None
        cursor.end()
        if any(column.lower() == one.column.lower() for one in found):
            raise Invalid(f"PARTITION ({text.strip()}): expected each column once, found '{column}' twice")
        if needs_values and value is None:
            raise Invalid(
                f"PARTITION ({text.strip()}): expected a value of '{column}', found none; write {column} = …, or leave "
                "the column out, which stands for each of its values"
            )
        found.append(PartitionValue(column, value))
    if not found:
        raise Invalid("PARTITION (): expected a partition column, found none")
    return tuple(found)


def read_update(head: Head) -> Update:
    cursor = head.cursor
    alias = _alias(cursor, head.target[-1], ("SET",))
    cursor.expect("SET")
    assigned = _assignments(cursor.until(("WHERE",)), (alias, head.target[-1]))
    where = cursor.rest() if cursor.take("WHERE") else None
    cursor.end()
    return Update(head.target, alias, assigned, where, head.ctes)


def read_delete(head: Head) -> Delete:
    cursor = head.cursor
    alias = _alias(cursor, head.target[-1], ("WHERE",))
    where = cursor.rest() if cursor.take("WHERE") else None
    cursor.end()
    return Delete(head.target, alias, where, head.ctes)


def read_merge(head: Head) -> Merge:
    """Raises: Invalid for a text that is no MERGE; Unsupported for one that is to add columns."""
    cursor = head.cursor
    if head.adds_columns:
        raise Unsupported(
            f"MERGE WITH SCHEMA EVOLUTION INTO {'.'.join(head.target)}: MERGE adds no columns; ALTER TABLE … ADD "
            "COLUMNS first, and leave WITH SCHEMA EVOLUTION out"
        )
    alias = _alias(cursor, head.target[-1], ("USING",))
    cursor.expect("USING")
    source, source_alias = _source(cursor)
    cursor.expect("ON")
    on = cursor.until(("WHEN", "MATCHED"), ("WHEN", "NOT", "MATCHED"))
    clauses = []
    while not cursor.is_done:
        clauses.append(_clause(cursor, (alias, head.target[-1])))
    if not clauses:
        raise cursor.wrong("WHEN [NOT] MATCHED")
    return Merge(head.target, alias, source, source_alias, on, tuple(clauses), head.ctes)


def _source(cursor: Cursor) -> tuple[str, str]:
    """The text of a merge's source, and its alias."""
    if cursor.sees("("):
        text, default = f"({cursor.brackets()})", "__source"
    else:
        start = cursor.at
        name = cursor.name("the source's name")
        if cursor.sees("("):  # a table function
            cursor.brackets()
        cursor.until(("AS",), ("ON",)) if cursor.word() is not None and cursor.sees("TIMESTAMP") else ""
        text, default = cursor.slice(start, cursor.at), name[-1]
    return text, _alias(cursor, default, ("ON",))


def _clause(cursor: Cursor, own: tuple[str, ...]) -> MergeClause:
    cursor.expect("WHEN")
    match = Match.MATCHED
    if not cursor.take("MATCHED"):
        cursor.expect("NOT", "MATCHED")
        match = Match.BY_SOURCE if cursor.take("BY", "SOURCE") else Match.NOT_MATCHED
        cursor.take("BY", "TARGET")
    condition = cursor.until(("THEN",)) if cursor.take("AND") else None
    cursor.expect("THEN")

    if cursor.take("DELETE") and match is not Match.NOT_MATCHED:
        return MergeClause(match, condition, Action.DELETE, None)
    if match is Match.NOT_MATCHED:
        cursor.expect("INSERT")
        return MergeClause(match, condition, Action.INSERT, _inserted(cursor, own))
    cursor.expect("UPDATE", "SET")
    if cursor.take("*"):
        return MergeClause(match, condition, Action.UPDATE, None)
    return MergeClause(match, condition, Action.UPDATE, _assignments(cursor.until(("WHEN",)), own))


def _inserted(cursor: Cursor, own: tuple[str, ...]) -> tuple[Assigned, ...] | None:
    if cursor.take("*"):
        return None
    columns = [_own_column(Cursor(piece).name("a column"), own) for piece in split_list(cursor.brackets())]
    cursor.expect("VALUES")
    values = split_list(cursor.brackets())
    if len(values) != len(columns):
        raise cursor.wrong(f"{len(columns)} values for as many columns of INSERT, which has {len(values)},")
    return tuple(Assigned(column, value) for column, value in zip(columns, values, strict=True))


def _assignments(text: str, own: tuple[str, ...]) -> tuple[Assigned, ...]:
    """The assignments of a SET clause. `own`: names of the table, which may stand before a column."""
    found = []
    for piece in split_list(text):
        cursor = Cursor(piece)
        column = _own_column(cursor.name("a column"), own)
        cursor.expect("=")
        found.append(Assigned(column, cursor.rest()))
    return tuple(found)


def _own_column(name: Name, own: tuple[str, ...]) -> Name:
    is_qualified = len(name) > 1 and name[0].lower() in {one.lower() for one in own}
    return name[1:] if is_qualified else name


def _alias(cursor: Cursor, default: str, stops: tuple[str, ...]) -> str:
    if cursor.take("AS"):
        return cursor.part("an alias")
    word = cursor.word()
    if word is None or not word.is_name or word.upper in stops:
        return default
    return cursor.part("an alias")


def _one_name(text: str) -> str:
    cursor = Cursor(text)
    name = cursor.name("a column")
    cursor.end()
    return name[-1]
