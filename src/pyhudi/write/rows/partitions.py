"""All rows of some partitions, to be written anew."""

from collections.abc import Collection

import pyarrow as pa

from pyhudi.table.read.files import read_plan_batches
from pyhudi.table.read.plan import make_plan, planned_slice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.rows.changes import refuse_without_schema, whole_rows


def rows_of_partitions(snapshot: Snapshot, partitions: Collection[str]) -> pa.RecordBatchReader:
    """The rows, merged with their logs, and all columns that a write of them needs.

    Memory: one row group of one file; the folded log of one slice. Raises: Invalid for a table without columns.
    """
    refuse_without_schema(snapshot, "rescale_buckets")
    schema = whole_rows(snapshot)
    slices = (one for path in sorted(partitions) for one in snapshot.slices(path))
    files = (planned_slice(one, with_logs=True) for one in slices)
    plan = make_plan(
        snapshot, [file for file in files if file is not None], schema=schema, predicate=None, where=None,
        query="snapshot", commit_times=None, partitions=len(partitions), partitions_pruned=0, files_pruned=0,
    )  # fmt: skip
    return pa.RecordBatchReader.from_batches(schema, read_plan_batches(snapshot.storage, plan))
