"""Keys of an input whose rows lie in several partitions: only the rows in the partition of the greatest row count."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.spark.write.keys import quoted
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.write.input.source import ARRIVAL

BROADCAST_ROWS_MAX = 1_000_000
"""Up to so many keys, or tagged keys, a join sends them to every task instead of shuffling the other side."""

_WINNER = "__pyhudi_winner"


def contested_keys(rows: DataFrame, ordering: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Keys whose rows lie in several partitions, each with the partition of its greatest row.

    Rows are compared by the ordering columns, then by arrival. Keys and ordering columns are shuffled.
    """
    latest = f.struct(*comparable(ordering, schema), f.col(ARRIVAL))
    found = rows.groupBy(RECORD_KEY).agg(
        f.max_by(PARTITION_PATH, latest).alias(_WINNER),
        f.min(PARTITION_PATH).alias("least"),
        f.max(PARTITION_PATH).alias("greatest"),
    )
    return found.where("least != greatest").select(RECORD_KEY, _WINNER)


def without_losers(rows: DataFrame, contested: DataFrame, count: int) -> DataFrame:
    """The rows, without the losing rows of contested keys.

    A row loses when it lies in another partition than the greatest row of its key (`contested_keys`).
    """
    few = f.broadcast(contested) if count <= BROADCAST_ROWS_MAX else contested
    joined = rows.join(few, RECORD_KEY, "left")
    return joined.where(f.col(_WINNER).isNull() | (f.col(_WINNER) == f.col(PARTITION_PATH))).select(*rows.columns)


def comparable(ordering: Sequence[str], schema: pa.Schema) -> list[Column]:
    """Columns that, as a struct, sort like the ordering columns do in Java: -0.0 comes before 0.0."""
    columns: list[Column] = []
    for n, name in enumerate(ordering):
        column = f.col(quoted(name))
        columns.append(column.alias(f"order_{n}"))
        if pa.types.is_floating(schema.field(name).type):
            columns.append(f.when(column.cast("string") == "-0.0", 0).otherwise(1).alias(f"sign_{n}"))
    return columns
