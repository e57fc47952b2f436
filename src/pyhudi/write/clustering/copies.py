"""Which row groups a clustering can copy as they are, into the files of new file groups.

A row group is copied if the file that it comes to would hold the same columns, stored alike, with the same rows. Else
its rows are decoded and encoded again.
"""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile
from pyhudi.format.footer import KeyFooter
from pyhudi.format.parquet.footer import CODECS, MAGIC, Footer, RowGroup, read_footer
from pyhudi.format.schema.conversion import FILE_NAME
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.slice_log import SliceFiles
from pyhudi.table.view.missing_files import told_as_missing
from pyhudi.write.clustering.target import ClusteringTarget, GroupTask
from pyhudi.write.handles.base_file_writer import without

SMALL_GROUP_BYTES: Final = 1 << 20
SMALL_GROUPS_MAX: Final = 64
"""More row groups than this are copied only if they have `SMALL_GROUP_BYTES` on average. Many tiny ones are slow to
read, and compress badly: their rows are better joined.
"""

_TRUSTED: Final = re.compile(r"parquet-cpp-arrow version [1-9]\d\.|parquet-mr version 1\.[1-9]\d\.")
"""Writers whose bounds all readers trust. Older ones are told by their name, and their bounds are passed over."""


@dataclass(frozen=True, slots=True)
class CopySource:
    """A base file whose row groups are copied. `entries`: what it notes of its keys."""

    path: str
    footer: Footer
    entries: KeyFooter


@dataclass(frozen=True, slots=True)
class Copies:
    """What a task copies: for each new file the row groups, by the number of their source, and their own number in it.

    No file is without a row. `compression`: the codec of all pages.
    """

    sources: tuple[CopySource, ...]
    files: tuple[tuple[tuple[int, int], ...], ...]
    compression: str

    def groups(self, file: Sequence[tuple[int, int]]) -> Iterator[tuple[CopySource, RowGroup]]:
        for source, number in file:
            yield self.sources[source], self.sources[source].footer.groups[number]


def find_copies(store: Storage, target: ClusteringTarget, task: GroupTask) -> Copies | str:
    """What is copied of a group of slices, or why its rows must be decoded. No sort is asked.

    Requests: one or two reads of each base file's end, until a reason is found.
    """
    if why := _why_decoded(target, task.slices):
        return why
    sources: list[CopySource] = []
    try:
        for files in task.slices:
            assert files.base_path is not None
            with told_as_missing(files.base_path), store.open_input(files.base_path) as file:
                source, schema = read_source(file, files.base_path)
            if why := _why_unlike(target, source, schema, sources):
                return f"{source.path}: {why}"
            sources.append(source)
    except CorruptFile as error:  # whoever decodes the rows says so, if they are damaged
        return str(error)
    compression = _codec(target, sources)
    if compression is None:
        asked = target.compression or "one codec"
        return f"not all pages are compressed with {asked} (hoodie.parquet.compression.codec)"
    return _planned(tuple(sources), task, target.file_size_bytes, compression)


def read_source(file: BinaryIO, path: str) -> tuple[CopySource, pa.Schema]:
    """What a Parquet file states of itself, and its columns. Raises: CorruptFile."""
    footer, ending = read_footer(file, path=path)
    try:
        stated = pq.read_metadata(io.BytesIO(MAGIC + ending))
        schema = stated.schema.to_arrow_schema()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorruptFile(path, footer.start, expected="the footer of a Parquet file", found=f"{error}") from error
    counts = {len(group.chunks) for group in footer.groups}
    if counts - {stated.num_columns}:
        raise CorruptFile(
            path, footer.start, expected=f"row groups of {stated.num_columns} columns", found=f"some of {min(counts)}"
        )
    return CopySource(path, footer, KeyFooter.parse(stated.metadata)), schema


def _why_decoded(target: ClusteringTarget, slices: Sequence[SliceFiles]) -> str:
    """Why no file of the slices is copied, as far as the slices tell it."""
    if target.settings.extension != ".parquet":
        return f"base files are '{target.settings.extension}'"
    for files in slices:
        if files.logs:
            return "a slice has logs"
        if files.base_path is None or files.source is not None:
            return "columns lie in the files that the table was bootstrapped from"
        evolution = target.as_written.evolution
        if evolution is not None and evolution.of_file(files.base_path, target.schema.names) is not None:
            return f"{files.base_path}: columns have other names today"
    return ""


def _why_unlike(
    target: ClusteringTarget, source: CopySource, schema: pa.Schema, others: Sequence[CopySource]
) -> str:  # fmt: skip
    """Why the pages of a file cannot stand in a new file beside those of the others."""
    footer = source.footer
    if not footer.has_plain_pages:
        return "its pages are encrypted, or lie in another file"
    if _TRUSTED.match(footer.created_by) is None:
        return f"it was written by '{footer.created_by}'"
    if footer.has_old_types:
        return "it has timestamps of 96 bits, or decimals stored as numbers"
    if others and footer.columns != others[0].footer.columns:
        return f"its columns are not stored as those of {others[0].path}"
    if not _is_alike(pa.struct(list(schema)), pa.struct(list(without(target.schema, target.settings.left_out)))):
        return "its columns are not those of the table"
    if not footer.has_text_column(FILE_NAME):
        return f"'{FILE_NAME}' is not stored as text that may be null"
    return ""


def _codec(target: ClusteringTarget, sources: Sequence[CopySource]) -> str | None:
    """The codec of all pages, if there is one, and it is the one that is asked for. Without a page any is."""
    pages = {
        chunk.codec
        for source in sources
        for group in source.footer.groups
        for chunk in group.chunks
        if chunk.name != FILE_NAME
    }
    asked = target.compression
    found = [name for name, number in CODECS.items() if pages == {number}] if pages else [target.settings.compression]
    return found[0] if found and asked in (None, found[0]) else None


def _is_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a stored type is the one that is wanted, but for what may be null, and for names within lists and maps.

    Seen: files of Apache Hudi have lists whose elements are never null, of rows whose elements may be (0.15.0, 1.2.0).
    """
    if stored.id != wanted.id or stored.num_fields != wanted.num_fields or not stored.num_fields:
        return bool(stored == wanted)
    own = [(stored.field(at), wanted.field(at)) for at in range(stored.num_fields)]
    has_names = not pa.types.is_struct(stored) or all(one.name == other.name for one, other in own)
    return has_names and all(_is_alike(one.type, other.type) for one, other in own)


def _planned(
    sources: tuple[CopySource, ...], task: GroupTask, file_size_bytes: int, compression: str
) -> Copies | str:  # fmt: skip
    """The row groups of each new file. A file ends where it comes nearest to its share of all pages."""
    all_groups = [
        (source, number, group.size)
        for source, one in enumerate(sources)
        for number, group in enumerate(one.footer.groups)
        if group.rows
    ]
    total, largest = sum(size for *_, size in all_groups), max((size for *_, size in all_groups), default=0)
    if len(all_groups) > SMALL_GROUPS_MAX and total < len(all_groups) * SMALL_GROUP_BYTES:
        return f"{len(all_groups):,} row groups of {total // len(all_groups):,} bytes on average are better joined"
    share = max(1, min(file_size_bytes, -(-total // task.files)))
    if task.files > 1 and largest > share // 2:
        return f"a row group has {largest:,} bytes: too many to be split into files of {share:,} bytes"

    files: list[list[tuple[int, int]]] = []
    held = 0
    for source, number, size in all_groups:
        is_full = held + size // 2 >= share and len(files) < task.files
        if not files or is_full:
            files.append([])
            held = 0
        files[-1].append((source, number))
        held += size
    return Copies(sources, tuple(map(tuple, files)), compression)
