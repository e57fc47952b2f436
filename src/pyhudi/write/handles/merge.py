"""Merging a base file with incoming rows, by columns, streaming the base file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.footer import KeyFooter
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.format.struct_fields import column_around, column_at, find_field
from pyhudi.merge.base import BaseMerge
from pyhudi.merge.cells import replace_values
from pyhudi.merge.fold import Folded, LogFold
from pyhudi.merge.latest import incoming_wins, match_rows
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.protocol import OpenBaseFile
from pyhudi.table.slices.base_files.rows import open_rows
from pyhudi.table.slices.conform import conform_array, conform_batch
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.view.file_system_view import SourceFile
from pyhudi.write.handles.base_file_writer import BaseFileSettings, BaseFileWriter
from pyhudi.write.handles.change_log import ChangeLog
from pyhudi.write.handles.incoming_rows import IncomingRows
from pyhudi.write.handles.key_filter import KeyFilter
from pyhudi.write.handles.target import WriteTarget

BATCH_ROWS = 131_072
_SPARSE = 256
"""If at most one in this many rows is replaced, the rows between are passed on as they are, without a copy."""

AsStored = Callable[[pa.RecordBatch, int], pa.RecordBatch]
OpenWriter = Callable[[KeyFilter | None, tuple[str, str] | None], AbstractContextManager[BaseFileWriter]]


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """How many rows the new file has, and how many were inserted, updated and deleted."""

    writes: int
    inserts: int
    updates: int
    deletes: int


@dataclass(frozen=True, slots=True)
class _Settled:
    """What becomes of each stored row. `take`: the incoming row that replaces it, or -1. `drop`: whether it is deleted.

    `new`: positions of the incoming rows that are no deletes and whose key no stored row has.
    """

    take: np.ndarray
    drop: np.ndarray
    new: np.ndarray


def merge_base_file(
    storage: Storage,
    *,
    old_path: str,
    source: SourceFile | None,
    rows: IncomingRows,
    as_stored: AsStored,
    open_writer: OpenWriter,
    schema: pa.Schema,
    target: WriteTarget,
    changes: ChangeLog | None = None,
) -> MergeOutcome | None:
    """The stored rows in their order, replaced, changed or dropped as the table's rules say; then the inserts.

    None if no row changes; then no file is written. `schema`: the stored columns, without those that have one value in
    all rows of the new file. Rows that do not change keep their values of these columns. `source`: as for `open_rows`.
    `changes`: is told what changes.
    Memory: key and ordering columns of the old file, the incoming rows, and one row group; the incoming rows twice
    where one row is made of two.

    There are two merges, because `_merge_by_rules` is slower where a row wins whole: 1.5 times the processor seconds of
    an upsert of all of a million rows, 1.3 times if a tenth of them change. Rows also get other sequence numbers: in
    the order of the input, not of the file.

    Spec: format/layout.md section 6 and section 7, "COW output of updates".
    """
    with closing(open_rows(storage, old_path, source, target.as_written)) as old:
        file = _OldFile(old, old_path, schema, target.as_written.evolution)
        if target.matches_keys and not target.rules.wins_whole:
            return _merge_by_rules(file, rows, as_stored, open_writer, target, changes)
        return _merge_whole(file, rows, as_stored, open_writer, target, changes)


@dataclass(frozen=True, slots=True)
class _OldFile:
    """The base file that is rewritten. `schema`: the columns to read it as. `evolution`: as in `AsWritten`."""

    file: OpenBaseFile
    path: str
    schema: pa.Schema
    evolution: Evolution | None

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """All rows in order, with the columns of this schema. Columns that the file lacks are null."""
        then = None if self.evolution is None else self.evolution.of_file(self.path, schema.names)
        asked = schema.names if then is None else then.stored
        present = [name for name in asked if name in self.file.schema.names]
        for batch in self.file.batches(present, batch_rows=BATCH_ROWS):
            yield conform_batch(batch if then is None else then.named(batch), schema, path=self.path)


def _merge_whole(
    old: _OldFile,
    rows: IncomingRows,
    as_stored: AsStored,
    open_writer: OpenWriter,
    target: WriteTarget,
    changes: ChangeLog | None,
) -> MergeOutcome | None:
    ordering = target.ordering if target.compares_stored else ()
    settled = _settle(old, rows.table, rows.is_delete, ordering=ordering, matches_keys=target.matches_keys)

    updates, deletes = int((settled.take >= 0).sum()), int(settled.drop.sum())
    if not updates and not deletes and not len(settled.new):
        return None

    # A key that leaves the file cannot be taken out of the old filter: then a new one is made.
    keys = old.file.row_count + len(settled.new)
    bloom, key_range = _known_keys(old.file, target.settings, keys) if not deletes else (None, None)
    knows_old_keys = key_range is not None

    incoming = _one_batch(rows.table)

    with open_writer(bloom, key_range) as writer:
        start = 0
        taken = 0
        for stored in old.batches(old.schema):
            span = slice(start, start + len(stored))
            start += len(stored)
            take, drop = settled.take[span], settled.drop[span]
            for merged in _merge_batch(stored, take, drop, incoming, as_stored, taken, changes):
                writer.write(merged, new_keys=None if knows_old_keys else merged.column(RECORD_KEY))
            taken += int((take >= 0).sum())

        if len(settled.new):
            inserted = as_stored(incoming.take(pa.array(settled.new)), taken)
            if changes is not None:
                changes.inserted(inserted)
            writer.write(inserted, new_keys=inserted.column(RECORD_KEY))

    return MergeOutcome(writer.rows, len(settled.new), updates, deletes)


def _merge_by_rules(
    old: _OldFile,
    rows: IncomingRows,
    as_stored: AsStored,
    open_writer: OpenWriter,
    target: WriteTarget,
    changes: ChangeLog | None,
) -> MergeOutcome | None:
    """Merge as a query merges a base file with its log; here the incoming rows stand in for the log.

    Rows that change are stamped as this write's.
    """
    folded = _as_log(old, rows, as_stored, target)

    may_change, may_drop, inserts = _foresee(old, folded)
    if not may_change:
        return None

    keys = old.file.row_count + inserts
    bloom, key_range = (None, None) if may_drop else _known_keys(old.file, target.settings, keys)

    merge = BaseMerge(folded, stamps_changes=True)

    with open_writer(bloom, key_range) as writer:
        start = 0
        for stored in old.batches(old.schema):
            merged = merge.merge(stored, start)
            start += len(stored)
            if changes is not None and merged is not stored:
                changes.compared(stored, merged)
            writer.write(merged, new_keys=None if key_range is not None else merged.column(RECORD_KEY))
        for inserted in merge.remaining():
            if changes is not None:
                changes.inserted(inserted)
            writer.write(inserted, new_keys=inserted.column(RECORD_KEY))

    counts = merge.counts
    return MergeOutcome(writer.rows, counts.inserted, counts.updated, counts.deleted)


def _as_log(old: _OldFile, rows: IncomingRows, as_stored: AsStored, target: WriteTarget) -> Folded:
    fold = LogFold(target.rules, old.schema, path=old.path)
    start = 0
    for batch in rows.living.to_batches():
        fold.add_rows(as_stored(batch, start))
        start += len(batch)

    gone = rows.gone
    if len(gone):
        given = set(target.rules.ordering) <= set(gone.column_names)
        ordering = [
            one_array(gone.column(name)) if given else pa.nulls(len(gone), kind)
            for name, kind in zip(target.rules.ordering, fold.ordering_types, strict=True)
        ]
        fold.add_deletes(one_array(gone.column(RECORD_KEY)), ordering)

    return fold.finish()


def _foresee(old: _OldFile, folded: Folded) -> tuple[bool, bool, int]:
    """Whether a row may change, whether one may be dropped, and how many are inserted.

    Reads the key and the ordering columns.
    """
    rules = folded.rules
    needed = {rules.key, *map(column_around, rules.ordering)}
    schema = pa.schema([field for field in old.schema if field.name in needed])

    merge = BaseMerge(folded)

    start, changes, drops = 0, False, False
    for stored in old.batches(schema):
        met = merge.meet(stored, start)
        start += len(stored)
        is_made_of_both = ~met.is_delete & (rules.merger is not None or rules.fill is not None)
        changes |= bool((met.wins | is_made_of_both).any())
        drops |= bool(len(met.dropped)) or (rules.merger is not None and bool(is_made_of_both.any()))

    inserts = merge.counts.inserted
    return changes or inserts > 0, drops, inserts


def _settle(
    old: _OldFile, rows: pa.Table, is_delete: np.ndarray, *, ordering: Sequence[str], matches_keys: bool
) -> _Settled:
    """Ordering columns have one name for ever: `alter` refuses to rename them, and so does Apache Hudi."""
    stored_count = old.file.row_count
    if not matches_keys:
        nothing = np.full(stored_count, -1, dtype=np.int32)
        return _Settled(nothing, np.zeros(stored_count, dtype=bool), np.flatnonzero(~is_delete))

    present = [name for name in ordering if find_field(old.file.schema, name) and name in rows.column_names]
    stored = old.file.read([RECORD_KEY, *dict.fromkeys(map(column_around, present))])
    match = match_rows(stored.column(RECORD_KEY), rows.column(RECORD_KEY))

    met = np.zeros(len(rows), dtype=bool)
    met[match[match >= 0]] = True
    at = np.flatnonzero(match >= 0)
    # Where the table orders by event time, a stored row that is newer stays.
    if present and len(present) == len(ordering) and len(at):
        incoming = [one_array(rows.column(name)).take(pa.array(match[at])) for name in present]
        before = [
            conform_array(one_array(column_at(stored, name)).take(pa.array(at)), new.type, path=old.path, name=name)
            for name, new in zip(present, incoming, strict=True)
        ]
        match[at[~incoming_wins(incoming, before)]] = -1

    drop = np.zeros(stored_count, dtype=bool)
    drop[match >= 0] = is_delete[match[match >= 0]]
    return _Settled(np.where(drop, -1, match).astype(np.int32), drop, np.flatnonzero(~met & ~is_delete))


def _merge_batch(
    stored: pa.RecordBatch,
    take: np.ndarray,
    drop: np.ndarray,
    incoming: pa.RecordBatch,
    as_stored: AsStored,
    start: int,
    changes: ChangeLog | None,
) -> list[pa.RecordBatch]:
    replaced = np.flatnonzero(take >= 0)
    if changes is not None and drop.any():
        changes.deleted(stored.filter(pa.array(drop)))

    if not len(replaced):
        return [stored.filter(pa.array(~drop)) if drop.any() else stored]

    fresh = as_stored(incoming.take(pa.array(take[replaced])), start)
    if changes is not None:
        changes.updated(stored.take(pa.array(replaced)), fresh)

    # Few rows are replaced: cutting the batch at these rows is cheaper than building new columns.
    if not drop.any() and len(replaced) * _SPARSE <= len(stored):
        return _interleaved(stored, replaced, fresh)

    columns = [replace_values(old, replaced, new) for old, new in zip(stored.columns, fresh.columns, strict=True)]
    merged = pa.RecordBatch.from_arrays(columns, schema=stored.schema)
    return [merged.filter(pa.array(~drop)) if drop.any() else merged]


def _interleaved(stored: pa.RecordBatch, positions: np.ndarray, fresh: pa.RecordBatch) -> list[pa.RecordBatch]:
    """The stored rows, with those at `positions` (ascending) replaced by `fresh` in order. Copies nothing."""
    parts, start = [], 0
    for number, position in enumerate(positions.tolist()):
        if position > start:
            parts.append(stored.slice(start, position - start))
        parts.append(fresh.slice(number, 1))
        start = position + 1
    return [*parts, stored.slice(start)] if start < len(stored) else parts


def _known_keys(
    old: OpenBaseFile, settings: BaseFileSettings, keys: int
) -> tuple[KeyFilter | None, tuple[str, str] | None]:
    """The old file's Bloom filter and key range, for the new file to continue. `keys`: how many it will have at most.

    None where the old filter is damaged, of another kind or of another size.
    Sound as long as no key leaves the file: then the old filter with the new keys added is bit for bit the filter of
    all keys.
    """
    footer = KeyFooter.parse(old.entries)
    if settings.bloom is None or footer.key_range is None or footer.bloom_kind != settings.bloom.kind:
        return None, None

    known, _ = footer.usable_bloom(path="")
    if known is None or known.parameters != settings.bloom.empty(keys).parameters:
        return None, None
    return KeyFilter.of(settings.bloom, known), footer.key_range


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([one_array(column) for column in rows.columns], schema=rows.schema)
