"""Reads the archived timeline of layout 2: Parquet files that a manifest lists."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile, HudiError, NotFound
from pyhudi.format.parquet.opening import open_parquet
from pyhudi.format.timeline.action_files import decode_clean_metadata, decode_commit
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.lsm import (
    ACTION,
    COMPLETION_TIME,
    HISTORY_SCHEMA,
    INSTANT_TIME,
    METADATA,
    PLAN,
    VERSION_FILE,
    HistoryFile,
    decode_manifest,
    manifest_name,
    manifest_number,
    parse_version,
)
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.history import in_order, not_archived, within

T = TypeVar("T")

WHOLE_FILE_MAX_BYTES = 1 << 20
"""A file of at most this size is fetched in one request. Of a larger file only the needed parts are fetched."""

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Manifest:
    """A state of the archived timeline: its number, and its files. Number 0: nothing was archived yet."""

    number: int
    files: tuple[HistoryFile, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group of a file."""

    file: HistoryFile
    number: int


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """The current manifest. Requests: two gets; a list as well if there is no `_version_`.

    Raises: NotFound if the manifest was cleaned away meanwhile; CorruptFile.
    """
    number = read_current_number(storage, folder)
    if number == 0:
        return Manifest(number=0, files=())
    path = f"{folder}/{manifest_name(number)}"
    return Manifest(number, decode_manifest(storage.get(path), path=path))


def read_current_number(storage: Storage, folder: str, *, before: int | None = None) -> int:
    """The number of the current manifest, as `_version_` states it; 0 without a manifest.

    If `_version_` is missing or torn: the largest number of a manifest, below `before` if that is given.
    """
    number = None
    with suppress(NotFound):
        number = parse_version(storage.get(f"{folder}/{VERSION_FILE}"))
    if number is not None:
        return number
    return max((n for n in manifest_numbers(storage, folder) if before is None or n < before), default=0)


def manifest_numbers(storage: Storage, folder: str) -> list[int]:
    """The numbers of all manifests, ascending. One list request."""
    numbers = (manifest_number(file.path.rpartition("/")[2]) for file in storage.list(folder))
    return sorted(number for number in numbers if number is not None)


class LsmHistory:
    """Archived instants of layout 2.

    Files are left out by the requested times in their names, then row groups by the statistics of their completion
    times. `names_bound`: whether a file's name bounds the times in it. On a table that was upgraded it does not, as the
    rows of a file are in no order. Requests: the manifest once; then a get for each file that is left, or some for a
    large file.

    Memory: the times of the row groups that were looked into, and the contents of one row group.
    """

    def __init__(self, storage: Storage, folder: str, *, names_bound: bool) -> None:
        self._storage, self._folder, self._names_bound = storage, folder, names_bound
        self._forget()

    def _forget(self) -> None:
        self._files: tuple[HistoryFile, ...] | None = None
        self._rows: dict[_Group, tuple[Instant, ...]] = {}
        self._group_counts: dict[HistoryFile, int] = {}
        self._open_file: tuple[HistoryFile, bytes] | None = None
        self._contents: tuple[_Group, pa.Table] | None = None

    def instants(
        self,
        *,
        requested_from: str | None = None,
        requested_until: str | None = None,
        completed_after: str | None = None,
    ) -> tuple[Instant, ...]:
        return self._consistent(
            lambda: in_order(
                {
                    instant
                    for file in self._files_within(requested_from, requested_until)
                    for _, rows in self._groups(file, completed_after)
                    for instant in rows
                    if within(instant, requested_from, requested_until, completed_after)
                }
            )
        )

    def read_commit(self, instant: Instant) -> CommitMetadata:
        content, path = self.read_content(instant)
        return decode_commit(content, path=path)

    def read_clean(self, instant: Instant) -> CleanMetadata | None:
        content, path = self.read_content(instant)
        return decode_clean_metadata(content, path=path) if content else None

    def read_content(self, instant: Instant) -> tuple[bytes, str]:
        """The bytes of an archived instant's completed file, and the path of the file that holds them now."""
        return self._consistent(lambda: self._content(instant, METADATA))

    def read_plan(self, instant: Instant) -> bytes | None:
        """The bytes of an archived instant's plan; None if it had none."""
        content, _ = self._consistent(lambda: self._content(instant, PLAN))
        return content or None

    def _consistent(self, read: Callable[[], T]) -> T:
        """The result of `read`. If archiving deleted a file meanwhile, `read` runs again with the newest manifest."""
        for _ in range(_TRIES - 1):
            try:
                return read()
            except NotFound:
                self._forget()
        return read()

    def _files_within(self, requested_from: str | None, requested_until: str | None) -> Iterator[HistoryFile]:
        if self._files is None:
            self._files = read_manifest(self._storage, self._folder).files
        for file in self._files:
            first, last = file.name.first, file.name.last
            is_bound = self._names_bound and first <= last
            if is_bound and requested_from is not None and last < requested_from:
                continue
            if is_bound and requested_until is not None and first > requested_until:
                continue
            yield file

    def _groups(
        self, file: HistoryFile, completed_after: str | None = None
    ) -> Iterator[tuple[_Group, tuple[Instant, ...]]]:
        """The row groups of a file that may hold an instant completed after a time, with all of their instants."""
        groups = [_Group(file, number) for number in range(self._group_counts.get(file, 0))]
        if not groups or any(group not in self._rows for group in groups):
            groups = self._load(file, completed_after)
        for group in groups:
            yield group, self._rows[group]

    def _load(self, file: HistoryFile, completed_after: str | None) -> list[_Group]:
        with self._opened(file) as parquet:
            self._group_counts[file] = parquet.num_row_groups
            groups = [
                _Group(file, number)
                for number in range(parquet.num_row_groups)
                if completed_after is None or _newest_completion(parquet, number) > completed_after
            ]
            for group in groups:
                if group not in self._rows:
                    self._rows[group] = tuple(_instants(parquet, group.number))
        return groups

    def _content(self, instant: Instant, column: str) -> tuple[bytes, str]:
        for file in self._files_within(instant.requested, instant.requested):
            for group, rows in self._groups(file):
                for row, found in enumerate(rows):
                    if found.requested == instant.requested and found.comparable_action == instant.comparable_action:
                        stored = self._stored(group)
                        content = stored.column(column)[row].as_py() if column in stored.column_names else None
                        return content or b"", f"{self._folder}/{file.name.format()}"
        raise not_archived(instant)

    def _stored(self, group: _Group) -> pa.Table:
        """The contents and plans of a row group. Files of other writers may lack the column of plans."""
        if self._contents is None or self._contents[0] != group:
            self._contents = None
            with self._opened(group.file) as parquet:
                columns = [METADATA, *({PLAN} & set(parquet.schema_arrow.names))]
                self._contents = group, parquet.read_row_group(group.number, columns=columns)
        return self._contents[1]

    @contextmanager
    def _opened(self, file: HistoryFile) -> Iterator[pq.ParquetFile]:
        with open_history_file(self._storage, self._folder, file, self._whole(file)) as parquet:
            yield parquet

    def _whole(self, file: HistoryFile) -> bytes | None:
        """The bytes of a small file, kept until another file is asked for; None for a large file."""
        if file.size_bytes > WHOLE_FILE_MAX_BYTES:
            return None
        if self._open_file is None or self._open_file[0] != file:
            self._open_file = file, self._storage.get(f"{self._folder}/{file.name.format()}")
        return self._open_file[1]


@contextmanager
def open_history_file(
    storage: Storage, folder: str, file: HistoryFile, content: bytes | None = None
) -> Iterator[pq.ParquetFile]:
    """Open a file of archived instants. `content`: the file's bytes, if they are in memory already.

    Raises: CorruptFile, also from within the `with` block, if the file is no whole Parquet file with our columns.
    """
    path = f"{folder}/{file.name.format()}"
    try:
        if content is not None:
            yield _of_our_types(open_parquet(io.BytesIO(content)))
        else:
            with storage.open_input(path) as source, open_parquet(source) as parquet:
                yield _of_our_types(parquet)
    except HudiError:
        raise
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:  # ValueError: text that is no UTF-8
        found = f"one that does not read ({type(error).__name__}: {error})"
        raise CorruptFile(path, 0, expected="a Parquet file of archived instants", found=found) from error


def _of_our_types(parquet: pq.ParquetFile) -> pq.ParquetFile:
    for column in parquet.schema_arrow:
        if column.name in HISTORY_SCHEMA.names and column.type != HISTORY_SCHEMA.field(column.name).type:
            raise KeyError(f"column {column.name} of type {str(column.type)[:40]}")
    return parquet


def _instants(parquet: pq.ParquetFile, group: int) -> Iterator[Instant]:
    rows = parquet.read_row_group(group, columns=[INSTANT_TIME, COMPLETION_TIME, ACTION])
    columns = (rows.column(name).to_pylist() for name in (INSTANT_TIME, COMPLETION_TIME, ACTION))
    for requested, completed, action in zip(*columns, strict=True):
        if requested is None or action is None:
            raise KeyError(f"a row without {INSTANT_TIME} or {ACTION}")
        yield Instant(requested, action, "COMPLETED", completed or requested)


def _newest_completion(parquet: pq.ParquetFile, group: int) -> str:
    """The greatest completion time of a row group; a text greater than every time if the file does not state it."""
    column = parquet.schema_arrow.get_field_index(COMPLETION_TIME)
    statistics = parquet.metadata.row_group(group).column(column).statistics
    unknown = "~"
    if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
        return unknown
    newest = statistics.max
    return newest.decode() if isinstance(newest, bytes) else str(newest)
