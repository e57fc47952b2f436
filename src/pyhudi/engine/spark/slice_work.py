"""Work on file groups as tasks of Spark, with the handle of a local thread: services, and writes of few rows."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.engine.spark.outcomes import OUTCOMES, collect_outcomes, outcome_of
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import use_running_interpreter
from pyhudi.errors import Bug
from pyhudi.write.handles.slice_work import Made, OneTask, SharedTarget, SliceHandle


class SparkSliceWork:
    """Runs slices as tasks of a Spark session, in their order. What the handle makes comes to the driver: statistics of
    files, no rows."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(
        self, handle: SliceHandle[SharedTarget, OneTask, Made], target: SharedTarget, tasks: Sequence[OneTask]
    ) -> list[Made]:
        if not tasks:
            return []
        use_running_interpreter(self._spark)
        numbers = self._spark.range(0, len(tasks), 1, len(tasks))
        outcomes = numbers.mapInArrow(_slice_task(handle, target, tasks), spark_schema(OUTCOMES))
        return [one for made in collect_outcomes(outcomes) for one in made]


def _slice_task(
    handle: SliceHandle[SharedTarget, OneTask, Made], target: SharedTarget, tasks: Sequence[OneTask]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is the numbers of slices, its output the outcome of each."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is None:
            raise Bug("a task on file groups runs outside of Spark")
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                work = partial(handle, target, tasks[number], task_attempt=context.taskAttemptId())
                yield outcome_of(number, work)[0]

    return run
