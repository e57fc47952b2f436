"""Carrying out a read plan in this process: record batches from base files, streamed."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile, HudiError
from pyhudi.storage.protocol import Storage
from pyhudi.table.conform import conform_batch
from pyhudi.table.read_plan import COMMIT_TIME, ReadPlan

BATCH_ROWS = 65_536
FILES_AHEAD = 2


def read_plan_batches(storage: Storage, plan: ReadPlan) -> Iterator[pa.RecordBatch]:
    """The plan's rows, file after file.

    Memory: the batches of one row group a file, for `FILES_AHEAD` files that are read ahead.
    Raises: CorruptFile for a file that is no Parquet or does not fit the table's schema.
    """
    columns = plan.columns_read
    stored = pa.schema([plan.stored_schema.field(name) for name in columns])
    wanted = None if plan.commit_times is None else pa.array(sorted(plan.commit_times), pa.string())
    for batch in _ahead(storage, plan, columns):
        batch, path = batch
        conformed = conform_batch(batch, stored, path=path)
        if wanted is not None:
            conformed = conformed.filter(pc.is_in(conformed.column(COMMIT_TIME), value_set=wanted))
        if plan.predicate is not None and len(conformed):
            conformed = plan.predicate.filter(conformed)
        if len(conformed):
            yield conformed.select(plan.schema.names)


def read_plan_table(storage: Storage, plan: ReadPlan) -> pa.Table:
    """The plan's rows, all of them in memory."""
    return pa.Table.from_batches(read_plan_batches(storage, plan), schema=plan.schema)


def _ahead(storage: Storage, plan: ReadPlan, columns: list[str]) -> Iterator[tuple[pa.RecordBatch, str]]:
    """Batches with their file's path, in the plan's order, the next files being read meanwhile."""
    if not plan.files:
        return
    with ThreadPoolExecutor(FILES_AHEAD) as pool:
        pending: list[Future[list[pa.RecordBatch]]] = []
        for at, file in enumerate(plan.files):
            while len(pending) < min(FILES_AHEAD, len(plan.files) - at) and at + len(pending) < len(plan.files):
                pending.append(pool.submit(_read_file, storage, plan.files[at + len(pending)].path, columns))
            for batch in pending.pop(0).result():
                yield batch, file.path


def _read_file(storage: Storage, path: str, columns: list[str]) -> list[pa.RecordBatch]:
    with closing(open_parquet(storage, path)) as file:
        present = [name for name in columns if name in file.schema_arrow.names]
        try:
            return list(file.iter_batches(BATCH_ROWS, columns=present, use_threads=False))
        except (pa.ArrowInvalid, OSError) as error:
            raise corrupt_parquet(path, error) from error


def open_parquet(storage: Storage, path: str) -> pq.ParquetFile:
    """A base file, open at its footer.

    Raises: CorruptFile when it is no whole Parquet file.
    """
    source = storage.open_input(path).__enter__()
    try:
        return pq.ParquetFile(source, pre_buffer=True)
    except HudiError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        source.close()
        raise corrupt_parquet(path, error) from error


def corrupt_parquet(path: str, error: Exception) -> CorruptFile:
    return CorruptFile(
        path, 0, expected="a whole Parquet file", found=f"one that does not read ({error})",
        hint="It is cut short or damaged; restore it, or travel to a time before it was written.",
    )  # fmt: skip
