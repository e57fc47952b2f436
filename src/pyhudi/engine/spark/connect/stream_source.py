"""A source of batches for streams of Spark Connect: a Python data source, which the server's Python asks.

Spark keeps the offsets in the query's checkpoint. So a restart asks for the batch that it had begun again.
"""

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from pyhudi.engine.spark.schema import rows_for_spark, spark_schema
from pyhudi.engine.spark.stream.declared import refuse_other_types
from pyhudi.engine.spark.stream.offsets import StreamOffset
from pyhudi.errors import Unsupported

_FORMAT = "pyhudi_stream"
_PATH = "path"


class Piece(Protocol):
    """A part of a batch, which any process may read. Picklable."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""


class PiecewiseBatches(Protocol):
    """What a stream reads. Times are texts that sort as the stream goes."""

    @property
    def shown(self) -> str:
        """What the stream reads, for people."""

    @property
    def is_limited(self) -> bool:
        """Whether options say how much a batch may hold."""

    def schema(self) -> pa.Schema:
        """The columns of a batch."""

    def newest(self) -> str:
        """The time up to which a batch can go now."""

    def start(self) -> str:
        """The time after which a stream without a checkpoint begins."""

    def end(self, after: str, until: str | None, *, is_first: bool, is_limited: bool) -> str | None:
        """Where the batch after a time ends, at `until` at the latest; None where nothing is new."""

    def pieces(self, start: str, end: str) -> tuple[pa.Schema, Sequence[Piece]]:
        """The columns of the batch `(start, end]`, and its parts."""


Open = Callable[[str, Mapping[str, object]], PiecewiseBatches]
"""Opens the batches of a table by its path and a stream's options. A function of a module, which servers import."""


def stream_of(spark: SparkSession, path: str, options: Mapping[str, object], open_batches: Open) -> DataFrame:
    """A streaming DataFrame over batches. Raises: Unsupported for limits where the server cannot keep them."""
    batches = open_batches(path, options)
    if batches.is_limited and "limit" not in inspect.signature(DataSourceStreamReader.latestOffset).parameters:
        raise Unsupported(
            f"{batches.shown}: limits of a batch (maxCommitsPerTrigger, maxBytesPerTrigger): under Spark Connect they "
            "need a PySpark whose stream sources are told limits, 4.2 or later; leave them out, or use a classic "
            "session"
        )
    spark.dataSource.register(_source(open_batches))
    reader = spark.readStream.format(_FORMAT).schema(spark_schema(batches.schema()))
    return reader.options(**{name: str(value) for name, value in options.items()}).option(_PATH, path).load()


def _source(open_batches: Open) -> type[DataSource]:
    """The data source as a class that travels to the server as it is."""

    class HudiStream(DataSource):
        @classmethod
        def name(cls) -> str:
            return _FORMAT

        def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802
            # Spark's options have no case; those of a table have.
            return stream_reader(open_batches, dict(self.options), schema)

    return HudiStream


def stream_reader(open_batches: Open, options: dict[str, str], schema: t.StructType) -> DataSourceStreamReader:
    """The reader of a stream, which lives as long as a run of the query."""
    path = options.pop(_PATH)
    return _reader_class()(open_batches(path, options), schema)


def _reader_class() -> Any:
    """The reader's class, with what this PySpark knows of `Trigger.AvailableNow`."""
    try:
        known = importlib.import_module("pyspark.sql.streaming.datasource")
    except ModuleNotFoundError:
        return _Reader
    return type("HudiStreamReader", (_Reader, known.SupportsTriggerAvailableNow), {})


class _Share(InputPartition):
    def __init__(self, piece: Piece) -> None:
        super().__init__(None)
        self.piece = piece


class _Reader(DataSourceStreamReader):
    def __init__(self, batches: PiecewiseBatches, declared: t.StructType) -> None:
        self._batches, self._declared = batches, declared
        self._until: str | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        return StreamOffset(self._batches.start()).entries()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, str]:  # noqa: N802
        """Where the next batch ends; `start` where nothing is new. PySpark 4.0 and 4.1 tell neither argument."""
        if start is None:
            return StreamOffset(self._batches.newest()).entries()
        is_limited = type(limit).__name__ != "ReadAllAvailable"
        after = StreamOffset.of_entries(start).end
        end = self._batches.end(after, self._until, is_first=True, is_limited=is_limited)
        return StreamOffset(after if end is None else end).entries()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        known = importlib.import_module("pyspark.sql.streaming.datasource")
        return known.ReadMaxRows(1)  # any but that of all rows: the batches know their limits

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._batches.newest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, last = StreamOffset.of_entries(start).end, StreamOffset.of_entries(end).end
        if begin == last:
            return []
        schema, pieces = self._batches.pieces(begin, last)
        refuse_other_types(spark_schema(schema), self._declared, self._batches.shown)
        return [_Share(piece) for piece in pieces]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        names = self._declared.names
        for batch in partition.piece.to_batches():
            chosen = batch.select(names)
            yield from rows_for_spark([chosen], chosen.schema, path=self._batches.shown)
