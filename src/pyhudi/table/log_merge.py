"""What the blocks of a slice's log come to, merged with its base rows. Importing this imports numba."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys import KeySpec, record_keys
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import held_if_small, read_batches, read_row_count
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import is_partial, positions_base_instant, record_positions
from pyhudi.format.log.ordering import unwrap_ordering
from pyhudi.format.schema import RECORD_KEY
from pyhudi.merge.base import BaseMerge
from pyhudi.merge.fold import Folded, LogFold
from pyhudi.merge.rules import MergeRules
from pyhudi.table.conform import conform_batch
from pyhudi.table.key_parts import ALL_KEYS, KeyPart
from pyhudi.table.slice_log import LogTally, SliceFiles


def merge_blocks(
    base: Iterator[pa.RecordBatch],
    blocks: Sequence[LogBlock],
    files: SliceFiles,
    rules: MergeRules,
    keys: KeySpec | None,
    schema: pa.Schema,
    part: KeyPart = ALL_KEYS,
    tally: LogTally | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice: base rows as the log leaves them, then those of the log that meet none.

    `base`: all rows of the base file in order, as columns of `schema`. `blocks`: in the order in which they count.
    `keys`: how record keys are spelled that the rows do not hold. `part`: only the rows of these keys.
    """
    found = tally if tally is not None else LogTally()
    folded = fold_blocks(blocks, files, rules, keys, schema, part, found)
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
) -> Folded:
    """What the blocks come to, one record a key. Arguments: as for `merge_blocks`."""
    with_keys = schema if keys is None else schema.append(pa.field(RECORD_KEY, pa.string()))
    fold = LogFold(rules, with_keys, path=files.base_path or files.logs[0][0])
    for block in blocks:
        tally.records += _take_in(fold, block, schema, keys, files, part)
    folded = fold.finish()
    tally.keys += len(folded)
    return folded


def _take_in(
    fold: LogFold, block: LogBlock, schema: pa.Schema, keys: KeySpec | None, files: SliceFiles, part: KeyPart
) -> int:
    """Take a block's records of these keys in. Returns how many they are."""
    has_positions = files.base_path is not None and positions_base_instant(block) == files.base_instant
    if block.type is BlockType.DELETE:
        deletes = read_deletes(block)
        ordering = unwrap_ordering(deletes.column("ordering_kind"), deletes.column("ordering"), fold.ordering_types)
        positions = record_positions(block, len(deletes)) if has_positions else None
        of_part = part.mask(deletes.column("record_key"))
        if of_part is not None:
            chosen = pa.array(of_part)
            deletes, ordering = deletes.filter(chosen), [column.filter(chosen) for column in ordering]
            positions = None if positions is None else positions[of_part]
        fold.add_deletes(deletes.column("record_key"), ordering, positions=positions)
        return len(deletes)
    block = held_if_small(block)
    positions = record_positions(block, read_row_count(block)) if has_positions else None
    partial = is_partial(block)
    start = taken = 0
    for batch in read_batches(block, columns=schema.names):
        wanted = schema if not partial else pa.schema([f for f in schema if f.name in batch.schema.names])
        rows = keyed(conform_batch(batch, wanted, path=block.path), keys)
        of = None if positions is None else positions[start : start + len(rows)]
        start += len(rows)
        of_part = part.mask(rows.column(RECORD_KEY))
        if of_part is not None:
            rows, of = rows.filter(pa.array(of_part)), None if of is None else of[of_part]
        fold.add_rows(rows, is_partial=partial, positions=of)
        taken += len(rows)
    return taken


def keyed(rows: pa.RecordBatch, keys: KeySpec | None) -> pa.RecordBatch:
    """The rows with their record keys, which are stored as a rule."""
    if keys is None:
        return rows
    spelled = one_array(record_keys(pa.Table.from_batches([rows]), keys))
    return rows.append_column(pa.field(RECORD_KEY, pa.string()), spelled)


def _only(rows: pa.RecordBatch, part: KeyPart) -> pa.RecordBatch:
    of_part = part.mask(rows.column(RECORD_KEY))
    return rows if of_part is None else rows.filter(pa.array(of_part))
