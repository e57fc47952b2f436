"""Finds the rows of a file slice that a scan returns, without merging any values.

Works if every log record replaces its base row as a whole. Then each row of the slice stands complete in the base file
or in a Parquet block of the log, and a reader takes all stored rows except the ones that are named here as gone.
Example: the log updates keys a and b. Then the base rows of a and b are gone, and the log's rows of a and b are read.

Rows are matched by number, not by key: a log block may store each record's row position in the base file. If it does
not, keys are compared once, to find the row positions.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import data_schema, held_if_small, read_batches, read_parquet_footer
from pyhudi.format.log.headers import is_partial
from pyhudi.merge.base import BaseMerge, Met
from pyhudi.merge.fold import Folded, LogFold
from pyhudi.merge.outcomes import compares_base
from pyhudi.merge.rules import MergeRules
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.protocol import OpenBaseFile
from pyhudi.table.slices.base_files.rows import open_rows
from pyhudi.table.slices.base_files.statistics import ParquetStatistics
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.log_merge import add_deletes
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import key_parts, stored_blocks
from pyhudi.table.slices.ordering_bounds import all_reach, least_ordering, no_row_exceeds
from pyhudi.table.slices.row_positions import LogRecords, find_positions, logged_positions, says_positions
from pyhudi.table.slices.slice_log import SliceFiles
from pyhudi.table.slices.stored_types import stored_types

_POSITION: Final = "__pyhudi_position"
_ROW: Final = "__pyhudi_row"


@dataclass(frozen=True, slots=True)
class StandingRows:
    """The rows of a slice: all rows of its base file and of its data blocks, except those marked as gone.

    `base_gone`: for each row of the base file, whether the row is gone. `blocks`: each data block with the same mark
    for each of its rows. Small blocks are held in memory.
    """

    base_gone: np.ndarray
    blocks: tuple[tuple[LogBlock, np.ndarray], ...]


def find_standing(
    storage: Storage,
    files: SliceFiles,
    reading: LogReading,
    stored: pa.Schema,
    columns: Sequence[str],
    *,
    data_blocks_max: int,
) -> StandingRows | None:
    """Which stored rows make up the slice. None if only merging can tell.

    That is so without a base file, if a row is not stored whole or not in the table's types of today, if base rows
    share a key of the log, or if the log is so large that it is read in parts.

    `columns`: the columns to read. `data_blocks_max`: the answer is None for a log with more data blocks.
    Like Apache Hudi, trusts row positions that belong to this base file. Keys are compared only if a block has none.
    Memory: for each log record 40 bytes, its compared columns, and its key if it is compared or is that of a delete; a
    byte for each base row; small blocks (`held_if_small`). Requests: as `stored_blocks`, one for each small block or a
    few of them, and the columns of the base file that are compared.
    """
    rules = replace(reading.rules, key=_POSITION)
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
    footers = _footers(blocks)
    # A block written before a column changed its type would need a cast.
    if any(stored_types(footer.schema, wanted) != wanted for footer in footers.values()):
        return None

    counts = {at: sum(footer.group_rows) for at, footer in footers.items()}
    log = [LogRecords.of(block, counts.get(at)) for at, block in enumerate(blocks)]
    compared = pa.schema([stored.field(name) for name in rules.columns_needed((), stored.names)])
    path = files.base_path
    with closing(open_rows(storage, path, files.source, reading.as_written)) as base:
        if says_positions(blocks, files):
            positions = list(map(logged_positions, log))
            _check_positions(positions, base, path)
        else:
            found = find_positions(base, path, log, reading, stored)
            if found is None:
                return None
            positions = found

        # If every log record wins, nothing is compared row by row: footers and positions are enough.
        if len(data) == len(log) and _all_win(data, footers.values(), positions, base, rules, compared):
            base_gone, gone = _gone_where_all_win(positions, base)
        else:
            base_gone, gone = _settle(log, positions, base, path, rules, compared)
    return StandingRows(base_gone, tuple(zip(data, gone, strict=True)))


def _footers(blocks: Sequence[LogBlock]) -> dict[int, ParquetStatistics]:
    """What the data blocks state of their columns, by their numbers among all blocks."""
    data = [(at, block) for at, block in enumerate(blocks) if block.type is BlockType.PARQUET_DATA]
    return {at: ParquetStatistics(*read_parquet_footer(block)) for at, block in data}


def _holds_rows_whole(block: LogBlock) -> bool:
    return block.type is BlockType.DELETE or (block.type is BlockType.PARQUET_DATA and not is_partial(block))


def _check_positions(positions: Sequence[np.ndarray], base: OpenBaseFile, path: str) -> None:
    """Raises: CorruptFile for a log record whose stored position lies behind the last row of the base file."""
    last = max((int(at.max()) for at in positions if len(at)), default=-1)
    if last >= base.row_count:
        expected = f"a base row {last:,}, the position of a record of the log"
        raise CorruptFile(path, 0, expected=expected, found=f"{base.row_count:,} rows")


def _all_win(
    blocks: Sequence[LogBlock],
    footers: Iterable[ParquetStatistics],
    positions: Sequence[np.ndarray],
    base: OpenBaseFile,
    rules: MergeRules,
    compared: pa.Schema,
) -> bool:
    """Whether it is certain, from footers alone, that each log row wins over the stored row with its key.

    It is if no two log rows have the same key, no row can be marked as a delete, and no log row has a lesser ordering
    value than any base row. False if the footers do not tell, or if a block has another type for the ordering column.
    """
    told = set(rules.ordering).difference(rules.mark_columns)
    # Any other compared column may mark a row as a delete, which footers do not tell.
    if not _are_distinct(positions) or not told.issuperset(compared.names):
        return False
    if not compares_base(rules):
        return True
    if len(compared) != 1 or len(rules.ordering) != 1:
        return False
    if any(data_schema(block, columns=compared.names).types != compared.types for block in blocks):
        return False
    return all_reach(footers, base, compared.field(0))


def _are_distinct(positions: Sequence[np.ndarray]) -> bool:
    every = np.concatenate([np.zeros(0, np.int64), *positions])
    return _ascends(every) or _ascends(np.sort(every))


def _ascends(numbers: np.ndarray) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _gone_where_all_win(positions: Sequence[np.ndarray], base: OpenBaseFile) -> tuple[np.ndarray, list[np.ndarray]]:
    base_gone = np.zeros(base.row_count, np.bool_)
    for at in positions:
        base_gone[at[at < len(base_gone)]] = True
    return base_gone, [np.zeros(len(at), np.bool_) for at in positions]


def _settle(
    log: Sequence[LogRecords],
    positions: Sequence[np.ndarray],
    base: OpenBaseFile,
    path: str,
    rules: MergeRules,
    compared: pa.Schema,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Which rows are gone from the base file and from each data block, decided by the merge rules."""
    folded, starts = _fold(log, positions, path, rules, compared)
    merge = BaseMerge(folded)
    met = _meet_base(merge, folded, base, path, compared)
    winning = met.take(np.flatnonzero(met.wins))

    # A base row is gone if a log record wins over it, be the record a row or a delete.
    base_gone = np.zeros(base.row_count, np.bool_)
    base_gone[winning.at] = True

    # A log row is gone unless it ends up in the merged rows.
    gone = np.ones(starts[-1], np.bool_)
    for batch in (merge.replacements(winning), *merge.remaining()):
        gone[batch.column(_ROW).to_numpy()] = False
    return base_gone, [gone[start:end] for start, end in pairwise(starts)]


def _fold(
    log: Sequence[LogRecords],
    positions: Sequence[np.ndarray],
    path: str,
    rules: MergeRules,
    compared: pa.Schema,
) -> tuple[Folded, list[int]]:
    """The log folded to one record for each row position, and the number of each data block's first row.

    Rows are numbered over all data blocks. Example: blocks of 10 and 5 rows give the starts 0, 10 and 15.
    `positions`: for each block, the row positions of its records. They take the role of the key.
    """
    schema = pa.schema([pa.field(_POSITION, pa.int64()), pa.field(_ROW, pa.int64()), *compared])
    fold = LogFold(rules, schema, path=path)
    starts = [0]

    for records, at in zip(log, positions, strict=True):
        deletes = records.deletes
        if deletes is not None:
            add_deletes(fold, pa.array(at), deletes)
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


def _meet_base(merge: BaseMerge, folded: Folded, base: OpenBaseFile, path: str, compared: pa.Schema) -> Met:
    """The base rows that have a record in the log, with the outcome of their meeting. `at` holds row positions."""
    positions = np.sort(folded.entries.keys.to_numpy(), kind="stable")  # the positions of each block usually ascend
    at = positions[: np.searchsorted(positions, base.row_count)]

    if not compares_base(folded.rules):
        compared = pa.schema([])
    least = None if not len(compared) else least_ordering(folded)

    # If no base row's ordering value exceeds `least`, `least` may stand for all of them: every log record reaches both.
    if least is not None and no_row_exceeds(base, least, compared.field(folded.rules.ordering[0])):
        columns = [pa.repeat(least, len(at))]
        compared = pa.schema([compared.field(folded.rules.ordering[0])])
    else:
        columns = _columns_at(base, at, compared, path)

    schema = pa.schema([pa.field(_POSITION, pa.int64()), *compared])
    met = merge.meet(pa.RecordBatch.from_arrays([pa.array(at), *columns], schema=schema), 0)
    return Met(at[met.at], met.states, met.wins, met.is_delete)


def _columns_at(file: OpenBaseFile, at: np.ndarray, wanted: pa.Schema, path: str) -> list[pa.Array]:
    """Columns of the rows at the row positions `at`, which ascend."""
    if not len(wanted):
        return []
    present = [name for name in wanted.names if name in file.schema.names]

    parts, start = [wanted.empty_table()], 0
    for batch in file.batches(present):
        low, high = np.searchsorted(at, [start, start + len(batch)])
        rows = conform_batch(batch.take(pa.array(at[low:high] - start)), wanted, path=path)
        parts.append(pa.Table.from_batches([rows]))
        start += len(batch)
    return [one_array(column) for column in pa.concat_tables(parts).columns]


def _block_columns(block: LogBlock, wanted: pa.Schema, count: int) -> Iterator[tuple[list[pa.Array], int]]:
    """Batches of the block's `wanted` columns, each with its number of rows. With no columns: all rows at once."""
    if not len(wanted):
        yield [], count
        return
    for batch in read_batches(block, columns=wanted.names):
        yield conform_batch(batch, wanted, path=block.path).columns, len(batch)
