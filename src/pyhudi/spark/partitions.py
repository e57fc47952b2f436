"""Partitions that a `PARTITION (…)` clause names."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.api.partitions import has_times_in_paths, partition_texts, text_in_path
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.partition_values import value_in
from pyhudi.errors import Invalid
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import PartitionValue


def matching_partitions(
    session: SqlSession, table: HudiTable, said: Sequence[PartitionValue], living: Sequence[str]
) -> list[str]:
    """The paths among `living` whose values are those that are said. Columns without a value stand for any.

    Raises: Invalid for a column that is no partition column.
    """
    known = {name.lower(): name for name in table.partition_by}
    wanted: dict[str, str | None] = {}
    for one in said:
        if one.column.lower() not in known:
            raise Invalid(
                f"PARTITION: '{one.column}' is no partition column of table '{table.name}', which has "
                f"{', '.join(table.partition_by) or 'none'}"
            )
        if one.value is not None:
            name = known[one.column.lower()]
            wanted[name] = _text_in_path(session, table, name, one)
    found = []
    for path in living:
        texts = partition_texts(table, path)
        if all(name in texts and texts[name] == value for name, value in wanted.items()):
            found.append(path)
    return found


def _text_in_path(session: SqlSession, table: HudiTable, name: str, one: PartitionValue) -> str | None:
    """The text that paths have for the value that a statement says."""
    assert one.value is not None
    schema = table.schema()
    if name not in schema.names or has_times_in_paths(table, name):
        return str(session.value(f"CAST({one.value} AS STRING)"))
    return text_in_path(table, name, value_in(schema.field(name), one.value, session.spark_sql))
