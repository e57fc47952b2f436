"""An executor that runs pyhudi's tasks as tasks of a Spark session."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any, TypeVar, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import core_count, use_running_interpreter
from pyhudi.errors import HudiError
from pyhudi.storage.open import open_storage

T = TypeVar("T")
R = TypeVar("R")

_TURNS_A_CORE = 4
_VALUES = pa.schema(
    [pa.field("number", pa.int64()), pa.field("size_bytes", pa.int64()), pa.field("content", pa.binary())]
)
"""The number of a task, the size of its pickled outcome, and the pickled outcome in compressed form."""


class SparkExecutor:
    """An executor for tasks that only read. Spark may run a task twice, and one of the two may run on after the end.

    Neighbouring tasks share a Spark task; there are four Spark tasks per core. Tasks that share one are pickled
    together, so that what they have in common is sent once. The driver's JVM gets values as compressed bytes only.
    After a failure, later tasks in the same Spark task are not begun; tasks in other Spark tasks are.
    Memory: all tasks and all values.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        if not tasks:
            return []

        use_running_interpreter(self._spark)
        count = min(len(tasks), _TURNS_A_CORE * core_count(self._spark))
        edges = [len(tasks) * number // count for number in range(count + 1)]
        shares = [_pickle((function, start, list(tasks[start:end]))) for start, end in pairwise(edges)]

        numbers = self._spark.range(0, count, 1, count)
        rows = numbers.mapInArrow(_run_shares(shares), spark_schema(_VALUES)).collect()
        found = {row.number: _unpack(bytes(row.content), row.size_bytes) for row in rows}

        values: list[R] = []
        for number in range(len(tasks)):
            value, error = found[number]
            if error is not None:
                raise error
            values.append(cast(R, value))
        return values


class _Pickler(pickle.Pickler):
    """Pickles a storage as its location. The task that unpickles it opens the storage anew."""

    def reducer_override(self, obj: object) -> Any:
        if hasattr(type(obj), "put_stream"):
            return open_storage, (obj.location,)  # type: ignore[attr-defined]
        return NotImplemented


def _pickle(share: object) -> bytes:
    file = BytesIO()
    _Pickler(file).dump(share)
    return file.getvalue()


def _run_shares(shares: Sequence[bytes]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is the numbers of shares, its output the outcomes of their tasks."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _outcomes(shares[number])

    return run


def _outcomes(share: bytes) -> Iterator[pa.RecordBatch]:
    """The outcome of each task in a share: its value, or an error of pyhudi, after which the share ends.

    Any other exception fails the Spark task, and Spark tries it anew.
    """
    function, start, tasks = pickle.loads(share)
    for number, task in enumerate(tasks, start):
        try:
            value = function(task)
        except HudiError as error:
            yield _pack(number, (None, error))
            return
        yield _pack(number, (value, None))


def _pack(number: int, outcome: tuple[object, HudiError | None]) -> pa.RecordBatch:
    content = pickle.dumps(outcome)
    packed = pa.Codec("zstd", compression_level=1).compress(content, asbytes=True)
    columns = [pa.array([number]), pa.array([len(content)]), pa.array([packed], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_VALUES)


def _unpack(content: bytes, size_bytes: int) -> tuple[object, HudiError | None]:
    outcome: tuple[object, HudiError | None] = pickle.loads(
        pa.Codec("zstd").decompress(content, size_bytes, asbytes=True)
    )
    return outcome
