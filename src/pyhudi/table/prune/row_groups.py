"""The row groups of base files that can hold a matching row, by the statistics in the files' footers."""

from collections.abc import Collection
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.executor import Executor
from pyhudi.format.schema.conversion import COMMIT_TIME
from pyhudi.predicate import ColumnRange, Predicate, statistics_can_match
from pyhudi.storage.protocol import Storage
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.parquet_files import open_parquet


def matching_row_groups(file: pq.ParquetFile, plan: ReadPlan) -> list[int]:
    """The numbers of the row groups that may hold a row of the answer. Reads nothing: the footer is open already."""
    every = range(file.metadata.num_row_groups)
    shown_otherwise = {*plan.shown.texts, *plan.shown.from_path}
    if plan.predicate is None and plan.commit_times is None:
        return list(every)
    needed = set() if plan.predicate is None else plan.predicate.columns - shown_otherwise
    leaves = alike_leaves(file.schema_arrow, file.schema, plan.stored_schema, {*needed, COMMIT_TIME})
    return [number for number in every if _can_match(file, number, leaves, plan.predicate, plan.commit_times)]


def without_unmatched_files(storage: Storage, plan: ReadPlan, executor: Executor) -> ReadPlan:
    """The plan without base files that hold no row of its answer, as their footers tell. Slices with logs stay.

    Requests: the footer of each file; none if every row is asked for.
    """
    if plan.predicate is None and plan.commit_times is None:
        return plan

    def is_read(file: PlannedFile) -> bool:
        if file.logs or (plan.evolution is not None and plan.evolution.of_file(file.path, ()) is not None):
            return True  # statistics of a file whose columns had other names may be of other columns
        with closing(open_parquet(storage, file.path)) as opened:
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


def alike_leaves(
    schema: pa.Schema, columns: pq.ParquetSchema, stored: pa.Schema, names: Collection[str]
) -> dict[str, int]:
    """Path -> number of each Parquet column below the columns `names`, if the file has the table's type of today.

    `schema`, `columns`: the file's schema in Arrow's and in Parquet's form.

    Columns of another type are left out: their values are cast when read, and their bounds are not to be compared.
    """
    alike = {
        name
        for name in names
        if name in stored.names and name in schema.names and schema.field(name).type == stored.field(name).type
    }

    leaves = {}
    for number in range(len(columns)):
        column = columns.column(number)
        if column.max_repetition_level == 0 and column.path.partition(".")[0] in alike:
            leaves[column.path] = number
    return leaves


def _can_match(
    file: pq.ParquetFile,
    number: int,
    leaves: dict[str, int],
    predicate: Predicate | None,
    commit_times: frozenset[str] | None,
) -> bool:
    group = file.metadata.row_group(number)
    ranges = {path: _range(group.column(leaf)) for path, leaf in leaves.items()}
    known = ranges.get(COMMIT_TIME, ColumnRange())
    if commit_times is not None and isinstance(known.min, str) and isinstance(known.max, str):
        low, high = known.min, known.max
        if not any(low <= time <= high for time in commit_times):
            return False

    return predicate is None or statistics_can_match(predicate, ranges)


def _range(chunk: pq.ColumnChunkMetaData) -> ColumnRange:
    statistics = chunk.statistics
    if statistics is None:
        return ColumnRange(row_count=chunk.num_values)
    low, high = (statistics.min, statistics.max) if statistics.has_min_max else (None, None)
    nulls = statistics.null_count if statistics.has_null_count else None
    return ColumnRange(low, high, nulls, chunk.num_values)
