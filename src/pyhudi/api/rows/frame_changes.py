"""Row-level changes whose rows Spark makes of the table's own: each is one commit of one snapshot."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from pyhudi.api import frames
from pyhudi.api.access import data_skipping
from pyhudi.api.handle import TableHandle
from pyhudi.api.reporting import told_write
from pyhudi.api.rows.changes import refuse_unfit_change
from pyhudi.api.table import HudiTable
from pyhudi.api.writes import WriteCall, WriteCourse
from pyhudi.errors import Unsupported
from pyhudi.options.resolve import PAYLOAD_CLASS
from pyhudi.predicate import parse_predicate
from pyhudi.storage.scratch import sweep_once
from pyhudi.table.read.plan import plan_snapshot, select_columns
from pyhudi.table.read.shown_columns import AS_STORED
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.write import Turns
from pyhudi.write.input.source import LEAVES, STORED_PATH, Operation, PreparedWrite
from pyhudi.write.memory_settings import SPILL_FOLDER, MemorySettings
from pyhudi.write.operation import WriteResult, run_row_change
from pyhudi.write.preparation import prepare_write
from pyhudi.write.rows.changes import refuse_rules_of_two, refuse_without_schema
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ReadRows: TypeAlias = "Callable[[str | None], DataFrame]"

LEAVES_COLUMN = LEAVES
"""A column of the rows of a change: whether the row of its key is deleted."""

STORED_PATH_COLUMN = STORED_PATH
"""A column of the rows of a change: the partition path that a row stays in; null where its columns tell the path."""


@dataclass(frozen=True, slots=True)
class FrameChange:
    """A change of rows as a Spark query of the table.

    `rows`: gives the rows to write, of a snapshot, the settings of the write, and a function that reads the snapshot's
    rows: all of them for None, or those that a predicate chooses. For a delete they are rows' keys and partition
    columns; else whole rows, with `LEAVES_COLUMN` where some are deleted. It is asked anew where another writer was in
    the way. `what`: names the change in messages.
    """

    operation: Operation
    rows: "Callable[[Snapshot, WriteSettings, ReadRows], DataFrame]"
    what: str
    marks_deletes: bool = False


def change_by_frame(
    table: HudiTable, change: FrameChange, spark: "SparkSession", call: WriteCall | None = None
) -> WriteResult:
    """Carry out a change in one commit. Its rows are made of the table as it is when the write begins.

    Raises: Invalid, Unsupported for what cannot be done to the table, with nothing written; what Spark raises when it
    evaluates the rows.
    """
    call = call or WriteCall()
    handle = table._handle
    return told_write(_change, handle, change.operation.value.lower(), call.options)(change, spark, call)


def _change(handle: TableHandle, change: FrameChange, spark: "SparkSession", call: WriteCall) -> WriteResult:
    snapshot, merged, settings = handle.prepare(call.options)
    _refuse(change, snapshot, settings, merged.get(PAYLOAD_CLASS, ""))
    course = WriteCourse(handle, snapshot, merged, settings, change.operation, call)
    access, engine = handle.access_through(spark), frames.spark_engine()
    cluster = frames.as_cluster(spark)
    memory = MemorySettings.from_options(handle.callers_options(call.options))
    sweep_once(memory.spill_folder, setting=SPILL_FOLDER)

    def made(now: Snapshot, held: ExitStack) -> PreparedWrite:
        _refuse(change, now, settings, "")
        rows = change.rows(now, settings, partial(_snapshot_frame, handle, now, spark))
        source = engine.source_of(rows, access.location, memory)
        held.callback(source.close)
        is_delete = change.operation is Operation.DELETE
        return prepare_write(
            now, source, change.operation, settings, is_unordered=is_delete, marks_deletes=change.marks_deletes
        )

    def attempt(turns: Turns) -> WriteResult:
        with ExitStack() as held:
            make = partial(made, held=held)
            return run_row_change(
                turns, change.operation, make, settings, extra_metadata=course.extra, then=course.finish
            )

    result = course.run(attempt, access, cluster)
    course.follow(result, access, cluster)
    return result


def _snapshot_frame(
    handle: TableHandle, snapshot: Snapshot, spark: "SparkSession", where: str | None = None
) -> "DataFrame":
    """The rows of a snapshot as they are stored, with meta fields, as a DataFrame.

    `where`: a predicate whose rows are all that is needed.
    """
    shown = snapshot.shown_columns("snapshot")
    predicate = None if where is None else parse_predicate(where, shown.schema(snapshot.schema_with_meta))
    plan = plan_snapshot(
        snapshot,
        schema=select_columns(snapshot, None, meta_fields=True, shown=shown),
        predicate=predicate,
        where=where,
        query="snapshot",
        shown=shown,
        skipping=None if predicate is None else data_skipping(handle.access, snapshot, handle.options, handle.executor),
    )
    return frames.spark_engine().plan_to_dataframe(spark, snapshot.storage.location, plan)


def _refuse(change: FrameChange, snapshot: Snapshot, settings: WriteSettings, payload: str) -> None:
    refuse_without_schema(snapshot, change.what)
    refuse_unfit_change(change.operation, settings, payload, table_name=snapshot.config.name)
    if change.operation is not Operation.DELETE:
        refuse_rules_of_two(snapshot, change.what)
    if snapshot.shown_columns("snapshot") != AS_STORED:
        raise Unsupported(
            f"{change.what} in table '{snapshot.config.name}': queries show its partition columns otherwise than they "
            "are stored; use HudiTable.update, HudiTable.delete, or HudiTable.merge of rows that are no DataFrame"
        )
