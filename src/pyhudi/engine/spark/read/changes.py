"""Change data as Spark DataFrames: tasks read a share of the file groups each, as this process would."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.read.merged import map_slices
from pyhudi.engine.spark.session import refuse_unshared
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.changes.change_plan import ChangePiece, ChangePlan
from pyhudi.table.changes.change_rows import read_piece
from pyhudi.table.changes.change_texts import TEXT_SCHEMA, as_texts


def changes_to_dataframe(
    spark: SparkSession, location: StorageLocation, plan: ChangePlan, *, are_texts: bool
) -> DataFrame:
    """The changes of a plan. `are_texts`: in Apache Hudi's columns. Memory of a task: as `read_piece`."""
    refuse_unshared(spark, location)
    lean = replace(plan, pieces=())  # each task is told its own pieces only

    def read(storage: Storage, piece: ChangePiece) -> Iterator[pa.RecordBatch]:
        found = read_piece(storage, lean, piece)
        return as_texts(found) if are_texts else found

    return map_slices(spark, location, plan.pieces, read, TEXT_SCHEMA if are_texts else plan.schema)
