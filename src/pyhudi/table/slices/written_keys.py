"""The record keys of the rows that one write put into its files."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import COMMIT_TIME, RECORD_KEY
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.rows import read_stored_batches
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.row_positions import LogRecords, record_keys_of
from pyhudi.table.slices.slice_log import log_source, slice_blocks

_KEYS = pa.schema([(RECORD_KEY, pa.string())])


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of a write. `path`: relative to the table. `rows`: all of them, those that the write only copied too."""

    path: str
    is_log: bool
    rows: int
    size_bytes: int


def written_keys(storage: Storage, files: Iterable[WrittenFile], requested: str, logs: LogReading | None) -> pa.Array:
    """The keys that the write requested at this time put into these files. The keys that its logs delete count as well.

    A base file holds rows of earlier writes, too, which keep their commit times. `logs`: how logs are read; None for a
    table that has none. Memory: the keys. Requests: those of reading two columns of each base file, and each log.
    """
    found: list[pa.Array] = []
    for file in files:
        if file.is_log:
            assert logs is not None
            source = log_source(storage, file.path, file.size_bytes)
            blocks = slice_blocks([source], lambda instant: instant == requested)
            found += [chunk for block in blocks for chunk in record_keys_of(LogRecords.of(block), _KEYS, logs).chunks]
            continue
        for batch in read_stored_batches(storage, file.path, [COMMIT_TIME, RECORD_KEY], use_threads=False):
            rows = batch.filter(pc.equal(batch.column(COMMIT_TIME), requested))
            found.append(rows.column(RECORD_KEY).cast(pa.string()))
    return one_array(pa.chunked_array(found, pa.string()))


def share_a_key(some: pa.Array, others: pa.Array) -> bool:
    return bool(len(some) and len(others) and pc.any(pc.is_in(some, others)).as_py())
