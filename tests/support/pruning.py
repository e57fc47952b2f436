"""Plans by some of a table's indexes, and the rows that they leave."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from pyhudi import HudiTable
from pyhudi.api.access import data_skipping
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.predicate import parse_predicate
from pyhudi.table.read.files import read_plan_table
from pyhudi.table.read.plan import ReadPlan, plan_snapshot
from pyhudi.table.view.snapshot import Snapshot


def plan_by(
    table: HudiTable, snapshot: Snapshot, where: str, partitions: Sequence[str] | None, *, query: str = "snapshot"
) -> ReadPlan:
    """A scan's plan. `partitions`: of the metadata table, which are all that it asks; None: it asks no index."""
    skipping = None
    if partitions is not None:
        ready = tuple(sorted(set(partitions) & set(snapshot.config.metadata_partitions)))
        some = replace(snapshot, config=replace(snapshot.config, metadata_partitions=ready))
        skipping = data_skipping(table._access, some, {}, SerialExecutor())
    schema = snapshot.schema_with_meta
    return plan_snapshot(
        snapshot, schema=schema, predicate=parse_predicate(where, schema), where=where, query=query,
        with_logs=query == "snapshot", skipping=skipping,
    )  # fmt: skip


def rows_by_file(table: HudiTable, snapshot: Snapshot, *, query: str = "snapshot") -> dict[str, pa.Table]:
    """The rows of each slice by the path under which a plan has it."""
    whole = plan_by(table, snapshot, "true", None, query=query)
    storage, serial = table._access.storage, SerialExecutor()
    return {file.path: read_plan_table(storage, replace(whole, files=(file,)), serial) for file in whole.files}


def rows_kept(rows: Iterable[pa.Table], where: str, schema: pa.Schema) -> list[dict[str, object]]:
    """Of these rows those that a predicate keeps, in order."""
    kept = parse_predicate(where, schema).filter(pa.concat_tables([schema.empty_table(), *rows]))
    return sorted(kept.to_pylist(), key=lambda row: (row["_hoodie_partition_path"], row["_hoodie_record_key"]))
