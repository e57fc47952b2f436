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
from pyhudi.predicate import parse_predicate
from pyhudi.services.compaction.many_logs import tell_of_logs
from pyhudi.table.changes.incremental import OnCleaned, commit_range, plan_incremental
from pyhudi.table.read.narrowing import Narrowing
from pyhudi.table.read.plan import plan_snapshot, select_columns
from pyhudi.table.view.cleaned import refuse_cleaned
from pyhudi.txn.action.session import TableAccess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.table.read.plan import ReadPlan

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
    skipping = None
    # Indexes speak of the latest files, and of columns by the names that they had when their files were written.
    if predicate is not None and as_of is None and snapshot.as_written.is_today:
        skipping = data_skipping(handle.access, snapshot, handle.options, handle.executor)

    plan = plan_snapshot(
        snapshot,
        schema=schema,
        predicate=predicate,
        where=None if where is None else str(where),
        query=label,
        shown=shown,
        with_logs=query == "snapshot",
        skipping=skipping,
    )

    narrowing = None
    if as_of is None and snapshot.as_written.is_today and snapshot.config.has_ready_indexes:
        opened = partial(data_skipping, handle.access, snapshot, handle.options, handle.executor)
        narrowing = Narrowing(snapshot, shown, query == "snapshot", opened)

    tell_of_logs(handle.access.location.uri, plan.files)
    return Scan(handle.access.storage, plan, handle.executor, partial(_to_spark, handle.access, narrowing))


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
    plan = plan_incremental(
        snapshot,
        span,
        schema=schema,
        predicate=predicate,
        where=None if where is None else str(where),
        shown=shown,
        on_cleaned=on_cleaned,
    )
    return Scan(handle.access.storage, plan, handle.executor, partial(_to_spark, handle.access, None))


def lookup(handle: TableHandle, keys: Any) -> pa.Table:
    """As `HudiTable.lookup`."""
    snapshot = handle.access.snapshot()
    given = merge_options(write=handle.options, opened=None, table={})
    return look_up(snapshot, sought_keys(snapshot, keys), given, handle.executor)


def _to_spark(access: TableAccess, narrowing: Narrowing | None, spark: "SparkSession", plan: "ReadPlan") -> "DataFrame":
    return frames.spark_engine().plan_to_dataframe(spark, access.location, plan, narrowing)
