"""Carries out a plan of changes: record batches of changes, piece after piece, streamed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.headers import instant_time
from pyhudi.format.log.reader import scan_log
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELDS, RECORD_KEY
from pyhudi.merge.latest import match_in_turn, match_rows
from pyhudi.storage.protocol import Storage
from pyhudi.table.changes.change_plan import ChangePiece, ChangePlan, PieceKind, just_before
from pyhudi.table.changes.changed_rows import ChangedRows, Images, pair_rows, row_bytes
from pyhudi.table.read.files import read_planned
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.conform import conform_array
from pyhudi.table.slices.row_positions import LogRecords, record_keys_of
from pyhudi.table.slices.slice_log import log_source, slice_blocks, sources_of_logs

HELD_BYTES_MAX = 256 << 20
"""Bytes of rows, before and after, that a piece holds at once, as the sizes of its files let it guess."""

_DECODED = 6
"""How many times its stored size a file may take in memory, as a rule of thumb."""

_KEYS = pa.schema([(RECORD_KEY, pa.string())])


def read_changes(storage: Storage, plan: ChangePlan) -> Iterator[pa.RecordBatch]:
    """The changes of a plan as batches of `plan.schema`, in the order of the pieces. Memory: as `read_piece`."""
    for piece in plan.pieces:
        yield from read_piece(storage, plan, piece)


def read_piece(storage: Storage, plan: ChangePlan, piece: ChangePiece) -> Iterator[pa.RecordBatch]:
    """The changes of a piece as batches of `plan.schema`.

    Memory: a batch, and what reading a slice takes. Where two slices are compared: the keys of the rows that the write
    touched, and `HELD_BYTES_MAX` of these rows. If they are more, the slices are read several times.
    Raises: CorruptFile; NotFound for a file that is no more.
    """
    for changes in _changes(_Reader(storage, plan, piece)):
        kept = changes.meeting(plan.predicate)
        count = len(kept.op)
        if not count:
            continue
        columns = [kept.op, pa.repeat(piece.requested, count), pa.repeat(piece.completed, count)]
        for side, field in ((kept.before, plan.schema.field("before")), (kept.after, plan.schema.field("after"))):
            columns.append(pa.nulls(count, field.type) if side is None else side.column(plan.images))
        yield pa.RecordBatch.from_arrays(columns, schema=plan.schema)


def _changes(reader: "_Reader") -> Iterator[ChangedRows]:
    match reader.piece.kind:
        case PieceKind.REPLACED:
            for rows in reader.before():
                yield ChangedRows.deleted(rows)
        case PieceKind.INSERTED:
            for rows in reader.after():
                yield ChangedRows.inserted(rows)
        case PieceKind.LOGGED:
            yield from _logged(reader)
        case PieceKind.APPENDED:
            yield from _compared(reader, _appended_keys(reader))
        case PieceKind.REWRITTEN:
            yield from _compared(reader, _rewritten_keys(reader))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the slices of a piece, as they were before and after its write."""

    storage: Storage
    plan: ChangePlan
    piece: ChangePiece

    def before(self, keys: pa.Array | None = None, *, only_keys: bool = False) -> Iterator[pa.RecordBatch]:
        """The rows before the write. `keys`: only those with these keys. `only_keys`: only key and commit time."""
        return self._rows(self.piece.before, just_before(self.piece.requested), keys, only_keys=only_keys)

    def after(self, keys: pa.Array | None = None, *, only_keys: bool = False) -> Iterator[pa.RecordBatch]:
        """The rows after the write. Otherwise as `before`."""
        return self._rows(self.piece.after, self.piece.requested, keys, only_keys=only_keys)

    def held(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
        """All of these rows in one batch."""
        rows = pa.Table.from_batches(list(batches), self.plan.rows.schema)
        return pa.RecordBatch.from_arrays([one_array(column) for column in rows.columns], schema=rows.schema)

    @property
    def makes_rows_of_several(self) -> bool:
        reading = self.plan.rows.log_reading
        return reading is not None and not reading.rules.wins_whole

    def _rows(
        self, file: PlannedFile | None, until: str, keys: pa.Array | None, *, only_keys: bool
    ) -> Iterator[pa.RecordBatch]:
        if file is None:
            return
        for batch in read_planned(self.storage, self._plan_at(until, only_keys=only_keys), file, use_threads=False):
            kept = batch if keys is None else batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=keys))
            if len(kept):
                yield kept

    def _plan_at(self, until: str, *, only_keys: bool) -> ReadPlan:
        rows = self.plan.rows
        if rows.log_reading is not None:
            timeline = rows.log_reading.timeline.up_to(until)
            rows = replace(rows, log_reading=replace(rows.log_reading, timeline=timeline))
        if only_keys:
            rows = replace(rows, schema=pa.schema([rows.schema.field(name) for name in (COMMIT_TIME, RECORD_KEY)]))
        return rows


# Two slices, compared.


@dataclass(frozen=True, slots=True)
class _Touched:
    """The keys that a write touched. `row_bytes`: how much memory the row of a key may take."""

    keys: pa.Array
    row_bytes: int


def _appended_keys(reader: _Reader) -> _Touched:
    """The keys of the records in the log files of the piece."""
    piece, reading = reader.piece, reader.plan.rows.log_reading
    if reading is None:
        raise CorruptFile(
            piece.logs[0][0], 0, expected="no log that counts in a table of type COPY_ON_WRITE", found="a log"
        )
    blocks = slice_blocks(sources_of_logs(reader.storage, piece.logs), piece.log_instants.__contains__)
    found = [chunk for block in blocks for chunk in record_keys_of(LogRecords.of(block), _KEYS, reading).chunks]
    keys = pc.unique(one_array(pa.chunked_array(found, pa.string())))
    return _Touched(keys, _DECODED * sum(block.content_size for block in blocks) // max(1, len(keys)))


def _rewritten_keys(reader: _Reader) -> _Touched:
    """The keys of the rows that went, and of those that the write wrote last.

    Where a row may be made of several, it may change and keep its commit time: then the keys of all rows.
    """
    before, after = (
        pa.Table.from_batches(list(side), pa.schema([(COMMIT_TIME, pa.string()), (RECORD_KEY, pa.string())]))
        for side in (reader.before(only_keys=True), reader.after(only_keys=True))
    )
    stood, stands = one_array(before.column(RECORD_KEY)), one_array(after.column(RECORD_KEY))
    gone = stood.filter(pa.array(match_in_turn(stood, stands) < 0))
    if not reader.makes_rows_of_several:
        stands = stands.filter(one_array(pc.equal(after.column(COMMIT_TIME), reader.piece.requested)))
    size_bytes = max(file.size_bytes for file in (reader.piece.before, reader.piece.after) if file is not None)
    keys = pc.unique(pa.concat_arrays([gone, stands]))
    return _Touched(keys, _DECODED * size_bytes // max(1, len(before), len(after)))


def _compared(reader: _Reader, touched: _Touched) -> Iterator[ChangedRows]:
    keys_at_once = max(1, HELD_BYTES_MAX // max(1, 2 * touched.row_bytes))
    for start in range(0, len(touched.keys), keys_at_once):
        keys = touched.keys.slice(start, keys_at_once)
        before, after = reader.held(reader.before(keys)), reader.held(reader.after(keys))
        yield from pair_rows(before, after, differs=_differs_by_values if reader.makes_rows_of_several else _differs)


def _differs(before: pa.RecordBatch, after: pa.RecordBatch) -> np.ndarray:
    """Whether the write wrote the row: a row that stayed has kept its commit time."""
    return np.asarray(pc.not_equal(before.column(COMMIT_TIME), after.column(COMMIT_TIME)))


def _differs_by_values(before: pa.RecordBatch, after: pa.RecordBatch) -> np.ndarray:
    """As `_differs`, where a merge may take single values and keep the commit time."""
    names = [name for name in after.schema.names if name not in META_FIELDS]
    old, new = (row_bytes(rows.select(names)) for rows in (before, after))
    return _differs(before, after) | np.asarray(pc.not_equal(old, new))


# Change logs.


def _logged(reader: _Reader) -> Iterator[ChangedRows]:
    for path, size_bytes in reader.piece.logs:
        for block in _change_blocks(reader, path, size_bytes):
            for batch in read_batches(block):
                yield _logged_batch(reader, block, batch)


def _change_blocks(reader: _Reader, path: str, size_bytes: int) -> Iterator[LogBlock]:
    path, source, size_bytes = log_source(reader.storage, path, size_bytes)
    for block in scan_log(source, size_bytes, path=path):
        if block.damage is not None:
            raise block.damage.error
        if block.type is BlockType.CDC_DATA and instant_time(block) == reader.piece.requested:
            yield block


def _logged_batch(reader: _Reader, block: LogBlock, batch: pa.RecordBatch) -> ChangedRows:
    """What rows of a change log say. Images that the log does not hold are read from the slices, by key.

    Spec: format/queries.md section 3, "CDC log records".
    """
    names = set(batch.schema.names)
    if {"op", "before", "after"} <= names:
        before, after = (_logged_images(reader, block, batch.column(name)) for name in ("before", "after"))
        return ChangedRows(batch.column("op"), before, after)
    if not {"op", "record_key"} <= names:
        expected = "change data with two images, or with record keys"
        raise block.corrupt(0, expected=expected, found=f"columns {', '.join(sorted(names))}")

    keys = batch.column("record_key")
    if "before" in names:
        before = _logged_images(reader, block, batch.column("before"))
    else:
        before = _images_of_keys(keys, reader.held(reader.before(keys)))
    return ChangedRows(batch.column("op"), before, _images_of_keys(keys, reader.held(reader.after(keys))))


def _images_of_keys(keys: pa.Array, rows: pa.RecordBatch) -> Images:
    return Images.taken(rows, match_rows(keys, rows.column(RECORD_KEY)))


def _logged_images(reader: _Reader, block: LogBlock, image: pa.Array) -> Images:
    """The images of a change log in the table's columns. A column that the log lacks is null."""
    wanted = pa.schema([field for field in reader.plan.rows.schema if field.name not in META_FIELDS])
    evolution = reader.plan.rows.as_written.evolution
    then = None if evolution is None else evolution.of_instant(instant_time(block), wanted.names)
    if then is not None:
        stored = pa.RecordBatch.from_arrays(image.flatten(), names=[field.name for field in image.type])
        mask = image.is_null()
        named = then.named(stored)
        image = pa.StructArray.from_arrays(named.columns, fields=list(named.schema), mask=mask)
    rows = conform_array(image, pa.struct(list(wanted)), path=block.path, name="image")
    return Images(pa.RecordBatch.from_arrays(rows.flatten(), schema=wanted), np.asarray(image.is_valid()))
