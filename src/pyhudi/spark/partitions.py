"""Partitions that a `PARTITION (…)` clause names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api.partitions import has_times_in_paths, partition_texts, text_in_path
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.errors import Invalid
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import PartitionValue

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def typed_value(session: SqlSession, one: PartitionValue, kind: DataType) -> str:
    """The value of `PARTITION (column = value)` as SQL text in the column's type, where it is a text. As Spark does it.

    Raises: Invalid for a text that is none of the type.
    """
    assert one.value is not None
    said = session.spark_sql(f"SELECT {one.value}").schema[0].dataType
    if said.typeName() != "string" or kind.typeName() == "string":
        return one.value
    if session.value(f"try_cast({one.value} AS {kind.simpleString()}) IS NULL AND {one.value} IS NOT NULL"):
        raise Invalid(f"PARTITION ({one.column} = {one.value}): expected {kind.simpleString()}, found no such value")
    return f"CAST({one.value} AS {kind.simpleString()})"


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
    schema = table.schema()
    if name not in schema.names or has_times_in_paths(table, name):
        return str(session.value(f"CAST({one.value} AS STRING)"))
    stored = schema.field(name)
    kind = spark_schema(pa.schema([stored]))[0].dataType
    text = f"CAST({typed_value(session, one, kind)} AS {kind.simpleString()})"
    if kind.typeName() != "timestamp":
        return text_in_path(table, name, pa.scalar(session.value(text), stored.type))
    micros = session.value(f"unix_micros({text})")  # as a Python value it would be in the zone of this process
    return text_in_path(table, name, pa.scalar(micros, pa.timestamp("us", "UTC")).cast(stored.type))
