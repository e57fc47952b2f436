"""A stream into a Hudi table: each batch is one commit, which says which batch of which stream it holds."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from pyhudi.api.datasource import refuse_bad_options, save_dataframe
from pyhudi.api.own_names import load_named
from pyhudi.api.table import HudiTable
from pyhudi.api.writes import WriteCall
from pyhudi.engine.spark.stream.running import Stopped, is_stopped, query_id
from pyhudi.errors import Bug, CorruptFile, Invalid, NotFound, Unsupported
from pyhudi.options.resolve import find_fact, merge_options
from pyhudi.options.stream_settings import StreamSinkSettings
from pyhudi.options.table_facts import Fact
from pyhudi.spark.streams.compaction import CompactionBeside
from pyhudi.spark.streams.ending import WORK
from pyhudi.table.view.sink_batches import KnownBatches, Stream
from pyhudi.table.view.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("pyhudi")

_OPERATION = "hoodie.datasource.write.operation"
_BY_KEY = ("upsert", "delete")
_MODES = {"append": "append", "update": "append", "complete": "overwrite"}
"""The save mode of a batch, by the output mode of its stream."""

_HOPELESS = (Invalid, Unsupported, NotFound, CorruptFile, Bug)
"""Errors of a batch that come again however often it is tried."""


class _Stored(Exception):
    """The batch is in the table already."""


class StreamQuery(Protocol):
    """What Spark says of the query that hands batches to a sink."""

    def id_of(self, rows: DataFrame) -> str:
        """The id of the query that a batch is of. Its checkpoint keeps it over restarts."""

    def is_stopped(self, query: str) -> bool:
        """Whether somebody has stopped the query, so that its jobs fail."""


class ClassicQuery:
    """A query whose batches this process runs. `spark`: that of the stream; that of a batch is a copy."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def id_of(self, rows: DataFrame) -> str:
        return query_id(rows.sparkSession)

    def is_stopped(self, query: str) -> bool:
        return is_stopped(self._spark, query)


class TableSink:
    """Stores the batches of one stream. Spark calls it with one batch after the other."""

    def __init__(
        self,
        spark: SparkSession | None,
        path: str,
        options: Mapping[str, object],
        output_mode: str,
        *,
        query: StreamQuery | None = None,
    ) -> None:
        """`spark`: the session of the stream's own DataFrame, whose cluster compacts; that of a batch is a copy, which
        knows no streams. None, with `query`, where another process runs the batches: then this one compacts.

        Raises: Invalid, Unsupported for options that no batch could be written with.
        """
        load_named(options)
        merged = merge_options(write=options, opened=None, table={})
        self._settings = StreamSinkSettings.from_options(merged)
        self._spark, self._path, self._options = spark, path, options
        if query is None:
            assert spark is not None
            query = ClassicQuery(spark)
        self._query = query
        self._mode = _MODES.get(output_mode)
        if self._mode is None:
            raise Invalid(f"outputMode '{output_mode}': expected append, update or complete")
        refuse_bad_options(path, options)
        _refuse_unfit_operation(path, merged, output_mode)
        self._known: KnownBatches | None = None
        self._compaction = CompactionBeside(path, merged) if self._settings.compacts else None

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Store a batch, unless the table has it.

        A batch that fails is tried again, as the options say. Raises: the last error; Invalid where another stream
        writes under this one's name; Stopped where the process ends.
        """
        with WORK.held(f"{self._path}: batch {number} of a stream") as begins:
            if not begins:
                raise Stopped
            self._take(rows, number)

    def _take(self, rows: DataFrame, number: int) -> None:
        """Store a batch, and compact beside it where that is due."""
        stream = Stream(self._query.id_of(rows), self._settings.identifier)
        if self._known is None or self._known.stream != stream:
            self._known = KnownBatches(stream)
        if self._has(self._known, number):
            self._pass_over(rows, number, stream.query)
            return
        try:
            self._try(self._known, rows, number)
        except Exception as error:
            if self._query.is_stopped(stream.query):
                raise Stopped from None
            if not self._settings.passes_failed:
                raise
            log.error("%s: batch %s of stream %s failed and is left out: %s", self._path, number, stream.query, error)
            return
        if self._compaction is not None:
            self._compaction.start(self._spark)

    def _has(self, known: KnownBatches, number: int) -> bool:
        if not HudiTable.exists(self._path):
            return False
        snapshot = HudiTable.open(self._path)._access.snapshot()
        return known.look(snapshot).has(number, known.stream, uri=self._path)

    def _try(self, known: KnownBatches, rows: DataFrame, number: int) -> None:
        wait_ms, settings = self._settings.retry_wait_ms, self._settings
        for left in reversed(range(settings.tries_max)):
            try:
                self._store(known, rows, number)
                return
            except _HOPELESS:
                raise
            except Exception as error:
                if not left or self._query.is_stopped(known.stream.query):
                    raise
                log.warning("%s: batch %s failed, and is tried again in %s ms: %s", self._path, number, wait_ms, error)
            time.sleep(wait_ms / 1_000)
            wait_ms *= 2

    def _store(self, known: KnownBatches, rows: DataFrame, number: int) -> None:
        def may_begin(now: Snapshot) -> None:
            if known.look(now).has(number, known.stream, uri=self._path):
                raise _Stored

        assert self._mode is not None
        call = WriteCall(own_texts=known.stream.batch(number).commit_texts(), may_begin=may_begin)
        try:
            save_dataframe(rows, self._path, self._mode, self._options, call=call)
        except _Stored:  # by an earlier try whose answer was lost, or by another driver
            self._pass_over(rows, number, known.stream.query)

    def _pass_over(self, rows: DataFrame, number: int, query: str) -> None:
        """Leave a batch out that the table has. Its rows are computed: Spark keeps state, such as the sums of an
        aggregate, with each batch, and ends a query whose batch left none.
        """
        log.info("%s: batch %s of stream %s is stored already", self._path, number, query)
        try:
            rows.write.format("noop").mode("overwrite").save()
        except Exception:
            if self._query.is_stopped(query):
                raise Stopped from None
            raise


def _refuse_unfit_operation(path: str, options: Mapping[str, str], output_mode: str) -> None:
    """Raises: Invalid for an operation that would not do what the output mode says.

    Seen: in update mode 1.2.0 replaces the table by the rows of each batch, so that rows without an update are lost.
    """
    operation = options.get(_OPERATION, "").lower()
    if output_mode == "update" and operation and operation not in _BY_KEY:
        raise Invalid(
            f"outputMode 'update' with {_OPERATION}='{operation}': expected 'upsert', for a batch has new values of "
            "stored rows; or use the output mode 'append'"
        )
    keys = HudiTable.open(path).record_key if HudiTable.exists(path) else find_fact(options, Fact.RECORD_KEY)
    if output_mode == "update" and not keys:
        raise Invalid(f"{path}: outputMode 'update': expected a table with a record key, found one without")
