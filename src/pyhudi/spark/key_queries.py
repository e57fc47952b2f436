"""Queries for record keys by name: this process reads the rows where a record index tells the files that hold them.

A query of Spark for a few rows takes longer to be planned as a scan and run as a job than the rows take to be read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.connect.texts import literal_texts
from pyhudi.engine.spark.read.arrow_rows import arrow_dataframe, can_take_arrow
from pyhudi.engine.spark.read.told_rows import can_tell, told_dataframe
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import META_FIELDS, RECORD_KEY
from pyhudi.spark.plain_columns import plain_types
from pyhudi.sql.key_select import find_plain_select, names_are
from pyhudi.sql.names_used import names_used
from pyhudi.sql.parameters import with_literals
from pyhudi.sql.plain_conditions import Plain, whole_condition
from pyhudi.sql.reads import Read, find_reads
from pyhudi.sql.words import quoted_name, quoted_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyhudi.spark.session import SqlSession

_MAY_ASK: Final = re.compile(r"\s*(select|with)\b.*\bwhere\b", re.IGNORECASE | re.DOTALL)
_LEFT_TO_SPARK: Final = re.compile(r"\b(_metadata|input_file_\w+|insert|merge|update|delete)\b|\$\{", re.IGNORECASE)
"""What only a scan of files can tell, statements behind WITH, which must not run twice, and variables, which Spark
replaces later.
"""

_FILES_MAX: Final = 8
_BYTES_MAX: Final = 256 << 20
"""Rows are read here of at most so many files, of so many bytes in all. A job of Spark starts slower."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class KeyText:
    """A text with calls of `FOUND_ROWS`. `has_other_tables`: it also reads what no such call stands for."""

    text: str
    has_other_tables: bool


FOUND_ROWS: Final = "hudi_found_rows"
"""The table function that stands for rows in texts of `key_scans`."""

_found: dict[str, DataFrame] = {}
"""The rows for queries that Spark is about to analyse, by what their calls of `FOUND_ROWS` say."""


@contextmanager
def key_scans(
    session: SqlSession, text: str, args: Mapping[str, Any] | Sequence[Any] | None
) -> Iterator[DataFrame | KeyText | None]:
    """The answer to a text that asks one table for record keys by comparisons alone. To any other text that asks for
    them: the text with a call of `FOUND_ROWS` for each table that it asks so, while Spark analyses it.

    None where there is no such table. A call has the rows of the table for which its condition can hold, and the text
    keeps the condition.
    """
    calls: list[str] = []
    try:
        yield _with_calls(session, text, args, calls)
    finally:
        for call in calls:
            del _found[call]


def rows_of_call(call: str) -> DataFrame:
    """The rows that a call of `FOUND_ROWS` in a text of `key_scans` stands for. Raises: Invalid for any other call."""
    if call not in _found:
        raise Invalid(f"{FOUND_ROWS}({quoted_text(call)}): pyhudi itself calls this function; use the table's name")
    return _found[call]


def _with_calls(
    session: SqlSession, text: str, args: Mapping[str, Any] | Sequence[Any] | None, calls: list[str]
) -> DataFrame | KeyText | None:
    if not _MAY_ASK.match(text) or _LEFT_TO_SPARK.search(text) or not can_take_arrow(session.spark):
        return None
    if '"' in text and session.quotes_names:
        return None
    pieces, start = [], 0
    reads, names = find_reads(text), names_used(text)
    for read in reads:
        where = _where(read, args)
        path = None if where is None else _path_of(session, read)
        if where is None or path is None:
            continue
        table = HudiTable.open(path, options=session.read_options())
        answer = _whole_answer(table, text, read, where) if len(reads) == 1 else None
        if answer is not None:
            return _located(session, answer, told_dataframe)
        rows = _rows(session, table, where, read.called, names)
        if rows is None:
            continue
        call = f"query {next(_numbers)}"
        calls.append(call)
        _found[call] = rows
        alias = "" if read.has_alias else f" AS {quoted_name(read.name[-1])}"
        pieces += [text[start : read.start], f"{FOUND_ROWS}({quoted_text(call)}){alias}"]
        start = read.end
    return KeyText("".join(pieces) + text[start:], len(calls) < len(reads)) if calls else None


def _whole_answer(table: HudiTable, text: str, read: Read, where: str) -> Scan | None:
    """The scan whose rows are the answer of a text that reads this table alone; None where more is to be done than
    to compare columns with literals.
    """
    select = find_plain_select(text, read.called, read.alone_where or "")
    schema = table.schema()
    condition = None if select is None else whole_condition(where, read.called, _types(schema))
    if select is None or condition is None:
        return None
    known = frozenset((*META_FIELDS, *schema.names))
    small = {name.lower() for name in known}
    if len(small) < len(known) or not names_are(where, known) or not known.issuperset(select.columns or ()):
        return None
    scan = table.scan(select.columns, condition)
    return scan if can_tell(spark_schema(scan.schema)) else None


def _located(
    session: SqlSession, scan: Scan, as_dataframe: Callable[[SparkSession, pa.Table, StructType], DataFrame]
) -> DataFrame | None:
    """The rows of a scan, if a record index tells which few files hold them."""
    if not scan.is_located(files_max=_FILES_MAX, bytes_max=_BYTES_MAX):
        return None
    return as_dataframe(session.spark, scan.to_arrow(), spark_schema(scan.schema))


def _rows(
    session: SqlSession, table: HudiTable, where: str, called: str, names: frozenset[str] | None
) -> DataFrame | None:
    """The rows of a table for which a condition can hold, if a record index tells which few files hold them.

    `called`: how the condition calls the table. `names`: of the columns that are needed, in small letters; None: all.
    """
    schema = table.schema()
    keys = {RECORD_KEY, *(name.lower() for name in table.record_key)}
    of_keys = {name: kind for name, kind in _types(schema).items() if name.lower() in keys}
    condition = session.plain_conditions(where, called, of_keys)
    if condition is None:
        return None
    known = (*META_FIELDS, *schema.names)
    columns = None if names is None else [name for name in known if name.lower() in names]
    return _located(session, table.scan(columns, condition), arrow_dataframe)


def _types(schema: pa.Schema) -> dict[str, Plain]:
    """The columns that any engine compares alike, and the one of the record keys."""
    return {**plain_types(schema), RECORD_KEY: "text"}


def _path_of(session: SqlSession, read: Read) -> str | None:
    """Where the table lies that is read as it is now, by name; None for anything else."""
    if read.arguments is not None or read.path is not None or read.as_of is not None:
        return None
    entry = session.catalog.find(read.name)
    return None if entry is None or entry.reads_optimized else entry.path


def _where(read: Read, args: Mapping[str, Any] | Sequence[Any] | None) -> str | None:
    """The condition on a table that is read alone, with its parameters' values.

    None where there is none, and where parameters are told by their order or cannot be written.
    """
    if read.alone_where is None or not isinstance(args, Mapping):
        return None if args else read.alone_where
    try:
        return with_literals(read.alone_where, literal_texts(args))
    except (Invalid, Unsupported):
        return None
