"""The row groups of base files that can hold a matching row, by the statistics in the files' footers."""

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.schema.conversion import COMMIT_TIME
from pyhudi.predicate import ColumnRange, Predicate, statistics_can_match
from pyhudi.storage.protocol import Storage
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.base_files.rows import open_rows
from pyhudi.table.slices.base_files.statistics import ChunkFacts, Statistics, single_leaves


def matching_row_groups(file: Statistics, plan: ReadPlan) -> list[int]:
    """The numbers of the row groups that may hold a row of the answer. Reads nothing: the footer is open already."""
    every = range(len(file.group_rows))
    shown_otherwise = {*plan.shown.texts, *plan.shown.from_path}
    if plan.predicate is None and plan.commit_times is None:
        return list(every)
    needed = set() if plan.predicate is None else plan.predicate.columns - shown_otherwise
    leaves = alike_leaves(file.schema, plan.stored_schema, {*needed, COMMIT_TIME})
    return [number for number in every if _can_match(file, number, leaves, plan.predicate, plan.commit_times)]


def without_unmatched_files(storage: Storage, plan: ReadPlan, executor: Executor) -> ReadPlan:
    """The plan without base files that hold no row of its answer, as their footers tell. Slices with logs stay.

    Requests: the footer of each file; none if every row is asked for.
    """
    if plan.predicate is None and plan.commit_times is None:
        return plan

    def is_read(file: PlannedFile) -> bool:
        if file.logs or plan.had_other_names(file):
            return True  # statistics of a file whose columns had other names may be of other columns
        with closing(open_rows(storage, file.path, file.source, plan.as_written)) as opened:
            return bool(matching_row_groups(opened, plan))

    files = tuple(f for f, read in zip(plan.files, executor.run(is_read, plan.files), strict=True) if read)
    gone = len(plan.files) - len(files)
    explanation = replace(
        plan.explanation,
        files=plan.explanation.files - gone,
        files_pruned=plan.explanation.files_pruned + gone,
        size_bytes=sum(file.size_bytes for file in files),
    )
    return replace(plan, files=files, explanation=explanation)


def alike_leaves(schema: pa.Schema, stored: pa.Schema, names: Collection[str]) -> list[str]:
    """The columns of one value a row, by path, in and below the columns `names`, where a file has today's type.

    `schema`: of the file. Columns of another type are left out: their values are cast when read, and their bounds are
    not to be compared.
    """
    alike = [
        schema.field(name)
        for name in names
        if name in stored.names and name in schema.names and schema.field(name).type == stored.field(name).type
    ]
    return list(single_leaves(pa.schema(alike)))


def _can_match(
    file: Statistics,
    number: int,
    leaves: Sequence[str],
    predicate: Predicate | None,
    commit_times: frozenset[str] | None,
) -> bool:
    chunks = {path: file.chunk(number, path) for path in leaves}
    ranges = {path: _range(chunk) for path, chunk in chunks.items() if chunk is not None}
    known = ranges.get(COMMIT_TIME, ColumnRange())
    if commit_times is not None and isinstance(known.min, str) and isinstance(known.max, str):
        low, high = known.min, known.max
        if not any(low <= time <= high for time in commit_times):
            return False

    return predicate is None or statistics_can_match(predicate, ranges)


def _range(chunk: ChunkFacts) -> ColumnRange:
    low, high = chunk.bounds or (None, None)
    return ColumnRange(low, high, chunk.null_count, chunk.value_count)
