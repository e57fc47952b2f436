"""The code of a Spark write task: it runs the file-group handle over the task's Arrow batches."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pyhudi.engine.local.input_columns import refuse_broken_text
from pyhudi.engine.spark.outcomes import outcome_of, running_task
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.table.slices.conform import conform_input
from pyhudi.write.handles.file_group import run_file_group
from pyhudi.write.handles.target import WriteTarget
from pyhudi.write.place.plan import FileGroupTask

TASK_NUMBER = "__pyhudi_task_number"


def write_task(
    target: WriteTarget,
    tasks: Mapping[int, FileGroupTask],
    incoming: pa.Schema,
    *,
    key_column: str | None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is batches sorted by task number, its output the outcome of each task.

    One file group is open at a time. `key_column`: the input column whose values are the record keys; None when the
    key comes in a column of its own. The write token names this attempt, so that no two attempts ever write the same
    file.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = running_task()
        token = f"{context.partitionId()}-{context.stageId()}-{context.taskAttemptId()}"

        runs = task_runs(batches, incoming, key_column)
        pending = next(runs, None)
        while pending is not None:
            number = pending[0]
            group = _Group(number, pending, runs)
            write = partial(run_file_group, target, tasks[number], group.batches(), write_token=token)
            outcome, is_error = outcome_of(number, write)
            yield outcome
            group.drain()
            pending = group.following
            if is_error:
                break
        for _ in batches:  # Spark expects its rows to be read
            pass

    return run


class _Group:
    """The batches of one task from a stream of runs. Keeps the first run of the next task for the next group."""

    def __init__(
        self, number: int, first: tuple[int, pa.RecordBatch], runs: Iterator[tuple[int, pa.RecordBatch]]
    ) -> None:
        self._number, self._runs = number, runs
        self._next: tuple[int, pa.RecordBatch] | None = first

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Raises: Invalid for text that is not UTF-8."""
        for batch in self._left():
            refuse_broken_text(batch)
            yield batch

    def drain(self) -> None:
        for _ in self._left():
            pass

    def _left(self) -> Iterator[pa.RecordBatch]:
        while self._next is not None and self._next[0] == self._number:
            batch = self._next[1]
            self._next = next(self._runs, None)
            yield batch

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
        rows = conform_input(batch, schema)
        if key_column is not None:
            rows = rows.append_column(RECORD_KEY, rows.column(key_column))

        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(batch)]
        for start, end in pairwise(edges):
            yield int(numbers[start]), rows.slice(start, end - start)
