"""Which stored rows of a slice are its rows, where each record of its log has a place in the base file.

Then the rows of a slice lie whole in its base file and in the Parquet blocks of its log: a reader may take all of them
as they are stored, but for those named here. What decides which these are is numbers; no key is read.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.errors import Bug
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import read_batches, read_parquet_shape
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import is_partial, positions_base_instant, record_positions
from pyhudi.format.log.ordering import unwrap_ordering
from pyhudi.merge.base import BaseMerge, Met
from pyhudi.merge.fold import Folded, LogFold
from pyhudi.merge.outcomes import compares_base
from pyhudi.merge.rules import MergeRules
from pyhudi.storage.protocol import Storage
from pyhudi.table.conform import conform_batch
from pyhudi.table.log_reading import LogReading
from pyhudi.table.merged_slice import key_parts, stored_blocks
from pyhudi.table.parquet_files import open_parquet, read_stored_batches
from pyhudi.table.slice_log import SliceFiles
from pyhudi.table.stored_types import stored_types

_PLACE: Final = "__pyhudi_place"
_ROW: Final = "__pyhudi_row"


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """The rows of a slice: of the base file and of each of these data blocks all but those that are `gone`.

    `base_gone`, and beside each block: numbers of rows in it, ascending.
    """

    base_gone: np.ndarray
    blocks: tuple[tuple[LogBlock, np.ndarray], ...]


def find_placed(
    storage: Storage,
    files: SliceFiles,
    reading: LogReading,
    stored: pa.Schema,
    columns: Sequence[str],
    *,
    data_blocks_max: int,
) -> PlacedRows | None:
    """Where a slice's rows lie; None where some record has no place, or rows are not stored whole as they are read.

    `columns`: those that are to be read, which blocks must hold in the table's types of today. `data_blocks_max`: None,
    too, for a log of more data blocks.
    As Apache Hudi does, positions of the right base file are believed: keys are not compared.
    Memory: of each record of the log what is compared and 40 bytes; nothing where the log is read in parts.
    Requests: as `stored_blocks`, a few small ones for each block, and columns of the base file that are compared.
    """
    rules = replace(reading.rules, key=_PLACE)
    if files.base_path is None or not rules.keeps_rows_whole:
        return None
    blocks = stored_blocks(storage, files, reading)
    wanted = pa.schema([stored.field(name) for name in columns])
    if not all(_is_placed(block, files.base_instant) for block in blocks) or len(key_parts(blocks, reading)) > 1:
        return None
    data = [block for block in blocks if block.type is BlockType.PARQUET_DATA]
    if len(data) > data_blocks_max:
        return None
    shapes = [read_parquet_shape(block) for block in data]
    if any(stored_types(schema, wanted) != wanted for schema, _ in shapes):
        return None
    compared = pa.schema([stored.field(name) for name in rules.columns_needed((), stored.names)])
    folded, starts = _fold(blocks, [count for _, count in shapes], files.base_path, rules, compared)
    merge = BaseMerge(folded)
    met = _meet_base(merge, storage, files.base_path, compared if compares_base(rules) else pa.schema([]))
    winning = met.take(np.flatnonzero(met.wins))
    gone = np.ones(starts[-1], np.bool_)
    for batch in (merge.replacements(winning), *merge.remaining()):
        gone[batch.column(_ROW).to_numpy()] = False
    parts = [np.flatnonzero(gone[start:end]) for start, end in pairwise(starts)]
    return PlacedRows(winning.at, tuple(zip(data, parts, strict=True)))


def _is_placed(block: LogBlock, base_instant: str) -> bool:
    is_whole = block.type is BlockType.DELETE or (block.type is BlockType.PARQUET_DATA and not is_partial(block))
    return is_whole and positions_base_instant(block) == base_instant


def _fold(
    blocks: Sequence[LogBlock], counts: Sequence[int], path: str, rules: MergeRules, compared: pa.Schema
) -> tuple[Folded, list[int]]:
    """What the blocks come to, a record a place, and where each data block's rows start among all of them.

    `counts`: the rows of each data block.
    """
    schema = pa.schema([pa.field(_PLACE, pa.int64()), pa.field(_ROW, pa.int64()), *compared])
    fold = LogFold(rules, schema, path=path)
    starts, left = [0], iter(counts)
    for block in blocks:
        if block.type is BlockType.DELETE:
            deletes = read_deletes(block)
            ordering = unwrap_ordering(deletes.column("ordering_kind"), deletes.column("ordering"), fold.ordering_types)
            places = places_of(block, len(deletes))
            fold.add_deletes(pa.array(places), ordering, positions=places)
            continue
        places, end = places_of(block, next(left)), 0
        for columns, count in _block_columns(block, compared, len(places)):
            start, end = end, end + count
            rows = np.arange(starts[-1] + start, starts[-1] + end)
            of = places[start:end]
            fold.add_rows(
                pa.RecordBatch.from_arrays([pa.array(of), pa.array(rows), *columns], schema=schema), positions=of
            )
        starts.append(starts[-1] + end)
    return fold.finish(), starts


def _meet_base(merge: BaseMerge, storage: Storage, path: str, compared: pa.Schema) -> Met:
    """The rows of the base file that have a record in the log, by their numbers."""
    found = []
    position = 0
    for columns, count in _base_columns(storage, path, compared):
        places = pa.array(np.arange(position, position + count))
        schema = pa.schema([pa.field(_PLACE, pa.int64()), *compared])
        met = merge.meet(pa.RecordBatch.from_arrays([places, *columns], schema=schema), position)
        found.append(met.shifted(position))
        position += count
    return Met.joined(found)


def _block_columns(block: LogBlock, wanted: pa.Schema, count: int) -> Iterator[tuple[list[pa.Array], int]]:
    """Columns of the block's rows, and how many rows they are: all at once where there are no columns."""
    if not len(wanted):
        yield [], count
        return
    for batch in read_batches(block, columns=wanted.names):
        yield conform_batch(batch, wanted, path=block.path).columns, len(batch)


def _base_columns(storage: Storage, path: str, wanted: pa.Schema) -> Iterator[tuple[list[pa.Array], int]]:
    """As `_block_columns`, of the rows of a base file."""
    if not len(wanted):
        with closing(open_parquet(storage, path)) as file:
            yield [], int(file.metadata.num_rows)
        return
    for batch in read_stored_batches(storage, path, wanted.names, use_threads=False):
        yield conform_batch(batch, wanted, path=path).columns, len(batch)


def places_of(block: LogBlock, count: int) -> np.ndarray:
    """The places in the base file of the records of a block that has some. Raises: as `record_positions`."""
    positions = record_positions(block, count)
    if positions is None:
        raise Bug(f"{block.path}: a block that has positions of its base file has none")
    return positions.astype(np.int64)
