"""What an append would bring back: deleted rows, and values of late rows.

Deleted rows: the file group's next base file is written instead. Example, by event time: a base row has ordering value
10, a delete in the log has none, and a new row of the key has 5.
Readers merge the log first, where the new row wins over the delete. Then they merge the base row, which wins with its
10 over the 5 of the new row: the deleted row shows again. Values of a deleted row come back in the same way where a
merge makes one row of two. Seen: Apache Hudi 1.0.2 and 1.2.0 read such a log so, and write it.
A pending compaction can make such a base row: the row that was deleted since is still part of what it merges.

Late rows: they are left out of the log. Example, by event time: a base row has ordering value 5, a record in the log
has 9 and some of the columns, and a new row of the key has 1. Readers merge the log first, where the new row fills the
columns that the record lacks, and then the base row, which has nothing to fill any more. Taken one after the other, the
new row loses as a whole. In the same way a record that is older than its base row would fill what a newer one lacks:
such a newer row is logged with all of its columns.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Conflict
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import instant_time, is_partial
from pyhudi.format.names import BaseFileName, join
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELDS, RECORD_KEY
from pyhudi.merge.cells import take_one
from pyhudi.merge.latest import incoming_wins, match_all, match_rows
from pyhudi.merge.ordering import normalized, ordering_fields, read_ordering
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.log_merge import merge_blocks
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import ChooseRows, read_merged, stored_blocks
from pyhudi.table.slices.row_positions import LogRecords, key_source, record_keys_of
from pyhudi.table.slices.slice_log import DATA_TYPES, slice_files
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.change_log import ChangeLog, paired
from pyhudi.write.handles.compaction import write_merged
from pyhudi.write.handles.incoming_rows import IncomingRows
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.place.plan import FileGroupTask

_NO_KEYS: Final = pa.array([], pa.string())


@dataclass(frozen=True)
class StoredLog:
    """The log that a write appends to, where a base file lies below it or is about to. Its blocks are found once, when
    asked for.

    `compaction`: the requested time of a pending compaction of the group.
    Requests: one for each log file. Memory: as `sources_of_logs`.
    """

    storage: Storage
    file_slice: FileSlice
    target: WriteTarget
    reading: LogReading
    compaction: str | None = None

    @classmethod
    def of(cls, storage: Storage, target: WriteTarget, task: FileGroupTask) -> "StoredLog | None":
        if task.file_slice is None or target.reading is None or (task.base_file is None and task.compaction is None):
            return None
        return cls(storage, task.file_slice, target, target.reading, task.compaction)

    @cached_property
    def blocks(self) -> list[LogBlock]:
        return stored_blocks(self.storage, slice_files(self.file_slice), self.reading)

    @cached_property
    def lasting(self) -> list[LogBlock]:
        """The blocks that the log of the next slice holds, once the pending compaction has completed."""
        return [one for one in self.blocks if self._outlasts(one)]

    def _outlasts(self, block: LogBlock) -> bool:
        at = instant_time(block)
        return self.compaction is None or self.reading.timeline.completion_times.get(at, at) >= self.compaction

    @property
    def may_mark_deletes(self) -> bool:
        """Whether the table has a column that marks rows as deleted. Its log may have partial rows all the same."""
        return any(name in self.target.schema.names for name in self.reading.rules.mark_columns)

    def keys_in(self, blocks: Sequence[LogBlock]) -> pa.Array:
        """The record keys in these blocks, each once."""
        schema = key_source(self.target.schema, self.reading.keys)
        found = [chunk for one in blocks for chunk in record_keys_of(LogRecords.of(one), schema, self.reading).chunks]
        return pc.unique(one_array(pa.chunked_array(found, pa.string())))

    def living(self, keys: pa.Array, columns: Sequence[str], own: Sequence[LogBlock] = ()) -> pa.Table:
        """These columns of the rows that a query shows of these keys once `own` is part of the log.

        Memory: as `read_merged`.
        """
        return self._rows_of(keys, columns, [*self.blocks, *own])

    def living_then(self, keys: pa.Array, columns: Sequence[str], own: Sequence[LogBlock]) -> pa.Table:
        """As `living`, once the pending compaction has completed: its base file is merged with what the log then holds.

        Requests: one for the base file. Memory: as `read_merged`, and the rows of these keys.
        """
        taken = [one for one in self.blocks if not self._outlasts(one)]
        needed = self.reading.rules.columns_needed(columns, self.target.schema.names)
        base = self._rows_of(keys, needed, taken)

        # Row positions in these blocks are those of the base file of today: none applies to the next one.
        files = replace(slice_files(self.file_slice), base_instant="")
        merged = merge_blocks(
            iter(base.to_batches()), [*self.lasting, *own], files, self.reading.rules, self.reading.keys, base.schema,
            as_written=self.reading.as_written,
        )  # fmt: skip
        return self._only(keys, columns, merged)

    def _rows_of(self, keys: pa.Array, columns: Sequence[str], blocks: Sequence[LogBlock]) -> pa.Table:
        def of_keys(rows: pa.RecordBatch) -> pa.RecordBatch:
            return rows.filter(pc.is_in(rows.column(RECORD_KEY), keys))

        batches = read_merged(
            self.storage, slice_files(self.file_slice), self.reading, self.target.schema, columns,
            use_threads=False, blocks=blocks, choose=of_keys,
        )  # fmt: skip
        return self._only(keys, columns, batches)

    def _only(self, keys: pa.Array, columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> pa.Table:
        schema = pa.schema([self.target.schema.field(name) for name in columns])
        chosen = (batch.filter(pc.is_in(batch.column(RECORD_KEY), keys)).select(columns) for batch in batches)
        return pa.Table.from_batches(chosen, schema)


@dataclass(frozen=True, slots=True)
class SettledRows:
    """What a write appends. `incoming`: without the late rows. `complete`: those of its rows that have to be logged
    whole, with the columns that they lack as they stand in the table.
    """

    incoming: IncomingRows
    complete: pa.Table | None = None


def settle_late_rows(log: StoredLog | None, incoming: IncomingRows) -> SettledRows:
    """The rows to append, so that each meets the row that stands, and not older ones that lost or will lose.

    Requests: by event time, one for each log of the slice, which `returning_keys` needs, too. The slice is read, in the
    columns that merging needs, if the log holds some columns only of one of the keys; and by a write of some columns,
    if the log holds one of its keys. Memory: as `read_merged`.
    """
    every = SettledRows(incoming)
    if log is None or incoming.is_delete.all():
        return every
    target, rules = log.target, log.reading.rules
    if not (rules.ordering and rules.log_by_ordering and rules.base_by_ordering and rules.keeps_rows_whole):
        return every

    filled = [one for one in log.blocks if one.type in DATA_TYPES and (target.is_partial or is_partial(one))]
    rows = incoming.table
    keys = one_array(rows.column(RECORD_KEY))
    suspects = pc.unique(keys.filter(pc.is_in(keys, log.keys_in(filled)))) if filled else _NO_KEYS
    if not len(suspects):
        return every

    stands = log.living(suspects, rules.columns_needed([RECORD_KEY, COMMIT_TIME], target.schema.names))
    at, standing = match_all(keys, stands.column(RECORD_KEY))
    fields = ordering_fields(target.schema, rules.ordering)
    own, other = (
        normalized(read_ordering(_one_batch(table), rules.ordering, fields))
        for table in (rows.take(pa.array(at)), stands.take(pa.array(standing)))
    )
    wins = incoming_wins(own, other)
    # A record is merged with every base row of its key. So it counts if it wins over one of them.
    counts = np.bincount(at, minlength=len(rows))
    kept = incoming.is_delete | (counts == 0) | (np.bincount(at[wins], minlength=len(rows)) > 0)
    settled = IncomingRows(rows.filter(pa.array(kept)), incoming.is_delete[kept])
    if not target.is_partial:
        return SettledRows(settled)

    # Where several rows stand, none of them has the columns for all.
    wins &= (counts[at] == 1) & ~incoming.is_delete[at]
    upon_losers = _upon_losers(log, keys.take(pa.array(at[wins])), take_one(stands.column(COMMIT_TIME), standing[wins]))
    chosen = at[wins][upon_losers]
    return SettledRows(settled, _completed(log, rows.take(pa.array(chosen))) if len(chosen) else None)


def _upon_losers(log: StoredLog, keys: pa.Array, written: pa.Array) -> np.ndarray:
    """For each key of the log, whether the log holds only records that lost against the row that stands.

    That is so where the row is one of the base file. The log is that of today, and the one that the pending compaction
    will leave. `written`: the commit times of these rows. Keys that are computed come without them.
    """

    def is_in(blocks: Sequence[LogBlock]) -> np.ndarray:
        return np.asarray(pc.is_in(written, pa.array([instant_time(one) for one in blocks], pa.string())))

    found, lasting = ~is_in(log.blocks), log.lasting
    leaves = ~found & ~is_in(lasting)
    if leaves.any():
        remaining = log.keys_in([one for one in lasting if one.type in DATA_TYPES])
        found |= leaves & np.asarray(pc.is_in(keys, remaining))
    return found


def _completed(log: StoredLog, rows: pa.Table) -> pa.Table:
    """Rows of some columns, with the other columns as they stand in the table."""
    names = [name for name in log.target.schema.names if name not in META_FIELDS and name not in rows.column_names]
    keys = one_array(rows.column(RECORD_KEY))
    stands = log.living(keys, [RECORD_KEY, *names])
    match = match_rows(keys, stands.column(RECORD_KEY))
    for name in names:
        rows = rows.append_column(log.target.schema.field(name), take_one(stands.column(name), match))
    return rows


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([one_array(column) for column in rows.columns], schema=rows.schema)


def returning_keys(log: StoredLog | None, keys: pa.Array, own: Callable[[], Sequence[LogBlock]]) -> pa.Array:
    """The keys of deleted base rows that, after `own`, readers would show again, or would show values of.

    `own`: gives the blocks that this write would append to the group's log. `keys`: of the rows in these blocks.
    Requests: none if rows win by the time of their commit; else one for each log of the slice, and, if its deletes have
    one of these keys, the columns of its base file that merging needs. Memory: as `read_merged`.
    """
    if log is None or not len(keys) or not _may_return(log.target):
        return _NO_KEYS
    suspects = _maybe_deleted(log, keys)
    if not len(suspects):
        return _NO_KEYS

    # Dead keys: the log names them in a delete, and a query shows no row of them.
    stored = log.living(suspects, [RECORD_KEY, COMMIT_TIME])
    dead = suspects.filter(pc.invert(pc.is_in(suspects, one_array(stored.column(RECORD_KEY)))))
    if not len(dead):
        return _NO_KEYS

    blocks = own()
    shown = log.living(dead, [RECORD_KEY, COMMIT_TIME], blocks)
    if log.reading.rules.keeps_rows_whole and not log.target.is_partial and log.reading.keys is None:
        if log.compaction is not None:
            shown = pa.concat_tables([shown, log.living_then(dead, shown.column_names, blocks)])
        shown = shown.filter(pc.not_equal(shown.column(COMMIT_TIME), log.target.requested))
    else:
        # Rows may change and keep their commit time, or have none. A key without a base row brings nothing back, but
        # finding these keys is not worth another read.
        shown = shown.filter(pc.is_in(shown.column(RECORD_KEY), dead))
    return pc.unique(one_array(shown.column(RECORD_KEY)))


def rewrite_without(
    log: StoredLog,
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
    storage, target = log.storage, log.target
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
        storage, slice_files(log.file_slice), log.reading, target.schema, target.schema.names,
        use_threads=False, blocks=[*log.blocks, *own], choose=_without(keys),
    )  # fmt: skip
    rows = write_merged(file, name, target.schema, target.avro_schema, target.settings, batches)
    change_log, change_log_bytes = _log_changes(log, task, keys, own, write_token)

    inserts, updates, deletes = counts
    return WriteStatus(
        task_number=task.number, partition=task.partition, file_id=task.file_id, file_name=name,
        previous_instant=task.base_instant, previous_file=task.base_file,
        writes=rows, inserts=inserts, updates=updates, deletes=deletes, size_bytes=file.shown_size(),
        change_log=change_log, change_log_bytes=change_log_bytes,
    )  # fmt: skip


def _log_changes(
    log: StoredLog, task: FileGroupTask, back: pa.Array, own: Sequence[LogBlock], write_token: str
) -> tuple[str | None, int]:
    """Write the change log of the new base file, if the table keeps some: the slice before is compared with it.

    `back`: the keys whose base rows were left out. Memory: as `read_merged`, and the rows of the written keys, twice.
    """
    storage, target, mode = log.storage, log.target, log.target.change_mode
    if mode is None:
        return None, 0
    keys = log.keys_in(own)

    def rows(more: Sequence[LogBlock], choose: ChooseRows) -> pa.Table:
        batches = read_merged(
            storage, slice_files(log.file_slice), log.reading, target.schema, target.schema.names,
            use_threads=False, blocks=[*log.blocks, *more], choose=choose,
        )  # fmt: skip
        found = (batch.filter(pc.is_in(batch.column(RECORD_KEY), keys)) for batch in batches)
        return pa.Table.from_batches((batch.select(target.schema.names) for batch in found), target.schema)

    with ChangeLog(storage, target, task, write_token, mode) as written:
        for changes in paired(rows((), lambda batch: batch), rows(own, _without(back))):
            written.add(changes)
    return written.name, written.size_bytes


def _may_return(target: WriteTarget) -> bool:
    """Whether a base row of the same key can make a written row show in another way than it was written."""
    rules = target.rules
    return target.is_partial or not rules.keeps_rows_whole or rules.base_by_ordering


def _maybe_deleted(log: StoredLog, keys: pa.Array) -> pa.Array:
    """The keys that the slice's log may delete: the keys in its delete blocks; all keys if rows may mark deletes."""
    if log.may_mark_deletes:
        return pc.unique(keys)
    deleted = [read_deletes(block).column("record_key") for block in log.blocks if block.type is BlockType.DELETE]
    return pc.unique(keys.filter(pc.is_in(keys, pa.concat_arrays([_NO_KEYS, *deleted]))))


def _without(keys: pa.Array) -> ChooseRows:
    def choose(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.filter(pc.invert(pc.is_in(rows.column(RECORD_KEY), keys)))

    return choose
