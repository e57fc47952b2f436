"""Folds the blocks of a slice's log to one record for each key, and merges the records with the base rows."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import KeySpec, record_keys
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import held_if_small, read_batches, read_counted_batches
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import instant_time, is_partial, positions_base_instant, record_positions, schema_text
from pyhudi.format.log.joined import is_small_avro, join_avro
from pyhudi.format.log.ordering import is_commit_time, unwrap_ordering
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.merge.base import BaseMerge
from pyhudi.merge.fold import Folded, LogFold
from pyhudi.merge.rules import MergeRules
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten
from pyhudi.table.slices.base_files.stitched import filled
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.evolved import Evolution, FileColumns
from pyhudi.table.slices.key_parts import ALL_KEYS, KeyPart
from pyhudi.table.slices.slice_log import LogTally, SliceFiles

_KEY_FIELD: Final = pa.field(RECORD_KEY, pa.string())

JOINED_BYTES: Final = 4 << 20
"""Bytes of Avro blocks that are decoded at once."""

JOINED_ROWS: Final = 8_192
"""Rows of small blocks that a fold takes in at once: taking in one block costs as much as thousands of rows."""


def merge_blocks(
    base: Iterator[pa.RecordBatch],
    blocks: Sequence[LogBlock],
    files: SliceFiles,
    rules: MergeRules,
    keys: KeySpec | None,
    schema: pa.Schema,
    part: KeyPart = ALL_KEYS,
    tally: LogTally | None = None,
    *,
    as_written: AsWritten = TODAY,
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice: first the base rows as the log leaves them, then the log's rows whose keys are new.

    `base`: all rows of the base file in order, with the columns of `schema`. `blocks`: in the order in which they
    count. `keys`: how to compute record keys that the rows do not store. `part`: only rows with keys of this part are
    given. `as_written`: how blocks may differ from the columns of today.
    """
    found = tally if tally is not None else LogTally()
    folded = fold_blocks(blocks, files, rules, keys, schema, part, found, as_written=as_written)
    merge = BaseMerge(folded)

    position = 0
    for batch in base:
        merged = _only(merge.merge(keyed(batch, keys), position), part)
        position += len(batch)
        if len(merged):
            yield merged

    yield from merge.remaining()

    counts = merge.counts
    found.updated += counts.updated
    found.inserted += counts.inserted
    found.deleted += counts.deleted + counts.deletes_unmet


def fold_blocks(
    blocks: Sequence[LogBlock],
    files: SliceFiles,
    rules: MergeRules,
    keys: KeySpec | None,
    schema: pa.Schema,
    part: KeyPart,
    tally: LogTally,
    *,
    as_written: AsWritten = TODAY,
) -> Folded:
    """The log folded to one record for each key. Arguments: as for `merge_blocks`."""
    with_keys = schema if keys is None else with_key_column(schema)
    fold = LogFold(rules, with_keys, path=files.base_path or files.logs[0][0])

    taking = _Taking(fold, schema, keys, files, part, as_written)
    for run in _runs(blocks, as_written.evolution):
        tally.records += taking.take(run)
    taking.hand_over()

    folded = fold.finish()
    tally.keys += len(folded)
    return folded


class _Taking:
    """Takes the records of blocks into a fold, in order. Rows of similar small blocks are taken in together.

    Memory: `JOINED_ROWS` rows, or the rows of one batch if it is larger.
    """

    def __init__(
        self,
        fold: LogFold,
        schema: pa.Schema,
        keys: KeySpec | None,
        files: SliceFiles,
        part: KeyPart,
        as_written: AsWritten,
    ) -> None:
        self._fold, self._schema, self._keys, self._files, self._part = fold, schema, keys, files, part
        self._as_written = as_written
        self._waiting: list[pa.RecordBatch] = []
        self._held_positions: list[np.ndarray] = []
        self._is_partial = False

    def take(self, run: Sequence[LogBlock]) -> int:
        """Take in the records of a run (see `_runs`), as far as their keys are in the part.

        Returns how many they are.
        """
        if len(run) > 1:
            taken = self._take_joined(run)
            if taken is not None:
                return taken
        return sum(map(self._take_block, run))

    def _take_block(self, block: LogBlock) -> int:
        if block.type is BlockType.DELETE:
            self.hand_over()
            return self._take_deletes(block)

        then = self._columns_then(block)
        asked = self._schema.names if then is None else then.stored
        row_count, batches = read_counted_batches(held_if_small(block), asked)
        positions = record_positions(block, row_count) if self._has_positions(block) else None

        start = taken = 0
        for batch in batches:
            batch_positions = None if positions is None else positions[start : start + len(batch)]
            start += len(batch)
            rows = self._conformed(batch if then is None else then.named(batch), block)
            taken += self._add(rows, batch_positions, is_partial(block))
        return taken

    def _columns_then(self, block: LogBlock) -> FileColumns | None:
        if self._as_written.evolution is None:
            return None
        return self._as_written.evolution.of_instant(instant_time(block), self._schema.names)

    def _take_joined(self, run: Sequence[LogBlock]) -> int | None:
        """As `_take_block` for each block.

        If one is damaged: None, nothing taken; `_take_block` then says which one.
        """
        try:
            joined = join_avro(run)
            if joined is None:
                return None
            block, counts = joined
            positions = None
            if self._has_positions(block):
                found = [record_positions(one, count) for one, count in zip(run, counts, strict=True)]
                positions = np.concatenate([at for at in found if at is not None])
            then = self._columns_then(block)
            batches = list(read_batches(block, columns=self._schema.names if then is None else then.stored))
            rows = [self._conformed(batch if then is None else then.named(batch), block) for batch in batches]
        except CorruptFile:
            return None

        start = taken = 0
        for batch in rows:
            batch_positions = None if positions is None else positions[start : start + len(batch)]
            start += len(batch)
            taken += self._add(batch, batch_positions, is_partial(block))
        return taken

    def hand_over(self) -> None:
        """Add the waiting rows to the fold."""
        if not self._waiting:
            return
        rows = self._waiting[0] if len(self._waiting) == 1 else pa.concat_batches(self._waiting)
        positions = np.concatenate(self._held_positions) if self._held_positions else None
        self._waiting, self._held_positions = [], []
        self._fold.add_rows(rows, is_partial=self._is_partial, positions=positions)

    def _has_positions(self, block: LogBlock) -> bool:
        files = self._files
        return files.base_path is not None and positions_base_instant(block) == files.base_instant

    def _conformed(self, batch: pa.RecordBatch, block: LogBlock) -> pa.RecordBatch:
        """The rows with their keys, as columns of the schema.

        A partial block's rows keep only the columns they have.
        """
        wanted = self._schema
        if told := self._as_written.texts_of(self._files.partition, batch.schema.names):
            batch = filled(batch, wanted.names, told)
        if is_partial(block):
            names = set(batch.schema.names)
            wanted = pa.schema([field for field in wanted if field.name in names])
        return keyed(conform_batch(batch, wanted, path=block.path), self._keys)

    def _add(self, rows: pa.RecordBatch, positions: np.ndarray | None, partial: bool) -> int:
        """Let the rows of the part wait. Rows of another kind that wait already are handed over first.

        Returns how many rows of the batch wait.
        """
        of_part = self._part.mask(rows.column(RECORD_KEY))
        if of_part is not None:
            rows, positions = rows.filter(pa.array(of_part)), None if positions is None else positions[of_part]
        if not len(rows):
            return 0
        if self._waiting and not self._fits(rows, positions, partial):
            self.hand_over()
        self._waiting.append(rows)
        self._is_partial = partial
        if positions is not None:
            self._held_positions.append(positions)
        return len(rows)

    def _fits(self, rows: pa.RecordBatch, positions: np.ndarray | None, partial: bool) -> bool:
        """Whether the rows are like the waiting ones, so that they may be joined to them."""
        return (
            sum(map(len, self._waiting)) + len(rows) <= JOINED_ROWS
            and partial == self._is_partial
            and (positions is not None) == bool(self._held_positions)
            and rows.schema.equals(self._waiting[0].schema)
        )

    def _take_deletes(self, block: LogBlock) -> int:
        deletes = read_deletes(block)
        positions = record_positions(block, len(deletes)) if self._has_positions(block) else None
        of_part = self._part.mask(deletes.column("record_key"))
        if of_part is not None:
            deletes, positions = deletes.filter(pa.array(of_part)), None if positions is None else positions[of_part]
        add_deletes(self._fold, deletes.column("record_key"), deletes, positions=positions)
        return len(deletes)


def add_deletes(fold: LogFold, keys: pa.Array, deletes: pa.RecordBatch, *, positions: np.ndarray | None = None) -> None:
    """Adds the records of a delete block to a fold, with their ordering values. `keys`: the keys to fold them by."""
    kinds, values = deletes.column("ordering_kind"), deletes.column("ordering")
    fold.add_deletes(
        keys,
        unwrap_ordering(kinds, values, fold.ordering_types),
        is_commit_time=np.asarray(is_commit_time(kinds, values, len(fold.ordering_types))),
        positions=positions,
    )


def _runs(blocks: Sequence[LogBlock], evolution: Evolution | None) -> Iterator[list[LogBlock]]:
    """The blocks in order, as runs. Small Avro blocks that differ only in their rows form one run.

    Any other block is a run of its own.
    """
    run: list[LogBlock] = []
    size_bytes = 0
    for block in blocks:
        if run and not (size_bytes + block.content_size <= JOINED_BYTES and _are_alike(run[0], block, evolution)):
            yield run
            run, size_bytes = [], 0
        run.append(block)
        size_bytes += block.content_size
    if run:
        yield run


def _are_alike(one: LogBlock, other: LogBlock, evolution: Evolution | None) -> bool:
    """Whether the rows of both blocks may be decoded together, as the rows of one block."""
    return (
        is_small_avro(one)
        and is_small_avro(other)
        and schema_text(one) == schema_text(other)
        and is_partial(one) == is_partial(other)
        and positions_base_instant(one) == positions_base_instant(other)
        and (evolution is None or evolution.schema_of(instant_time(one)) == evolution.schema_of(instant_time(other)))
    )


def keyed(rows: pa.RecordBatch, keys: KeySpec | None) -> pa.RecordBatch:
    """The rows with a column of record keys, whatever that column held. `keys`: how to compute them; None: the rows
    store them.
    """
    if keys is None:
        return rows
    spelled = one_array(record_keys(pa.Table.from_batches([rows]), keys))
    if RECORD_KEY not in rows.schema.names:
        return rows.append_column(_KEY_FIELD, spelled)
    return rows.set_column(rows.schema.get_field_index(RECORD_KEY), _KEY_FIELD, spelled)


def with_key_column(schema: pa.Schema) -> pa.Schema:
    """The columns that `keyed` gives rows of these columns."""
    return schema if RECORD_KEY in schema.names else schema.append(_KEY_FIELD)


def _only(rows: pa.RecordBatch, part: KeyPart) -> pa.RecordBatch:
    of_part = part.mask(rows.column(RECORD_KEY))
    return rows if of_part is None else rows.filter(pa.array(of_part))
