"""The one shuffle of a write: the rows of each file group go to the Spark partition of their task."""

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

_PARTITION = "__pyhudi_partition"
_SEED = 42


def to_tasks(rows: DataFrame, task_number: str, task_count: int) -> DataFrame:
    """The rows in `task_count` Spark partitions; task t lies in partition t modulo the count.

    Spark 4.1 and later have `repartitionById` for this. Earlier releases partition by hash; there the rows get numbers
    whose hashes lead to the wanted partitions.
    """
    assert task_count >= 1
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(task_count, f.pmod(f.col(task_number), f.lit(task_count)).cast("int"))
    numbers = f.array(*(f.lit(number) for number in numbers_by_partition(task_count)))
    partition = f.element_at(numbers, (f.pmod(f.col(task_number), f.lit(task_count)) + 1).cast("int"))
    return rows.withColumn(_PARTITION, partition).repartition(task_count, _PARTITION).drop(_PARTITION)


def numbers_by_partition(count: int) -> list[int]:
    """For each Spark partition, the least number that hash partitioning sends there."""
    found: dict[int, int] = {}
    start, step = 0, max(64, 4 * count)
    while len(found) < count:
        candidates = np.arange(start, start + step, dtype=np.int32)
        for number, partition in zip(candidates.tolist(), (spark_hash(candidates) % count).tolist(), strict=True):
            found.setdefault(partition, number)
        start += step
    return [found[partition] for partition in range(count)]


def spark_hash(numbers: np.ndarray) -> np.ndarray:
    """Spark's hash of ints: Murmur3 x86 32 bit of four bytes, seed 42. Shape: (n,) int32 -> (n,) int32."""
    with np.errstate(over="ignore"):
        k = numbers.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = _rotated(k, 15) * np.uint32(0x1B873593)
        h = _rotated(np.uint32(_SEED) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return (h ^ (h >> np.uint32(16))).astype(np.int32)


def _rotated(values: np.ndarray, bits: int) -> np.ndarray:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
