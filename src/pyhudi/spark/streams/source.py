"""A stream out of a Hudi table: its batches are what new commits wrote, or the changes that they made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from pyhudi.api.changes import Changes
from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid
from pyhudi.format.timeline.instant_text import EARLIEST_WORDS, bound_from_user
from pyhudi.options.read_options import METADATA, WHERE
from pyhudi.options.stream_settings import EARLIEST, LATEST, START_OFFSET, StreamSourceSettings
from pyhudi.table.changes.incremental import OnCleaned
from pyhudi.table.changes.stream_range import BatchLimits, KnownArchive, choose_batch, stream_range
from pyhudi.table.view.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGINNING = "000"
"""The time before every commit, as Apache Hudi writes it."""

_BEFORE_ALL = "19700101000000000"
"""The same, as the end of a range."""


class StreamPiece(Protocol):
    """A part of a batch, which another process may read. Picklable."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, of bounded memory."""


@dataclass(frozen=True, slots=True)
class ChangesPiece:
    """The changes of a batch. Whoever reads them plans them anew."""

    path: str
    start: str
    end: str
    where: str | None

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        yield from HudiTable.open(self.path).cdc(self.start, self.end, where=self.where).as_json().to_batches()


class TableBatches:
    """The batches of a stream (`Batches`). Times are completion times, or requested times (`stream_range`)."""

    def __init__(self, spark: SparkSession | None, path: str, options: Mapping[str, object]) -> None:
        """`spark`: None where batches are only read in pieces.

        Raises: NotFound for a path without a table; Invalid for a bad option, and a table without columns.
        """
        self._spark, self._path = spark, path
        self._where = str(options[WHERE]) if options.get(WHERE) else None
        self._settings = StreamSourceSettings.from_options({k: v for k, v in options.items() if k != WHERE})
        self._limits = BatchLimits(self._settings.commits_max, self._settings.bytes_max)
        self._table = HudiTable.open(path, options={METADATA: self._settings.metadata_enabled})
        snapshot = self._snapshot()
        self._range = stream_range(snapshot, has_changes=self._settings.wants_changes)
        self._archive = KnownArchive()
        if not snapshot.schema.names:
            raise Invalid(f"{path}: expected a table with columns, found one without; a stream needs its first write")
        if self._settings.start not in (EARLIEST, LATEST):
            self.start()  # which is no time, maybe

    @property
    def shown(self) -> str:
        return f"HudiSource[{self._path}]"

    def columns(self) -> DataFrame:
        """Without rows: of a range after every commit."""
        newest = self.newest()
        return self.rows(newest, newest)

    def newest(self) -> str:
        return self._range.newest(self._snapshot()) or BEGINNING

    def start(self) -> str:
        """Raises: Invalid for an option that is no time."""
        stated = self._settings.start
        if stated == EARLIEST or stated.lower() in EARLIEST_WORDS:
            return BEGINNING
        if stated == LATEST:
            return self.newest()
        return bound_from_user(stated, self._snapshot().zone, what=f"option '{START_OFFSET}'")

    def end(self, after: str, until: str | None, *, is_first: bool, is_limited: bool) -> str | None:
        snapshot = self._snapshot()
        start = None if after == BEGINNING else after
        commits = self._range.new(snapshot, start, until, self._archive)
        if not commits:
            return None
        if not is_limited:
            return self._range.time(commits[-1])
        return self._range.time(choose_batch(snapshot, commits, self._limits, is_first=is_first and start is None))

    def rows(self, start: str, end: str) -> DataFrame:
        assert self._spark is not None
        return self._found(start, end).to_spark(self._spark)

    def schema(self) -> pa.Schema:
        """The columns of a batch that begins now."""
        newest = self.newest()
        return self._found(newest, newest).schema

    @property
    def is_limited(self) -> bool:
        """Whether options say how much a batch may hold."""
        return self._settings.commits_max is not None or self._settings.bytes_max is not None

    def pieces(self, start: str, end: str) -> tuple[pa.Schema, list[StreamPiece]]:
        """The columns of the batch `(start, end]`, and its rows as pieces to be read apart. Changes are one piece."""
        found = self._found(start, end)
        if isinstance(found, Changes):
            return found.schema, [ChangesPiece(self._path, start, end, self._where)]
        return found.schema, list(found.tasks())

    def _found(self, start: str, end: str) -> Scan | Changes:
        if end == BEGINNING:
            start = end = _BEFORE_ALL
        if self._settings.wants_changes:
            return self._table.cdc(start, end, where=self._where).as_json()
        on_cleaned: OnCleaned = "rows" if self._settings.takes_what_is_left else "error"
        return self._table.incremental(start, end, where=self._where, on_cleaned=on_cleaned)

    def _snapshot(self) -> Snapshot:
        return self._table._access.snapshot()
