"""Reads a file slice with logs: its base rows, merged with the records of its log."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten, read_stored_batches
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.key_parts import KeyPart
from pyhudi.table.slices.log_merge import keyed, merge_blocks, with_key_column
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.slice_log import LogTally, SliceFiles, slice_blocks, slice_files, sources_of_logs
from pyhudi.table.view.file_system_view import FileSlice

_DECODED = {BlockType.AVRO_DATA: 2, BlockType.PARQUET_DATA: 6, BlockType.HFILE_DATA: 2, BlockType.DELETE: 4}
"""How many times its stored size a block may take in memory, as a rule of thumb."""


ChooseRows = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Filters the rows of a base file."""


class RowsReader(Protocol):
    """Reads the rows of slices. `stored`: every column that rows may have."""

    @property
    def stored(self) -> pa.Schema: ...

    def rows(self, storage: Storage, file_slice: FileSlice, columns: Sequence[str]) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class BaseReader:
    """Reads the rows of slices without logs. Picklable. `stored`: every column that rows may have. `as_written`: how
    base files may differ from these columns.
    """

    stored: pa.Schema
    as_written: AsWritten = TODAY

    def rows(self, storage: Storage, file_slice: FileSlice, columns: Sequence[str]) -> pa.Table:
        """These columns of a base file's rows. Memory: the rows."""
        schema = pa.schema([with_key_column(self.stored).field(name) for name in columns])
        assert file_slice.base_file is not None
        path = join(file_slice.partition, file_slice.base_file.name.format())
        batches = read_stored_batches(
            storage, path, columns, use_threads=False, source=file_slice.source, as_written=self.as_written
        )
        return pa.Table.from_batches((conform_batch(batch, schema, path=path) for batch in batches), schema)


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads the merged rows of slices with logs. Picklable. `stored`: every column that rows may have."""

    stored: pa.Schema
    logs: LogReading

    def rows(self, storage: Storage, file_slice: FileSlice, columns: Sequence[str]) -> pa.Table:
        """These columns of a slice's merged rows. Memory: the rows, and as `read_merged`."""
        schema = pa.schema([with_key_column(self.stored).field(name) for name in columns])
        files = slice_files(file_slice)
        batches = read_merged(storage, files, self.logs, self.stored, columns, use_threads=False)
        return pa.Table.from_batches((batch.select(list(columns)) for batch in batches), schema)


def read_merged(
    storage: Storage,
    files: SliceFiles,
    reading: LogReading,
    stored: pa.Schema,
    columns: Sequence[str],
    *,
    use_threads: bool,
    tally: LogTally | None = None,
    blocks: Sequence[LogBlock] | None = None,
    choose: ChooseRows | None = None,
) -> Iterator[pa.RecordBatch]:
    """The merged rows of a slice: the asked columns, and perhaps others that merging needs.

    `stored`: every column that the table's rows may have today. `blocks`: to merge in place of the log's own, in order.
    `choose`: filters the base rows; log records then meet them by key, not by row position.
    Memory: the folded log (`LogFold`), in the columns that are read, and a batch of the base file. If the log may
    decode to more than `log_size_bytes_max`, it is merged in several passes, one for each part of the keys. Each pass
    reads the base file and the log again.
    """
    own = () if reading.keys is None else reading.keys.key_columns
    names = reading.rules.columns_needed([*columns, *own], stored.names)
    # Keys that rows do not store are made of the key columns, and come as the last column.
    is_stored = reading.keys is None
    schema = pa.schema([stored.field(name) for name in names if is_stored or name != RECORD_KEY])

    blocks = stored_blocks(storage, files, reading, tally) if blocks is None else blocks
    if choose is not None:
        files = replace(files, base_instant="")  # filtering shifts the rows: stored positions no longer apply
    if not blocks:
        for batch in _base_batches(storage, files, schema, choose, reading, use_threads=use_threads):
            yield keyed(batch, reading.keys if RECORD_KEY in columns else None)
        return

    for part in key_parts(blocks, reading):
        base = _base_batches(storage, files, schema, choose, reading, use_threads=use_threads)
        yield from merge_blocks(
            base, blocks, files, reading.rules, reading.keys, schema, part, tally, as_written=reading.as_written
        )


def stored_blocks(
    storage: Storage, files: SliceFiles, reading: LogReading, tally: LogTally | None = None
) -> list[LogBlock]:
    """The blocks of a slice's log that count for this reader, in the order in which they count.

    Requests and memory: as `sources_of_logs`.
    """
    return slice_blocks(sources_of_logs(storage, files.logs), reading.timeline.is_committed, tally, is_whole=True)


def key_parts(blocks: Sequence[LogBlock], reading: LogReading) -> list[KeyPart]:
    """The parts of the keys to merge one after the other, each small enough for `log_size_bytes_max`."""
    size_bytes = sum(_DECODED.get(block.type, 1) * block.content_size for block in blocks)
    count = max(1, -(-size_bytes // reading.log_size_bytes_max))
    return [KeyPart(number, count) for number in range(count)]


def _base_batches(
    storage: Storage,
    files: SliceFiles,
    schema: pa.Schema,
    choose: ChooseRows | None,
    reading: LogReading,
    *,
    use_threads: bool,
) -> Iterator[pa.RecordBatch]:
    if files.base_path is None:
        return
    for batch in read_stored_batches(
        storage,
        files.base_path,
        schema.names,
        use_threads=use_threads,
        source=files.source,
        as_written=reading.as_written,
    ):
        rows = conform_batch(batch, schema, path=files.base_path)
        yield rows if choose is None else choose(keyed(rows, reading.keys))
