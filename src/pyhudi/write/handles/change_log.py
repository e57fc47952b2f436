"""The change log of one file group, written beside its next base file: what the write did to each row."""

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.changes import AFTER, BEFORE, KEY, OP, TIME, ChangeMode, change_schema
from pyhudi.format.log.writer import encode_change_block
from pyhudi.format.names import LogFileName, join
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELDS, RECORD_KEY, without_meta_fields
from pyhudi.merge.latest import match_in_turn
from pyhudi.storage.protocol import Storage
from pyhudi.table.changes.changed_rows import UPDATED, ChangedRows, Images, pair_rows
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.target import WriteTarget
from pyhudi.write.place.plan import FileGroupTask

BLOCK_BYTES_MAX: Final = 32 << 20
"""Bytes of changed rows, as Arrow holds them, in a block. It bounds what a writer holds."""


class ChangeLog:
    """Takes the changes of a file group. The log becomes visible, and whole, once `with` ends without an exception.

    No file is written without changes. `name`, `size_bytes`: of the file, after `with`; None and 0 if there is none.
    The marker is one of a new file: whoever rolls the write back deletes the log.
    Memory: the changes of one block, and their encoded bytes. Raises: Conflict when the write ended.
    """

    def __init__(
        self, storage: Storage, target: WriteTarget, task: FileGroupTask, write_token: str, mode: ChangeMode
    ) -> None:
        self._mode, self._requested = mode, target.requested
        self._file_name = LogFileName(task.file_id, target.requested, 1, write_token, ".cdc").format()
        self._file = AttemptedFile(storage, target.requested, join(task.partition, self._file_name), "CREATE")
        self._schema = change_schema(mode, without_meta_fields(target.avro_schema))
        self._images = pa.schema([column for column in target.schema if column.name not in META_FIELDS])
        self._block_bytes_max = min(target.logs.block_size_max_bytes, BLOCK_BYTES_MAX)
        self._content = target.logs.content
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._stack = ExitStack()
        self._sink: BinaryIO | None = None
        self.name: str | None = None
        self.size_bytes = 0

    def updated(self, before: pa.RecordBatch, after: pa.RecordBatch) -> None:
        self.add(ChangedRows(pa.repeat(pa.scalar(UPDATED), len(after)), Images.of(before), Images.of(after)))

    def inserted(self, rows: pa.RecordBatch) -> None:
        self.add(ChangedRows.inserted(rows))

    def deleted(self, rows: pa.RecordBatch) -> None:
        self.add(ChangedRows.deleted(rows))

    def compared(self, stored: pa.RecordBatch, merged: pa.RecordBatch) -> None:
        """The changes between stored rows and what merging made of them. Changed rows have this write's time."""
        stood, stands = stored.column(RECORD_KEY), merged.column(RECORD_KEY)
        gone = stood.filter(pa.array(match_in_turn(stood, stands) < 0))
        new = stands.filter(pc.equal(merged.column(COMMIT_TIME), self._requested))
        keys = pc.unique(pa.concat_arrays([gone, new]))
        before, after = (rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=keys)) for rows in (stored, merged))
        for changes in pair_rows(before, after, differs=_has_another_time):
            self.add(changes)

    def add(self, changes: ChangedRows) -> None:
        if not len(changes.op):
            return
        batch = self._record_batch(changes)
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._block_bytes_max:
            self._flush()

    def _record_batch(self, changes: ChangedRows) -> pa.RecordBatch:
        side = changes.after or changes.before
        assert side is not None
        columns: dict[str, pa.Array] = {OP: changes.op}
        if self._mode is ChangeMode.BEFORE_AFTER:
            columns[TIME] = pa.repeat(pa.scalar(self._requested), len(changes.op))
        else:
            columns[KEY] = side.rows.column(RECORD_KEY)
        if self._mode is not ChangeMode.KEYS:
            columns[BEFORE] = self._column(changes.before, len(changes.op))
        if self._mode is ChangeMode.BEFORE_AFTER:
            columns[AFTER] = self._column(changes.after, len(changes.op))
        return pa.RecordBatch.from_pydict(columns)

    def _column(self, images: Images | None, count: int) -> pa.Array:
        return pa.nulls(count, pa.struct(list(self._images))) if images is None else images.column(self._images)

    def _flush(self) -> None:
        if not self._pending:
            return
        if self._sink is None:
            self._file.begin()
            self._sink = self._stack.enter_context(self._file.storage.put_stream(self._file.path))
        block = encode_change_block(
            self._pending, instant_time=self._requested, schema_text=self._schema, form=self._content
        )
        self._sink.write(block)
        self._pending, self._pending_bytes = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:
            self._flush()
            if self._sink is not None:
                self._file.refuse_when_given_up()
        if self._sink is not None:
            self.name, self.size_bytes = self._file_name, self._file.shown_size()


def _has_another_time(before: pa.RecordBatch, after: pa.RecordBatch) -> np.ndarray:
    return np.asarray(pc.not_equal(before.column(COMMIT_TIME), after.column(COMMIT_TIME)))


def paired(before: pa.Table, after: pa.Table) -> Iterator[ChangedRows]:
    """The changes between two states of rows. A row that was written has another commit time."""
    old, new = (
        pa.RecordBatch.from_arrays([one_array(column) for column in rows.columns], schema=rows.schema)
        for rows in (before, after)
    )
    yield from pair_rows(old, new, differs=_has_another_time)
