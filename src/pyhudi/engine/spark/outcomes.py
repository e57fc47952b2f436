"""What tasks of Spark tell the driver of their work: what was made, or an error of pyhudi.

Spark tries a task anew that failed, but for errors of pyhudi: it would wrap them into one of its own in the end.
"""

import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from pyhudi.errors import Bug, HudiError

OUTCOMES = pa.schema([pa.field("number", pa.int64()), pa.field("outcome", pa.binary())])
"""A row a task: its number; what was made, or an error of pyhudi, pickled."""


def running_task() -> TaskContext:
    """The task of Spark that runs here."""
    context = TaskContext.get()
    if context is None:
        raise Bug("the code of a task runs outside of Spark")
    return context


def outcome_of(number: int, make: Callable[[], object]) -> tuple[pa.RecordBatch, bool]:
    """The outcome of a task as a row of `OUTCOMES`, and whether it is an error."""
    outcome: object
    try:
        outcome = make()
    except HudiError as error:
        outcome = error
    arrays = [pa.array([number]), pa.array([pickle.dumps(outcome)], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=OUTCOMES), isinstance(outcome, HudiError)


def collect_outcomes(outcomes: DataFrame) -> list[Any]:
    """What was made, in the order of the tasks' numbers. One job. Raises: the error of the first task that has one."""
    found = {row.number: pickle.loads(bytes(row.outcome)) for row in outcomes.collect()}
    in_order = [found[number] for number in sorted(found)]
    for outcome in in_order:
        if isinstance(outcome, HudiError):
            raise outcome
    return in_order
