"""Carrying out a read plan in this process: record batches from base files, streamed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import COMMIT_TIME, PARTITION_PATH
from pyhudi.storage.protocol import Storage
from pyhudi.table.prune.row_groups import matching_row_groups
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.base_files.few_rows import rows_at
from pyhudi.table.slices.base_files.rows import open_rows, read_stored_batches
from pyhudi.table.slices.conform import conform_batch

_NUMBER: Final = "__pyhudi_number"


def read_plan_batches(storage: Storage, plan: ReadPlan) -> Iterator[pa.RecordBatch]:
    """The plan's rows, file after file.

    Memory: one row group of one file, of the columns that are read; the folded log of one slice.
    Raises: CorruptFile for a file that is no whole file of its format or does not fit the table's schema.
    """
    for file in plan.files:
        yield from read_planned(storage, plan, file, use_threads=True)


def read_plan_table(storage: Storage, plan: ReadPlan, executor: Executor) -> pa.Table:
    """The plan's rows, all of them in memory. Files are read in parallel; of a single file, columns are."""
    is_alone = len(plan.files) == 1

    def read(file: PlannedFile) -> list[pa.RecordBatch]:
        return list(read_planned(storage, plan, file, use_threads=is_alone))

    return pa.Table.from_batches(chain.from_iterable(executor.run(read, plan.files)), schema=plan.schema)


def read_planned(
    storage: Storage,
    plan: ReadPlan,
    file: PlannedFile,
    *,
    use_threads: bool,
    touched_only: bool = False,
    on_positions: Callable[[np.ndarray], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of one file, or of one slice with logs, that the plan asks for, as columns of its answer.

    `touched_only`: of a slice with logs, give only the rows of `read_touched`. `on_positions`: passed to it.
    """
    columns = plan.columns_read
    stored = pa.schema([plan.stored_schema.field(name) for name in columns])
    if file.logs:
        from pyhudi.table.slices.merged_slice import read_merged  # imported late: tasks without logs do not need it
        from pyhudi.table.slices.touched_rows import read_touched

        assert plan.log_reading is not None
        files, schema = file.slice_files, plan.stored_schema
        read = partial(read_touched, on_positions=on_positions) if touched_only else read_merged
        batches = read(storage, files, plan.log_reading, schema, columns, use_threads=use_threads)
    elif not plan.had_other_names(file) and 0 < len(asked := _columns_asked(plan)) < len(columns):
        yield from _read_matching(storage, plan, file, asked, use_threads=use_threads)
        return
    else:
        batches = read_stored_batches(
            storage, file.path, columns, use_threads=use_threads, choose=partial(matching_row_groups, plan=plan),
            source=file.source, as_written=plan.as_written,
        )  # fmt: skip

    keep = _keeper(plan)
    for batch in batches:
        kept = keep(shown_batch(plan, file, batch, stored))
        if len(kept):
            yield kept.select(plan.schema.names)


def _columns_asked(plan: ReadPlan) -> list[str]:
    """The columns that tell whether a row is part of the answer."""
    asked = set() if plan.predicate is None else set(plan.predicate.columns)
    if asked & set(plan.shown.from_path):
        asked.add(PARTITION_PATH)
    if plan.commit_times is not None:
        asked.add(COMMIT_TIME)
    return [name for name in plan.columns_read if name in asked]


def _read_matching(
    storage: Storage, plan: ReadPlan, file: PlannedFile, asked: list[str], *, use_threads: bool
) -> Iterator[pa.RecordBatch]:
    """As `read_planned` for a base file, decoding in two steps.

    First the `asked` columns, which tell the rows to keep. Then the other columns, only of row groups with such rows,
    and only up to the last of them.
    """
    first = pa.schema([plan.stored_schema.field(name) for name in asked])
    others = pa.schema([field for field in plan.schema_read if field.name not in asked])
    with closing(open_rows(storage, file.path, file.source, plan.as_written)) as opened:
        read = partial(opened.batches, use_threads=use_threads)
        present = [[name for name in schema.names if name in opened.schema.names] for schema in (first, others)]

        for group in matching_row_groups(opened, plan):
            shown = (shown_batch(plan, file, batch, first) for batch in read(present[0], groups=[group]))
            kept = _kept_and_numbered(plan, shown, plan.shown.schema(first))
            numbers = kept.column(_NUMBER).to_numpy()
            more = rows_at(opened, present[1], group, numbers, use_threads=use_threads) if len(numbers) else ()
            for start, stop, batch in more:
                rest = shown_batch(plan, file, batch, others)
                columns = {**_columns(kept.slice(start, stop - start)), **_columns(rest)}
                yield pa.RecordBatch.from_arrays([columns[name] for name in plan.schema.names], schema=plan.schema)


def _kept_and_numbered(plan: ReadPlan, batches: Iterable[pa.RecordBatch], shown: pa.Schema) -> pa.Table:
    """The rows that the plan asks for, each with its row number among all. `shown`: the columns of the batches."""
    schema = shown.append(pa.field(_NUMBER, pa.int64()))
    keep, kept, start = _keeper(plan), [], 0
    for batch in batches:
        numbers = pa.array(np.arange(start, start + len(batch)))
        kept.append(keep(batch.append_column(_NUMBER, numbers)))
        start += len(batch)
    return pa.Table.from_batches(kept, schema)


def _columns(rows: pa.Table | pa.RecordBatch) -> dict[str, pa.Array]:
    return {name: one_array(rows.column(name)) for name in rows.schema.names}


def _keeper(plan: ReadPlan) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A function that filters shown rows: it keeps those that the plan asks for, with all of their columns."""
    wanted = None if plan.commit_times is None else pa.array(sorted(plan.commit_times), pa.string())

    def keep(shown: pa.RecordBatch) -> pa.RecordBatch:
        if wanted is not None:
            shown = shown.filter(pc.is_in(shown.column(COMMIT_TIME), value_set=wanted))
        return shown if plan.predicate is None or not len(shown) else plan.predicate.filter(shown)

    return keep


def shown_batch(plan: ReadPlan, file: PlannedFile, batch: pa.RecordBatch, stored: pa.Schema) -> pa.RecordBatch:
    """Rows of a file as the plan's answer shows them. `stored`: their columns and types in the table's schema."""
    return plan.shown.batch(conform_batch(batch, stored, path=file.path), file.partition)
