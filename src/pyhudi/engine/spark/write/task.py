"""The code of a Spark write task: it runs the file-group handle over the task's Arrow batches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, fields
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from pyhudi.errors import Bug
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.table.slices.conform import conform_batch
from pyhudi.write.handles.file_group import run_file_group
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.place.plan import FileGroupTask

TASK_NUMBER = "__pyhudi_task_number"

_ARROW_OF = {"int": pa.int64(), "str": pa.string(), "str | None": pa.string(), "int | None": pa.int64()}
STATUS_SCHEMA = pa.schema(
    [pa.field(f.name, _ARROW_OF[str(getattr(f.type, "__name__", f.type))]) for f in fields(WriteStatus)]
)


def write_task(
    target: WriteTarget,
    tasks: Mapping[int, FileGroupTask],
    incoming: pa.Schema,
    *,
    key_column: str | None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is batches sorted by task number, its output write statuses.

    One file group is open at a time. `key_column`: the input column whose values are the record keys; None when the
    key comes in a column of its own. The write token names this attempt, so that no two attempts ever write the same
    file.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is None:
            raise Bug("a write task runs outside of Spark")
        token = f"{context.partitionId()}-{context.stageId()}-{context.taskAttemptId()}"

        runs = task_runs(batches, incoming, key_column)
        pending = next(runs, None)
        while pending is not None:
            number = pending[0]
            group = _Group(number, pending, runs)
            statuses = run_file_group(target, tasks[number], group.batches(), write_token=token)
            group.drain()
            pending = group.following
            if statuses:
                yield status_batch(statuses)

    return run


class _Group:
    """The batches of one task from a stream of runs. Keeps the first run of the next task for the next group."""

    def __init__(
        self, number: int, first: tuple[int, pa.RecordBatch], runs: Iterator[tuple[int, pa.RecordBatch]]
    ) -> None:
        self._number, self._runs = number, runs
        self._next: tuple[int, pa.RecordBatch] | None = first

    def batches(self) -> Iterator[pa.RecordBatch]:
        while self._next is not None and self._next[0] == self._number:
            batch = self._next[1]
            self._next = next(self._runs, None)
            yield batch

    def drain(self) -> None:
        for _ in self.batches():
            pass

    @property
    def following(self) -> tuple[int, pa.RecordBatch] | None:
        return self._next


def task_runs(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, key_column: str | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Runs of rows of the same task, as (task number, rows). Rows have the columns of `schema` and the record key."""
    for batch in batches:
        if len(batch) == 0:
            continue
        numbers = np.asarray(batch.column(TASK_NUMBER))
        rows = conform_batch(batch, schema, path="input")
        if key_column is not None:
            rows = rows.append_column(RECORD_KEY, rows.column(key_column))

        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(batch)]
        for start, end in pairwise(edges):
            yield int(numbers[start]), rows.slice(start, end - start)


def status_batch(statuses: list[WriteStatus]) -> pa.RecordBatch:
    """Write statuses as an Arrow batch, one row per status."""
    columns = list(zip(*map(astuple, statuses), strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, STATUS_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=STATUS_SCHEMA)
