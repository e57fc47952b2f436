"""Compactions and clusterings on Spark. Each of their tasks is a Spark task, with the handle of a local thread."""

import pickle
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import use_running_interpreter
from pyhudi.errors import Bug
from pyhudi.format.timeline.records import WriteStat
from pyhudi.write.handles.slice_work import OneTask, SharedTarget, SliceHandle

_STATS = pa.schema([pa.field("number", pa.int64()), pa.field("stats", pa.binary())])


class SparkSliceWork:
    """Runs slices as tasks of a Spark session, in their order. Only write statistics come to the driver, no rows."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(
        self, handle: SliceHandle[SharedTarget, OneTask], target: SharedTarget, tasks: Sequence[OneTask]
    ) -> list[WriteStat]:
        if not tasks:
            return []
        use_running_interpreter(self._spark)
        numbers = self._spark.range(0, len(tasks), 1, len(tasks))
        rows = numbers.mapInArrow(_slice_task(handle, target, tasks), spark_schema(_STATS)).collect()
        stats: dict[int, list[WriteStat]] = {row.number: pickle.loads(bytes(row.stats)) for row in rows}
        return [stat for number in range(len(tasks)) for stat in stats[number]]


def _slice_task(
    handle: SliceHandle[SharedTarget, OneTask], target: SharedTarget, tasks: Sequence[OneTask]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is the numbers of slices, its output the pickled statistics of each."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is None:
            raise Bug("a task of a service runs outside of Spark")
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                stats = handle(target, tasks[number], task_attempt=context.taskAttemptId())
                yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([pickle.dumps(stats)])], schema=_STATS)

    return run
