"""Which stored rows of a slice are its rows, where its log is of rows that win or lose whole.

Then the rows of a slice lie whole in its base file and in the Parquet blocks of its log: a reader may take all of them
as they are stored, but for those named here. What decides which these are is numbers: each record goes by its place in
the base file, which the log says, or its key.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import data_schema, held_if_small, read_batches, read_parquet_footer
from pyhudi.format.log.headers import is_partial
from pyhudi.format.log.ordering import unwrap_ordering
from pyhudi.merge.base import BaseMerge, Met
from pyhudi.merge.fold import Folded, LogFold
from pyhudi.merge.outcomes import compares_base
from pyhudi.merge.rules import MergeRules
from pyhudi.storage.protocol import Storage
from pyhudi.table.conform import conform_batch
from pyhudi.table.log_places import LogRecords, find_places, logged_places, says_places
from pyhudi.table.log_reading import LogReading
from pyhudi.table.merged_slice import key_parts, stored_blocks
from pyhudi.table.ordering_bounds import Footer, all_reach, least_ordering, no_row_exceeds
from pyhudi.table.parquet_files import open_parquet, read_row_groups
from pyhudi.table.slice_log import SliceFiles
from pyhudi.table.stored_types import stored_types

_PLACE: Final = "__pyhudi_place"
_ROW: Final = "__pyhudi_row"


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """The rows of a slice: of the base file and of each of these data blocks all but those that are `gone`.

    `base_gone`, and beside each block: for each row in it whether it is. Small blocks are held in memory.
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
    """Where a slice's rows lie; None where rows are not stored whole as they are read, or share a key.

    `columns`: those that are to be read, which blocks must hold in the table's types of today. `data_blocks_max`: None,
    too, for a log of more data blocks.
    As Apache Hudi does, positions of the right base file are believed: keys are compared only where some are missing.
    Memory: of each record of the log what is compared and 40 bytes, and its key where that is compared or of a delete;
    a byte for each row of the base file; small blocks (`held_if_small`); nothing where the log is read in parts.
    Requests: as `stored_blocks`, one for each small block or a few, and columns of the base file that are compared.
    """
    rules = replace(reading.rules, key=_PLACE)
    if files.base_path is None or not rules.keeps_rows_whole:
        return None
    blocks = stored_blocks(storage, files, reading)
    wanted = pa.schema([stored.field(name) for name in columns])
    if not all(_holds_rows_whole(block) for block in blocks) or len(key_parts(blocks, reading)) > 1:
        return None
    if sum(block.type is BlockType.PARQUET_DATA for block in blocks) > data_blocks_max:
        return None
    blocks = [held_if_small(block) for block in blocks]
    data = [block for block in blocks if block.type is BlockType.PARQUET_DATA]
    footers = {
        at: read_parquet_footer(block) for at, block in enumerate(blocks) if block.type is BlockType.PARQUET_DATA
    }
    if any(stored_types(schema, wanted) != wanted for schema, _ in footers.values()):
        return None
    counts = {at: int(metadata.num_rows) for at, (_, metadata) in footers.items()}
    log = [LogRecords.of(block, counts.get(at)) for at, block in enumerate(blocks)]
    compared = pa.schema([stored.field(name) for name in rules.columns_needed((), stored.names)])
    path = files.base_path
    with closing(open_parquet(storage, path)) as base:
        if says_places(blocks, files):
            places = list(map(logged_places, log))
            _check_places(places, base, path)
        else:
            found = find_places(base, path, log, reading, stored)
            if found is None:
                return None
            places = found
        if len(data) == len(log) and _all_win(data, footers.values(), places, base, rules, compared):
            base_gone, gone = _gone_where_all_win(places, base)
        else:
            base_gone, gone = _settle(log, places, base, path, rules, compared)
    return PlacedRows(base_gone, tuple(zip(data, gone, strict=True)))


def _holds_rows_whole(block: LogBlock) -> bool:
    return block.type is BlockType.DELETE or (block.type is BlockType.PARQUET_DATA and not is_partial(block))


def _check_places(places: Sequence[np.ndarray], base: pq.ParquetFile, path: str) -> None:
    """Raises: CorruptFile where a place that the log says lies behind the last row of the base file."""
    last = max((int(at.max()) for at in places if len(at)), default=-1)
    if last >= base.metadata.num_rows:
        expected = f"a base row {last:,}, the position of a record of the log"
        raise CorruptFile(path, 0, expected=expected, found=f"{base.metadata.num_rows:,} rows")


def _all_win(
    blocks: Sequence[LogBlock],
    footers: Iterable[Footer],
    places: Sequence[np.ndarray],
    base: pq.ParquetFile,
    rules: MergeRules,
    compared: pa.Schema,
) -> bool:
    """Whether each row of a log of rows wins over what is stored of its key: no two are of one key, none can be marked
    as a delete, and none has a lesser ordering value than a base row. False where footers do not say so, or of a block
    whose header has another type.
    """
    told = set(rules.ordering).difference(rules.mark_columns)
    if not _are_distinct(places) or not told.issuperset(compared.names):
        return False
    if not compares_base(rules):
        return True
    if len(compared) != 1 or len(rules.ordering) != 1:
        return False
    if any(data_schema(block, columns=compared.names).types != compared.types for block in blocks):
        return False
    return all_reach(footers, (base.schema_arrow, base.metadata), compared.field(0))


def _are_distinct(places: Sequence[np.ndarray]) -> bool:
    every = np.concatenate([np.zeros(0, np.int64), *places])
    return _ascends(every) or _ascends(np.sort(every))


def _ascends(numbers: np.ndarray) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _gone_where_all_win(places: Sequence[np.ndarray], base: pq.ParquetFile) -> tuple[np.ndarray, list[np.ndarray]]:
    base_gone = np.zeros(base.metadata.num_rows, np.bool_)
    for at in places:
        base_gone[at[at < len(base_gone)]] = True
    return base_gone, [np.zeros(len(at), np.bool_) for at in places]


def _settle(
    log: Sequence[LogRecords],
    places: Sequence[np.ndarray],
    base: pq.ParquetFile,
    path: str,
    rules: MergeRules,
    compared: pa.Schema,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Which rows are gone of the base file and of each data block, by the rules of merging."""
    folded, starts = _fold(log, places, path, rules, compared)
    merge = BaseMerge(folded)
    met = _meet_base(merge, folded, base, path, compared)
    winning = met.take(np.flatnonzero(met.wins))
    base_gone = np.zeros(base.metadata.num_rows, np.bool_)
    base_gone[winning.at] = True
    gone = np.ones(starts[-1], np.bool_)
    for batch in (merge.replacements(winning), *merge.remaining()):
        gone[batch.column(_ROW).to_numpy()] = False
    return base_gone, [gone[start:end] for start, end in pairwise(starts)]


def _fold(
    log: Sequence[LogRecords],
    places: Sequence[np.ndarray],
    path: str,
    rules: MergeRules,
    compared: pa.Schema,
) -> tuple[Folded, list[int]]:
    """What the log comes to, a record a place, and where each data block's rows start among all of them.

    `places`: of each block's records.
    """
    schema = pa.schema([pa.field(_PLACE, pa.int64()), pa.field(_ROW, pa.int64()), *compared])
    fold = LogFold(rules, schema, path=path)
    starts = [0]
    for records, at in zip(log, places, strict=True):
        deletes = records.deletes
        if deletes is not None:
            ordering = unwrap_ordering(deletes.column("ordering_kind"), deletes.column("ordering"), fold.ordering_types)
            fold.add_deletes(pa.array(at), ordering)
            continue
        end = 0
        for columns, count in _block_columns(records.block, compared, len(at)):
            start, end = end, end + count
            rows = np.arange(starts[-1] + start, starts[-1] + end)
            fold.add_rows(
                pa.RecordBatch.from_arrays([pa.array(at[start:end]), pa.array(rows), *columns], schema=schema)
            )
        starts.append(starts[-1] + end)
    return fold.finish(), starts


def _meet_base(merge: BaseMerge, folded: Folded, base: pq.ParquetFile, path: str, compared: pa.Schema) -> Met:
    """The rows of the base file that have a record in the log, by their numbers."""
    places = np.sort(folded.entries.keys.to_numpy(), kind="stable")  # a log's blocks are each in order, as a rule
    at = places[: np.searchsorted(places, base.metadata.num_rows)]
    if not compares_base(folded.rules):
        compared = pa.schema([])
    least = None if not len(compared) else least_ordering(folded)
    footer = (base.schema_arrow, base.metadata)
    if least is not None and no_row_exceeds(footer, least, compared.field(folded.rules.ordering[0])):
        columns = [pa.repeat(least, len(at))]
        compared = pa.schema([compared.field(folded.rules.ordering[0])])
    else:
        columns = _columns_at(base, at, compared, path)
    schema = pa.schema([pa.field(_PLACE, pa.int64()), *compared])
    met = merge.meet(pa.RecordBatch.from_arrays([pa.array(at), *columns], schema=schema), 0)
    return Met(at[met.at], met.states, met.wins, met.is_delete)


def _columns_at(file: pq.ParquetFile, at: np.ndarray, wanted: pa.Schema, path: str) -> list[pa.Array]:
    """Columns of the rows at these places, which ascend."""
    if not len(wanted):
        return []
    present = [name for name in wanted.names if name in file.schema_arrow.names]
    parts, start = [wanted.empty_table()], 0
    for batch in read_row_groups(file, range(file.metadata.num_row_groups), present, use_threads=False):
        low, high = np.searchsorted(at, [start, start + len(batch)])
        rows = conform_batch(batch.take(pa.array(at[low:high] - start)), wanted, path=path)
        parts.append(pa.Table.from_batches([rows]))
        start += len(batch)
    return [one_array(column) for column in pa.concat_tables(parts).columns]


def _block_columns(block: LogBlock, wanted: pa.Schema, count: int) -> Iterator[tuple[list[pa.Array], int]]:
    """Columns of the block's rows, and how many rows they are: all at once where there are no columns."""
    if not len(wanted):
        yield [], count
        return
    for batch in read_batches(block, columns=wanted.names):
        yield conform_batch(batch, wanted, path=block.path).columns, len(batch)
