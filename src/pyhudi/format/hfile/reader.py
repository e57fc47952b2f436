"""Reading an HFile, from memory or by ranges of a stored file: scans, point lookups, prefix lookups.

Memory: the index, and a few megabytes of data blocks at a time; `scan_arrow` holds its result.
Requests of a file that is read by ranges: one or two to open it, then one for each run of neighbouring blocks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from pyhudi.errors import Unsupported
from pyhudi.format.arrow_arrays import key_buffers
from pyhudi.format.hfile import block as blocks
from pyhudi.format.hfile.ahead import worked_ahead
from pyhudi.format.hfile.cells import (
    Bytes,
    Index,
    Offsets,
    Spans,
    are_ordered,
    find_cells,
    floor_rows,
    lower_bound,
    match_cells,
    prefix_end,
)
from pyhudi.format.hfile.columns import CELLS, BlockCells, batch_of, batches_of, joined, listed_batch
from pyhudi.format.hfile.index import IndexEntry, decode_inner_index, decode_root_index
from pyhudi.format.hfile.origin import Origin
from pyhudi.format.hfile.trailer import TRAILER_SIZE, decode_file_info, decode_trailer
from pyhudi.format.log.source import LogSource, MemoryLog, read_exactly

SCHEMA = "schema"

_WITH_VERSIONS = (1).to_bytes(4, "big")
_FIRST_REORDERED_BYTE = 0xEE
_Result = TypeVar("_Result")

_TAIL_SIZE: Final = 64 * 1024
"""The bytes at a file's end that the first request reads: the trailer and, in most files, the whole index."""
_RUN_SIZE: Final = 8 << 20
_GAP_SIZE: Final = 256 * 1024
"""A gap of at most this many bytes between two wanted blocks is read along: that is cheaper than a second request."""
_AHEAD_SIZE: Final = 1 << 20
"""A run of at least this many stored bytes is worth the start of a second thread."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Bytes of the file, from `start` on."""

    start: int
    view: memoryview

    def holds(self, offset: int, size: int) -> bool:
        return self.start <= offset and offset + size <= self.start + len(self.view)


class HFileReader:
    """An HFile: a base file of the metadata table, or the content of an HFile log block.

    Order: rows ascend by unsigned bytes. Java sorts by UTF-16 units, so a file that Java wrote with keys
    beyond U+FFFF may be ordered otherwise. Such keys are found all the same.

    Spec: format/hfile.md. Raises: CorruptFile, here or at the first use of the broken part; Unsupported
    for codecs other than GZ and NONE and for cells with tags.
    """

    def __init__(self, data: bytes | memoryview, *, path: str) -> None:
        view = memoryview(data).cast("B").toreadonly()
        self._open(MemoryLog(view), len(view), len(view), path)

    @classmethod
    def by_ranges(cls, source: LogSource, size_bytes: int, *, path: str) -> "HFileReader":
        """Open a stored file of `size_bytes`; only the needed ranges are read."""
        reader = cls.__new__(cls)
        reader._open(source, size_bytes, min(size_bytes, _TAIL_SIZE), path)
        return reader

    def _open(self, source: LogSource, size_bytes: int, tail_size: int, path: str) -> None:
        self._path, self._source, self._size_bytes = path, source, size_bytes
        start = size_bytes - tail_size
        tail = read_exactly(source, start, tail_size, path=path)

        self._trailer = trailer = decode_trailer(tail, path, base=start)
        # If the index begins before the tail, the file is read again from the index on.
        if trailer.load_on_open_offset < start:
            start, tail_size = trailer.load_on_open_offset, size_bytes - trailer.load_on_open_offset
            tail = read_exactly(source, start, tail_size, path=path)
        self._tail = _Window(start, tail[: tail_size - TRAILER_SIZE])

        data_root = self._block(self._tail, trailer.load_on_open_offset, blocks.ROOT_INDEX)
        meta_root = self._block(self._tail, data_root.offset + data_root.size, blocks.ROOT_INDEX)
        info = self._block(self._tail, trailer.file_info_offset, blocks.FILE_INFO)

        origin = Origin(path, data_root.offset)
        self._root = decode_root_index(data_root.payload, trailer.data_index_count, origin, is_meta=False)
        origin = Origin(path, meta_root.offset)
        meta = decode_root_index(meta_root.payload, trailer.meta_index_count, origin, is_meta=True)
        self._meta = {entry.row: entry for entry in meta}

        self._info = decode_file_info(info.payload, Origin(path, info.offset))
        if "hfile.MAX_TAGS_LEN" in self._info:
            raise Unsupported(f"{path}: an HFile whose cells carry tags, which Hudi never writes")
        self._has_versions = self._info.get("KEY_VALUE_VERSION") == _WITH_VERSIONS

    @property
    def is_in_memory(self) -> bool:
        """Whether the whole file is held, so that no call makes a request."""
        return self._tail.start == 0

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
            origin = Origin(self._path, self._trailer.file_info_offset)
            raise origin.corrupt("a schema in UTF-8", str(error)) from error

    def meta(self, name: str) -> bytes | None:
        """The content of a meta block, such as `bloomFilter`; None if the file has no block of this name."""
        entry = self._meta.get(name.encode())
        return None if entry is None else self._indexed_block(self._window(entry, entry), entry, blocks.META)

    # All cells.

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Every row key and value, in file order."""
        for cells in self._all_cells():
            spans = cells.spans.tolist()
            for row_start, row_end, value_start, value_end in spans:
                yield cells.payload[row_start:row_end], cells.payload[value_start:value_end]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Every cell, in file order, as `CELLS`: about 4 MiB a batch, or one block."""
        yield from batches_of(self._all_cells())

    def scan_arrow(self) -> pa.Table:
        """Every cell, in file order: columns `key` and `value`, both binary. Memory: the result twice, for a moment."""
        return pa.Table.from_batches(self.batches(), CELLS).combine_chunks()

    # Some cells.

    def find(self, keys: pa.Array) -> pa.RecordBatch:
        """The cells of these keys, in file order, as `CELLS`. If the file has a key twice, its first cell is taken.

        `keys`: binary or text, sorted by bytes, each once. Memory: the answer, and a run of blocks.
        """
        found: list[pa.RecordBatch] = []
        for data, offsets, count in key_buffers(keys, what=self._path):
            # The one data block that may hold each key, and the range of keys for each block.
            floors = np.empty(count, np.int64)
            floor_rows(*self._index_rows, data, offsets, floors)
            wanted, starts = np.unique(floors, return_index=True)
            ends = np.append(starts[1:], count)
            bounds = {int(w): (int(s), int(e)) for w, s, e in zip(wanted, starts, ends, strict=True) if w >= 0}

            hits = np.zeros(count, np.bool_)
            found += batches_of(self._matches(bounds, data, offsets, hits))
            found += self._find_reordered(keys, data, offsets, hits)
        return joined(found)

    def _matches(
        self, bounds: Mapping[int, tuple[int, int]], data: Bytes, offsets: Offsets, hits: np.ndarray
    ) -> Iterator[BlockCells]:
        """The cells found in each data block. Sets `hits` for each key that is found.

        `bounds`: by the index of a data block, the first key that may lie in it and the end of these keys.
        """
        asked = sorted(bounds)
        entries = [self._entries[index] for index in asked]

        def match(at: int, payload: bytes) -> BlockCells:
            start, end = bounds[asked[at]]
            content = np.frombuffer(payload, np.uint8)
            spans, hits[start:end], bad = match_cells(content, self._has_versions, data, offsets, start, end)
            self._refuse_broken(entries[at], payload, bad)
            return BlockCells(payload, content, spans)

        for cells in self._worked(entries, blocks.DATA, match):
            if len(cells.spans):
                yield cells

    def _find_reordered(self, keys: pa.Array, data: Bytes, offsets: Offsets, hits: np.ndarray) -> list[pa.RecordBatch]:
        # Java's order differs from byte order only from U+E000 on, whose UTF-8 has a byte of 0xEE or more.
        content = data[offsets[0] : offsets[-1]]
        if hits.all() or content.size == 0 or content.max() < _FIRST_REORDERED_BYTE or not self._reordered:
            return []

        missing = (key if isinstance(key, bytes) else key.encode() for key in keys.filter(pa.array(~hits)).to_pylist())
        cells = [(key, self._reordered[key]) for key in missing if key in self._reordered]
        return [listed_batch(cells)] if cells else []

    def find_prefixes(self, prefixes: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
        """The cells whose row starts with one of the prefixes, each once, ordered by prefix, as `CELLS`."""
        done: bytes | None = None
        for prefix in sorted(prefixes):
            # A shorter prefix before this one has given these cells already.
            if done is not None and prefix.startswith(done):
                continue
            done = prefix
            if max(prefix, default=0) >= _FIRST_REORDERED_BYTE and self._reordered:
                yield listed_batch([(row, value) for row, value in self.scan() if row.startswith(prefix)])
            else:
                yield from self._ordered_prefix(prefix)

    def _ordered_prefix(self, prefix: bytes) -> Iterator[pa.RecordBatch]:
        key = np.frombuffer(prefix, np.uint8)
        floor = np.empty(1, np.int64)
        floor_rows(*self._index_rows, key, np.array([0, len(prefix)], np.int64), floor)
        first = max(int(floor[0]), 0)

        beyond = _behind(prefix)
        last = first + 1
        while last < len(self._entries) and (beyond is None or self._entries[last].row < beyond):
            last += 1

        for cells in self._some_cells(range(first, min(last, len(self._entries)))):
            start = lower_bound(cells.data, cells.spans, key)
            end = prefix_end(cells.data, cells.spans, start, key)
            if end > start:
                yield batch_of([cells.some(cells.spans[start:end])])

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key, or None. If the file has a key twice, its first cell is taken."""
        found = self.find(pa.array(sorted(set(keys)), pa.binary())).to_pydict()
        values = dict(zip(found["key"], found["value"], strict=True))
        return [values.get(key) for key in keys]

    def prefix(self, prefixes: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """The cells whose row starts with one of the prefixes, each once, ordered by prefix."""
        for batch in self.find_prefixes(prefixes):
            yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)

    # The index.

    @cached_property
    def _entries(self) -> list[IndexEntry]:
        """The index entries of the data blocks: intermediate and leaf index blocks are followed down to them."""
        entries = self._root
        for level in range(self._trailer.data_index_levels - 1, 0, -1):
            self._check_ascending(entries)
            magic = blocks.LEAF_INDEX if level == 1 else blocks.INTERMEDIATE_INDEX
            entries = self._inner_entries(entries, magic)
        self._check_ascending(entries)
        return entries

    def _inner_entries(self, outer: Sequence[IndexEntry], magic: bytes) -> list[IndexEntry]:
        """The entries inside the index blocks that these entries point to."""

        def decode(at: int, payload: bytes) -> list[IndexEntry]:
            return list(decode_inner_index(payload, Origin(self._path, outer[at].offset)))

        return [entry for inner in self._worked(outer, magic, decode) for entry in inner]

    @cached_property
    def _index_rows(self) -> tuple[Bytes, Spans]:
        """The lower bound of each data block's rows: the bytes of all, one behind the other, and where each starts."""
        rows = [entry.row for entry in self._entries]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return np.frombuffer(b"".join(rows), np.uint8), offsets

    @cached_property
    def _reordered(self) -> Mapping[bytes, bytes]:
        """Every cell of a file that is not in byte order, by row; empty for a file in byte order.

        Memory: all cells of the file, in the rare case that Java wrote keys on both sides of U+FFFF.
        """
        return {} if self.is_ordered else dict(reversed(list(self.scan())))

    @cached_property
    def is_ordered(self) -> bool:
        """Whether the rows ascend by unsigned bytes. Costs a whole scan, once."""
        last = b""
        for cells in self._all_cells():
            if len(cells.spans):
                if last > cells.row(0) or not are_ordered(cells.data, cells.spans):
                    return False
                last = cells.row(len(cells.spans) - 1)
        return True

    # Blocks.

    def _all_cells(self) -> Iterator[BlockCells]:
        """Each data block's cells. Raises: CorruptFile at the end if the trailer states another count."""
        count = 0
        for cells in self._some_cells(range(len(self._entries))):
            count += len(cells.spans)
            yield cells
        if count != self.entry_count:
            origin = Origin(self._path, self._size_bytes - TRAILER_SIZE)
            raise origin.corrupt(f"{count:,} cells, as in the blocks", f"{self.entry_count:,}")

    def _some_cells(self, indices: Sequence[int]) -> Iterator[BlockCells]:
        """The cells of these data blocks, which ascend."""
        entries = [self._entries[index] for index in indices]
        return self._worked(entries, blocks.DATA, lambda at, payload: self._cells(entries[at], payload))

    def _cells(self, entry: IndexEntry, payload: bytes) -> BlockCells:
        data = np.frombuffer(payload, np.uint8)
        spans, bad = find_cells(data, self._has_versions)
        self._refuse_broken(entry, payload, bad)
        return BlockCells(payload, data, spans)

    def _refuse_broken(self, entry: IndexEntry, payload: bytes, bad: Index) -> None:
        """Raise CorruptFile if `bad` is the offset of bytes that are no cell; -1 says that all are cells."""
        if bad >= 0:
            found = payload[bad : bad + 12].hex(" ")
            raise Origin(self._path, entry.offset).corrupt(f"a cell at byte {bad:,} of the data block", found)

    def _worked(
        self, entries: Sequence[IndexEntry], magic: bytes, work: Callable[[int, bytes], _Result]
    ) -> Iterator[_Result]:
        """The results of `work`, called for each of these blocks, which ascend, with its index and its payload.

        A run of neighbours is one request; on long runs a thread works ahead. Memory: a run, and a few blocks.
        """
        for run in self._runs(entries):
            window = self._window(entries[run[0]], entries[run[-1]])

            def work_on(at: int, window: _Window = window) -> _Result:
                return work(at, self._indexed_block(window, entries[at], magic))

            is_long = len(run) > 1 and sum(entries[at].size for at in run) >= _AHEAD_SIZE
            yield from worked_ahead(work_on, run) if is_long else map(work_on, run)

    def _runs(self, entries: Sequence[IndexEntry]) -> Iterator[range]:
        """The indices of the blocks that each request reads."""
        first = 0
        for at in range(1, len(entries) + 1):
            if at == len(entries) or not _is_near(entries[first], entries[at - 1], entries[at]):
                yield range(first, at)
                first = at

    def _window(self, first: IndexEntry, last: IndexEntry) -> _Window:
        """The bytes of the blocks from the first to the last."""
        end = last.offset + last.size
        if self._tail.holds(first.offset, end - first.offset):
            return self._tail
        for entry in (first, last):
            if not 0 <= entry.offset < entry.offset + entry.size <= self._size_bytes - TRAILER_SIZE:
                origin = Origin(self._path, entry.offset)
                raise origin.corrupt("a block inside the file", f"{entry.size:,} bytes of {self._size_bytes:,}")
        size = end - first.offset
        return _Window(first.offset, read_exactly(self._source, first.offset, size, path=self._path))

    def _indexed_block(self, window: _Window, entry: IndexEntry, magic: bytes) -> bytes:
        found = self._block(window, entry.offset, magic)
        if found.size != entry.size:
            raise Origin(self._path, entry.offset).corrupt(f"a block of {entry.size:,} bytes", f"{found.size:,}")
        return found.payload

    def _block(self, window: _Window, offset: int, magic: bytes) -> blocks.Block:
        codec = self._trailer.codec
        return blocks.decode_block(window.view, offset, magic=magic, codec=codec, path=self._path, base=window.start)

    def _check_ascending(self, entries: Sequence[IndexEntry]) -> None:
        """Each block once and in file order, so that no index can send a reader round in circles."""
        for before, here in pairwise(entries):
            if here.offset <= before.offset:
                origin = Origin(self._path, self._trailer.load_on_open_offset)
                raise origin.corrupt(f"index entries beyond byte {before.offset:,}", f"one at {here.offset:,}")


def _is_near(first: IndexEntry, before: IndexEntry, here: IndexEntry) -> bool:
    """Whether the block `here` is read in the same request as the blocks from `first` to `before`."""
    return (
        here.offset - (before.offset + before.size) <= _GAP_SIZE and here.offset + here.size - first.offset <= _RUN_SIZE
    )


def _behind(prefix: bytes) -> bytes | None:
    """The least row that is greater than every row with the prefix, or None. Example: `b"ab"` gives `b"ac"`."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None
