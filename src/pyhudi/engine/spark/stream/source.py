"""A source of batches for Spark's micro-batch streams: a Python object as Spark's `Source`. Classic sessions only.

Spark keeps the offsets in the query's checkpoint, as text. So a restart asks for the batch that it had begun again.
"""

import functools
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.sql.gateway import dataframe_of, find_class, scala_object, some, start_callbacks, value_of
from pyhudi.engine.spark.stream.declared import refuse_other_types
from pyhudi.engine.spark.stream.offsets import StreamOffset
from pyhudi.engine.spark.stream.running import Stopped, find_query_id, is_stopped
from pyhudi.engine.spark.write.keys import quoted
from pyhudi.errors import NotFound

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_READ: Final = "org.apache.spark.sql.connector.read.streaming"


class Batches(Protocol):
    """What a stream reads. Times are texts that sort as the stream goes."""

    @property
    def shown(self) -> str:
        """What the stream reads, for people."""

    def columns(self) -> DataFrame:
        """A DataFrame with the columns of every batch."""

    def newest(self) -> str:
        """The time up to which a batch can go now."""

    def start(self) -> str:
        """The time after which a stream without a checkpoint begins."""

    def end(self, after: str, until: str | None, *, is_first: bool, is_limited: bool) -> str | None:
        """Where the batch after a time ends, at `until` at the latest; None where nothing is new."""

    def rows(self, start: str, end: str) -> DataFrame:
        """The rows of `(start, end]`."""


def stream_dataframe(spark: SparkSession, batches: Batches) -> DataFrame:
    """A streaming DataFrame over batches."""
    start_callbacks(spark)
    relation = scala_object(spark, _name(spark, "StreamingExecutionRelation"))
    return dataframe_of(spark, relation.apply(_Source(spark, batches), spark._jsparkSession))


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _told_of_stop(method: _Method) -> _Method:
    """A method of a source whose errors are those of a stop, where somebody stopped the query."""

    @functools.wraps(method)
    def call(self: "_Source", *args: Any) -> Any:
        try:
            return method(self, *args)
        except Exception:
            query = find_query_id(self.spark)
            if query is not None and is_stopped(self.spark, query):
                raise Stopped from None
            raise

    return cast(_Method, call)


class _Source:
    """Spark's `Source`. Several queries may read one DataFrame at once, so what is of a query is kept by its id."""

    class Java:
        implements: Final = [f"{_STREAMING}.Source", f"{_READ}.SupportsTriggerAvailableNow"]

    def __init__(self, spark: SparkSession, batches: Batches) -> None:
        self.spark = spark
        self._batches = batches
        self._columns = batches.columns()
        self._until: dict[str | None, str] = {}
        self._start: dict[str | None, str] = {}
        self._offset = java_class(spark, _name(spark, "SerializedOffset"))
        self._limits = java_class(spark, f"{_READ}.ReadLimit")

    def schema(self) -> Any:
        return self._columns._jdf.schema()

    @_told_of_stop
    def getOffset(self) -> Any:  # noqa: N802
        return some(self.spark, self.latestOffset(None, None))

    @_told_of_stop
    def latestOffset(self, start: Any, limit: Any) -> Any:  # noqa: N802
        """Where the next batch ends; `start` where nothing is new."""
        query = find_query_id(self.spark)
        is_limited = limit is None or str(limit.getClass().getSimpleName()) != "ReadAllAvailable"
        if start is not None:
            known = StreamOffset.parse(str(start.json()))
            end = self._batches.end(known.end, self._until.get(query), is_first=False, is_limited=is_limited)
            return start if end is None else self._offset(StreamOffset(end).format())

        begin = self._start.setdefault(query, self._batches.start())
        end = self._batches.end(begin, self._until.get(query), is_first=True, is_limited=is_limited)
        # Without a commit, too: the checkpoint then says where the stream began.
        return self._offset(StreamOffset(end or begin, begin).format())

    @_told_of_stop
    def getBatch(self, start: Any, end: Any) -> Any:  # noqa: N802
        last = StreamOffset.parse(str(end.json()))
        before = value_of(start)
        if before is not None:
            begin = StreamOffset.parse(str(before.json())).end
        else:
            begin = last.start if last.start is not None else self._batches.start()
        try:
            rows = _as_declared(self._batches.rows(begin, last.end), self._columns, self._batches.shown)
        except NotFound as error:
            if before is not None:
                raise
            rows = _failing(self._columns, str(error))
        found = rows._jdf
        session = self.spark._jsparkSession
        return session.internalCreateDataFrame(found.queryExecution().toRdd(), found.schema(), True)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return self._limits.maxRows(1)  # any but that of all rows: the batches know their limits

    @_told_of_stop
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until[find_query_id(self.spark)] = self._batches.newest()

    def initialOffset(self) -> None:  # noqa: N802
        return None

    def reportLatestOffset(self) -> None:  # noqa: N802
        return None

    def deserializeOffset(self, text: str) -> Any:  # noqa: N802
        return self._offset(text)

    def commit(self, end: Any) -> None:
        pass

    def stop(self) -> None:
        """The end of a run. The next run of the query may have another trigger."""
        query = find_query_id(self.spark)
        self._until.pop(query, None)
        self._start.pop(query, None)

    def toString(self) -> str:  # noqa: N802
        return self._batches.shown

    def hashCode(self) -> int:  # noqa: N802
        return id(self) & 0x7FFF_FFFF

    def equals(self, other: object) -> bool:
        return other is self


def _as_declared(rows: DataFrame, declared: DataFrame, shown: str) -> DataFrame:
    """The rows with the columns that the stream began with. Raises: Unsupported where a column has another type now."""
    refuse_other_types(rows.schema, declared.schema, shown)
    return rows if rows.columns == declared.columns else rows.select(*(quoted(name) for name in declared.columns))


def _failing(declared: DataFrame, text: str) -> DataFrame:
    """Rows of these columns, which fail with a text once somebody needs them.

    After a restart Spark asks for the first batch again, and leaves it unread if it was done.
    """
    fields = declared.schema.fields
    values = (f.raise_error(f.lit(text)).cast(field.dataType).alias(field.name) for field in fields)
    return declared.sparkSession.range(1).select(*values)


def _name(spark: SparkSession, name: str) -> str:
    """The full name of a class, which Spark 4.1 has moved to a package of its own."""
    moved = f"{_STREAMING}.runtime.{name}"
    try:
        find_class(spark, moved)
    except Exception:  # of any kind: PySpark 3.5 lets Java's own through
        return f"{_STREAMING}.{name}"
    return moved
