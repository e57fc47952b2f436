"""Row-level changes: each is checked, and is one commit of rows that are made of the table's own."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.api import frames
from pyhudi.api.access import data_skipping
from pyhudi.api.handle import TableHandle
from pyhudi.api.lookup import SoughtKeys, look_up
from pyhudi.api.reporting import told_write
from pyhudi.api.rows.stored import AsSource, write_stored_rows
from pyhudi.api.writes import WriteCall, WriteCourse
from pyhudi.engine.local.input_columns import plain_rows
from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.resolve import PAYLOAD_CLASS, is_delete_payload, merge_options
from pyhudi.table.prune.data_skipping import DataSkipping
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.schema import refuse_doubled
from pyhudi.write.input.source import LEAVES, Operation, PreparedWrite
from pyhudi.write.operation import WriteResult
from pyhudi.write.preparation import prepare_write
from pyhudi.write.rows.changes import DeleteWhere, RowChange, UpdateWhere
from pyhudi.write.rows.clauses import MergeClauses
from pyhudi.write.rows.merge import Merge
from pyhudi.write.settings import CONCURRENCY_MODE, WriteSettings


def delete_where(handle: TableHandle, where: Any, call: WriteCall) -> WriteResult:
    """As `HudiTable.delete` with `where`."""
    return _change_told(handle, Operation.DELETE, lambda _: DeleteWhere(where), call)


def update(handle: TableHandle, set_: Any, where: Any | None, call: WriteCall) -> WriteResult:
    """As `HudiTable.update`."""
    return _change_told(handle, Operation.UPSERT, lambda its: UpdateWhere(set_, where, moves=its.moves_rows), call)


def merge(
    handle: TableHandle, source: Any, on: Any, clauses: MergeClauses, aliases: tuple[str, str], call: WriteCall
) -> WriteResult:
    """As `HudiTable.merge`. `aliases`: of source and table."""
    make = partial(_merge_of, handle, source, on, clauses, aliases)
    return _change_told(handle, Operation.UPSERT, make, call)


def _merge_of(
    handle: TableHandle, source: Any, on: Any, clauses: MergeClauses, aliases: tuple[str, str], settings: WriteSettings
) -> Merge:
    """The merge that a caller asks for. Raises: Invalid for a source that cannot be merged."""
    rows = frames.arrow_table(source)
    refuse_doubled(rows.schema)
    return Merge(
        plain_rows(rows), on, clauses, aliases, is_global=settings.has_global_index,
        moves=settings.moves_rows, keys=settings.keys, find_stored=partial(_find_stored, handle),
    )  # fmt: skip


def _change_told(
    handle: TableHandle, operation: Operation, make: Callable[[WriteSettings], RowChange], call: WriteCall
) -> WriteResult:
    """Carry out the row-level change that `make` gives. Listeners are told of it as of any write."""
    return told_write(_change_rows, handle, operation.value.lower(), call.options)(make, call)


def _change_rows(
    handle: TableHandle, make_change: Callable[[WriteSettings], RowChange], call: WriteCall
) -> WriteResult:
    """Carry out a row-level change in this process."""
    snapshot, merged, settings = handle.prepare(call.options)
    change = make_change(settings)
    refuse_unfit_change(change.operation, settings, merged.get(PAYLOAD_CLASS, ""), table_name=snapshot.config.name)
    course = WriteCourse(handle, snapshot, merged, settings, change.operation, call)
    change.check(snapshot)

    def prepare(now: Snapshot, as_source: AsSource) -> PreparedWrite:
        change.check(now)
        rows = change.rows(now, partial(_skipping, handle))
        deletes = change.operation is Operation.DELETE
        marks = LEAVES in rows.schema.names
        return prepare_write(
            now, as_source(rows), change.operation, settings, is_unordered=deletes, marks_deletes=marks
        )

    return write_stored_rows(handle, course, change.operation, settings, prepare, call)


def _find_stored(handle: TableHandle, snapshot: Snapshot, keys: pa.Array) -> pa.Table:
    given = merge_options(write=handle.options, opened=None, table={})
    ascending = keys.take(pc.sort_indices(keys))
    return look_up(snapshot, SoughtKeys(ascending), given, handle.executor)


def _skipping(handle: TableHandle, snapshot: Snapshot) -> DataSkipping | None:
    return data_skipping(handle.access, snapshot, handle.options, handle.executor)


def refuse_unfit_change(operation: Operation, settings: WriteSettings, payload: str, *, table_name: str) -> None:
    """Raises: Invalid, Unsupported for settings under which rows made of stored rows would come out wrong."""
    if settings.is_non_blocking:
        raise Unsupported(
            f"table '{table_name}': option '{CONCURRENCY_MODE}'='{settings.concurrency_mode}': a row-level change "
            "writes what it read, and such writers do not look for what others changed meanwhile; leave the option "
            "out for this call"
        )
    if is_delete_payload(payload) and operation is not Operation.DELETE:
        raise Invalid(
            f"table '{table_name}': expected a payload class that keeps rows, found {payload}, which makes all rows "
            "of a write deletes; leave the option out, or use delete"
        )
