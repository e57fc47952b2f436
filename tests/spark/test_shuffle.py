"""Rows could reach another task than the one they were meant for: two buckets in one slow task, or an empty one.

Our numbers for Spark's hash are held against Spark's, and the way by hash (before Spark 4.1) against the way by id.
"""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as f

from pyhudi.engine.spark.write.shuffle import numbers_by_partition, spark_hash, to_tasks

pytestmark = pytest.mark.spark

COUNTS = (1, 2, 3, 7, 16, 100)


def test_the_hash_is_sparks(spark: Any) -> None:
    numbers = [0, 1, -1, 42, 2**31 - 1, -(2**31), *range(100, 400)]
    frame = spark.createDataFrame([(number,) for number in numbers], "n int").select("n", f.hash("n").alias("h"))

    assert {row["n"]: row["h"] for row in frame.collect()} == dict(
        zip(numbers, spark_hash(np.array(numbers, dtype=np.int32)).tolist(), strict=True)
    )


@pytest.mark.parametrize("count", COUNTS)
def test_each_number_falls_where_spark_puts_it(spark: Any, count: int) -> None:
    numbers = numbers_by_partition(count)
    frame = spark.createDataFrame(list(enumerate(numbers)), "partition int, n int").repartition(count, "n")

    placed = frame.select("partition", f.spark_partition_id().alias("found")).collect()

    assert sorted(row["found"] for row in placed) == list(range(count))
    assert all(row["found"] == row["partition"] for row in placed)


class WithoutIds:
    """A DataFrame as it was before `repartitionById`."""

    def __init__(self, frame: Any) -> None:
        self.withColumn = frame.withColumn


@pytest.mark.parametrize("count", COUNTS)
def test_both_ways_put_a_bucket_into_the_same_task(spark: Any, count: int) -> None:
    rows = spark.range(250).select(f.col("id").cast("int").alias("task"))

    frames: tuple[Any, ...] = (rows, WithoutIds(rows))
    for frame in frames:
        placed = to_tasks(frame, "task", count).select("task", f.spark_partition_id().alias("found"))
        assert {row["task"]: row["found"] for row in placed.collect()} == {n: n % count for n in range(250)}
