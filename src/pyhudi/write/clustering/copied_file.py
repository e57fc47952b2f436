"""Writing base files of copied row groups. Only the column with the file's name is encoded anew."""

import io
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile
from pyhudi.format.names import file_group_id
from pyhudi.format.parquet.footer import MAGIC, Chunk, RowGroup, encode_footer, key_values, read_at
from pyhudi.format.parquet.moved import MovedChunk, group_message, moved_offsets, runs
from pyhudi.format.parquet.thrift import Items, Kind
from pyhudi.format.schema.conversion import FILE_NAME, leave_out_fields
from pyhudi.format.timeline.records import WriteStat
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.missing_files import told_as_missing
from pyhudi.write.clustering.copied_keys import CopiedPart, key_entries
from pyhudi.write.clustering.copies import Copies, CopySource, read_source
from pyhudi.write.clustering.target import ClusteringTarget, GroupTask, NewGroup
from pyhudi.write.handles.file_sinks import ParquetSink

log = logging.getLogger("pyhudi")

ORIGINAL_CREATED_BY: Final = "original.created.by"
"""The entry that names the writers of copied pages. Seen: 1.2.0 (`HoodieParquetBinaryCopyBase`)."""

_PIECE_BYTES: Final = 8 << 20


def write_copies(
    store: Storage, target: ClusteringTarget, task: GroupTask, copies: Copies, task_attempt: int
) -> list[WriteStat]:
    """Write the files of copied row groups. Returns the statement of each.

    Memory: 8 MiB of pages, the page indexes of a source, and the footers of all. Where the keys' filter cannot be made
    of the old ones, the record keys are read.
    """
    stats: list[WriteStat] = []
    for file in copies.files:
        new = NewGroup.begin(store, target, task, file_group_id(task.uuid, len(stats)), task_attempt)
        groups = list(copies.groups(file))
        parts = _parts(copies, file)
        with store.put_stream(new.file.path) as sink:
            writer = _CopyWriter(sink, target, new.name, copies.compression)
            for path, own in groupby(groups, key=lambda one: one[0].path):
                with told_as_missing(path), store.open_input(path) as source:
                    writer.append(source, path, [group for _, group in own])
            writer.finish(key_entries(store, parts, target.settings.bloom), [source for source, _ in groups])
            new.file.refuse_when_given_up()
        stats.append(new.stat(task, rows=writer.rows))
    return stats


def _parts(copies: Copies, file: Sequence[tuple[int, int]]) -> list[CopiedPart]:
    """The row groups of each source in a file."""
    found: list[CopiedPart] = []
    for number, own in groupby(file, key=lambda one: one[0]):
        source, groups = copies.sources[number], tuple(group for _, group in own)
        rows = sum(source.footer.groups[group].rows for group in groups)
        is_whole = rows == sum(group.rows for group in source.footer.groups)
        found.append(CopiedPart(source.path, source.entries, groups, rows=rows, is_whole=is_whole))
    return found


class _CopyWriter:
    """Writes one base file. `rows`: so far."""

    def __init__(self, sink: BinaryIO, target: ClusteringTarget, name: str, compression: str) -> None:
        self._sink, self._target, self._name, self._compression = sink, target, name, compression
        self._groups: list[tuple[RowGroup, int, list[MovedChunk]]] = []
        self.rows = 0
        sink.write(MAGIC)

    def append(self, file: BinaryIO, path: str, groups: Sequence[RowGroup]) -> None:
        """Append row groups of one file."""
        indexes = _PageIndexes.read(file, path, groups)
        for group in groups:
            start, moved = self._sink.tell(), list[MovedChunk]()
            for run in runs(group.chunks):
                for is_name, chunks in groupby(run, key=lambda one: one.name == FILE_NAME):
                    own = list(chunks)
                    moved += [self._put_name(group.rows)] if is_name else self._copy(file, path, own, indexes)
            self._groups.append((group, start, moved))
            self.rows += group.rows

    def _copy(self, file: BinaryIO, path: str, chunks: Sequence[Chunk], indexes: "_PageIndexes") -> list[MovedChunk]:
        """Copy chunks that lie behind each other."""
        shift = self._sink.tell() - chunks[0].start
        at, end = chunks[0].start, chunks[-1].start + chunks[-1].size
        while at < end:
            piece = read_at(file, at, min(_PIECE_BYTES, end - at), path=path)
            self._sink.write(piece)
            at += len(piece)
        return [indexes.moved(chunk, shift) for chunk in chunks]

    def _put_name(self, rows: int) -> MovedChunk:
        content = _name_file(self._name, rows, self._compression, self._target.settings.page_size_bytes)
        file = io.BytesIO(content)
        source, _ = read_source(file, self._name)
        (group,) = source.footer.groups
        (chunk,) = group.chunks
        indexes = _PageIndexes.read(file, self._name, [group])
        moved = indexes.moved(chunk, self._sink.tell() - chunk.start)
        self._sink.write(content[chunk.start : chunk.start + chunk.size])
        return moved

    def finish(self, keys: Mapping[str, str], sources: Sequence[CopySource]) -> None:
        """Write the page indexes and the footer. `keys`: what is noted of the record keys."""
        column_places = self._put_all([one.column_index for _, _, moved in self._groups for one in moved])
        offset_places = self._put_all([one.offset_index for _, _, moved in self._groups for one in moved])
        places = zip(column_places, offset_places, strict=True)

        settings = self._target.settings
        messages = [
            group_message(
                [one.message(*next(places)) for one in moved], group.message, rows=group.rows, start=start,
                ordinal=ordinal,
            )
            for ordinal, (group, start, moved) in enumerate(self._groups)
        ]  # fmt: skip
        entries = {
            "parquet.avro.schema": leave_out_fields(self._target.avro_schema, settings.left_out),
            **keys,
            "writer.model.name": "avro",
            ORIGINAL_CREATED_BY: "\n".join(dict.fromkeys(source.footer.created_by for source in sources)),
        }
        first = sources[0].footer.message
        footer = first.with_fields(
            f1=(Kind.I32, max(source.footer.message.number(1) or 1 for source in sources)),
            f3=(Kind.I64, self.rows),
            f4=(Kind.LIST, Items(Kind.STRUCT, list(messages))),
            f5=(Kind.LIST, key_values(entries)),
            f6=(Kind.BINARY, _created_by()),
        )
        ending = encode_footer(footer)
        stated = pq.read_metadata(io.BytesIO(MAGIC + ending))
        assert stated.num_rows == self.rows, "the footer states the rows that were copied"
        assert stated.num_row_groups == len(self._groups), "the footer states the row groups that were copied"
        self._sink.write(ending)

    def _put_all(self, contents: Sequence[bytes | None]) -> list[tuple[int, int] | None]:
        """Write page indexes. Returns where each of them lies."""
        places: list[tuple[int, int] | None] = []
        for content in contents:
            places.append(None if content is None else (self._sink.tell(), len(content)))
            self._sink.write(content or b"")
        return places


@dataclass(frozen=True, slots=True)
class _PageIndexes:
    """The part of a file that holds the page indexes of some row groups, read at once. `start`: where it begins."""

    path: str
    start: int
    content: bytes

    @classmethod
    def read(cls, file: BinaryIO, path: str, groups: Sequence[RowGroup]) -> "_PageIndexes":
        ranges = [
            one
            for group in groups
            for chunk in group.chunks
            for one in (chunk.column_index, chunk.offset_index)
            if one is not None
        ]
        start = min((at for at, _ in ranges), default=0)
        end = max((at + size for at, size in ranges), default=0)
        return cls(path, start, read_at(file, start, end - start, path=path))

    def moved(self, chunk: Chunk, shift: int) -> MovedChunk:
        """The chunk at its new place. Readers do without an index of pages, so a broken one is left out."""
        columns, offsets = self._part(chunk.column_index), self._part(chunk.offset_index)
        try:
            moved = None if offsets is None else moved_offsets(offsets, shift, path=self.path)
        except CorruptFile as error:
            log.warning("%s: the page index of column '%s' is left out: %s", self.path, chunk.name, error)
            return MovedChunk(chunk, chunk.start + shift)
        return MovedChunk(chunk, chunk.start + shift, columns, moved)

    def _part(self, place: tuple[int, int] | None) -> bytes | None:
        return None if place is None else self.content[place[0] - self.start :][: place[1]]


def _name_file(name: str, rows: int, compression: str, page_size_bytes: int) -> bytes:
    """A Parquet file of one column and row group: a file's name in each row."""
    out = io.BytesIO()
    kind = pa.dictionary(pa.int32(), pa.string())
    sink = ParquetSink(
        out, pa.schema([pa.field(FILE_NAME, kind)]), compression=compression, dictionary=[FILE_NAME],
        bounds=[FILE_NAME], page_size_bytes=page_size_bytes,
    )  # fmt: skip
    names = pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()).fill_null(0), pa.array([name], pa.string()))
    sink.write(pa.table({FILE_NAME: names}), max(1, rows))
    sink.finish({})
    return out.getvalue()


@cache
def _created_by() -> bytes:
    """How files of this process name their writer."""
    file = io.BytesIO(_name_file("", 1, "none", 1 << 20))
    source, _ = read_source(file, FILE_NAME)
    return source.footer.created_by.encode()
