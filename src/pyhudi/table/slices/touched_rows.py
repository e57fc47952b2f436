"""Finds the rows of a slice that its log touches. A reader may take all other rows as they are stored.

A base row is touched if a log record has its key or, if the log has row positions, its position; whether the row
changes does not matter. The slice's rows are: what merging leaves of the touched rows, the log's new rows, the
untouched rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pyhudi.format.log.block import LogBlock
from pyhudi.format.struct_fields import column_around
from pyhudi.merge.base import BaseMerge, Met
from pyhudi.merge.rules import MergeRules
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS, OpenBaseFile
from pyhudi.table.slices.base_files.rows import read_stored_batches
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.key_parts import KeyPart
from pyhudi.table.slices.log_merge import fold_blocks, keyed
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import key_parts, stored_blocks
from pyhudi.table.slices.row_positions import LogRecords, logged_positions, says_positions
from pyhudi.table.slices.slice_log import LogTally, SliceFiles


def find_touched(storage: Storage, files: SliceFiles, reading: LogReading, stored: pa.Schema) -> np.ndarray:
    """The row positions in the base file of the rows that the log touches, ascending.

    If every block has positions, no rows are read. Otherwise the keys of the log and of the base file are read.
    Memory: the keys of the log, and 8 bytes for each touched row.
    """
    blocks = stored_blocks(storage, files, reading)
    if not blocks or files.base_path is None:
        return np.zeros(0, np.int64)
    if says_positions(blocks, files):
        return np.unique(np.concatenate([logged_positions(LogRecords.of(block)) for block in blocks]))

    by_key = replace(reading, rules=MergeRules(key=reading.rules.key))
    found = []
    for part in key_parts(blocks, by_key):
        touched = _TouchedRows(storage, files, by_key, stored, (), blocks, part)
        found.append(touched.met.at)
    return np.unique(np.concatenate(found))


def read_touched(
    storage: Storage,
    files: SliceFiles,
    reading: LogReading,
    stored: pa.Schema,
    columns: Sequence[str],
    *,
    use_threads: bool,
    on_positions: Callable[[np.ndarray], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """What merging leaves of the rows of `find_touched`, and the log's rows with new keys. Otherwise as `read_merged`.

    `on_positions`: called with the row positions of the touched base rows, ascending, once for each part of the keys.
    Of the base file, first reads the columns that decide the merge; other columns only of row groups that keep a value.
    Memory: as `read_merged`, and 18 bytes for each touched row.
    """
    blocks = stored_blocks(storage, files, reading)
    for part in key_parts(blocks, reading) if blocks else ():
        touched = _TouchedRows(storage, files, reading, stored, columns, blocks, part, use_threads=use_threads)
        if on_positions is not None:
            on_positions(touched.met.at)
        yield from touched.rows()


class _TouchedRows:
    """The touched rows with keys of one part. `met`: how each merges, with its position in the base file."""

    def __init__(
        self,
        storage: Storage,
        files: SliceFiles,
        reading: LogReading,
        stored: pa.Schema,
        columns: Sequence[str],
        blocks: Sequence[LogBlock],
        part: KeyPart,
        *,
        use_threads: bool = False,
    ) -> None:
        rules = reading.rules
        self._storage, self._files, self._keys, self._use_threads = storage, files, reading.keys, use_threads
        own = () if reading.keys is None else reading.keys.key_columns
        self._schema = pa.schema([stored.field(name) for name in rules.columns_needed([*columns, *own], stored.names)])

        deciding = {rules.key, *own, *map(column_around, rules.ordering)}
        self._deciding = pa.schema([field for field in self._schema if field.name in deciding])

        folded = fold_blocks(
            blocks, files, rules, reading.keys, self._schema, part, LogTally(), as_written=reading.as_written
        )
        self._as_written = reading.as_written
        self._merge = BaseMerge(folded)
        self._group_ends = np.zeros(1, np.int64)
        self.met = self._find()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """What merging leaves of the touched rows, then the log's rows that met no base row."""
        needs_base = self._merge.needs_base(self.met)
        replaced = self.met.take(np.flatnonzero(~needs_base))
        for start in range(0, len(replaced.at), BATCH_ROWS):
            yield self._merge.replacements(replaced.take(np.arange(start, min(start + BATCH_ROWS, len(replaced.at)))))

        yield from self._settled(self.met.take(np.flatnonzero(needs_base)))
        yield from self._merge.remaining()

    def _find(self) -> Met:
        found = []
        position = 0
        for batch in self._base_batches(self._deciding, None):
            found.append(self._merge.meet(batch, position).shifted(position))
            position += len(batch)
        return Met.joined(found)

    def _settled(self, met: Met) -> Iterator[pa.RecordBatch]:
        """These rows merged with their values in the base file. Only row groups with such rows are read."""
        if not len(met.at):
            return

        ends = self._group_ends
        group_of = np.searchsorted(ends, met.at, side="right") - 1
        groups = np.unique(group_of)
        sizes = np.diff(ends)[groups]
        starts = np.cumsum(sizes) - sizes  # where each chosen group starts, as they are read one after the other
        positions = met.at - ends[group_of] + starts[np.searchsorted(groups, group_of)]

        start = 0
        for batch in self._base_batches(self._schema, groups.tolist()):
            low, high = np.searchsorted(positions, [start, start + len(batch)])
            if low < high:
                here = met.take(np.arange(low, high))
                rows = batch.take(pa.array(positions[low:high] - start))
                yield self._merge.settled(rows, Met(np.arange(high - low), here.states, here.wins, here.is_delete))
            start += len(batch)

    def _base_batches(self, schema: pa.Schema, groups: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
        """Base rows with their keys, from these row groups. None: from all."""

        def choose(file: OpenBaseFile) -> Sequence[int]:
            sizes = file.group_rows
            self._group_ends = np.cumsum([0, *sizes])
            return range(len(sizes)) if groups is None else groups

        path = self._files.base_path
        if path is None:
            return
        batches = read_stored_batches(
            self._storage,
            path,
            schema.names,
            use_threads=self._use_threads,
            choose=choose,
            source=self._files.source,
            as_written=self._as_written,
        )
        for batch in batches:
            yield keyed(conform_batch(batch, schema, path=path), self._keys)
