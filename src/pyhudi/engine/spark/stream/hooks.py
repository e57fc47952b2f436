"""Wrapping PySpark's stream readers and writers, so that those of the format `hudi` run pyhudi's code. Classic only."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from pyhudi.engine.spark.format_name import is_hudi
from pyhudi.engine.spark.register import add_partitions, note_calls, one_path, refuse_layout, writer_state
from pyhudi.errors import Invalid

_MARK = "_pyhudi_wrapped"
_CHECKPOINT = "checkpointLocation"
_CHECKPOINT_OF_ALL = "spark.sql.streaming.checkpointLocation"

StoreBatch = Callable[[DataFrame, int], None]
"""Stores the rows of a batch, by its number."""


@dataclass(frozen=True, slots=True)
class StatedStream:
    """What a stream writer was told.

    `mode`: append, update or complete. `options`: but for those of Spark's own. `location`: the option `path`, or None.
    """

    mode: str
    options: Mapping[str, object]
    location: str | None


class Streams(Protocol):
    """What the hooks ask. A name that is no Hudi table's gives None, and nothing was done."""

    def read(self, spark: SparkSession, path: str, options: Mapping[str, object]) -> DataFrame:
        """`readStream.load`."""

    def read_table(self, spark: SparkSession, name: str, options: Mapping[str, object]) -> DataFrame | None:
        """`readStream.table`."""

    def write(self, rows: DataFrame, path: str, stream: StatedStream) -> StoreBatch:
        """`writeStream.start`."""

    def write_table(self, rows: DataFrame, name: str, stream: StatedStream, *, is_hudi: bool) -> StoreBatch | None:
        """`writeStream.toTable`. `is_hudi`: the writer says that the table is one of Hudi."""


def wrap_streams(streams: Streams) -> None:
    """Wrap the classes once per process."""
    if DataStreamWriter.__dict__.get(_MARK):
        return
    note_calls(DataStreamReader)
    note_calls(DataStreamWriter)
    _wrap_load(streams)
    _wrap_read_table(streams)
    _wrap_start(streams)
    _wrap_to_table(streams)
    setattr(DataStreamWriter, _MARK, True)


def _wrap_load(streams: Streams) -> None:
    original = DataStreamReader.__dict__["load"]

    @functools.wraps(original)
    def call(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: object
    ) -> DataFrame:
        state = writer_state(self)
        if not is_hudi(format or state["format"]):
            return original(self, path, format, schema, **options)
        if schema is not None or state.get("schema") is not None:
            raise Invalid("schema: a Hudi table knows its own; select or cast columns after load")
        given = {**state["options"], **options}
        return streams.read(self._spark, one_path(path, given), _others(given))

    DataStreamReader.load = call  # type: ignore[method-assign]


def _wrap_read_table(streams: Streams) -> None:
    original = DataStreamReader.__dict__["table"]

    @functools.wraps(original)
    def call(self: Any, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's own name
        found = streams.read_table(self._spark, tableName, _others(writer_state(self)["options"]))
        return original(self, tableName) if found is None else found

    DataStreamReader.table = call  # type: ignore[method-assign]


def _wrap_start(streams: Streams) -> None:
    original = DataStreamWriter.__dict__["start"]

    @functools.wraps(original)
    def call(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803  # PySpark's own names
        partitionBy: Any = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: object,
    ) -> StreamingQuery:
        state = writer_state(self)
        if not is_hudi(format or state["format"]):
            return original(self, path, format, outputMode, partitionBy, queryName, **options)
        given = {**state["options"], **options}
        _refuse_unfit(self, given)
        stream = _stated(self, given, outputMode, partitionBy)
        store = streams.write(self._df, one_path(path, given), stream)
        return original(_anew(self, given, stream.mode, queryName, store))

    DataStreamWriter.start = call  # type: ignore[method-assign]


def _wrap_to_table(streams: Streams) -> None:
    original, start = DataStreamWriter.__dict__["toTable"], DataStreamWriter.__dict__["start"]

    @functools.wraps(original)
    def call(
        self: Any,
        tableName: str,  # noqa: N803  # PySpark's own names
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: object,
    ) -> StreamingQuery:
        state = writer_state(self)
        given = {**state["options"], **options}
        names_hudi = is_hudi(format or state["format"])
        if names_hudi:
            _refuse_unfit(self, given)  # before a table is made
        stream = _stated(self, given, outputMode, partitionBy)
        store = streams.write_table(self._df, tableName, stream, is_hudi=names_hudi)
        if store is None:
            return original(self, tableName, format, outputMode, partitionBy, queryName, **options)
        _refuse_unfit(self, given)
        return start(_anew(self, given, stream.mode, queryName, store))

    DataStreamWriter.toTable = call  # type: ignore[method-assign]


def _stated(writer: Any, given: Mapping[str, object], mode: str | None, partition_by: Any) -> StatedStream:
    """What a writer was told. Raises: Invalid for partition columns that options contradict."""
    state = writer_state(writer)
    options = _others(given)
    add_partitions(options, partition_by or state["partition_by"])
    location = next((str(value) for name, value in given.items() if name.lower() == "path"), None)
    return StatedStream((mode or state.get("output_mode") or "append").lower(), options, location)


def _refuse_unfit(writer: Any, given: Mapping[str, object]) -> None:
    """Raises: Invalid for what means nothing to a stream into a Hudi table, and for a stream without a checkpoint.

    Spark would take a temporary folder, and the stream would begin anew after a restart.
    """
    refuse_layout(writer_state(writer))
    is_stated = any(name.lower() == _CHECKPOINT.lower() and text for name, text in given.items())
    if not is_stated and not writer._spark.conf.get(_CHECKPOINT_OF_ALL, None):
        raise Invalid(f"option '{_CHECKPOINT}': expected a folder for the stream's checkpoint, found none")


def _others(given: Mapping[str, object]) -> dict[str, object]:
    """The options that are not for Spark itself."""
    return {name: value for name, value in given.items() if name.lower() not in ("path", _CHECKPOINT.lower())}


def _anew(writer: Any, given: Mapping[str, object], mode: str, name: str | None, store: StoreBatch) -> DataStreamWriter:
    """A writer that hands each batch to `store`, with the trigger, name and checkpoint of another.

    The other may know partition columns, with which Spark hands no batch to Python.
    """
    state = writer_state(writer)
    new = DataStreamWriter(writer._df).outputMode(mode).foreachBatch(store)
    for option, value in given.items():
        if option.lower() == _CHECKPOINT.lower():
            new = new.option(option, str(value))
    if state.get("trigger"):
        new = new.trigger(**state["trigger"])
    shown = name or state.get("query_name")
    return new.queryName(shown) if shown else new
