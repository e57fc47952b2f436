"""`readStream` and `writeStream` of the format `hudi`, by path and by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyhudi.engine.spark.stream.source import stream_dataframe
from pyhudi.errors import Invalid
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.spark.definitions import columns_text, make_table
from pyhudi.spark.entries.kept import is_kept, keep_entry, refuse_base_files
from pyhudi.spark.entries.sync import planned_sync
from pyhudi.spark.session import SqlSession
from pyhudi.spark.streams.sink import TableSink
from pyhudi.spark.streams.source import TableBatches
from pyhudi.sql.definitions import CreateTable
from pyhudi.sql.words import Cursor, Name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.engine.spark.stream.hooks import StatedStream, StoreBatch

_OF_WRITES = ("hoodie.datasource.write.operation", "hoodie.datasource.write.streaming.")
"""Options that begin so say how a stream writes, and are no facts of its table."""


class TableStreams:
    """Streams of Hudi tables (`Streams`)."""

    def __init__(self, session_of: Callable[[SparkSession], SqlSession]) -> None:
        self._session_of = session_of

    def sink(self, spark: SparkSession, path: str, options: Mapping[str, object], stream: StatedStream) -> StoreBatch:
        """What stores the batches of a stream."""
        return TableSink(spark, path, options, stream.mode)

    def read(self, spark: SparkSession, path: str, options: Mapping[str, object]) -> DataFrame:
        """`readStream.load`."""
        return stream_dataframe(spark, TableBatches(spark, path, options))

    def read_table(self, spark: SparkSession, name: str, options: Mapping[str, object]) -> DataFrame | None:
        """`readStream.table`."""
        entry = self._session_of(spark).catalog.find(_parts(name))
        return None if entry is None else self.read(spark, entry.path, options)

    def write(self, rows: DataFrame, path: str, stream: StatedStream) -> StoreBatch:
        """`writeStream.start`: a table that is not there is made by the first batch."""
        session = self._session_of(rows.sparkSession)
        options, tell = planned_sync(session, path, stream.options)
        sink = self.sink(rows.sparkSession, path, options, stream)
        return sink if tell is None else _followed(sink, tell)

    def write_table(self, rows: DataFrame, name: str, stream: StatedStream, *, is_hudi: bool) -> StoreBatch | None:
        """`writeStream.toTable`: a table that is not there is made at once, of the columns of the rows."""
        session, parts = self._session_of(rows.sparkSession), _parts(name)
        entry = session.catalog.find(parts) if parts else None
        if entry is None:
            if not is_hudi or not parts:
                return None
            if session.catalog.exists(parts):
                raise Invalid(f"toTable('{name}'): a table or view of this name is there, of another format")
            _make(session, parts, rows, stream)
            entry = session.get_entry(parts)
        refuse_base_files(entry, what="a stream")
        options = {**session.options_of_writes(entry), **_written(stream)}
        sink = self.sink(rows.sparkSession, entry.path, options, stream)
        return _followed(sink, partial(keep_entry, session, entry)) if is_kept(session) else sink


def _followed(sink: StoreBatch, tell: Callable[[], None]) -> StoreBatch:
    """A sink after each batch of which somebody is told."""

    def store(batch: DataFrame, number: int) -> None:
        sink(batch, number)
        tell()

    return store


def _make(session: SqlSession, name: Name, rows: DataFrame, stream: StatedStream) -> None:
    """Make a table of a stream's columns, and its name."""
    own = [field for field in rows.schema.fields if field.name not in META_FIELDS]
    stated = {option: str(value) for option, value in _written(stream).items()}
    statement = CreateTable(
        name=name, is_lenient=False, replaces=False, columns=columns_text(type(rows.schema)(own)),
        location=stream.location,
        properties={option: text for option, text in stated.items() if not option.startswith(_OF_WRITES)},
    )  # fmt: skip
    make_table(session, statement, None)


def _written(stream: StatedStream) -> dict[str, object]:
    """The options of a stream into a table by name, without the name, which the catalog says."""
    return {option: value for option, value in stream.options.items() if option != "hoodie.table.name"}


def _parts(name: str) -> Name:
    """The parts of a name; none where it is no name, which Spark says itself."""
    try:
        return Cursor(name).name()
    except Invalid:
        return ()
