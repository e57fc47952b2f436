"""All rows of some partitions, to be written anew."""

from collections.abc import Collection

import pyarrow as pa

from pyhudi.format.schema.conversion import PARTITION_PATH
from pyhudi.table.read.files import read_plan_batches
from pyhudi.table.read.plan import make_plan, planned_slice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import STORED_PATH
from pyhudi.write.rows.changes import refuse_without_schema, whole_rows


def rows_of_partitions(snapshot: Snapshot, partitions: Collection[str]) -> pa.RecordBatchReader:
    """The rows, merged with their logs, and all columns that a write of them needs.

    Memory: one row group of one file; the folded log of one slice. Raises: Invalid for a table without columns.
    """
    refuse_without_schema(snapshot, "rescale_buckets")
    whole = whole_rows(snapshot)
    wanted = {PARTITION_PATH if name == STORED_PATH else name for name in whole.names}
    if not snapshot.config.has_meta_fields:
        wanted.discard(PARTITION_PATH)
    schema = pa.schema([field for field in snapshot.schema_with_meta if field.name in wanted])
    names = [STORED_PATH if name == PARTITION_PATH else name for name in schema.names]

    slices = (one for path in sorted(partitions) for one in snapshot.slices(path))
    files = (planned_slice(one, with_logs=True) for one in slices)
    plan = make_plan(
        snapshot, [file for file in files if file is not None], schema=schema, predicate=None, where=None,
        query="snapshot", commit_times=None, partitions=len(partitions), partitions_pruned=0, files_pruned=0,
    )  # fmt: skip
    batches = (batch.rename_columns(names) for batch in read_plan_batches(snapshot.storage, plan))
    return pa.RecordBatchReader.from_batches(pa.table(schema.empty_table().columns, names=names).schema, batches)
