"""What the blocks of a slice's log come to, merged with its base rows. Importing this imports numba."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pyhudi.format.keys import KeySpec, record_keys
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import read_batches, read_row_count
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import is_partial, positions_base_instant, record_positions
from pyhudi.format.log.ordering import unwrap_ordering
from pyhudi.format.schema import RECORD_KEY
from pyhudi.merge.base import BaseMerge
from pyhudi.merge.fold import LogFold
from pyhudi.merge.rules import MergeRules
from pyhudi.table.conform import conform_batch
from pyhudi.table.slice_log import SliceFiles


def merge_blocks(
    base: Iterator[pa.RecordBatch],
    blocks: Sequence[LogBlock],
    files: SliceFiles,
    rules: MergeRules,
    keys: KeySpec | None,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice: base rows as the log leaves them, then those of the log that meet none.

    `base`: all rows of the base file in order, as columns of `schema`. `blocks`: in the order in which they count.
    `keys`: how record keys are spelled that the rows do not hold.
    """
    with_keys = schema if keys is None else schema.append(pa.field(RECORD_KEY, pa.string()))
    fold = LogFold(rules, with_keys, path=files.base_path or files.logs[0][0])
    for block in blocks:
        _take_in(fold, block, schema, keys, files)
    merge = BaseMerge(fold.finish())
    position = 0
    for batch in base:
        merged = merge.merge(_keyed(batch, keys), position)
        position += len(batch)
        if len(merged):
            yield merged
    yield from merge.remaining()


def _take_in(fold: LogFold, block: LogBlock, schema: pa.Schema, keys: KeySpec | None, files: SliceFiles) -> None:
    has_positions = files.base_path is not None and positions_base_instant(block) == files.base_instant
    if block.type is BlockType.DELETE:
        deletes = read_deletes(block)
        ordering = unwrap_ordering(deletes.column("ordering_kind"), deletes.column("ordering"), fold.ordering_types)
        positions = record_positions(block, len(deletes)) if has_positions else None
        fold.add_deletes(deletes.column("record_key"), ordering, positions=positions)
        return
    positions = record_positions(block, read_row_count(block)) if has_positions else None
    partial = is_partial(block)
    start = 0
    for batch in read_batches(block, columns=schema.names):
        wanted = schema if not partial else pa.schema([f for f in schema if f.name in batch.schema.names])
        rows = conform_batch(batch, wanted, path=block.path)
        of = None if positions is None else positions[start : start + len(rows)]
        fold.add_rows(_keyed(rows, keys), is_partial=partial, positions=of)
        start += len(rows)


def _keyed(rows: pa.RecordBatch, keys: KeySpec | None) -> pa.RecordBatch:
    """The rows with their record keys, which are stored as a rule."""
    if keys is None:
        return rows
    spelled = record_keys(pa.Table.from_batches([rows]), keys).combine_chunks()
    return rows.append_column(pa.field(RECORD_KEY, pa.string()), spelled)
