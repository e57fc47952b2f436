"""`register(spark)`: the format name `hudi` for PySpark's own readers and writers, without a jar."""

from typing import TYPE_CHECKING

from pyhudi.api.datasource import load_table
from pyhudi.api.rows.frame_merges import carry_merges
from pyhudi.engine.spark.classes import classes_of
from pyhudi.engine.spark.register import wrap_readers_and_writers
from pyhudi.engine.spark.session import check_session
from pyhudi.engine.spark.write.staging import runs_on_this_machine, scratch_folder
from pyhudi.spark.entries.sync import PathWrites
from pyhudi.spark.foreign_files import refuse_folder
from pyhudi.spark.frame_merges import FrameMerges
from pyhudi.spark.names import register_sql
from pyhudi.storage.scratch import sweep_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Make `spark.read.format("hudi")` and `df.write.format("hudi")` work as users of Apache Hudi know them.

    It wraps `format`, `option`, `options`, `mode`, `load` and `save` of PySpark's classes (classic and Connect)
    in this process: for `hudi` they end here. Every other format goes through, but not into the folder of a Hudi table.
    SQL, names of tables and streams work for `hudi`, too, and so do merges of DataFrames. Calling it twice is harmless.
    Where Spark runs on this machine, rows that a driver left there which was killed are deleted.

    Example:
        pyhudi.spark.register(spark)
        df.write.format("hudi").options(**hoodie_options).mode("append").save(path)
        spark.read.format("hudi").option("as.of.instant", "2026-11-01").load(path)
    """
    check_session(spark)
    classes = classes_of(type(spark))
    session_of = register_sql(spark, classes)
    carry_merges(type(spark), FrameMerges(session_of))
    wrap_readers_and_writers(classes, load=load_table, save=PathWrites(session_of).save, refuse=refuse_folder)
    if runs_on_this_machine(spark):
        sweep_once(scratch_folder(spark), setting="spark.local.dir")
