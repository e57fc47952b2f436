"""Carrying out a read plan in this process: record batches from base files, streamed."""

from collections.abc import Iterator
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.schema import COMMIT_TIME
from pyhudi.storage.protocol import Storage
from pyhudi.table.conform import conform_batch
from pyhudi.table.parquet_files import read_stored_batches
from pyhudi.table.read_plan import PlannedFile, ReadPlan
from pyhudi.table.row_groups import matching_row_groups


def read_plan_batches(storage: Storage, plan: ReadPlan) -> Iterator[pa.RecordBatch]:
    """The plan's rows, file after file.

    Memory: one row group of one file, of the columns that are read; what the log of one slice comes to.
    Raises: CorruptFile for a file that is no Parquet or does not fit the table's schema.
    """
    for file in plan.files:
        yield from read_planned(storage, plan, file, use_threads=True)


def read_plan_table(storage: Storage, plan: ReadPlan, executor: Executor, *, touched_only: bool = False) -> pa.Table:
    """The plan's rows, all of them in memory; files are read side by side. `touched_only`: as for `read_planned`."""

    def read(file: PlannedFile) -> list[pa.RecordBatch]:
        return list(read_planned(storage, plan, file, use_threads=False, touched_only=touched_only))

    return pa.Table.from_batches(chain.from_iterable(executor.run(read, plan.files)), schema=plan.schema)


def read_planned(
    storage: Storage, plan: ReadPlan, file: PlannedFile, *, use_threads: bool, touched_only: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of one file, or of one slice with logs, that the plan asks for, as columns of its answer.

    `touched_only`: of a slice with logs only what `read_touched` gives.
    """
    columns = plan.columns_read
    stored = pa.schema([plan.stored_schema.field(name) for name in columns])
    wanted = None if plan.commit_times is None else pa.array(sorted(plan.commit_times), pa.string())
    if file.logs:
        from pyhudi.table.merged_slice import read_merged  # these two bring numba: tasks without logs do not need it
        from pyhudi.table.touched_rows import read_touched

        assert plan.log_reading is not None
        files, schema = file.slice_files, plan.stored_schema
        read = read_touched if touched_only else read_merged
        batches = read(storage, files, plan.log_reading, schema, columns, use_threads=use_threads)
    else:
        batches = read_stored_batches(
            storage, file.path, columns, use_threads=use_threads, choose=partial(matching_row_groups, plan=plan)
        )
    for batch in batches:
        conformed = shown_batch(plan, file, batch, stored)
        if wanted is not None:
            conformed = conformed.filter(pc.is_in(conformed.column(COMMIT_TIME), value_set=wanted))
        if plan.predicate is not None and len(conformed):
            conformed = plan.predicate.filter(conformed)
        if len(conformed):
            yield conformed.select(plan.schema.names)


def shown_batch(plan: ReadPlan, file: PlannedFile, batch: pa.RecordBatch, stored: pa.Schema) -> pa.RecordBatch:
    """Rows of a file as the plan's answer shows them. `stored`: the columns that they are to have, of the table's."""
    return plan.shown.batch(conform_batch(batch, stored, path=file.path), file.partition)
