"""What a statement does, and to which table: enough to tell whether it is for Spark or for pyhudi."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from pyhudi.errors import Invalid
from pyhudi.sql.words import Cursor, Kind, Name, quoted_name, quoted_text


class Statement(Enum):
    """The statements that name a table which pyhudi may have to answer for."""

    CREATE_TABLE = auto()
    REPLACE_TABLE = auto()
    INSERT = auto()
    WRITE_FOLDER = auto()
    UPDATE = auto()
    DELETE = auto()
    MERGE = auto()
    DROP_TABLE = auto()
    TRUNCATE = auto()
    ALTER_TABLE = auto()
    SHOW_PARTITIONS = auto()
    SHOW_CREATE = auto()
    SHOW_PROPERTIES = auto()
    DESCRIBE = auto()
    SHOW_INDEXES = auto()
    REFRESH_TABLE = auto()
    ANALYZE = auto()
    REPAIR = auto()
    LOAD = auto()
    CREATE_INDEX = auto()
    DROP_INDEX = auto()
    REFRESH_INDEX = auto()
    CALL = auto()
    EXPLAIN = auto()
    EXECUTE = auto()
    SCRIPT = auto()


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a statement. `cursor` stands behind the table's name. `ctes`: `WITH …` in front of it.

    `target`: the table's name, or that of the procedure; empty where the cursor stands before a text to execute, in a
    script, or before a folder. `index`: the index's name. `is_lenient`: IF [NOT] EXISTS.
    `is_extended`: DESCRIBE EXTENDED. `adds_columns`: MERGE WITH SCHEMA EVOLUTION.
    """

    statement: Statement
    target: Name
    cursor: Cursor
    ctes: str = ""
    index: str = ""
    is_lenient: bool = False
    overwrites: bool = False
    is_extended: bool = False
    adds_columns: bool = False


_Reader: TypeAlias = Callable[[Cursor, str], Head | None]

_BODIES = ("INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")


def find_head(text: str) -> Head | None:
    """The head of a statement, or None for one that Spark may have as it is, such as a SELECT.

    A text that cannot be read is None, too: Spark says what is wrong with it.
    """
    try:
        cursor = Cursor(text)
        ctes = _ctes(cursor)
        return _head(cursor, ctes)
    except Invalid:
        return None


def _ctes(cursor: Cursor) -> str:
    """`WITH …`, up to the statement that it belongs to."""
    if not cursor.sees("WITH"):
        return ""
    return cursor.until(*((word,) for word in _BODIES))


def _head(cursor: Cursor, ctes: str) -> Head | None:
    following = cursor.word(1)
    if following is not None and following.upper == ":":  # the label of a script
        cursor.at += 2
        return _script(cursor, ctes) if cursor.take("BEGIN") else None
    match cursor.take_one(*_READERS):
        case None:
            return None
        case word:
            return _READERS[word](cursor, ctes)


def _insert(cursor: Cursor, ctes: str) -> Head | None:
    word = cursor.take_one("INTO", "OVERWRITE")
    if word is None:
        return None
    if cursor.sees("DIRECTORY") or cursor.sees("LOCAL", "DIRECTORY"):
        return Head(Statement.WRITE_FOLDER, (), cursor, ctes)
    _take_table(cursor)
    return Head(Statement.INSERT, cursor.name(), cursor, ctes, overwrites=word == "OVERWRITE")


def _from(cursor: Cursor, ctes: str) -> Head | None:
    """`FROM … INSERT OVERWRITE DIRECTORY`; queries and inserts into tables are left to Spark."""
    folders = (("INSERT", "OVERWRITE", "DIRECTORY"), ("INSERT", "OVERWRITE", "LOCAL", "DIRECTORY"))
    cursor.until(*folders)
    return None if cursor.is_done else Head(Statement.WRITE_FOLDER, (), cursor, ctes)


def _take_table(cursor: Cursor) -> None:
    """Pass over the word TABLE, where it is no name itself."""
    following = cursor.word(1)
    if cursor.sees("TABLE") and following is not None and following.is_name:
        cursor.take("TABLE")


def _update(cursor: Cursor, ctes: str) -> Head | None:
    return Head(Statement.UPDATE, cursor.name(), cursor, ctes)


def _delete(cursor: Cursor, ctes: str) -> Head | None:
    cursor.expect("FROM")
    return Head(Statement.DELETE, cursor.name(), cursor, ctes)


def _merge(cursor: Cursor, ctes: str) -> Head | None:
    adds_columns = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    return Head(Statement.MERGE, cursor.name(), cursor, ctes, adds_columns=adds_columns)


def _create(cursor: Cursor, ctes: str) -> Head | None:
    if cursor.take("INDEX"):
        return _index(cursor, Statement.CREATE_INDEX, ("IF", "NOT", "EXISTS"))
    statement = Statement.REPLACE_TABLE if cursor.take("OR", "REPLACE") else Statement.CREATE_TABLE
    cursor.take("EXTERNAL")
    if not cursor.take("TABLE"):
        return None
    is_lenient = cursor.take("IF", "NOT", "EXISTS")
    return Head(statement, cursor.name(), cursor, is_lenient=is_lenient)


def _replace(cursor: Cursor, ctes: str) -> Head | None:
    cursor.expect("TABLE")
    return Head(Statement.REPLACE_TABLE, cursor.name(), cursor)


def _drop(cursor: Cursor, ctes: str) -> Head | None:
    if cursor.take("INDEX"):
        return _index(cursor, Statement.DROP_INDEX, ("IF", "EXISTS"))
    cursor.expect("TABLE")
    is_lenient = cursor.take("IF", "EXISTS")
    return Head(Statement.DROP_TABLE, cursor.name(), cursor, is_lenient=is_lenient)


def _index(cursor: Cursor, statement: Statement, lenient: tuple[str, ...]) -> Head:
    is_lenient = cursor.take(*lenient)
    index = cursor.part("the index's name")
    cursor.expect("ON")
    _take_table(cursor)
    return Head(statement, cursor.name(), cursor, index=index, is_lenient=is_lenient)


def _show(cursor: Cursor, ctes: str) -> Head | None:
    if cursor.take("PARTITIONS"):
        return Head(Statement.SHOW_PARTITIONS, cursor.name(), cursor)
    if cursor.take("CREATE", "TABLE"):
        return Head(Statement.SHOW_CREATE, cursor.name(), cursor)
    if cursor.take("TBLPROPERTIES"):
        return Head(Statement.SHOW_PROPERTIES, cursor.name(), cursor)
    if cursor.take("COMPACTION", "ON"):
        return _older_call(cursor, "show_compaction", "", "LIMIT", "limit")
    if cursor.take_one("INDEXES", "INDEX"):
        if cursor.take_one("FROM", "IN") is None:
            raise cursor.wrong("FROM or IN")
        return Head(Statement.SHOW_INDEXES, cursor.name(), cursor)
    return None


def _describe(cursor: Cursor, ctes: str) -> Head | None:
    _take_table(cursor)
    following = cursor.word(1)
    is_followed = following is not None and following.is_name
    if is_followed and cursor.take_one("DATABASE", "SCHEMA", "NAMESPACE", "CATALOG", "FUNCTION", "QUERY", "PROCEDURE"):
        return None
    is_extended = is_followed and cursor.take_one("EXTENDED", "FORMATTED") is not None
    return Head(Statement.DESCRIBE, cursor.name(), cursor, is_extended=is_extended)


def _refresh(cursor: Cursor, ctes: str) -> Head | None:
    if cursor.take("INDEX"):
        return _index(cursor, Statement.REFRESH_INDEX, ("IF", "EXISTS"))
    if cursor.take("FUNCTION"):
        return None
    _take_table(cursor)
    return Head(Statement.REFRESH_TABLE, cursor.name(), cursor)


def _repair(cursor: Cursor, ctes: str) -> Head | None:
    cursor.take("REPAIR")
    cursor.expect("TABLE")
    return Head(Statement.REPAIR, cursor.name(), cursor)


def _on_table(statement: Statement, *words: str) -> _Reader:
    def read(cursor: Cursor, ctes: str) -> Head | None:
        cursor.expect(*words)
        return Head(statement, cursor.name(), cursor)

    return read


def _load(cursor: Cursor, ctes: str) -> Head | None:
    cursor.until(("INTO", "TABLE"))
    cursor.expect("INTO", "TABLE")
    return Head(Statement.LOAD, cursor.name(), cursor)


def _call(cursor: Cursor, ctes: str) -> Head | None:
    return Head(Statement.CALL, cursor.name("the procedure's name"), cursor)


def _compaction(operation: str) -> _Reader:
    """`RUN COMPACTION ON t [AT instant]` and `SCHEDULE COMPACTION ON t`, the older form of a procedure."""

    def read(cursor: Cursor, ctes: str) -> Head | None:
        if not cursor.take("COMPACTION", "ON"):
            return None
        return _older_call(cursor, "run_compaction", f"op => '{operation}', ", "AT", "timestamp")

    return read


def _older_call(cursor: Cursor, procedure: str, arguments: str, keyword: str, argument: str) -> Head:
    """The CALL that a statement stands for. `keyword`: what stands before the value of an argument, last."""
    first = cursor.word()
    if first is not None and first.kind is Kind.STRING:
        cursor.at += 1
        arguments += f"path => {quoted_text(first.text)}"
    else:
        arguments += f"table => {quoted_text(quoted_name(*cursor.name()))}"
    if cursor.take(keyword):
        arguments += f", {argument} => {cursor.rest()}"
    cursor.end()
    return Head(Statement.CALL, (procedure,), Cursor(f"({arguments})"))


def _explain(cursor: Cursor, ctes: str) -> Head | None:
    cursor.take_one("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL")
    found = _head(cursor, _ctes(cursor))
    is_change = found is not None and found.statement in _CHANGES
    return Head(Statement.EXPLAIN, found.target, cursor) if found is not None and is_change else None


def _execute(cursor: Cursor, ctes: str) -> Head | None:
    cursor.expect("IMMEDIATE")
    return Head(Statement.EXECUTE, (), cursor)


def _script(cursor: Cursor, ctes: str) -> Head | None:
    return Head(Statement.SCRIPT, (), cursor)


_CHANGES = (Statement.INSERT, Statement.UPDATE, Statement.DELETE, Statement.MERGE)

_READERS: dict[str, _Reader] = {
    "INSERT": _insert,
    "FROM": _from,
    "UPDATE": _update,
    "DELETE": _delete,
    "MERGE": _merge,
    "CREATE": _create,
    "REPLACE": _replace,
    "DROP": _drop,
    "TRUNCATE": _on_table(Statement.TRUNCATE, "TABLE"),
    "ALTER": _on_table(Statement.ALTER_TABLE, "TABLE"),
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "REFRESH": _refresh,
    "ANALYZE": _on_table(Statement.ANALYZE, "TABLE"),
    "MSCK": _repair,
    "REPAIR": _repair,
    "LOAD": _load,
    "CALL": _call,
    "RUN": _compaction("run"),
    "SCHEDULE": _compaction("schedule"),
    "EXPLAIN": _explain,
    "EXECUTE": _execute,
    "BEGIN": _script,
}
