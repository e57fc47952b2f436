"""Carrying out a read plan in this process: record batches from base files, streamed."""

from collections.abc import Iterator
from contextlib import closing
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.schema import COMMIT_TIME
from pyhudi.storage.protocol import Storage
from pyhudi.table.conform import conform_batch
from pyhudi.table.parquet_files import corrupt_parquet, open_parquet
from pyhudi.table.read_plan import PlannedFile, ReadPlan

BATCH_ROWS = 65_536


def read_plan_batches(storage: Storage, plan: ReadPlan) -> Iterator[pa.RecordBatch]:
    """The plan's rows, file after file.

    Memory: one row group of one file, of the columns that are read.
    Raises: CorruptFile for a file that is no Parquet or does not fit the table's schema.
    """
    for file in plan.files:
        yield from _file_batches(storage, plan, file, use_threads=True)


def read_plan_table(storage: Storage, plan: ReadPlan, executor: Executor) -> pa.Table:
    """The plan's rows, all of them in memory; files are read side by side."""

    def read(file: PlannedFile) -> list[pa.RecordBatch]:
        return list(_file_batches(storage, plan, file, use_threads=False))

    return pa.Table.from_batches(chain.from_iterable(executor.run(read, plan.files)), schema=plan.schema)


def _file_batches(
    storage: Storage, plan: ReadPlan, file: PlannedFile, *, use_threads: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of one file that the plan asks for, as columns of its answer."""
    columns = plan.columns_read
    stored = pa.schema([plan.stored_schema.field(name) for name in columns])
    wanted = None if plan.commit_times is None else pa.array(sorted(plan.commit_times), pa.string())
    for batch in _stored_batches(storage, file.path, columns, use_threads=use_threads):
        conformed = plan.shown.batch(conform_batch(batch, stored, path=file.path), file.partition)
        if wanted is not None:
            conformed = conformed.filter(pc.is_in(conformed.column(COMMIT_TIME), value_set=wanted))
        if plan.predicate is not None and len(conformed):
            conformed = plan.predicate.filter(conformed)
        if len(conformed):
            yield conformed.select(plan.schema.names)


def _stored_batches(storage: Storage, path: str, columns: list[str], *, use_threads: bool) -> Iterator[pa.RecordBatch]:
    with closing(open_parquet(storage, path)) as file:
        present = [name for name in columns if name in file.schema_arrow.names]
        try:
            yield from file.iter_batches(BATCH_ROWS, columns=present, use_threads=use_threads)
        except (pa.ArrowInvalid, OSError) as error:
            raise corrupt_parquet(path, error) from error
