"""Folders of Hudi tables are not written to by Spark's own formats: its files would lie among the table's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.session import is_classic
from pyhudi.engine.spark.sql.catalog import LEVELS_MAX, find_table_above, path_of
from pyhudi.errors import Unsupported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_folder(spark: SparkSession, folder: str, what: str) -> None:
    """Raises: Unsupported for the folder of a Hudi table, and for one within. `what`: how the text or call says it."""
    table = (find_table_above if is_classic(spark) else _table_above)(spark, folder)
    if table is not None:
        raise Unsupported(
            f"{what}: the Hudi table {table} lies there, and Spark would put its own files among the table's, or in "
            "their place; choose another folder, or write with format('hudi'), or INSERT into the table by its name"
        )


def _table_above(spark: SparkSession, folder: str) -> str | None:
    """As `find_table_above`, where this process sees the folder and not Spark's file systems."""
    path = path_of(folder)
    for _ in range(LEVELS_MAX):
        if HudiTable.exists(path):
            return path
        path = path.rpartition("/")[0]
        if not path.strip("/") or path.endswith((":", ":/")):
            break
    return None
