"""Compactions on Spark: one task a slice, which runs the same handle as a thread of this process would."""

import pickle
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import use_running_interpreter
from pyhudi.errors import Bug
from pyhudi.model.commit import WriteStat
from pyhudi.write.compaction_handle import CompactionTarget, SliceHandle, SliceTask

_STATS = pa.schema([pa.field("number", pa.int64()), pa.field("stats", pa.binary())])


class SparkSliceWork:
    """Slices as tasks of a Spark session, the first ones first. No row comes to the driver: statements only."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, handle: SliceHandle, target: CompactionTarget, tasks: Sequence[SliceTask]) -> list[WriteStat]:
        if not tasks:
            return []
        use_running_interpreter(self._spark)
        numbers = self._spark.range(0, len(tasks), 1, len(tasks))
        rows = numbers.mapInArrow(_slice_task(handle, target, tasks), spark_schema(_STATS)).collect()
        stats: dict[int, list[WriteStat]] = {row.number: pickle.loads(bytes(row.stats)) for row in rows}
        return [stat for number in range(len(tasks)) for stat in stats[number]]


def _slice_task(
    handle: SliceHandle, target: CompactionTarget, tasks: Sequence[SliceTask]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: numbers of slices in, what became of them out."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is None:
            raise Bug("a compaction task runs outside of Spark")
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                stats = handle(target, tasks[number], task_attempt=context.taskAttemptId())
                yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([pickle.dumps(stats)])], schema=_STATS)

    return run
