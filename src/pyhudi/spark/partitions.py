"""Partitions that a `PARTITION (…)` clause names."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.api.partitions import has_times_in_paths, partition_texts, text_in_path
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.sql.partition_values import value_in
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import PARTITION_PATH
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import PartitionValue
from pyhudi.sql.words import quoted_name
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
    Raises: Invalid for a column that is no partition column.
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

    texts_of = partition_texts(table, living)
    for name, pattern in list(patterns.items()):
        if any(texts.get(name) == pattern for texts in texts_of.values()):
            wanted[name] = patterns.pop(name)
    return [
        path
        for path, texts in texts_of.items()
        if all(name in texts and texts[name] == value for name, value in wanted.items())
        and all(has_in_order(texts.get(name) or "", pattern.split("*")) for name, pattern in patterns.items())
    ]


def partitions_where(session: SqlSession, table: HudiTable, predicate: str, living: Sequence[str]) -> list[str]:
    """The paths among `living` whose partition values a condition is true for. Spark says of a bad condition.

    Raises: Unsupported where many values of a column share a path, such as those of a day.
    """
    schema, columns = table.schema(), table.partition_by
    if shared := [name for name in columns if has_times_in_paths(table, name)]:
        raise Unsupported(f"predicate of column '{shared[0]}': paths do not tell its values; name the partitions")
    kinds = {field.name: field.dataType.simpleString() for field in spark_schema(schema).fields}
    texts = [(path, *map(of_path.get, columns)) for path, of_path in partition_texts(table, living).items()]
    numbered = ", ".join(f"c{at} string" for at in range(len(columns)))
    casts = [f"CAST(c{at} AS {kinds.get(name, 'string')}) AS {quoted_name(name)}" for at, name in enumerate(columns)]
    rows = session.rows(texts, f"{PARTITION_PATH} string{', ' if columns else ''}{numbered}")
    found = rows.selectExpr(PARTITION_PATH, *casts).where(predicate).select(PARTITION_PATH)
    return [row[0] for row in found.collect()]


def _text_in_path(session: SqlSession, table: HudiTable, name: str, one: PartitionValue) -> str | None:
    """The text that paths have for the value that a statement says."""
    assert one.value is not None
    schema = table.schema()
    if name not in schema.names or has_times_in_paths(table, name):
        return str(session.value(f"CAST({one.value} AS STRING)"))
    return text_in_path(table, name, value_in(schema.field(name), one.value, session.spark_sql))
