"""Dividing the new rows of a partition into file groups by ranges of their keys, on Spark."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.spark.session import session_of
from pyhudi.engine.spark.write.small_tables import small_table
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY

SAMPLED_KEYS_MAX = 100_000
"""About so many keys are brought to the driver as a sample, to find where the ranges end."""

_TASKS = "__pyhudi_tasks"
_BOUNDS = "__pyhudi_bounds"


def with_key_ranges(
    rows: DataFrame, bins: Mapping[str, Sequence[tuple[int, int]]]
) -> tuple[DataFrame, Column, tuple[str, ...]]:
    """The rows with helper columns, the expression of each row's task, and the names of the helper columns.

    `bins`: partition -> tasks, each with its planned rows. All rows of a key get the same task. A task gets about
    as many rows as planned. Jobs: one over the keys of partitions with several tasks, if there are any; it reads
    `rows` once more.
    """
    bounds = _bounds(rows, {path: tasks for path, tasks in bins.items() if len(tasks) > 1})
    of_paths = [(path, [task for task, _ in tasks], bounds.get(path, [])) for path, tasks in sorted(bins.items())]
    table = small_table(
        session_of(rows), of_paths, f"{PARTITION_PATH} string, {_TASKS} array<int>, {_BOUNDS} array<string>"
    )  # fmt: skip
    passed = f.size(f.filter(f.col(_BOUNDS), lambda bound: bound <= f.col(RECORD_KEY)))
    task = f.element_at(_TASKS, passed + 1)
    return rows.join(f.broadcast(table), PARTITION_PATH, "left"), task, (_TASKS, _BOUNDS)


def _bounds(rows: DataFrame, bins: Mapping[str, Sequence[tuple[int, int]]]) -> dict[str, list[str]]:
    """For each partition, the least key of each task but the first, estimated from a sample of keys."""
    if not bins:
        return {}

    step = -(-sum(count for tasks in bins.values() for _, count in tasks) // SAMPLED_KEYS_MAX)
    chosen = rows.where(f.col(PARTITION_PATH).isin(list(bins))) if len(bins) <= _PATHS_MAX else rows
    sampled = chosen.where(f.pmod(f.xxhash64(RECORD_KEY), f.lit(step)) == 0)
    found = sampled.groupBy(PARTITION_PATH).agg(f.sort_array(f.collect_list(RECORD_KEY)).alias("keys")).collect()
    return {
        row[PARTITION_PATH]: bounds_of(row["keys"], bins[row[PARTITION_PATH]])
        for row in found
        if row[PARTITION_PATH] in bins
    }


_PATHS_MAX = 1_000
"""Up to so many partitions are named one by one in a filter."""


def bounds_of(sorted_keys: Sequence[str], bins: Sequence[tuple[int, int]]) -> list[str]:
    """The least key of each task but the first. Each task's share of the sample is its share of the planned rows.

    Example: sorted keys a, b, c, d and two tasks of 1 and 3 planned rows give the bound b.
    """
    total = sum(count for _, count in bins)
    bounds: list[str] = []
    before = 0
    for _, count in bins[:-1]:
        before += count
        bounds.append(sorted_keys[min(before * len(sorted_keys) // total, len(sorted_keys) - 1)])
    return bounds
