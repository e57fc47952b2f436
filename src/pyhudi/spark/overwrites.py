"""`writeTo(t).overwrite(condition)`: rows in place of the partitions for which a condition holds, in one commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyhudi.api.partitions import overwrite_partitions, shows_other_values
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.looks import groups_where
from pyhudi.engine.spark.write.kept import KeptRows
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import PARTITION_PATH
from pyhudi.spark.session import SqlSession
from pyhudi.spark.table_facts import has_meta_fields

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def overwrite_where(
    session: SqlSession, table: HudiTable, rows: DataFrame, condition: Column, options: Mapping[str, str]
) -> None:
    """Replace the partitions for which the condition holds by the rows, for which it must hold, too.

    Raises: Unsupported for a condition on other columns than those of partitions, or that holds for some of the values
    that share a partition, those of the rows among them; Invalid for rows for which it does not hold.
    """
    if not has_meta_fields(table):
        raise Unsupported(
            f"overwrite(condition): table '{table.name}' has no meta columns, which tell the partitions of rows; use "
            "overwritePartitions(), or DELETE and append()"
        )
    if shows_other_values(table):
        raise Unsupported(
            f"overwrite(condition): queries show partition columns of table '{table.name}' otherwise than they are "
            "stored; use overwritePartitions(), or HudiTable.delete and append()"
        )
    said = session.column_texts(None, what="overwrite(condition)").text(condition)
    holds = f"coalesce({said}, false)"
    paths, others = _partitions(session, table, holds, said)

    def may_replace(partitions: Collection[str]) -> None:
        if shared := sorted(others.intersection(partitions)):
            raise Unsupported(
                f"overwrite(condition): {said} holds for new rows of partition '{shared[0]}', and for none of its "
                "stored rows, which would go; use MERGE INTO"
            )

    kept = KeptRows()
    try:
        given = kept.keep(rows)
        if not given.where(f"NOT {holds}").isEmpty():
            raise Invalid(f"overwrite(condition): expected rows for which {said} holds, found others among them")
        is_empty = given.isEmpty()
        if not table.partition_by:
            if paths or not is_empty:
                table.insert_overwrite_table(given, options=options)
        elif not is_empty:
            overwrite_partitions(table, given, paths, options, may_replace)
        elif paths:
            table.delete_partitions(paths, options=options)
    finally:
        kept.release()


def _partitions(session: SqlSession, table: HudiTable, holds: str, said: str) -> tuple[list[str], frozenset[str]]:
    """The partitions of the table for which the condition holds, and the others."""
    stored = table.scan([*table.partition_by, PARTITION_PATH]).to_spark(session.spark)
    found = groups_where(stored, PARTITION_PATH, holds)
    if found is None:
        raise Unsupported(
            f"overwrite(condition): {said}: expected a condition on the partition columns of table '{table.name}' "
            f"({', '.join(table.partition_by) or 'none'}); use MERGE INTO for any other"
        )
    for partition, holds_for_all, holds_for_some in found:
        if holds_for_some and not holds_for_all:
            raise Unsupported(
                f"overwrite(condition): {said} holds for some of the rows of partition '{partition}'; use MERGE INTO"
            )
    chosen = sorted(partition for partition, holds_for_all, _ in found if holds_for_all)
    return chosen, frozenset(partition for partition, *_ in found).difference(chosen)
