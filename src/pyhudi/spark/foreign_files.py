"""Folders of Hudi tables are not written to by Spark's own formats: its files would lie among the table's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.api.table_paths import find_table_at_or_above
from pyhudi.engine.spark.session import is_classic
from pyhudi.engine.spark.sql.catalog import find_table_above, path_of
from pyhudi.errors import Unsupported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_folder(spark: SparkSession, folder: str, what: str) -> None:
    """Raises: Unsupported for the folder of a Hudi table, and for one within. `what`: how the text or call says it.

    Under Connect this process looks, by its own sight of the storage. What it cannot see is no table to it.
    """
    table = find_table_above(spark, folder) if is_classic(spark) else find_table_at_or_above(path_of(folder))
    if table is not None:
        raise Unsupported(
            f"{what}: the Hudi table {table} lies there, and Spark would put its own files among the table's, or in "
            "their place; choose another folder, or write with format('hudi'), or INSERT into the table by its name"
        )
