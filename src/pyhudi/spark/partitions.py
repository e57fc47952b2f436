"""Partitions that a `PARTITION (…)` clause names."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.api.partitions import partition_texts
from pyhudi.api.table import HudiTable
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
    wanted: dict[str, object] = {}
    for one in said:
        if one.column.lower() not in known:
            raise Invalid(
                f"PARTITION: '{one.column}' is no partition column of table '{table.name}', which has "
                f"{', '.join(table.partition_by) or 'none'}"
            )
        if one.value is not None:
            wanted[known[one.column.lower()]] = session.value(f"CAST({one.value} AS STRING)")
    found = []
    for path in living:
        texts = partition_texts(table, path)
        if all(texts.get(name) == value for name, value in wanted.items()):
            found.append(path)
    return found
