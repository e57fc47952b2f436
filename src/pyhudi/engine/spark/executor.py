"""Tasks of this process as tasks of a Spark session."""

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
"""A task's number among all of them, the bytes of its pickled outcome, and these bytes compressed."""


class SparkExecutor:
    """An executor for tasks that read: Spark may run one twice, and a task that lost may still be running at the end.

    Neighbours among the tasks share a task of Spark's, four of those a core, and are pickled as one: what they have in
    common travels once. Of values only their compressed bytes come to the driver's JVM. After a failure the tasks
    behind it in the same Spark task are not begun; the others are. Memory: as every executor's.
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
    """Storages travel as their locations, whatever they are made of."""

    def reducer_override(self, obj: object) -> Any:
        if hasattr(type(obj), "put_stream"):
            return open_storage, (obj.location,)  # type: ignore[attr-defined]
        return NotImplemented


def _pickle(share: object) -> bytes:
    file = BytesIO()
    _Pickler(file).dump(share)
    return file.getvalue()


def _run_shares(shares: Sequence[bytes]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: numbers of shares in, values of their tasks out."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _outcomes(shares[number])

    return run


def _outcomes(share: bytes) -> Iterator[pa.RecordBatch]:
    """Of each task its value, or the error that pyhudi knows; any other fails the task of Spark's, which tries anew."""
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
