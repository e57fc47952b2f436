"""Queries of a table: each is planned upon its timeline as it is now, and gives a scan."""

from collections.abc import Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import pyarrow as pa

from pyhudi.api import frames
from pyhudi.api.access import data_skipping
from pyhudi.api.handle import TableHandle
from pyhudi.api.lookup import look_up, sought_keys
from pyhudi.api.scan import Scan
from pyhudi.errors import Invalid
from pyhudi.format.timeline.instant_text import instant_from_user
from pyhudi.options.resolve import merge_options
from pyhudi.predicate import Predicate, parse_predicate
from pyhudi.services.compaction.many_logs import tell_of_logs
from pyhudi.table.changes.incremental import OnCleaned, commit_range, plan_incremental
from pyhudi.table.prune.data_skipping import DataSkipping
from pyhudi.table.read.narrowing import Narrowing
from pyhudi.table.read.plan import ReadPlan, plan_snapshot, select_columns
from pyhudi.table.view.cleaned import refuse_cleaned
from pyhudi.txn.action.session import TableAccess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TimeLike: TypeAlias = str | date | datetime
Where: TypeAlias = Any
"""Spark SQL text, or a `pyarrow.compute.Expression`, which has no type of its own."""


def scan(
    handle: TableHandle,
    columns: Sequence[str] | None,
    where: Where | None,
    as_of: TimeLike | None,
    query: str,
    *,
    meta_fields: bool,
) -> Scan:
    """As `HudiTable.scan`."""
    if query not in ("snapshot", "read_optimized"):
        raise Invalid(f"query='{query}': expected 'snapshot' or 'read_optimized'")

    snapshot = handle.access.snapshot()
    label = query
    if as_of is not None:
        until = instant_from_user(as_of, snapshot.zone, what="as_of")
        refuse_cleaned(snapshot, until, asked=f"as_of='{as_of}'")
        snapshot, label = snapshot.at(until), f"{query} as of {until}"

    shown = snapshot.shown_columns(query)
    schema = select_columns(snapshot, columns, meta_fields=meta_fields, shown=shown)
    predicate = None if where is None else parse_predicate(where, shown.schema(snapshot.schema_with_meta))
    # Indexes speak of the latest files, and of columns by the names that they had when their files were written.
    asks_indexes = as_of is None and snapshot.as_written.is_today
    opened = partial(data_skipping, handle.access, snapshot, handle.options, handle.executor)

    def plan_for(predicate: Predicate | None, skipping: DataSkipping | None) -> ReadPlan:
        return plan_snapshot(
            snapshot,
            schema=schema,
            predicate=predicate,
            where=None if predicate is None else str(predicate),
            query=label,
            shown=shown,
            with_logs=query == "snapshot",
            skipping=skipping,
        )

    def replan(predicate: Predicate) -> ReadPlan:
        return plan_for(predicate, opened() if asks_indexes else None)

    plan = plan_for(predicate, opened() if asks_indexes and predicate is not None else None)
    narrowing = None
    if asks_indexes and snapshot.config.has_ready_indexes:
        narrowing = Narrowing(snapshot, shown, query == "snapshot", opened)

    tell_of_logs(handle.access.location.uri, plan.files)
    return Scan(handle.access.storage, plan, handle.executor, partial(_to_spark, handle.access, narrowing), replan)


def incremental(
    handle: TableHandle,
    start: TimeLike | None,
    end: TimeLike | None,
    columns: Sequence[str] | None,
    where: Where | None,
    on_cleaned: OnCleaned,
    *,
    meta_fields: bool,
) -> Scan:
    """As `HudiTable.incremental`."""
    if on_cleaned not in get_args(OnCleaned):
        raise Invalid(f"on_cleaned={on_cleaned!r}: expected 'error' or 'rows'")
    snapshot = handle.access.snapshot()
    shown = snapshot.shown_columns("incremental")
    schema = select_columns(snapshot, columns, meta_fields=meta_fields, shown=shown)
    predicate = None if where is None else parse_predicate(where, shown.schema(snapshot.schema_with_meta))
    span = commit_range(snapshot, start, end)

    def plan_for(predicate: Predicate | None) -> ReadPlan:
        return plan_incremental(
            snapshot,
            span,
            schema=schema,
            predicate=predicate,
            where=None if predicate is None else str(predicate),
            shown=shown,
            on_cleaned=on_cleaned,
        )

    plan = plan_for(predicate)
    return Scan(handle.access.storage, plan, handle.executor, partial(_to_spark, handle.access, None), plan_for)


def lookup(handle: TableHandle, keys: Any) -> pa.Table:
    """As `HudiTable.lookup`."""
    snapshot = handle.access.snapshot()
    given = merge_options(write=handle.options, opened=None, table={})
    return look_up(snapshot, sought_keys(snapshot, keys), given, handle.executor)


def _to_spark(access: TableAccess, narrowing: Narrowing | None, spark: "SparkSession", plan: ReadPlan) -> "DataFrame":
    return frames.spark_engine().plan_to_dataframe(spark, access.location, plan, narrowing)
