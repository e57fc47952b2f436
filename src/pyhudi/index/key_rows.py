"""Reads the rows with given record keys from the files that may hold them."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.keys.record_keys import KeySpec, missing_keys, record_keys
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.bloom import find_in_groups, footer_survivors
from pyhudi.storage.protocol import Storage
from pyhudi.table.read.files import read_planned, shown_batch
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.base_files.few_rows import rows_at
from pyhudi.table.slices.base_files.rows import open_rows


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file or slice, and the keys to look for in it: distinct, in ascending order of their bytes."""

    file: PlannedFile
    keys: pa.Array


def read_key_rows(
    storage: Storage, plan: ReadPlan, wanted: list[WantedFile], virtual_keys: KeySpec | None, executor: Executor
) -> pa.Table:
    """The rows with these keys, as the plan shows them. Files are read in parallel.

    `virtual_keys`: how to compute record keys if the table does not store them. `plan`: must not filter rows itself.
    Cost: for a base file its footer, the keys of row groups that may hold one, and the rows of those that do, up to the
    last row wanted. A slice with logs, and a file without stored keys, is read whole. Memory: the answer, the keys of a
    row group for each worker, and a batch. If there is a single file, its columns are decoded in parallel.
    """
    is_alone = len(wanted) == 1

    def read(one: WantedFile) -> list[pa.RecordBatch]:
        if virtual_keys is not None:
            return list(_rows_of_virtual_keys(storage, plan, one, virtual_keys))
        if one.file.logs or plan.had_other_names(one.file):
            return list(_rows_of_slice(storage, plan, one))
        return list(_rows_of_base(storage, plan, one, use_threads=is_alone))

    found = executor.run(read, wanted)
    return pa.Table.from_batches((batch for batches in found for batch in batches), plan.schema)


def _rows_of_slice(storage: Storage, plan: ReadPlan, one: WantedFile) -> Iterator[pa.RecordBatch]:
    for batch in read_planned(storage, plan, one.file, use_threads=False):
        found = batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=one.keys))
        if len(found):
            yield found


def _rows_of_virtual_keys(storage: Storage, plan: ReadPlan, one: WantedFile, spec: KeySpec) -> Iterator[pa.RecordBatch]:
    for batch in read_planned(storage, plan, one.file, use_threads=False):
        rows = pa.Table.from_batches([batch])
        rows = rows.filter(pc.invert(missing_keys(rows, spec)))
        yield from rows.filter(pc.is_in(record_keys(rows, spec), value_set=one.keys)).to_batches()


def _rows_of_base(storage: Storage, plan: ReadPlan, one: WantedFile, *, use_threads: bool) -> Iterator[pa.RecordBatch]:
    path = one.file.path
    stored = plan.schema_read
    with closing(open_rows(storage, path, one.file.source, plan.as_written)) as file:
        keys = footer_survivors(file, path, one.keys)
        present = [name for name in stored.names if name in file.schema.names]
        for found in find_in_groups(file, keys) if len(keys) else ():
            rows = rows_at(file, present, found.row_group, found.positions, use_threads=use_threads)
            for _, _, batch in rows:
                yield shown_batch(plan, one.file, batch, stored).select(plan.schema.names)
