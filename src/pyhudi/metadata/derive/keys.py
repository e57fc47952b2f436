"""Which record keys an action adds to file groups and takes from them, by what is stored before and after it.

The answer is exact for merged slices, whatever their logs hold: rows that come too late, deletes that lose, keys that
come back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import BlockType
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.metadata.derive.changed_groups import ChangedGroup
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten
from pyhudi.table.slices.log_merge import with_key_column
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import BaseReader, SliceReader
from pyhudi.table.slices.slice_log import any_write, log_sources, slice_blocks
from pyhudi.table.view.file_system_view import FileSlice

LOCATED = pa.schema([("record_key", pa.string()), ("partition", pa.string()), ("file_id", pa.string())])
"""Where a record key lies: its data partition and file group."""


@dataclass(frozen=True, slots=True)
class RowReading:
    """How columns of file slices are read. `stored`: every column that rows may have, meta fields first.

    `as_written`: how base files without logs may differ from these columns.
    """

    storage: Storage
    stored: pa.Schema
    logs: LogReading | None
    as_written: AsWritten = TODAY

    def rows(self, file_slice: FileSlice | None, columns: Sequence[str]) -> pa.Table:
        """These columns of a slice's merged rows; no rows for None. Memory: the rows, and the slice's merged log."""
        if file_slice is None:
            return pa.schema([with_key_column(self.stored).field(name) for name in columns]).empty_table()

        if file_slice.log_files:
            assert self.logs is not None
            return SliceReader(self.stored, self.logs).rows(self.storage, file_slice, columns)

        return BaseReader(self.stored, self.as_written).rows(self.storage, file_slice, columns)


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """`located`: the keys that are new in a file group, as `LOCATED`. `gone`: the keys that left a file group, as
    `LOCATED`.
    """

    located: pa.Table
    gone: pa.Table


@dataclass(frozen=True, slots=True)
class _Task:
    before: RowReading
    reading: RowReading
    group: ChangedGroup


def key_changes(
    reading: RowReading, groups: Iterable[ChangedGroup], executor: Executor, *, before: RowReading | None = None
) -> KeyChanges:
    """What an action does to the keys of the groups that it changes.

    `before`: how slices of before it are read; None: as those of after it.

    A key that moves from one group to another is in `gone` for the one, and in `located` for the other.
    Cost: the key column of each group whose keys may change, before and after; where rows were only updated in logs,
    these logs. Memory: the keys of as many groups as the executor has workers, and the keys that are new or gone.
    """
    tasks = [_Task(before or reading, reading, group) for group in groups if group.may_change_keys]
    found = executor.run(_compare_keys, tasks)
    located = pa.concat_tables([LOCATED.empty_table(), *(new for new, _ in found)])
    gone = pa.concat_tables([LOCATED.empty_table(), *(old for _, old in found)])
    return KeyChanges(located, gone)


def located_keys(reading: RowReading, slices: Iterable[FileSlice], executor: Executor) -> list[pa.Table]:
    """The keys of each slice, as `LOCATED`. Memory: all of them."""
    groups = (ChangedGroup(one.partition, one.file_id, None, one, True) for one in slices)
    return executor.run(_locate, [_Task(reading, reading, group) for group in groups])


def _locate(task: _Task) -> pa.Table:
    return _located(task.group, _keys(task.reading, task.group.after))


def _compare_keys(task: _Task) -> tuple[pa.Table, pa.Table]:
    # Updates in a log add no key. They take one away only if the log can delete.
    if task.group.only_updates and not _may_delete(task.reading, task.group.after):
        return LOCATED.empty_table(), LOCATED.empty_table()

    before, after = _keys(task.before, task.group.before), _keys(task.reading, task.group.after)
    return _located(task.group, _without(after, before)), _located(task.group, _without(before, after))


def _may_delete(reading: RowReading, file_slice: FileSlice | None) -> bool:
    """Whether a slice's logs may delete rows: by delete blocks, by rows marked as deleted, or by a merger.

    Reads the logs.
    """
    assert file_slice is not None
    assert reading.logs is not None

    rules = reading.logs.rules
    if rules.merger is not None or any(name in reading.stored.names for name in rules.mark_columns):
        return True
    return any(
        block.type is BlockType.DELETE for block in slice_blocks(log_sources(reading.storage, file_slice), any_write)
    )


def _keys(reading: RowReading, file_slice: FileSlice | None) -> pa.Array:
    return one_array(reading.rows(file_slice, [RECORD_KEY]).column(RECORD_KEY))


def _without(keys: pa.Array, others: pa.Array) -> pa.Array:
    if not len(others) or not len(keys):
        return keys
    return keys.filter(pc.invert(pc.is_in(keys, others)))


def _located(group: ChangedGroup, keys: pa.Array) -> pa.Table:
    count = len(keys)
    partitions, file_ids = (pa.repeat(pa.scalar(text, pa.string()), count) for text in (group.partition, group.file_id))
    return pa.table([keys, partitions, file_ids], schema=LOCATED)
