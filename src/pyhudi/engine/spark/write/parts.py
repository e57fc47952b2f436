"""Writing new rows where Spark reads them: each part of the input goes to file groups of its own, without a shuffle.

A part is what one task of Spark reads. The job that counts the rows tells how many of which partition each part has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.engine.local.partitioned import PartitionedInput
from pyhudi.engine.local.staged_rows import StagedRows, stage_rows
from pyhudi.engine.spark.outcomes import OUTCOMES, collect_outcomes, outcome_of, running_task
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import arrow_batches, core_count
from pyhudi.engine.spark.write.staging import conformed, first_folder
from pyhudi.engine.spark.write.task_rows import TaskRows
from pyhudi.errors import HudiError
from pyhudi.format.names import file_group_id
from pyhudi.storage.open import open_storage
from pyhudi.storage.scratch import ScratchFolder
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import InputSpec, RowOrder
from pyhudi.write.memory_settings import SPILL_FOLDER, MemorySettings
from pyhudi.write.place.plan import FileGroupTask, TaskKind, WritePlan, equal_shares

Parts = Mapping[str, Sequence[tuple[int, int]]]
"""Partition path -> (number of the part, its rows of that partition)."""

FILES_MAX = 2
"""How many times as many files as behind a shuffle a write without one may make."""

ROWS_MIN = 10_000
"""Rows of a part in a partition, on average, below which rows are shuffled: they would make small files."""

UNEVEN_MAX = 1.5
"""The largest part, against an equal share for each core, up to which rows are not shuffled."""


PART = "__pyhudi_part"


class OtherParts(HudiError):
    """The parts of the input are not those that were counted."""


def part_counts() -> Column:
    """The parts of a group with the columns `PART` and `rows`; null where they are too small."""
    of_part = f.collect_list(f.struct(PART, "rows"))
    return f.when(f.sum("rows") >= ROWS_MIN * f.count(f.lit(1)), of_part)


def has_parts(spec: InputSpec) -> bool:
    """Whether rows may be written where they are read, as far as their order and their keys go."""
    return spec.order is RowOrder.AS_ARRIVED and not spec.numbers_rows and not spec.has_float_keys


def plan_parts(plan: WritePlan, parts: Parts, *, cores: int) -> dict[int, WritePlan] | None:
    """The plan of each part, into as large files as the whole plan's; None where rows are to be shuffled.

    File groups of the whole plan lend their UUIDs, under each of which a writer may open several.
    """
    if any(task.kind is not TaskKind.CREATE for task in plan.tasks):
        return None

    tasks = {task.number: task for task in plan.tasks}
    by_part: dict[int, list[int]] = {}
    made: list[FileGroupTask] = []
    for path, bins in plan.insert_tasks().items():
        opened = 0
        rows_max = max(rows for _, rows in bins)
        for part, rows in parts.get(path, ()):
            for share in equal_shares(rows, -(-rows // rows_max)):
                again, lender = divmod(opened, len(bins))
                task = tasks[bins[lender][0]]
                file_id = file_group_id(task.file_id.rpartition("-")[0], again)
                by_part.setdefault(part, []).append(len(made))
                made.append(replace(task, number=len(made), file_id=file_id, inserts=share))
                opened += 1

    total = sum(task.inserts for task in made)
    if total != sum(task.inserts for task in plan.tasks):
        return None
    largest = max(sum(made[number].inserts for number in numbers) for numbers in by_part.values())
    even = total / min(cores, len(plan.tasks))
    if len(made) > FILES_MAX * len(plan.tasks) or largest > UNEVEN_MAX * even:
        return None
    return {part: WritePlan(tuple(made[number] for number in numbers)) for part, numbers in by_part.items()}


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Writes the parts of an input whose rows have the columns of the spec's schema."""

    rows: TaskRows
    spec: InputSpec
    parts: Parts

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus] | None:
        """Carry the plan out. One job. None where rows are to be shuffled; what tasks wrote by then goes at the end of
        the write."""
        spark = self.rows.session
        plans = None if target.combines else plan_parts(plan, self.parts, cores=core_count(spark))
        if plans is None:
            return None
        with arrow_batches(spark):
            outcomes = self.rows.map(_write_task(target, plans, self.spec), spark_schema(OUTCOMES))
            try:
                written = collect_outcomes(outcomes)
            except OtherParts:
                return None
        return [status for statuses in written for status in statuses] if len(written) == len(plans) else None


def _write_task(
    target: WriteTarget, plans: Mapping[int, WritePlan], spec: InputSpec
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is the rows of a part, its output the outcome of their write."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = running_task()
        first = next((batch for batch in batches if len(batch)), None)
        if first is None:
            return
        part = context.partitionId()
        rows = conformed(chain([first], batches), spec.schema)
        plan = plans.get(part, WritePlan(()))
        work = partial(_write_part, target, plan, spec, rows, part=part, attempt=context.taskAttemptId())
        yield outcome_of(part, work)[0]
        for _ in batches:  # Spark expects its rows to be read
            pass

    return run


def _write_part(
    target: WriteTarget, plan: WritePlan, spec: InputSpec, batches: Iterator[pa.RecordBatch], *, part: int, attempt: int
) -> list[WriteStatus]:
    """Put the rows aside by partition, on the disk of the executor, and write its file groups from there."""
    local = first_folder(os.environ.get("SPARK_LOCAL_DIRS", ""))  # where the executor puts what it spills
    folder = ScratchFolder.make("pyhudi-staged-", local, setting=SPILL_FOLDER)
    try:
        staged = StagedRows(folder, (stage_rows(str(folder.path / "rows.arrow"), batches, spec, task=part),), spec)
        rows = PartitionedInput(
            staged.partitions(),
            open_storage(target.location),
            SerialExecutor(),
            memory=staged.memory(MemorySettings().share_bytes(1)),
            attempt=attempt,
        )
        planned = {path: sum(count for _, count in bins) for path, bins in plan.insert_tasks().items()}
        if rows.counts != planned:
            raise OtherParts(f"expected rows {planned}, found {rows.counts}")
        return rows.write(target, plan)
    finally:
        folder.discard()
