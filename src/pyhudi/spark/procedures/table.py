"""Procedures about the table as a whole: its properties and version, deleting rows, copies."""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from pyhudi.errors import Invalid
from pyhudi.spark.procedures.procedure import (
    FILTER,
    PATH,
    REQUIRED,
    TABLE,
    Argument,
    Invocation,
    Procedure,
    Row,
    flag,
    limit,
)
from pyhudi.sql.words import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_VERSION_WORDS: Final = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")


def _show_table_properties(call: Invocation) -> list[Row]:
    return call.limited(sorted(call.table.properties.items()))


def _truncate_table(call: Invocation) -> list[Row]:
    named, start_ns = call["partitions"], monotonic_ns()
    table = call.table
    if named is not None:
        table.delete_partitions(table.partitions_like(_patterns(call, "partitions")))
    else:
        table.insert_overwrite_table(table.schema().empty_table())
    return [("SUCCESS", (monotonic_ns() - start_ns) // 1_000_000)]


def _drop_partition(call: Invocation) -> list[Row]:
    table = call.table
    table.delete_partitions(table.partitions_like(_patterns(call, "partition")))
    return [("SUCCESS",)]


def _patterns(call: Invocation, name: str) -> list[str]:
    """The partitions that an argument names. Raises: Invalid for an empty name.

    A script whose variable is empty would delete all rows: the partition of a table without partitions has no name.
    """
    found = [part.strip() for part in str(call[name]).split(",")]
    if not all(found):
        raise Invalid(
            f"CALL {call.procedure}: {name} => '{call[name]}': expected names of partitions, found an empty one; CALL "
            "truncate_table without partitions deletes all rows"
        )
    return found


def _upgrade_table(call: Invocation) -> list[Row]:
    call.table.upgrade(_version(call))
    return [(True,)]


def _downgrade_table(call: Invocation) -> list[Row]:
    call.table.downgrade(_version(call))
    return [(True,)]


def _version(call: Invocation) -> int:
    """The version that `to_version` says: a word of Apache Hudi's, such as NINE, or a number."""
    said = str(call["to_version"]).strip()
    if said.upper() in _VERSION_WORDS:
        return _VERSION_WORDS.index(said.upper())
    if not (said.isascii() and said.isdigit()):
        raise Invalid(f"CALL {call.procedure}: to_version => '{said}': expected a version such as NINE or 9")
    return int(said)


def _read(call: Invocation) -> DataFrame:
    """The rows that a copy takes."""
    table, kind = call.table, str(call["query_type"]).lower()
    if kind == "incremental":
        begin, end = str(call["begin_instance_time"] or ""), str(call["end_instance_time"] or "")
        if not begin or not end:
            raise Invalid(f"CALL {call.procedure}: an incremental copy needs begin_instance_time and end_instance_time")
        return table.incremental(begin, end).to_spark(call.spark)
    moment = call["as_of_instant"] or None
    if kind not in ("snapshot", "read_optimized"):
        raise Invalid(
            f"CALL {call.procedure}: query_type => '{kind}': expected snapshot, read_optimized or incremental"
        )
    return table.scan(as_of=moment, query=kind).to_spark(call.spark)


def _copy_to_temp_view(call: Invocation) -> list[Row]:
    rows, name = _read(call), str(call["view_name"])
    if call["global"]:
        (rows.createOrReplaceGlobalTempView if call["replace"] else rows.createGlobalTempView)(name)
    else:
        (rows.createOrReplaceTempView if call["replace"] else rows.createTempView)(name)
    return [(0,)]


def _copy_to_table(call: Invocation) -> list[Row]:
    rows, mode = _read(call), str(call["save_mode"]).lower()
    columns = str(call["columns"] or "").strip()
    if columns:
        rows = rows.select(*(quoted_name(one.strip()) for one in columns.split(",")))
    if mode not in ("append", "overwrite"):
        raise Invalid(f"CALL copy_to_table: save_mode => '{mode}': expected append or overwrite")
    rows.write.mode(mode).saveAsTable(str(call["new_table"]))
    return [(0,)]


_COPY = (
    TABLE, Argument("query_type", "snapshot"), Argument("begin_instance_time", ""), Argument("end_instance_time", ""),
    Argument("as_of_instant", ""),
)  # fmt: skip

TABLE_CALLS: dict[str, Procedure] = {
    "upgrade_table": Procedure(
        "make the table one of a later version", (TABLE, Argument("to_version", REQUIRED), PATH), "result boolean",
        _upgrade_table,
    ),
    "downgrade_table": Procedure(
        "make the table one of an earlier version", (TABLE, Argument("to_version", REQUIRED), PATH), "result boolean",
        _downgrade_table,
    ),
    "show_table_properties": Procedure(
        "hoodie.properties", (TABLE, PATH, limit(10), FILTER), "key string, value string", _show_table_properties
    ),
    "truncate_table": Procedure(
        "delete all rows, or those of partitions", (TABLE, Argument("partitions"), PATH),
        "result string, time_cost long", _truncate_table,
    ),
    "drop_partition": Procedure(
        "delete partitions by their paths, with *", (TABLE, Argument("partition", REQUIRED), PATH), "result string",
        _drop_partition,
    ),
    "copy_to_temp_view": Procedure(
        "a temporary view of a query",
        (TABLE, Argument("query_type", "snapshot"), Argument("view_name", REQUIRED), *_COPY[2:],
         flag("replace"), flag("global"), PATH), "status int",
        _copy_to_temp_view,
    ),
    "copy_to_table": Procedure(
        "copy a query's rows to a table",
        (TABLE, Argument("query_type", "snapshot"), Argument("new_table", REQUIRED), *_COPY[2:],
         Argument("save_mode", "overwrite"), Argument("columns", ""), PATH), "status int", _copy_to_table,
    ),
}  # fmt: skip
