"""Work on file groups as tasks of Spark, with the handle of a local thread: services, and writes of few rows."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.engine.spark.outcomes import OUTCOMES, collect_outcomes, outcome_of, running_task
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import core_count, is_classic, use_running_interpreter
from pyhudi.write.handles.slice_work import Made, OneTask, SharedTarget, SliceHandle


class SparkSliceWork:
    """Runs slices as tasks of a Spark session, in their order. What the handle makes comes to the driver: statistics of
    files, no rows."""

    def __init__(self, spark: SparkSession, *, slices_a_task: int = 1) -> None:
        """`slices_a_task`: how many slices a task of Spark is to have at least, if that leaves no core without one.
        More are worth it where a slice is done sooner than Spark starts a task.
        """
        self._spark, self._slices_a_task = spark, slices_a_task

    def run(
        self, handle: SliceHandle[SharedTarget, OneTask, Made], target: SharedTarget, tasks: Sequence[OneTask]
    ) -> list[Made]:
        if not tasks:
            return []
        use_running_interpreter(self._spark)
        cores = core_count(self._spark)
        rounds = -(-len(tasks) // (cores * self._slices_a_task))  # every core has as many tasks as another
        numbers = self._spark.range(0, len(tasks), 1, min(len(tasks), cores * rounds))
        with _shared(self._spark, list(map(pickle.dumps, tasks))) as packed:
            outcomes = numbers.mapInArrow(_slice_task(handle, target, packed), spark_schema(OUTCOMES))
            return [one for made in collect_outcomes(outcomes) for one in made]


class _Packed(Protocol):
    """The tasks, pickled each by itself, so that a task of Spark unpickles its own only."""

    @property
    def value(self) -> Sequence[bytes]: ...


@dataclass(frozen=True, slots=True)
class _Enclosed:
    """Tasks that go with the function."""

    value: Sequence[bytes]


@contextmanager
def _shared(spark: SparkSession, packed: list[bytes]) -> Iterator[_Packed]:
    """The tasks for the length of a job. A worker loads them once, not for each task; under Spark Connect it does."""
    if not is_classic(spark):
        yield _Enclosed(packed)
        return
    broadcast = spark.sparkContext.broadcast(packed)
    try:
        yield broadcast
    finally:
        broadcast.destroy()


def _slice_task(
    handle: SliceHandle[SharedTarget, OneTask, Made], target: SharedTarget, packed: _Packed
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is the numbers of slices, its output the outcome of each."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        attempt = running_task().taskAttemptId()
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                task = pickle.loads(packed.value[number])
                work = partial(handle, target, task, task_attempt=attempt)
                yield outcome_of(number, work)[0]

    return run
