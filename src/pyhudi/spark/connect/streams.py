"""Streams of Hudi tables under Spark Connect: the server's Python reads pieces of batches, and stores batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyhudi.engine.spark.session import use_running_interpreter
from pyhudi.errors import Invalid, NotFound
from pyhudi.spark.streams.sink import TableSink
from pyhudi.spark.streams.source import TableBatches
from pyhudi.spark.streams.tables import TableStreams
from pyhudi.storage.open import open_storage, parse_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.engine.spark.stream.hooks import StatedStream, StoreBatch


class ConnectStreams(TableStreams):
    """Streams of Hudi tables (`Streams`) whose work is done by the server."""

    def read(self, spark: SparkSession, path: str, options: Mapping[str, object]) -> DataFrame:
        """`readStream.load`."""
        from pyhudi.engine.spark.connect.stream_source import stream_of  # PySpark 3.5 has no such sources

        use_running_interpreter(spark)
        return stream_of(spark, parse_location(path).uri, options, open_batches)

    def sink(self, spark: SparkSession, path: str, options: Mapping[str, object], stream: StatedStream) -> StoreBatch:
        """What stores the batches of a stream. Raises: Invalid for options that no batch could be written with."""
        use_running_interpreter(spark)
        if not stream.checkpoint:
            raise Invalid(
                "option 'checkpointLocation': expected the folder of this stream's checkpoint under Spark Connect, "
                "where a batch is known by the checkpoint's own id; found only the setting of the session"
            )
        path = parse_location(path).uri  # a relative path is one of this process
        TableSink(
            None, path, options, stream.mode, query=CheckpointQuery(stream.checkpoint)
        )  # which looks at the options
        return ServerSink(path, dict(options), stream.mode, stream.checkpoint)


def open_batches(path: str, options: Mapping[str, object]) -> TableBatches:
    """The batches of a stream, as the server's Python reads them."""
    return TableBatches(None, path, options)


class CheckpointQuery:
    """A query as its checkpoint tells of it (`StreamQuery`)."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint

    def id_of(self, rows: DataFrame) -> str:
        """Raises: NotFound where this process does not see the checkpoint, or sees another folder there."""
        found = _metadata(self._checkpoint)
        if found is None:
            raise NotFound(
                f"{self._checkpoint}: expected the checkpoint of the running stream, with a file 'metadata', found "
                "none; the server's Python must see the folder under this name"
            )
        return found

    def is_stopped(self, query: str) -> bool:
        return False  # Spark ends the process that runs the batch


def _metadata(checkpoint: str) -> str | None:
    storage = open_storage(parse_location(checkpoint))
    try:
        return str(json.loads(storage.get("metadata"))["id"])
    except NotFound:
        return None


class ServerSink:
    """Stores the batches of one stream in the server's Python, to which it travels."""

    def __init__(self, path: str, options: dict[str, object], mode: str, checkpoint: str) -> None:
        self._given = (path, options, mode, checkpoint)
        self._sink: TableSink | None = None

    def __getstate__(self) -> tuple[Any, ...]:
        return self._given

    def __setstate__(self, given: tuple[Any, ...]) -> None:
        self._given, self._sink = given, None

    def __call__(self, rows: DataFrame, number: int) -> None:
        if self._sink is None:
            path, options, mode, checkpoint = self._given
            self._sink = TableSink(None, path, options, mode, query=CheckpointQuery(checkpoint))
        self._sink(rows, number)
