"""The record keys of the rows that one write put into its files."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import COMMIT_TIME, RECORD_KEY
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten, read_stored_batches
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.row_positions import LogRecords, key_source, record_keys_of
from pyhudi.table.slices.slice_log import log_source, slice_blocks


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of a write. `path`: relative to the table. `rows`: all of them, those that the write only copied too."""

    path: str
    is_log: bool
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KeyReading:
    """How the keys in files are read. `stored`: every column that rows may have. `logs`: how logs are read; None for a
    table that has none. `as_written`: how base files hold their keys.
    """

    stored: pa.Schema
    logs: LogReading | None
    as_written: AsWritten = TODAY


def written_keys(storage: Storage, files: Iterable[WrittenFile], requested: str, reading: KeyReading) -> pa.Array:
    """The keys that the write requested at this time put into these files. The keys that its logs delete count as well.

    A base file holds rows of earlier writes, too, which keep their commit times. Without meta fields rows have no
    commit time: then all keys of a base file may be the write's, and are given.
    Memory: the keys. Requests: those of reading two columns of each base file, and each log.
    """
    found: list[pa.Array] = []
    logs, as_written = reading.logs, reading.as_written
    source = None if logs is None else key_source(reading.stored, logs.keys)
    stamps = [COMMIT_TIME] if as_written.keys is None else []
    for file in files:
        if file.is_log:
            assert logs is not None
            assert source is not None
            file_source = log_source(storage, file.path, file.size_bytes)
            blocks = slice_blocks([file_source], lambda instant: instant == requested)
            found += [chunk for block in blocks for chunk in record_keys_of(LogRecords.of(block), source, logs).chunks]
            continue
        columns = [*stamps, RECORD_KEY]
        for batch in read_stored_batches(storage, file.path, columns, use_threads=False, as_written=as_written):
            rows = batch.filter(pc.equal(batch.column(COMMIT_TIME), requested)) if stamps else batch
            found.append(rows.column(RECORD_KEY).cast(pa.string()))
    return one_array(pa.chunked_array(found, pa.string()))


def share_a_key(some: pa.Array, others: pa.Array) -> bool:
    return bool(len(some) and len(others) and pc.any(pc.is_in(some, others)).as_py())
