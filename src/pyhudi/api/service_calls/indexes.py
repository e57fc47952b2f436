"""Building and dropping the indexes of a table's metadata table, beside its writers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyhudi.api import frames
from pyhudi.api.handle import TableHandle
from pyhudi.errors import Invalid
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.options.arguments import one_or_several_texts, optional_text
from pyhudi.options.values import OptionValues
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.indexing.drop import DroppedIndexes, drop_index
from pyhudi.services.indexing.run import build_index, run_indexings, schedule_index
from pyhudi.services.indexing.work import IndexingJob, IndexResult
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECK_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class IndexCall:
    """The index that a caller asks for: the arguments of `HudiTable.build_index`."""

    kind: str
    columns: str | Iterable[str] | None
    name: str | None
    expression: str | None


class IndexCalls:
    """The calls about indexes that a table has."""

    _handle: TableHandle

    def build_index(
        self,
        kind: str,
        *,
        columns: str | Iterable[str] | None = None,
        name: str | None = None,
        expression: str | None = None,
        options: Mapping[str, object] | None = None,
        spark: "SparkSession | None" = None,
    ) -> IndexResult:
        """Build an index, while readers and writers go on: the table is held at the beginning and the end only.

        `kind`: `column_stats` (`columns`: of which; None: the first 32), `partition_stats`, `bloom_filters`,
        `record_index` (keys unique in the table), `partitioned_record_index` (within partitions), `secondary_index`
        (of one column of `columns`; `name`: the column's unless given). With an `expression`, a function of one column
        in Spark SQL such as `from_unixtime(ts, 'yyyy-MM-dd')`: `expr_index` or `column_stats`, statistics of its
        values, `bloom_filters`, filters of them; `name`: the column's of `columns` unless given. Writes since keep it
        true, without an option. Nothing is done where the index is there. `options`: numbers of file groups and the
        like, `hoodie.metadata.index.check.timeout.seconds`. `spark`: the session whose cluster's tasks read the data
        files; without one, or where it runs on this machine, threads of this process do.
        Raises: Invalid for what cannot be built, or what an option switches off; Unsupported for an expression that
        cannot be indexed; Conflict while another process builds it, holds the table, or drops the index meanwhile.
        """
        request = IndexCall(kind, columns, name, expression)
        return build(self._handle, request, options, spark)

    def schedule_index(
        self,
        kind: str,
        *,
        columns: str | Iterable[str] | None = None,
        name: str | None = None,
        expression: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> IndexResult:
        """Plan an index and leave it pending, for whoever runs indexings next: `run_indexes`, a `build_index` of the
        same, or Apache Hudi. Until it is run nothing is built, and writers know nothing of it.

        Raises: as `build_index`.
        """
        request = IndexCall(kind, columns, name, expression)
        return schedule(self._handle, request, options)

    def run_indexes(
        self, *, options: Mapping[str, object] | None = None, spark: "SparkSession | None" = None
    ) -> tuple[IndexResult, ...]:
        """Build what is planned, by pyhudi or Apache Hudi; what an indexer left that died is built anew.

        Raises: as `build_index`.
        """
        return self._handle.told("indexing", lambda: run_planned(self._handle, options, spark))

    def drop_index(self, name: str, *, options: Mapping[str, object] | None = None) -> DroppedIndexes:
        """Drop an index, or a plan for one, with those that cannot be without it. `name`: as in
        `hoodie.table.metadata.partitions`, or the name of a secondary index, or one on an expression, alone.

        Raises: NotFound for an index that is not there; Invalid where the table's options ask for it; Conflict while
        another process builds it or holds the table.
        """
        return drop(self._handle, name, options)


def build(
    handle: TableHandle, call: IndexCall, options: Mapping[str, object] | None, spark: "SparkSession | None"
) -> IndexResult:
    """As `HudiTable.build_index`."""
    job, request = _asked(handle, call, options, spark)
    return handle.told("indexing", lambda: build_index(job, request))


def schedule(handle: TableHandle, call: IndexCall, options: Mapping[str, object] | None) -> IndexResult:
    """As `HudiTable.schedule_index`."""
    return schedule_index(*_asked(handle, call, options, None))


def run_planned(
    handle: TableHandle, options: Mapping[str, object] | None, spark: "SparkSession | None"
) -> tuple[IndexResult, ...]:
    """As `HudiTable.run_indexes`."""
    _, merged, settings = handle.prepare(options)
    return tuple(run_indexings(_job(handle, merged, settings, spark)))


def drop(handle: TableHandle, name: str, options: Mapping[str, object] | None) -> DroppedIndexes:
    """As `HudiTable.drop_index`."""
    if not isinstance(name, str):
        raise Invalid(f"drop_index: expected the name of an index as text, found {name!r}")
    _, merged, settings = handle.prepare(options)
    with handle.session(settings, CleanSettings.from_options(merged), "drop index") as session:
        return drop_index(session, settings.indexes, name)


def _asked(
    handle: TableHandle, call: IndexCall, options: Mapping[str, object] | None, spark: "SparkSession | None"
) -> tuple[IndexingJob, IndexRequest]:
    what = f"build_index({call.kind!r}): "
    columns: tuple[str, ...] = ()
    if call.columns is not None:
        columns = one_or_several_texts(call.columns, what=f"{what}columns", of="column names")
    name = optional_text(call.name, what=f"{what}name")
    expression = optional_text(call.expression, what=f"{what}expression")

    snapshot, merged, settings = handle.prepare(options)
    request = IndexRequest(call.kind, columns, name, expression, snapshot.config.version, merged)
    return _job(handle, merged, settings, spark), request


def _job(
    handle: TableHandle, merged: Mapping[str, str], settings: WriteSettings, spark: "SparkSession | None"
) -> IndexingJob:
    # What options ask for is what this builds, beside writers: not at its beginning, which holds the table.
    settings = replace(settings, indexes=replace(settings.indexes, is_async=True))
    clean = CleanSettings.from_options(merged)
    seconds = OptionValues(merged).count("hoodie.metadata.index.check.timeout.seconds", _CHECK_TIMEOUT_S)
    access = handle.access_through(spark)
    return IndexingJob(
        settings.indexes,
        open_session=lambda: handle.session(settings, clean, "indexing", access=access),
        read_snapshot=access.snapshot, executor=handle.executor, readers=handle.readers(frames.as_cluster(spark)),
        clock=access.clock, check_timeout_ms=1_000 * seconds,
    )  # fmt: skip
