"""DESCRIBE, SHOW CREATE TABLE and SHOW TBLPROPERTIES under Spark Connect, where Spark's own answers leave facts out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.engine.spark.connect.catalog import ConnectCatalog
from pyhudi.engine.spark.sql.catalog import CATALOG, CatalogEntry
from pyhudi.errors import Invalid
from pyhudi.spark.session import SqlSession
from pyhudi.sql.heads import Head
from pyhudi.sql.words import Cursor, Kind, quoted_name, quoted_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DESCRIBED = "col_name string, data_type string, comment string"


def describe_table(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`DESCRIBE [TABLE] [EXTENDED] t`. Of a column, it is Spark's own."""
    if not head.cursor.is_done:
        return session.spark_sql(head.cursor.text)
    catalog = _catalog(session)
    fields = catalog.columns(entry).fields
    columns = [(one.name, one.dataType.simpleString(), (one.metadata or {}).get("comment")) for one in fields]
    rows: list[tuple[str, str, str | None]] = list(columns)
    if entry.partition_by:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [one for name in entry.partition_by for one in columns if one[0] == name]
    if head.is_extended:
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [(fact, text, "") for fact, text in _facts(catalog, entry)]
    return session.rows(rows, _DESCRIBED)


def _facts(catalog: ConnectCatalog, entry: CatalogEntry) -> list[tuple[str, str]]:
    properties = ", ".join(f"{name}={text}" for name, text in sorted(entry.properties.items()))
    comment = catalog.comment(entry)
    return [
        ("Catalog", CATALOG),
        ("Database", entry.database),
        ("Table", entry.name),
        ("Type", "MANAGED" if entry.is_managed else "EXTERNAL"),
        ("Provider", "hudi"),
        *([] if comment is None else [("Comment", comment)]),
        ("Table Properties", f"[{properties}]"),
        ("Location", entry.path if "://" in entry.path else f"file:{entry.path}"),
    ]


def show_properties(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`SHOW TBLPROPERTIES t [(key)]`. Raises: Invalid for a key that is not there."""
    found = dict(sorted(entry.properties.items()))
    if head.cursor.sees("("):
        key = _key(Cursor(head.cursor.brackets()))
        if key not in found:
            raise Invalid(f"SHOW TBLPROPERTIES {'.'.join(entry.full_name)}: expected a property '{key}', found none")
        found = {key: found[key]}
    head.cursor.end()
    return session.rows(list(found.items()), "key string, value string")


def show_create(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`SHOW CREATE TABLE t`."""
    catalog = _catalog(session)
    columns = []
    for field in catalog.columns(entry).fields:
        comment = (field.metadata or {}).get("comment")
        said = f" COMMENT {quoted_text(comment)}" if comment else ""
        columns.append(f"  {quoted_name(field.name)} {field.dataType.simpleString().upper()}{said}")
    lines = [f"CREATE TABLE {quoted_name(CATALOG, *entry.full_name)} (", ",\n".join(columns) + ")", "USING hudi"]
    if entry.partition_by:
        lines.append(f"PARTITIONED BY ({', '.join(map(quoted_name, entry.partition_by))})")
    comment = catalog.comment(entry)
    if comment is not None:
        lines.append(f"COMMENT {quoted_text(comment)}")
    if not entry.is_managed:
        lines.append(f"LOCATION {quoted_text(entry.path)}")
    if entry.properties:
        pairs = (f"  {quoted_text(name)} = {quoted_text(text)}" for name, text in sorted(entry.properties.items()))
        lines += ["TBLPROPERTIES (", ",\n".join(pairs) + ")"]
    return session.rows([("\n".join(lines) + "\n",)], "createtab_stmt string")


def _catalog(session: SqlSession) -> ConnectCatalog:
    assert isinstance(session.catalog, ConnectCatalog)
    return session.catalog


def _key(cursor: Cursor) -> str:
    word = cursor.word()
    return word.text if word is not None and word.kind is Kind.STRING else cursor.rest()
