"""Wrapping PySpark's stream readers and writers, so that those of the format `hudi` run pyhudi's code."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyhudi.engine.spark.classes import SparkClasses, frame_of, session_behind
from pyhudi.engine.spark.format_name import is_hudi
from pyhudi.engine.spark.register import (
    Refuse,
    add_partitions,
    note_calls,
    one_path,
    refuse_layout,
    refuse_path,
    writer_state,
)
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
    `checkpoint`: the folder of the stream's checkpoint, as it is said; empty where the session's setting says it.
    """

    mode: str
    options: Mapping[str, object]
    location: str | None
    checkpoint: str


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


def wrap_streams(classes: SparkClasses, streams: Streams, refuse: Refuse) -> None:
    """Wrap the classes of a kind once per process. `refuse`: asked about the folder of a stream in another format."""
    if classes.stream_writer.__dict__.get(_MARK):
        return
    note_calls(classes.stream_reader)
    note_calls(classes.stream_writer)
    _wrap_load(classes.stream_reader, streams)
    _wrap_read_table(classes.stream_reader, streams)
    _wrap_start(classes.stream_writer, streams, refuse)
    _wrap_to_table(classes.stream_writer, streams, refuse)
    setattr(classes.stream_writer, _MARK, True)


def _wrap_load(kind: Any, streams: Streams) -> None:
    original = kind.__dict__["load"]

    @functools.wraps(original)
    def call(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: object
    ) -> DataFrame:
        state = writer_state(self)
        if not is_hudi(format or state["format"]):
            other: DataFrame = original(self, path, format, schema, **options)
            return other
        if schema is not None or state.get("schema") is not None:
            raise Invalid("schema: a Hudi table knows its own; select or cast columns after load")
        given = {**state["options"], **options}
        return streams.read(session_behind(self), one_path(path, given), _others(given))

    kind.load = call


def _wrap_read_table(kind: Any, streams: Streams) -> None:
    original = kind.__dict__["table"]

    @functools.wraps(original)
    def call(self: Any, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's own name
        found = streams.read_table(session_behind(self), tableName, _others(writer_state(self)["options"]))
        return original(self, tableName) if found is None else found

    kind.table = call


def _wrap_start(kind: Any, streams: Streams, refuse: Refuse) -> None:
    original = kind.__dict__["start"]

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
        given = {**state["options"], **options}
        if not is_hudi(format or state["format"]):
            refuse_path(refuse, session_behind(self), given if path is None else {"path": path}, "start")
            other: StreamingQuery = original(self, path, format, outputMode, partitionBy, queryName, **options)
            return other
        _refuse_unfit(self, given)
        stream = _stated(self, given, outputMode, partitionBy)
        store = streams.write(frame_of(self), one_path(path, given), stream)
        query: StreamingQuery = original(_anew(self, given, stream.mode, queryName, store))
        return query

    kind.start = call


def _wrap_to_table(kind: Any, streams: Streams, refuse: Refuse) -> None:
    original, start = kind.__dict__["toTable"], kind.__dict__["start"]

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
        store = streams.write_table(frame_of(self), tableName, stream, is_hudi=names_hudi)
        if store is None:
            refuse_path(refuse, session_behind(self), given, f"toTable('{tableName}')")
            other: StreamingQuery = original(self, tableName, format, outputMode, partitionBy, queryName, **options)
            return other
        _refuse_unfit(self, given)
        query: StreamingQuery = start(_anew(self, given, stream.mode, queryName, store))
        return query

    kind.toTable = call


def _stated(writer: Any, given: Mapping[str, object], mode: str | None, partition_by: Any) -> StatedStream:
    """What a writer was told. Raises: Invalid for partition columns that options contradict."""
    state = writer_state(writer)
    options = _others(given)
    add_partitions(options, partition_by or state["partition_by"])
    location = next((str(value) for name, value in given.items() if name.lower() == "path"), None)
    checkpoint = next((str(value) for name, value in given.items() if name.lower() == _CHECKPOINT.lower()), "")
    return StatedStream((mode or state.get("output_mode") or "append").lower(), options, location, checkpoint)


def _refuse_unfit(writer: Any, given: Mapping[str, object]) -> None:
    """Raises: Invalid for what means nothing to a stream into a Hudi table, and for a stream without a checkpoint.

    Spark would take a temporary folder, and the stream would begin anew after a restart.
    """
    refuse_layout(writer_state(writer))
    is_stated = any(name.lower() == _CHECKPOINT.lower() and text for name, text in given.items())
    if not is_stated and not session_behind(writer).conf.get(_CHECKPOINT_OF_ALL, None):
        raise Invalid(f"option '{_CHECKPOINT}': expected a folder for the stream's checkpoint, found none")


def _others(given: Mapping[str, object]) -> dict[str, object]:
    """The options that are not for Spark itself."""
    return {name: value for name, value in given.items() if name.lower() not in ("path", _CHECKPOINT.lower())}


def _anew(writer: Any, given: Mapping[str, object], mode: str, name: str | None, store: StoreBatch) -> Any:
    """A writer that hands each batch to `store`, with the trigger, name and checkpoint of another.

    The other may know partition columns, with which Spark hands no batch to Python.
    """
    state = writer_state(writer)
    new = frame_of(writer).writeStream.outputMode(mode).foreachBatch(store)
    for option, value in given.items():
        if option.lower() == _CHECKPOINT.lower():
            new = new.option(option, str(value))
    if state.get("trigger"):
        new = new.trigger(**state["trigger"])
    shown = name or state.get("query_name")
    return new.queryName(shown) if shown else new
