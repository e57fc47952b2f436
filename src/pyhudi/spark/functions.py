"""Table functions over Hudi tables, by a table's name or its path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import SCAN
from pyhudi.engine.spark.sql.table_functions import register_table_function
from pyhudi.errors import Invalid
from pyhudi.inspect.instants import read_instants
from pyhudi.inspect.slices import read_slices
from pyhudi.spark.key_queries import FOUND_ROWS, rows_of_call
from pyhudi.spark.session import SqlSession
from pyhudi.spark.table_names import table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.engine.spark.sql.table_functions import Answer


def register_functions(spark: SparkSession, session_of: Callable[[SparkSession], SqlSession]) -> None:
    """Make the functions known to SQL. `session_of`: the session that a query is analysed for."""

    def on(name: str) -> Answer:
        def call(found: SparkSession, given: Sequence[object], named: Mapping[str, object]) -> DataFrame:
            return call_function(session_of(found), name, given, named)

        return call

    for name in _FUNCTIONS:
        register_table_function(spark, name, on(name))


def is_function(name: str) -> bool:
    """Whether a table function over Hudi tables has this name."""
    return name.lower() in _FUNCTIONS


def call_function(session: SqlSession, name: str, given: Sequence[object], named: Mapping[str, object]) -> DataFrame:
    """The rows of a table function. Raises: Invalid for other arguments than it takes, NotFound for a table."""
    answer, arguments = _FUNCTIONS[name.lower()]
    return answer(session, *_bound(arguments, given, named, what=name.lower()))


def _bound(
    names: Sequence[str], given: Sequence[object], named: Mapping[str, object], *, what: str
) -> list[object | None]:
    """The arguments in the order of their names, None for those that are left out. Raises: Invalid."""
    if len(given) > len(names):
        raise Invalid(f"{what}: expected at most {len(names)} arguments ({', '.join(names)}), found {len(given)}")
    found: dict[str, object | None] = dict(zip(names, given, strict=False))
    for name, value in named.items():
        if name not in names or name in found:
            raise Invalid(f"{what}: expected the arguments {', '.join(names)}, each once, found '{name}'")
        found[name] = value
    return [found.get(name) for name in names]


def _hudi_scan(session: SqlSession, path: object, as_of: object, mode: object) -> DataFrame:
    """The rows of the table at a path, now or as of a moment. `mode`: as of `hudi_query`."""
    table = HudiTable.open(str(path), options=session.read_options())
    return table.scan(as_of=None if as_of is None else moment(as_of), query=str(mode or "snapshot").lower()).to_spark(
        session.spark
    )


def moment(given: object) -> date | str:
    """An argument that tells a moment, as calls take it: also a `datetime`."""
    return given if isinstance(given, date) else str(given)


def _hudi_found_rows(session: SqlSession, call: object) -> DataFrame:
    """As `rows_of_call`."""
    return rows_of_call(str(call))


def _hudi_query(session: SqlSession, table: object, mode: object) -> DataFrame:
    """`hudi_query(t, 'snapshot' | 'read_optimized')`."""
    query = str(mode or "snapshot").lower()
    return table_of(session, table, what="hudi_query").scan(query=query).to_spark(session.spark)


def _hudi_table_changes(
    session: SqlSession, table: object, query_type: object, start: object, end: object
) -> DataFrame:
    """`hudi_table_changes(t, 'latest_state' | 'cdc', start [, end])`: `(start, end]`, as incremental queries."""
    what = "hudi_table_changes"
    found = table_of(session, table, what=what)
    kind = str(query_type or "latest_state").lower()
    if start is None:
        raise Invalid(f"{what}: expected 'earliest' or an instant as the third argument, found nothing")
    begin, until = moment(start), None if end is None else moment(end)
    if kind == "latest_state":
        return found.incremental(begin, until).to_spark(session.spark)
    if kind == "cdc":
        return found.cdc(begin, until).as_json().to_spark(session.spark)
    raise Invalid(f"{what}: expected 'latest_state' or 'cdc', found '{query_type}'")


def _hudi_query_timeline(session: SqlSession, table: object, archived: object) -> DataFrame:
    """`hudi_query_timeline(t [, archived])`: the instants, with what they wrote; -1 for what writes nothing."""
    found = table_of(session, table, what="hudi_query_timeline")
    with_archived = str(archived or "false").lower() == "true"
    rows = []
    for one in read_instants(found, archived=with_archived):
        t = one.totals
        sums = (-1,) * 6 if t is None else (
            t.size_bytes, t.files_updated, t.partitions, t.records, t.updated_records, t.errors,
        )  # fmt: skip
        instant = one.instant
        rows.append((instant.requested, instant.action, instant.state, instant.completed, one.file_name, *sums))
    return session.rows(rows, _TIMELINE)


def _hudi_filesystem_view(session: SqlSession, table: object, sub_path: object) -> DataFrame:
    """`hudi_filesystem_view(t [, sub path])`: every file slice."""
    found = table_of(session, table, what="hudi_filesystem_view")
    rows = [
        (
            one.slice.file_id, one.slice.partition, one.slice.base_instant, one.base_path, one.base_size_bytes,
            len(one.log_paths), one.log_size_bytes, one.scheduled_bytes, one.unscheduled_bytes,
        )
        for one in read_slices(found, below=str(sub_path or ""))
    ]  # fmt: skip
    return session.rows(rows, _FILES)


def _hudi_metadata(session: SqlSession, table: object) -> DataFrame:
    """`hudi_metadata(t)`: the records of the metadata table, those of indexes among them."""
    return table_of(session, table, what="hudi_metadata").metadata.records_to_spark(session.spark)


_FUNCTIONS: Final[dict[str, tuple[Callable[..., DataFrame], tuple[str, ...]]]] = {
    SCAN: (_hudi_scan, ("path", "as_of", "mode")),
    FOUND_ROWS: (_hudi_found_rows, ("call",)),
    "hudi_query": (_hudi_query, ("table", "mode")),
    "hudi_table_changes": (_hudi_table_changes, ("table", "query_type", "start", "end")),
    "hudi_query_timeline": (_hudi_query_timeline, ("table", "archived")),
    "hudi_filesystem_view": (_hudi_filesystem_view, ("table", "sub_path")),
    "hudi_metadata": (_hudi_metadata, ("table",)),
}
"""The functions, with the names of their arguments."""

_TIMELINE = (
    "Timestamp string, Action string, State string, Completion_Time string, File_Name string, "
    "Total_Bytes_Written long, Total_Files_Updated long, Total_Partitions_Written long, Total_Records_Written long, "
    "Total_Updated_Records_Written long, Total_Write_Errors long"
)
_FILES = (
    "File_ID string, Partition_Path string, Base_Instant_Time string, Base_File_Path string, Base_File_Size long, "
    "Log_File_Count long, Log_File_Size long, Log_File_Scheduled long, Log_File_Unscheduled long"
)
