"""Arrow batches of a DataFrame under the names that the DataFrame has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyhudi.errors import Bug
from pyhudi.format.struct_fields import is_path


def map_in_arrow(
    rows: DataFrame, run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: StructType | str
) -> DataFrame:
    """As `rows.mapInArrow`, where the columns of the batches have the names of `rows.columns`.

    Spark names the columns of a batch as the optimized plan does. A file has the column `Fare`, and
    `rows.select("fare")` finds it without regard to case: the optimizer drops the projection, and the batch has `Fare`.
    Classic sessions take a name with dots for a path. Seen: Spark 4.3.
    """
    names = tuple(rows.columns)
    if any(map(is_path, names)):
        rows = rows.toDF(*(f"__pyhudi_column_{at}" for at in range(len(names))))
    return rows.mapInArrow(_named(run, names), schema)


def _named(
    run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], names: tuple[str, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def with_names(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(_renamed(batch, names) for batch in batches)

    return with_names


def _renamed(batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.RecordBatch:
    if batch.num_columns != len(names):
        raise Bug(f"a batch of Spark: expected columns {names}, found {batch.schema.names}")
    return batch.rename_columns(names)
