"""Where the records of a slice's log stand in its base file: as the log says, or as their keys do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import Bug
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import read_batches, read_row_count
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import positions_base_instant, record_positions
from pyhudi.format.schema import RECORD_KEY
from pyhudi.merge.latest import encode_keys, match_rows
from pyhudi.table.conform import conform_batch
from pyhudi.table.log_merge import keyed
from pyhudi.table.log_reading import LogReading
from pyhudi.table.parquet_files import read_row_groups
from pyhudi.table.slice_log import SliceFiles


@dataclass(frozen=True, slots=True)
class LogRecords:
    """A block, and how many records it has. `deletes`: those of a delete block; None of a data block, still encoded."""

    block: LogBlock
    count: int
    deletes: pa.RecordBatch | None = None

    @classmethod
    def of(cls, block: LogBlock, row_count: int | None = None) -> Self:
        """`row_count`: of a data block; None: it is asked for."""
        if block.type is not BlockType.DELETE:
            return cls(block, read_row_count(block) if row_count is None else row_count)
        deletes = read_deletes(block)
        return cls(block, len(deletes), deletes)


def says_places(blocks: Sequence[LogBlock], files: SliceFiles) -> bool:
    """Whether each of the blocks says where its records stand in the slice's base file."""
    return all(positions_base_instant(block) == files.base_instant for block in blocks)


def logged_places(records: LogRecords) -> np.ndarray:
    """The places in the base file of the records of a block that has some. Raises: as `record_positions`."""
    positions = record_positions(records.block, records.count)
    if positions is None:
        raise Bug(f"{records.block.path}: a block that has positions of its base file has none")
    return positions.astype(np.int64)


def find_places(
    base: pq.ParquetFile, path: str, log: Sequence[LogRecords], reading: LogReading, stored: pa.Schema
) -> list[np.ndarray] | None:
    """For each record of each block a number of its key: its place in the base file, or one behind the last row.

    None where rows of the base file share a key of the log, or a record has no key, which merging tells of. `base`:
    the open base file. `log`: of whole rows, and of deletes.
    Reads the keys of the log and of the base file. Memory: the former, and 16 bytes for each.
    """
    own = (RECORD_KEY,) if reading.keys is None else reading.keys.record_key
    schema = pa.schema([stored.field(name) for name in own])
    keys = [_keys(records, schema, reading) for records in log]
    every = pa.chunked_array([chunk for of in keys for chunk in of.chunks], pa.string())
    if every.null_count:
        return None
    codes, distinct = encode_keys(every)
    place = np.full(len(distinct), -1, np.int64)
    start = matched = 0
    present = [name for name in schema.names if name in base.schema_arrow.names]
    for batch in read_row_groups(base, range(base.metadata.num_row_groups), present, use_threads=False):
        rows = keyed(conform_batch(batch, schema, path=path), reading.keys)
        found = match_rows(rows.column(RECORD_KEY), distinct)
        at = np.flatnonzero(found >= 0)
        place[found[at]] = start + at
        matched += len(at)
        start += len(rows)
    new = np.flatnonzero(place < 0)
    if matched > len(place) - len(new):
        return None
    place[new] = start + np.arange(len(new))
    return np.split(place[codes], np.cumsum([len(of) for of in keys])[:-1])


def _keys(records: LogRecords, schema: pa.Schema, reading: LogReading) -> pa.ChunkedArray:
    """The record keys of a block, in its order."""
    block = records.block
    if records.deletes is not None:
        return pa.chunked_array([one_array(records.deletes.column("record_key"))], pa.string())
    batches = read_batches(block, columns=schema.names)
    rows = (keyed(conform_batch(batch, schema, path=block.path), reading.keys) for batch in batches)
    return pa.chunked_array([batch.column(RECORD_KEY) for batch in rows], pa.string())
