"""CREATE, DROP, SHOW and REFRESH INDEX, carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import CatalogEntry
from pyhudi.errors import Invalid, NotFound, Unsupported
from pyhudi.inspect.indexes import read_indexes
from pyhudi.metadata.kinds.expression import FILTER_OPTIONS
from pyhudi.options.table_facts import parse_flag
from pyhudi.spark.session import SqlSession
from pyhudi.sql.calls import CreateIndex, read_create_index
from pyhudi.sql.heads import Head
from pyhudi.table.prune.indexed_expression import EXPRESSION_OPTION, IDENTITY, IndexedExpression, argument_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ON_EXPRESSIONS: Final = ("column_stats", "bloom_filters")
_RECORD_INDEX: Final = "record_index"
_dropped_along: Final[set[tuple[str, str]]] = set()
"""Path and name of indexes that went with another one: dropping them by name, too, is no error.

Apache Hudi's quick start drops the record index first, and then the secondary index that needs it.
"""


def create_index(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`CREATE INDEX [IF NOT EXISTS] name ON t [USING kind] (column) [OPTIONS (…)]`."""
    statement = read_create_index(head)
    table = session.open(entry)
    asked = _asked(statement, table)
    done = table.build_index(
        asked.kind, columns=asked.columns, name=asked.name, expression=asked.expression, options=asked.options,
        spark=session.spark,
    )  # fmt: skip
    if done.completed is None and not statement.is_lenient:
        raise Invalid(
            f"CREATE INDEX {statement.name} ON {'.'.join(statement.target)}: nothing was built: {done.reason}; write "
            "CREATE INDEX IF NOT EXISTS"
        )
    for partition in done.partitions:
        _dropped_along.discard((table.path, partition))
    return session.nothing()


@dataclass(frozen=True, slots=True)
class _Asked:
    """The index that a statement asks for, as `HudiTable.build_index` takes it."""

    kind: str
    name: str | None = None
    columns: tuple[str, ...] | None = None
    expression: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def _asked(statement: CreateIndex, table: HudiTable) -> _Asked:
    """What the statement asks for. Raises: Invalid, Unsupported.

    Seen: 1.0.2 and 1.2.0 tell a record index from a secondary index by the columns. They refuse column statistics
    without an expression.
    """
    kind, columns = statement.kind, statement.columns
    what = f"CREATE INDEX {statement.name} ON {'.'.join(statement.target)}"
    if not columns:
        raise Invalid(f"{what}: expected a column in brackets, found none")
    if kind in _ON_EXPRESSIONS:
        if statement.name.lower() == _RECORD_INDEX:
            raise Invalid(f"{what}: expected another name: this is the one of the index of record keys")
        if len(columns) != 1:
            raise Invalid(f"{what}: expected one column, found {', '.join(columns)}")
        options = dict(statement.options)
        function = options.pop(EXPRESSION_OPTION, IDENTITY)
        if kind == "column_stats" and function == IDENTITY:
            raise Invalid(
                f"{what}: expected OPTIONS (expr = 'function'); statistics of columns themselves are "
                "HudiTable.build_index('column_stats'), or the option hoodie.metadata.index.column.stats.enable"
            )
        of_filters = {short: name for name, short in FILTER_OPTIONS.items()} if kind == "bloom_filters" else {}
        filters = {of_filters[short]: options.pop(short) for short in of_filters if short in options}
        unknown = sorted(set(options) - set(argument_options(function)))
        if unknown:
            known = ", ".join([EXPRESSION_OPTION, *argument_options(function), *of_filters])
            raise Invalid(f"{what}: OPTIONS of {kind} with {function}: expected {known}, found {', '.join(unknown)}")
        expression = IndexedExpression(function, columns[0], options).text
        return _Asked(kind, statement.name, columns, expression, filters)
    keys, options = set(table.record_key), dict(statement.options)
    names_keys = _RECORD_INDEX in (kind, statement.name.lower())
    if names_keys or (not kind and set(columns) == keys):
        if set(columns) != keys:
            raise Invalid(f"{what}: expected the record key ({', '.join(sorted(keys))}), found {', '.join(columns)}")
        is_partitioned = parse_flag("isPartitioned", options.pop("isPartitioned", "false"))
        if not options:
            return _Asked(f"partitioned_{_RECORD_INDEX}" if is_partitioned else _RECORD_INDEX)
    if options:
        raise Unsupported(
            f"{what}: OPTIONS: expected USING column_stats or bloom_filters beside them, or isPartitioned alone for a "
            "record index"
        )
    if kind not in ("", "secondary_index"):
        raise Unsupported(
            f"{what}: USING {kind}: expected column_stats, bloom_filters, secondary_index or record_index"
        )
    if keys & set(columns):
        raise Invalid(f"{what}: expected all columns of the record key, or one column that is none of them")
    return _Asked("secondary_index", statement.name, columns)


def drop_index(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`DROP INDEX [IF EXISTS] name ON t`, with those that cannot be without it."""
    head.cursor.end()
    # What the session's options ask for is no reason to keep an index that is dropped by name.
    table = HudiTable.open(entry.path)
    try:
        dropped = table.drop_index(head.index)
    except NotFound:
        is_gone = any((table.path, name) in _dropped_along for name in (head.index, f"secondary_index_{head.index}"))
        if not head.is_lenient and not is_gone:
            raise
        return session.nothing()
    _dropped_along.update((table.path, name) for name in dropped.partitions if name != head.index)
    return session.nothing()


def show_indexes(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`SHOW INDEXES FROM t`."""
    head.cursor.end()
    found = read_indexes(HudiTable.open(entry.path))
    return session.rows(
        [(one.name, one.kind, ",".join(one.columns)) for one in found],
        "index_name string, index_type string, col_name string",
    )


def refresh_index(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`REFRESH INDEX name ON t`: each write keeps indexes true, so nothing is to be done."""
    known = [one.name for one in read_indexes(HudiTable.open(entry.path))]
    if not any(name == head.index or name.endswith(f"_{head.index}") for name in known) and not head.is_lenient:
        raise NotFound(
            f"REFRESH INDEX {head.index}: expected an index of {'.'.join(entry.full_name)}, which has {known}"
        )
    return session.nothing()
