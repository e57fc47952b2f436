"""Partitions that a `PARTITION (…)` clause names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pyhudi.api.partitions import has_times_in_paths, partition_texts, text_in_path
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.sql.partition_values import value_in
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import PARTITION_PATH
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import PartitionValue
from pyhudi.sql.words import quoted_name, quoted_text
from pyhudi.write.place.replacement import has_in_order


def matching_partitions(
    session: SqlSession,
    table: HudiTable,
    said: Sequence[PartitionValue],
    living: Sequence[str],
    *,
    takes_patterns: bool = False,
) -> list[str]:
    """The paths among `living` whose values are those that are said. Columns without a value stand for any.

    `takes_patterns`: `*` in a text stands for any text, unless a partition has just that text.
    A path that does not tell its values is told by its rows.
    Raises: Invalid for a column that is no partition column; Unsupported for a path whose rows have other values, too.
    """
    known = {name.lower(): name for name in table.partition_by}
    wanted: dict[str, str | None] = {}
    patterns: dict[str, str] = {}
    for one in said:
        if one.column.lower() not in known:
            raise Invalid(
                f"PARTITION: '{one.column}' is no partition column of table '{table.name}', which has "
                f"{', '.join(table.partition_by) or 'none'}"
            )
        if one.value is not None:
            name = known[one.column.lower()]
            if takes_patterns and "*" in one.value and one.value[0] in "'\"":
                patterns[name] = str(session.value(one.value))
            else:
                wanted[name] = _text_in_path(session, table, name, one)

    if not wanted and not patterns:
        return list(living)
    texts_of = _texts_of(table, living, [*wanted, *patterns])
    for name, pattern in list(patterns.items()):
        if any(texts[name] == pattern for of_path in texts_of.values() for texts in of_path):
            wanted[name] = patterns.pop(name)

    def matches(texts: Mapping[str, str | None]) -> bool:
        return all(texts[name] == value for name, value in wanted.items()) and all(
            has_in_order(texts[name] or "", pattern.split("*")) for name, pattern in patterns.items()
        )

    found = []
    for path, of_path in texts_of.items():
        hits = [matches(texts) for texts in of_path]
        if any(hits) and not all(hits):
            raise Unsupported(
                f"PARTITION ({', '.join((*wanted, *patterns))}): the partition '{path}' of table '{table.name}' has "
                "rows of these values and of others; use DELETE FROM … WHERE"
            )
        found += [path] if any(hits) else []
    return found


def partitions_where(session: SqlSession, table: HudiTable, predicate: str, living: Sequence[str]) -> list[str]:
    """The paths among `living` whose partition values a condition is true for. Spark says of a bad condition.

    Raises: Unsupported where many values of a column share a path, such as those of a day.
    """
    schema, columns = table.schema(), table.partition_by
    if shared := [name for name in columns if has_times_in_paths(table, name)]:
        raise Unsupported(f"predicate of column '{shared[0]}': paths do not tell its values; name the partitions")
    kinds = {field.name: field.dataType.simpleString() for field in spark_schema(schema).fields}
    texts = []
    for path, of_path in _texts_of(table, living, columns).items():
        if len(of_path) > 1:
            raise Unsupported(f"predicate: the partition '{path}' has rows of several values; name the partitions")
        texts += [(path, *map(one.get, columns)) for one in of_path]
    numbered = ", ".join(f"c{at} string" for at in range(len(columns)))
    casts = [f"CAST(c{at} AS {kinds.get(name, 'string')}) AS {quoted_name(name)}" for at, name in enumerate(columns)]
    rows = session.rows(texts, f"{PARTITION_PATH} string{', ' if columns else ''}{numbered}")
    found = rows.selectExpr(PARTITION_PATH, *casts).where(predicate).select(PARTITION_PATH)
    return [row[0] for row in found.collect()]


_Texts: TypeAlias = Mapping[str, str | None]


def _texts_of(table: HudiTable, paths: Sequence[str], columns: Sequence[str]) -> dict[str, list[_Texts]]:
    """The texts of partition columns in each path, as the path tells them, or else as its rows do, which are read.

    A path that rows of several values share has several; one without rows may have none.
    """
    told = partition_texts(table, paths)
    unknown = [path for path, texts in told.items() if not texts] if columns else []
    of_rows = _texts_of_rows(table, unknown, columns) if unknown else {}
    return {path: of_rows.get(path, [texts]) for path, texts in told.items()}


def _texts_of_rows(table: HudiTable, paths: Sequence[str], columns: Sequence[str]) -> dict[str, list[_Texts]]:
    """The same, by the rows alone. Raises: Unsupported where they tell neither their path nor a text in it."""
    names = table.schema().names
    is_told = all(name in names and not has_times_in_paths(table, name) for name in columns)
    if not is_told or not table._access.snapshot().config.has_meta_fields:
        raise Unsupported(
            f"PARTITION ({', '.join(columns)}): the path '{paths[0]}' of table '{table.name}' does not tell its "
            "values, and its rows do not either; use DELETE FROM … WHERE"
        )
    where = f"{PARTITION_PATH} IN ({', '.join(map(quoted_text, paths))})"
    rows = table.scan(columns=[PARTITION_PATH, *columns], where=where).to_arrow()
    found: dict[str, list[_Texts]] = {path: [] for path in paths}
    distinct = rows.group_by(rows.column_names).aggregate([])
    for at, path in enumerate(distinct[PARTITION_PATH].to_pylist()):
        found[path].append({name: text_in_path(table, name, distinct[name][at]) for name in columns})
    return found


def _text_in_path(session: SqlSession, table: HudiTable, name: str, one: PartitionValue) -> str | None:
    """The text that paths have for the value that a statement says."""
    assert one.value is not None
    schema = table.schema()
    if name not in schema.names or has_times_in_paths(table, name):
        return str(session.value(f"CAST({one.value} AS STRING)"))
    return text_in_path(table, name, value_in(schema.field(name), one.value, session.spark_sql))
