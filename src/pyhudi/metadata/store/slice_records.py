"""The records of one file group of the metadata table: its base HFile and its log blocks, read whole or looked up in.

A small file is read in one request. In a larger file a look-up reads the trailer, the index, and the blocks that may
hold the keys.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.by_content import ByContent
from pyhudi.errors import CorruptFile
from pyhudi.format.hfile.columns import CELLS
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.names import join
from pyhudi.metadata.store.versions import RecordVersions, concat_versions, merge_versions
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.slice_log import ONE_GET_SIZE_MAX, log_sources, slice_blocks
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.stored_file import StoredFile


@dataclass(frozen=True, slots=True)
class Keys:
    """Look up these keys. `keys`: binary, sorted, each once."""

    keys: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Look up all keys that begin with one of these."""

    prefixes: tuple[bytes, ...]


Wanted: TypeAlias = Keys | Prefixes | None
"""None: every record."""


@dataclass(frozen=True, slots=True)
class SliceReader:
    """A file group, opened: the index of its base file and the frames of its log blocks are read.

    `base`: None for a group of logs alone. `path`: names it in errors.
    """

    base: HFileReader | None
    blocks: tuple[LogBlock, ...]
    path: str

    def read(self, wanted: Wanted = None) -> Iterator[RecordVersions]:
        """The records, merged: all versions of a key that follow its last delete, in order.

        Memory: the log's records (those wanted), and a few megabytes of the base file at a time, or the answer of a
        look-up. Raises: CorruptFile, naming the file.
        """
        log = self._log(wanted)
        batches = _cells(self.base, wanted) if self.base is not None else iter(())
        base = (_versions(batch, 0, log.schemas, self.path) for batch in batches if len(batch))

        if len(log) == 0:
            yield from base
        elif wanted is None:
            yield from (part.live() for part in merge_versions(base, log.sorted()))
        else:
            yield concat_versions([*base, log]).sorted().live()

    @property
    def content(self) -> tuple[Hashable, ...] | None:
        """All that the records are made from; None where it is not held in memory."""
        if self.base is not None and not self.base.is_in_memory:
            return None
        if any(block.content_size > ONE_GET_SIZE_MAX for block in self.blocks):
            return None
        return (self.path, self.base, *((block.path, _block_content(block)) for block in self.blocks))

    def read_log(self) -> RecordVersions:
        """What the log alone holds, deletes among it. Memory: the log's records. Raises: as `read`."""
        return self._log(None).sorted()

    def _log(self, wanted: Wanted) -> RecordVersions:
        """The records of the log's blocks, oldest block first."""
        schemas = [_schema_text(self.base, self.path) if self.base is not None else ""]
        parts: list[tuple[pa.RecordBatch, str]] = []
        for block in self.blocks:
            cells, text = _block_cells(block, wanted)
            schemas.append(text)
            parts.append((cells, block.path))

        every = tuple(schemas)
        nothing = _versions(_one_batch([]), 0, every, self.path)
        return concat_versions(
            [nothing, *(_versions(cells, at, every, path) for at, (cells, path) in enumerate(parts, 1))]
        )


def open_slice(storage: Storage, file_slice: FileSlice, is_visible: Callable[[str], bool]) -> SliceReader:
    """Requests: a get for each small file; one or two for a large base file; for a large log as in `scan_log`."""
    blocks = tuple(_log_blocks(storage, file_slice, is_visible))
    if file_slice.base_file is None:
        return SliceReader(None, blocks, join(file_slice.partition, file_slice.file_id))
    path = join(file_slice.partition, file_slice.base_file.name.format())
    return SliceReader(_base_reader(storage, path, file_slice.base_file.size_bytes), blocks, path)


def _base_reader(storage: Storage, path: str, size: int) -> HFileReader:
    if size <= ONE_GET_SIZE_MAX:
        return _opened_before(path, storage.get(path))
    return HFileReader.by_ranges(StoredFile(storage, path), size, path=path)


_opened: ByContent[tuple[str, bytes], HFileReader] = ByContent(32 << 20, lambda content, _: 2 * len(content[1]))
"""Small HFiles, and small blocks of logs, that were opened before."""


def _opened_before(path: str, content: bytes) -> HFileReader:
    """An HFile that is held in memory. The same content gives the same reader, as long as it is kept."""
    return _opened.get((path, content), lambda: HFileReader(content, path=path))


def _log_blocks(storage: Storage, file_slice: FileSlice, is_visible: Callable[[str], bool]) -> list[LogBlock]:
    return slice_blocks(log_sources(storage, file_slice), is_visible)


def _block_cells(block: LogBlock, wanted: Wanted) -> tuple[pa.RecordBatch, str]:
    """The records of a block, and the schema of their values."""
    if block.type is BlockType.DELETE:
        return _deletes(block, wanted), ""
    if block.type is not BlockType.HFILE_DATA:
        expected = "HFile and delete blocks in a log of the metadata table"
        raise CorruptFile(block.path, block.offset, expected=expected, found=block.type.name)
    reader = _block_reader(block)
    return _one_batch(_cells(reader, wanted)), _schema_text(reader, block.path)


@dataclass(frozen=True, slots=True)
class _BlockContent:
    """The content of a log block, by ranges: an HFile within the log."""

    block: LogBlock

    def read_at(self, offset: int, size: int) -> bytes | memoryview:
        within = max(min(size, self.block.content_size - offset), 0)
        return self.block.source.read_at(self.block.content_offset + offset, within)


def _block_reader(block: LogBlock) -> HFileReader:
    if block.content_size <= ONE_GET_SIZE_MAX:
        return _opened_before(block.path, bytes(block.read_content()))
    return HFileReader.by_ranges(_BlockContent(block), block.content_size, path=block.path)


def _block_content(block: LogBlock) -> HFileReader | bytes:
    return _block_reader(block) if block.type is BlockType.HFILE_DATA else bytes(block.read_content())


def _schema_text(reader: HFileReader, path: str) -> str:
    text = reader.schema_text
    if text is None:
        raise CorruptFile(path, 0, expected="an HFile with its values' schema", found="one without")
    return text


def _cells(reader: HFileReader, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    match wanted:
        case None:
            return reader.batches()
        case Keys(keys):
            return iter([reader.find(keys)])
        case Prefixes(prefixes):
            return reader.find_prefixes(prefixes)


def _deletes(block: LogBlock, wanted: Wanted) -> pa.RecordBatch:
    """The keys that a block deletes, with null values."""
    keys = read_deletes(block).column("record_key").cast(pa.binary())
    if isinstance(wanted, Keys):
        keys = keys.filter(pc.is_in(keys, value_set=wanted.keys))
    return pa.RecordBatch.from_arrays([keys, pa.nulls(len(keys), pa.binary())], ["key", "value"])


def _one_batch(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    held = list(batches)
    if len(held) == 1:
        return held[0]
    kind = pa.large_binary() if sum(batch.nbytes for batch in held) >= 1 << 31 else pa.binary()
    columns = [pa.concat_arrays([pa.array([], kind), *(one.column(at).cast(kind) for one in held)]) for at in range(2)]
    return pa.RecordBatch.from_arrays(columns, CELLS.names)


def _versions(cells: pa.RecordBatch, source: int, schemas: tuple[str, ...], path: str) -> RecordVersions:
    sources = np.full(len(cells), source, np.int32)
    return RecordVersions(cells.column(0), cells.column(1), sources, schemas, path)
