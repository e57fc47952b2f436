"""Deleted rows that an append would bring back. The file group's next base file is written instead.

Example, by event time: a base row has ordering value 10, a delete in the log has none, and a new row of the key has 5.
Readers merge the log first, where the new row wins over the delete. Then they merge the base row, which wins with its
10 over the 5 of the new row: the deleted row shows again. Values of a deleted row come back in the same way where a
merge makes one row of two. Seen: Apache Hudi 1.0.2 and 1.2.0 read such a log so, and write it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Conflict
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.names import BaseFileName, join
from pyhudi.format.schema.conversion import COMMIT_TIME, RECORD_KEY
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import ChooseRows, read_merged, stored_blocks
from pyhudi.table.slices.row_positions import LogRecords, key_source, record_keys_of
from pyhudi.table.slices.slice_log import slice_files
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.change_log import ChangeLog, paired
from pyhudi.write.handles.compaction import write_merged
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.place.plan import FileGroupTask

_NO_KEYS: Final = pa.array([], pa.string())


def returning_keys(
    storage: Storage, target: WriteTarget, task: FileGroupTask, keys: pa.Array, own: Callable[[], Sequence[LogBlock]]
) -> pa.Array:
    """The keys of deleted base rows that, after `own`, readers would show again, or would show values of.

    `own`: gives the blocks that this write would append to the group's log. `keys`: of the rows in these blocks.
    Requests: none if rows win by the time of their commit; else one for each log of the slice, and, if its deletes have
    one of these keys, the columns of its base file that merging needs. Memory: as `read_merged`.
    """
    file_slice, reading = task.file_slice, target.reading
    if file_slice is None or reading is None or not len(keys) or not _may_return(target):
        return _NO_KEYS
    suspects = _maybe_deleted(storage, file_slice, reading, keys, target.schema.names)
    if not len(suspects):
        return _NO_KEYS

    # Dead keys: the log names them in a delete, and a query shows no row of them.
    stored = _living(storage, file_slice, target, reading, suspects, [])
    dead = suspects.filter(pc.invert(pc.is_in(suspects, one_array(stored.column(RECORD_KEY)))))
    if not len(dead):
        return _NO_KEYS

    shown = _living(storage, file_slice, target, reading, dead, own())
    if reading.rules.keeps_rows_whole and not target.is_partial and reading.keys is None:
        shown = shown.filter(pc.not_equal(shown.column(COMMIT_TIME), target.requested))
    else:
        # Rows may change and keep their commit time, or have none. A key without a base row brings nothing back, but
        # finding these keys is not worth another read.
        shown = shown.filter(pc.is_in(shown.column(RECORD_KEY), dead))
    return one_array(shown.column(RECORD_KEY))


def rewrite_without(
    storage: Storage,
    target: WriteTarget,
    task: FileGroupTask,
    keys: pa.Array,
    own: Sequence[LogBlock],
    *,
    counts: tuple[int, int, int],
    write_token: str,
) -> WriteStatus:
    """Write the slice's next base file: its rows merged with `own`, without the base rows of `keys`.

    `counts`: the rows that the write inserts, updates and deletes.
    Memory: as `read_merged`, and one row group. Raises: Conflict while a log compaction of the group is pending: its
    log would end up upon the new base file. So would, before version 8, the logs that are named after a pending
    compaction. Seen: 1.2.0 takes them for logs of the newest slice, as long as the compaction is pending, and once it
    has completed after the new base file was requested (`HoodieFileGroup.getBaseInstantTime`).
    """
    file_slice, reading = task.file_slice, target.reading
    assert file_slice is not None
    assert reading is not None

    if task.merging is not None:
        action, call = task.merging.action, "compact" if task.merging.action == "compaction" else "log_compact"
        raise Conflict(
            f"file group '{task.file_id}' in partition '{task.partition}': the key '{keys[0]}' was deleted from it and "
            f"comes back, so that its base file has to be written anew, which the pending {action} "
            f"'{task.merging.requested}' forbids; call {call}(), which carries that out, then retry"
        )

    name = BaseFileName(task.file_id, write_token, target.requested, target.settings.extension).format()
    file = AttemptedFile(storage, target.requested, join(task.partition, name), "MERGE")
    batches = read_merged(
        storage, slice_files(file_slice), reading, target.schema, target.schema.names,
        use_threads=False, more=own, choose=_without(keys),
    )  # fmt: skip
    rows = write_merged(file, name, target.schema, target.avro_schema, target.settings, batches)
    change_log, change_log_bytes = _log_changes(storage, target, task, keys, own, write_token)

    inserts, updates, deletes = counts
    return WriteStatus(
        task_number=task.number, partition=task.partition, file_id=task.file_id, file_name=name,
        previous_instant=task.base_instant, previous_file=task.base_file,
        writes=rows, inserts=inserts, updates=updates, deletes=deletes, size_bytes=file.shown_size(),
        change_log=change_log, change_log_bytes=change_log_bytes,
    )  # fmt: skip


def _log_changes(
    storage: Storage,
    target: WriteTarget,
    task: FileGroupTask,
    back: pa.Array,
    own: Sequence[LogBlock],
    write_token: str,
) -> tuple[str | None, int]:
    """Write the change log of the new base file, if the table keeps some: the slice before is compared with it.

    `back`: the keys whose base rows were left out. Memory: as `read_merged`, and the rows of the written keys, twice.
    """
    file_slice, reading, mode = task.file_slice, target.reading, target.change_mode
    if mode is None:
        return None, 0
    assert file_slice is not None
    assert reading is not None
    schema = key_source(target.schema, reading.keys)
    written = [chunk for block in own for chunk in record_keys_of(LogRecords.of(block), schema, reading).chunks]
    keys = pc.unique(one_array(pa.chunked_array(written, pa.string())))

    def rows(more: Sequence[LogBlock], choose: ChooseRows) -> pa.Table:
        batches = read_merged(
            storage, slice_files(file_slice), reading, target.schema, target.schema.names,
            use_threads=False, more=more, choose=choose,
        )  # fmt: skip
        found = (batch.filter(pc.is_in(batch.column(RECORD_KEY), keys)) for batch in batches)
        return pa.Table.from_batches((batch.select(target.schema.names) for batch in found), target.schema)

    with ChangeLog(storage, target, task, write_token, mode) as log:
        for changes in paired(rows((), lambda batch: batch), rows(own, _without(back))):
            log.add(changes)
    return log.name, log.size_bytes


def _may_return(target: WriteTarget) -> bool:
    """Whether a base row of the same key can make a written row show in another way than it was written."""
    rules = target.rules
    return target.is_partial or not rules.keeps_rows_whole or rules.base_by_ordering


def _maybe_deleted(
    storage: Storage, file_slice: FileSlice, reading: LogReading, keys: pa.Array, columns: Sequence[str]
) -> pa.Array:
    """The keys that the slice's log may delete: the keys in its delete blocks; all keys if rows may mark deletes."""
    if any(name in columns for name in reading.rules.mark_columns):
        return pc.unique(keys)
    blocks = stored_blocks(storage, slice_files(file_slice), reading)
    deleted = [read_deletes(block).column("record_key") for block in blocks if block.type is BlockType.DELETE]
    return pc.unique(keys.filter(pc.is_in(keys, pa.concat_arrays([_NO_KEYS, *deleted]))))


def _living(
    storage: Storage,
    file_slice: FileSlice,
    target: WriteTarget,
    reading: LogReading,
    keys: pa.Array,
    own: Sequence[LogBlock],
) -> pa.Table:
    """Key and commit time of the rows that a query shows of these keys once `own` is part of the slice's log."""
    columns = [RECORD_KEY, COMMIT_TIME]

    def of_keys(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.filter(pc.is_in(rows.column(RECORD_KEY), keys))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in read_merged(
            storage,
            slice_files(file_slice),
            reading,
            target.schema,
            columns,
            use_threads=False,
            more=own,
            choose=of_keys,
        ):
            yield of_keys(batch).select(columns)

    return pa.Table.from_batches(batches(), pa.schema([target.schema.field(name) for name in columns]))


def _without(keys: pa.Array) -> ChooseRows:
    def choose(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.filter(pc.invert(pc.is_in(rows.column(RECORD_KEY), keys)))

    return choose
