"""Reading a whole HFile held in memory: scan, point lookups, prefix lookups.

Importing this module imports numba. Memory: the file, the index, and one data block (64 KiB to 1 MiB
before compression) at a time; `scan_arrow` holds its result.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from pyhudi.errors import Unsupported
from pyhudi.format.hfile import block as blocks
from pyhudi.format.hfile.cells import Bytes, Spans, are_ordered, copy_spans, find_cells, lower_bound
from pyhudi.format.hfile.index import IndexEntry, decode_inner_index, decode_root_index
from pyhudi.format.hfile.place import Place
from pyhudi.format.hfile.trailer import TRAILER_SIZE, decode_file_info, decode_trailer

SCHEMA = "schema"

_WITH_VERSIONS = (1).to_bytes(4, "big")
_FIRST_REORDERED_BYTE = 0xEE


@dataclass(frozen=True, slots=True)
class _Cells:
    """One data block and the spans of its cells."""

    payload: bytes
    data: Bytes
    spans: Spans

    def row(self, index: int) -> bytes:
        return self.payload[self.spans[index, 0] : self.spans[index, 1]]

    def value(self, index: int) -> bytes:
        return self.payload[self.spans[index, 2] : self.spans[index, 3]]


class HFileReader:
    """An HFile image: a base file of the metadata table, or the content of an HFile log block.

    Order: rows ascend by unsigned bytes. Java sorts by UTF-16 units, so a file of its with keys beyond
    U+FFFF may be ordered otherwise; such keys are found all the same.

    Spec: format/hfile.md. Raises: CorruptFile, here or at the first use of the broken part; Unsupported
    for codecs other than GZ and NONE and for cells with tags.
    """

    def __init__(self, data: bytes | memoryview, *, path: str) -> None:
        self._path = path
        self._data = memoryview(data).cast("B").toreadonly()
        self._trailer = decode_trailer(self._data, path)
        trailer = self._trailer
        data_root = self._block(trailer.load_on_open_offset, blocks.ROOT_INDEX)
        meta_root = self._block(data_root.offset + data_root.size, blocks.ROOT_INDEX)
        info = self._block(trailer.file_info_offset, blocks.FILE_INFO)
        place = Place(path, data_root.offset)
        self._root = decode_root_index(data_root.payload, trailer.data_index_count, place, is_meta=False)
        place = Place(path, meta_root.offset)
        meta = decode_root_index(meta_root.payload, trailer.meta_index_count, place, is_meta=True)
        self._meta = {entry.row: entry for entry in meta}
        self._info = decode_file_info(info.payload, Place(path, info.offset))
        if "hfile.MAX_TAGS_LEN" in self._info:
            raise Unsupported(f"{path}: an HFile whose cells carry tags, which Hudi never writes")
        self._has_versions = self._info.get("KEY_VALUE_VERSION") == _WITH_VERSIONS

    @property
    def entry_count(self) -> int:
        """The number of cells, as the trailer gives it; a full scan checks it."""
        return self._trailer.entry_count

    @property
    def file_info(self) -> Mapping[str, bytes]:
        return MappingProxyType(self._info)

    @property
    def schema_text(self) -> str | None:
        """The Avro schema of the values, as JSON text."""
        schema = self._info.get(SCHEMA)
        if schema is None:
            return None
        try:
            return schema.decode("utf-8")
        except UnicodeDecodeError as error:
            place = Place(self._path, self._trailer.file_info_offset)
            raise place.corrupt("a schema in UTF-8", str(error)) from error

    def meta(self, name: str) -> bytes | None:
        """The content of a meta block, such as `bloomFilter`."""
        entry = self._meta.get(name.encode())
        return None if entry is None else self._indexed_block(entry, blocks.META)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Every row key and value, in file order."""
        for cells in self._all_cells():
            spans = cells.spans.tolist()
            for row_start, row_end, value_start, value_end in spans:
                yield cells.payload[row_start:row_end], cells.payload[value_start:value_end]

    def scan_arrow(self) -> pa.Table:
        """Every cell, in file order: columns `key` and `value`, both binary.

        Memory: the result twice, for a moment.
        """
        columns = [(_column(cells, 0), _column(cells, 2)) for cells in self._all_cells()]
        keys = pa.chunked_array([key for key, _ in columns], pa.binary())
        values = pa.chunked_array([value for _, value in columns], pa.binary())
        return pa.table({"key": keys, "value": values}).combine_chunks()

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key, or None; of equal keys in the file the first.

        Keys are best sorted: each block is then read once.
        """
        found: list[bytes | None] = []
        block_index, cells = -1, None
        for key in keys:
            wanted = bisect_right(self._first_rows, key) - 1
            value = None
            if wanted >= 0:
                if cells is None or wanted != block_index:
                    block_index, cells = wanted, self._cells(self._entries[wanted])
                at = lower_bound(cells.data, cells.spans, np.frombuffer(key, np.uint8))
                if at < len(cells.spans) and cells.row(at) == key:
                    value = cells.value(at)
            if value is None and _may_be_reordered(key):
                value = self._reordered.get(key)
            found.append(value)
        return found

    def prefix(self, prefixes: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """The cells whose row starts with one of the prefixes, each once, ordered by prefix."""
        done: bytes | None = None
        for prefix in sorted(prefixes):
            if done is not None and prefix.startswith(done):
                continue
            done = prefix
            if _may_be_reordered(prefix) and self._reordered:
                yield from ((row, value) for row, value in self.scan() if row.startswith(prefix))
            else:
                yield from self._ordered_prefix(prefix)

    def _ordered_prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        key = np.frombuffer(prefix, np.uint8)
        first = max(bisect_right(self._first_rows, prefix) - 1, 0)
        for entry in self._entries[first:]:
            cells = self._cells(entry)
            for at in range(lower_bound(cells.data, cells.spans, key), len(cells.spans)):
                row = cells.row(at)
                if not row.startswith(prefix):
                    return
                yield row, cells.value(at)

    @cached_property
    def _entries(self) -> list[IndexEntry]:
        """The index of the data blocks themselves, inner levels resolved."""
        entries = self._root
        for level in range(self._trailer.data_index_levels - 1, 0, -1):
            self._check_ascending(entries)
            magic = blocks.LEAF_INDEX if level == 1 else blocks.INTERMEDIATE_INDEX
            inner = [(self._indexed_block(entry, magic), Place(self._path, entry.offset)) for entry in entries]
            entries = [entry for payload, place in inner for entry in decode_inner_index(payload, place)]
        self._check_ascending(entries)
        return entries

    @cached_property
    def _first_rows(self) -> list[bytes]:
        return [entry.row for entry in self._entries]

    @cached_property
    def _reordered(self) -> Mapping[bytes, bytes]:
        """Every cell of a file that is not in byte order; of one that is, nothing.

        Memory: the whole file's cells, in the rare case that Java wrote keys on both sides of U+FFFF.
        """
        is_ordered, last = True, b""
        for cells in self._all_cells():
            if len(cells.spans):
                is_ordered = is_ordered and last <= cells.row(0) and bool(are_ordered(cells.data, cells.spans))
                last = cells.row(len(cells.spans) - 1)
        return {} if is_ordered else dict(reversed(list(self.scan())))

    def _all_cells(self) -> Iterator[_Cells]:
        """Each data block's cells. Raises: CorruptFile at the end if the trailer counted otherwise."""
        count = 0
        for entry in self._entries:
            cells = self._cells(entry)
            count += len(cells.spans)
            yield cells
        if count != self.entry_count:
            place = Place(self._path, len(self._data) - TRAILER_SIZE)
            raise place.corrupt(f"{count:,} cells, as in the blocks", f"{self.entry_count:,}")

    def _cells(self, entry: IndexEntry) -> _Cells:
        payload = self._indexed_block(entry, blocks.DATA)
        data = np.frombuffer(payload, np.uint8)
        spans, bad = find_cells(data, self._has_versions)
        if bad >= 0:
            found = payload[bad : bad + 12].hex(" ")
            raise Place(self._path, entry.offset).corrupt(f"a cell at byte {bad:,} of the data block", found)
        return _Cells(payload, data, spans)

    def _indexed_block(self, entry: IndexEntry, magic: bytes) -> bytes:
        found = self._block(entry.offset, magic)
        if found.size != entry.size:
            raise Place(self._path, entry.offset).corrupt(f"a block of {entry.size:,} bytes", f"{found.size:,}")
        return found.payload

    def _block(self, offset: int, magic: bytes) -> blocks.Block:
        body = self._data[: len(self._data) - TRAILER_SIZE]
        return blocks.decode_block(body, offset, magic=magic, codec=self._trailer.codec, path=self._path)

    def _check_ascending(self, entries: Sequence[IndexEntry]) -> None:
        """Each block once and in file order, so that no index can send a reader round in circles."""
        for before, here in pairwise(entries):
            if here.offset <= before.offset:
                place = Place(self._path, self._trailer.load_on_open_offset)
                raise place.corrupt(f"index entries beyond byte {before.offset:,}", f"one at {here.offset:,}")


def _may_be_reordered(key: bytes) -> bool:
    """Whether UTF-16 order and byte order may place this key differently: it reaches U+E000 or more."""
    return max(key, default=0) >= _FIRST_REORDERED_BYTE


def _column(cells: _Cells, column: int) -> pa.Array:
    """Rows (0) or values (2) of one block as an Arrow array."""
    sizes = cells.spans[:, column + 1] - cells.spans[:, column]
    offsets = np.empty(len(cells.spans) + 1, np.int32)
    content = np.empty(int(sizes.sum()), np.uint8)
    copy_spans(cells.data, cells.spans, column, offsets, content)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(cells.spans), buffers)
