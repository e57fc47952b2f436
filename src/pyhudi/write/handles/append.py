"""Appending to a file group: incoming rows go to its log, whatever is stored under their keys."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Conflict
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import LogBlock
from pyhudi.format.log.delete import DELETES
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import META_FIELDS, RECORD_KEY, select_fields
from pyhudi.storage.protocol import Storage
from pyhudi.write.handles.incoming_rows import IncomingRows
from pyhudi.write.handles.log_writer import (
    BlockStyle,
    LogDestination,
    LogRows,
    WrittenLog,
    delete_rows,
    in_base_order,
    log_blocks,
    write_log,
)
from pyhudi.write.handles.orc_times import refuse_unreadable_times
from pyhudi.write.handles.returning_rows import (
    SettledRows,
    StoredLog,
    returning_keys,
    rewrite_without,
)
from pyhudi.write.handles.stored_rows import RowStamp, stored_rows, with_all_columns
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import LEAVES, POSITION
from pyhudi.write.place.plan import FileGroupTask
from pyhudi.write.place.searched_keys import search_keys


def append_rows(
    store: Storage,
    target: WriteTarget,
    task: FileGroupTask,
    settled: SettledRows,
    write_token: str,
    stored: StoredLog | None = None,
) -> list[WriteStatus]:
    """Write the rows into new log files of the group: one row a key, and deletes as deletes.

    Rows with only some of the columns can be logged if their key is stored. The others get nulls for what they lack, in
    blocks of their own. A delete carries its row's ordering value, if the table compares these values. The delete of a
    row that moves to another partition carries none, and wins over everything before it. If a row would bring a deleted
    one back, the group's next base file is written instead (`returning_rows`). `stored`: the group's log so far, if it
    lies upon a base file.
    Memory: the rows, as they came and as they are stored. Spec: format/log-format.md sections 2 and 3.
    """
    base_instant = task.base_instant if task.base_file is not None and target.logs.writes_positions else None
    destination = LogDestination(
        store, target.requested, task.partition, task.file_id, write_token, target.log_marker, task.log
    )

    parts = _parts(store, target, task, settled, base_instant)
    new = sum(part.inserts for part in parts)
    rewritten = _rewritten(stored, destination, task, parts, new=new, gone=len(settled.incoming.gone))
    if rewritten is not None:
        return [rewritten]

    statuses: list[WriteStatus] = []
    for part in parts:
        left = part.inserts
        for log in write_log(destination, part.style, part.rows, part.deletes, files_before=len(statuses)):
            inserts = min(left, log.rows)
            left -= inserts
            statuses.append(_status(task, log, inserts))
    return statuses


def _parts(
    store: Storage, target: WriteTarget, task: FileGroupTask, settled: SettledRows, base_instant: str | None
) -> list["_Part"]:
    """The rows and deletes to log. Whole rows of a write of some columns are a part of their own."""
    chosen, gone = settled.incoming.living, settled.incoming.gone

    # A search tells which rows are new. An insert that drops stored keys was searched before: all its rows are new.
    new, whole = min(task.inserts, len(chosen)), chosen.slice(0, 0)
    if task.searched is not None and target.is_partial:
        is_stored = search_keys(store, target, task.searched).holds(chosen.column(RECORD_KEY))
        chosen, whole = chosen.filter(is_stored), with_all_columns(chosen.filter(pc.invert(is_stored)), target.schema)
    elif task.searched is not None:
        new = len(chosen)

    # A row that has got the columns which it lacks is no new one.
    completed = settled.complete
    if completed is not None:
        chosen = chosen.filter(pc.invert(pc.is_in(chosen.column(RECORD_KEY), completed.column(RECORD_KEY))))
        new = min(new, len(chosen))

    def part(of: WriteTarget, rows: pa.Table, deletes: pa.Table, position_base: str | None, inserts: int) -> _Part:
        return _Part(
            _style(of, rows), _rows(of, task, rows, position_base), _deletes(of, task, deletes, position_base),
            one_array(rows.column(RECORD_KEY)), inserts,
        )  # fmt: skip

    parts = [part(target, chosen, gone, base_instant, new)]
    complete = replace(target, is_partial=False)
    for rows, inserts in ((whole, len(whole)), (completed, 0)):
        if rows is not None and len(rows):
            parts.append(part(complete, rows, gone.slice(0, 0), None, inserts))
    return parts


def _rewritten(
    stored: StoredLog | None,
    destination: LogDestination,
    task: FileGroupTask,
    parts: Sequence["_Part"],
    *,
    new: int,
    gone: int,
) -> WriteStatus | None:
    """The group's next base file, written where a row would bring a deleted one back; None where none does.

    `new`, `gone`: how many of the rows are planned as new, and how many keys are deleted.
    Raises: Conflict for a group that is about to be resized: the resizing would not take the new base file.
    """

    def own() -> list[LogBlock]:
        return [block for part in parts for block in log_blocks(destination, part.style, part.rows, part.deletes)]

    keys = pa.concat_arrays([part.keys for part in parts])
    back = returning_keys(stored, keys, own)
    if stored is None or not len(back):
        return None
    if task.doubled is not None:
        raise Conflict(
            f"file group '{task.file_id}' in partition '{task.partition}' is about to be resized, and a row brings a "
            "deleted one back, so that its base file has to be written anew; carry the resizing out first: "
            "run_clusterings()"
        )
    inserts = max(new, len(back))
    counts = inserts, len(keys) - inserts, gone
    return rewrite_without(stored, task, back, own(), counts=counts, write_token=destination.write_token)


def append_doubled(
    store: Storage, target: WriteTarget, task: FileGroupTask, incoming: IncomingRows, write_token: str
) -> list[WriteStatus]:
    """Write the rows a second time, into logs of the file groups that a pending resizing is about to make.

    These logs are named after the resizing, and so are those of another write beside this one. The time of this write
    in the write token tells them apart.
    """
    if task.doubled is None:
        return []
    number, _, attempt = write_token.split("-")
    buckets = task.doubled.rule.bucket_of(incoming.table.column(RECORD_KEY))
    statuses: list[WriteStatus] = []
    for bucket, own in sorted(task.doubled.tasks.items()):
        chosen = buckets == bucket
        if chosen.any():
            rows = IncomingRows(incoming.table.filter(pa.array(chosen)), incoming.is_delete[chosen])
            token = f"{number}-{int(target.requested[-_CLOCK_DIGITS:])}-{attempt}"
            statuses += append_rows(store, target, own, SettledRows(rows), token)
    return statuses


_CLOCK_DIGITS = 9
"""The digits of an instant that say the time of day, to the millisecond."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Blocks of one style. `keys`: of their rows. `inserts`: how many of their rows are planned as new."""

    style: BlockStyle
    rows: LogRows
    deletes: LogRows
    keys: pa.Array
    inserts: int


def _style(target: WriteTarget, rows: pa.Table) -> BlockStyle:
    text = target.avro_schema
    if target.is_partial:
        text = select_fields(text, _logged_columns(target, rows))
    return BlockStyle(
        text, target.logs, target.settings.compression, is_partial=target.is_partial,
        fills_meta=target.settings.fills_meta, left_out=target.settings.left_out,
    )  # fmt: skip


def _logged_columns(target: WriteTarget, rows: pa.Table) -> list[str]:
    held = {*META_FIELDS, *rows.column_names}
    return [name for name in target.schema.names if name in held]


def _status(task: FileGroupTask, log: WrittenLog, inserts: int) -> WriteStatus:
    return WriteStatus(
        task_number=task.number, partition=task.partition, file_id=task.file_id, file_name=log.name.format(),
        writes=log.rows, inserts=inserts, updates=log.rows - inserts, deletes=log.deletes,
        size_bytes=log.size_bytes, log_version=log.name.version,
    )  # fmt: skip


def _rows(target: WriteTarget, task: FileGroupTask, rows: pa.Table, base_instant: str | None) -> LogRows:
    ordered = in_base_order(rows, _positions(rows), base_instant)
    schema = pa.schema([target.schema.field(name) for name in _logged_columns(target, rows)])
    return LogRows(_as_logged(target, task, ordered.rows, schema), ordered.positions, ordered.base_instant)


def _as_logged(target: WriteTarget, task: FileGroupTask, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows as a log stores them. Seen: they have the file id instead of their file's name."""
    stamp = RowStamp(target.requested, task.number, task.partition, task.file_id)

    if target.settings.extension == ".orc":
        refuse_unreadable_times(rows, path=join(task.partition, task.file_id))

    batches, start = [], 0
    for batch in rows.to_batches():
        batches.append(stored_rows(stamp, batch, schema, start))
        start += len(batch)
    return pa.Table.from_batches(batches, schema)


def _deletes(target: WriteTarget, task: FileGroupTask, rows: pa.Table, base_instant: str | None) -> LogRows:
    if not len(rows):
        return LogRows(DELETES.empty_table())
    ordered = in_base_order(rows, _positions(rows), base_instant)

    leaves = np.zeros(len(rows), dtype=bool)
    if LEAVES in rows.column_names:
        leaves = np.array(one_array(ordered.rows.column(LEAVES)))

    deletes = delete_rows(ordered.rows, task.partition, target.ordering, leaves)
    return LogRows(deletes, ordered.positions, ordered.base_instant)


def _positions(rows: pa.Table) -> np.ndarray:
    if POSITION not in rows.column_names:
        return np.full(len(rows), -1)
    return np.asarray(one_array(rows.column(POSITION)))
