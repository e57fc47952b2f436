"""A name in the catalog for a table that is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import NewEntry
from pyhudi.engine.spark.sql.columns import catalog_columns
from pyhudi.spark.session import SqlSession
from pyhudi.spark.shows import base_format_of
from pyhudi.spark.table_facts import has_meta_fields, shown_properties

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def put_entry(
    session: SqlSession,
    table: HudiTable,
    name: tuple[str, str],
    *,
    path: str,
    is_managed: bool = False,
    columns: StructType | None = None,
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    reads_optimized: bool = False,
) -> None:
    """Give the table at a path a name.

    `name`: database and name. `columns`, `properties`: what a statement says of them. `reads_optimized`: the name
    stands for the base files alone. Raises: Spark's own error for a name that is taken.
    """
    partition_by = [column for column in table.partition_by if column in table.schema().names]
    session.catalog.create(
        NewEntry(
            database=name[0],
            name=name[1],
            path=path,
            columns=catalog_columns(table.schema(), partition_by, said=columns, has_meta_fields=has_meta_fields(table)),
            partition_by=partition_by,
            properties=shown_properties(table, properties or {}),
            comment=comment,
            is_managed=is_managed,
            base_format=base_format_of(table),
            has_logs=table.table_type == "MERGE_ON_READ" and not reads_optimized,
            reads_optimized=reads_optimized,
        )
    )
