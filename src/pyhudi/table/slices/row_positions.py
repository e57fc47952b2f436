"""Finds each log record's row position in the base file: as the log states it, or by comparing keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from pyhudi.errors import Bug
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import read_batches, read_row_count
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import positions_base_instant, record_positions
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.merge.latest import encode_keys, match_rows
from pyhudi.table.slices.base_files.protocol import OpenBaseFile
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.log_merge import keyed
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.slice_log import SliceFiles


@dataclass(frozen=True, slots=True)
class LogRecords:
    """A block and its number of records.

    `deletes`: a delete block's records; None for a data block, not decoded yet.
    """

    block: LogBlock
    count: int
    deletes: pa.RecordBatch | None = None

    @classmethod
    def of(cls, block: LogBlock, row_count: int | None = None) -> Self:
        """`row_count`: a data block's number of rows. None: it is read."""
        if block.type is not BlockType.DELETE:
            return cls(block, read_row_count(block) if row_count is None else row_count)
        deletes = read_deletes(block)
        return cls(block, len(deletes), deletes)


def says_positions(blocks: Sequence[LogBlock], files: SliceFiles) -> bool:
    """Whether every block states its records' row positions in this slice's base file."""
    return all(positions_base_instant(block) == files.base_instant for block in blocks)


def logged_positions(records: LogRecords) -> np.ndarray:
    """The row positions of a block's records in the base file.

    The block must have some. Raises: as `record_positions`.
    """
    positions = record_positions(records.block, records.count)
    if positions is None:
        raise Bug(f"{records.block.path}: a block that has positions of its base file has none")
    return positions.astype(np.int64)


def find_positions(
    base: OpenBaseFile, path: str, log: Sequence[LogRecords], reading: LogReading, stored: pa.Schema
) -> list[np.ndarray] | None:
    """For each block, a number for each record: the row position of its key in the base file.

    A key that the base file lacks gets a number behind the last row. Example: a base file of 3 rows with keys a, b, c
    and log records b, x, b give 1, 3, 1.
    None if base rows share a key of the log, or if a record has no key: merging then reports the record. `base`: the
    open base file. `log`: blocks of whole rows and of deletes.
    Reads the keys of the log and of the base file. Memory: the log's keys, and 16 bytes for each.
    """
    schema = key_source(stored, reading.keys)
    keys = [record_keys_of(records, schema, reading) for records in log]
    every = pa.chunked_array([chunk for block_keys in keys for chunk in block_keys.chunks], pa.string())
    if every.null_count:
        return None

    codes, distinct = encode_keys(every)
    position = np.full(len(distinct), -1, np.int64)
    start = matched = 0
    present = [name for name in schema.names if name in base.schema.names]
    for batch in base.batches(present):
        rows = keyed(conform_batch(batch, schema, path=path), reading.keys)
        found = match_rows(rows.column(RECORD_KEY), distinct)
        at = np.flatnonzero(found >= 0)
        position[found[at]] = start + at
        matched += len(at)
        start += len(rows)

    new = np.flatnonzero(position < 0)
    if matched > len(position) - len(new):
        return None

    position[new] = start + np.arange(len(new))
    return np.split(position[codes], np.cumsum([len(block_keys) for block_keys in keys])[:-1])


def key_source(stored: pa.Schema, keys: KeySpec | None) -> pa.Schema:
    """The columns that tell the record keys of rows. `stored`: every column that rows may have. `keys`: how keys are
    computed; None: rows store them.
    """
    names = (RECORD_KEY,) if keys is None else keys.key_columns
    return pa.schema([stored.field(name) for name in names])


def record_keys_of(records: LogRecords, schema: pa.Schema, reading: LogReading) -> pa.ChunkedArray:
    """The record keys of a block, in the block's order. `schema`: as of `key_source`."""
    block = records.block
    if records.deletes is not None:
        return pa.chunked_array([one_array(records.deletes.column("record_key"))], pa.string())
    batches = read_batches(block, columns=schema.names)
    rows = (keyed(conform_batch(batch, schema, path=block.path), reading.keys) for batch in batches)
    return pa.chunked_array([batch.column(RECORD_KEY) for batch in rows], pa.string())
