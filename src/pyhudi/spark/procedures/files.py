"""Procedures about files, the metadata table, and the table as a whole."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyhudi.api.partitions import living_partitions
from pyhudi.errors import Invalid
from pyhudi.inspect.commits import read_commits
from pyhudi.inspect.slices import ShownSlice, read_slices
from pyhudi.spark.procedures.procedure import PATH, REQUIRED, TABLE, Argument, Invocation, Procedure, Row, limit
from pyhudi.sql.words import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ALL = "ALL_PARTITIONS"


def _slices(call: Invocation, *, newest_only: bool) -> Iterator[ShownSlice]:
    for name in ("max_instant", "include_max", "include_in_flight", "exclude_compaction"):
        if call[name]:
            raise Invalid(f"CALL {call.procedure}: {name}: all completed writes are shown; use a query's WHERE instead")
    named = call.values.get("partition_path", _ALL)
    below = named if named != _ALL else call["path_regex"]
    return read_slices(
        call.table, newest_only=newest_only, below="" if below in (_ALL, None) else str(below).strip("/*")
    )


def _show_fsview_all(call: Invocation) -> list[Row]:
    return call.limited(
        (
            one.slice.partition, one.slice.file_id, one.slice.base_instant, one.base_path, max(0, one.base_size_bytes),
            len(one.log_paths), one.log_size_bytes, f"[{', '.join(one.log_paths)}]",
        )
        for one in _slices(call, newest_only=False)
    )  # fmt: skip


def _show_fsview_latest(call: Invocation) -> list[Row]:
    def row(one: ShownSlice) -> Row:
        base = max(0, one.base_size_bytes)
        of_base = [size / base if base else -1.0 for size in (one.scheduled_bytes, one.unscheduled_bytes)]
        names = [
            f"[{','.join(log.name.format() for log in logs)}]" for logs in (one.scheduled_logs, one.unscheduled_logs)
        ]
        return (
            one.slice.partition, one.slice.file_id, one.slice.base_instant, one.base_path, base, len(one.log_paths),
            one.log_size_bytes, one.scheduled_bytes, one.unscheduled_bytes, *of_base, *names,
        )  # fmt: skip

    return call.limited(row(one) for one in _slices(call, newest_only=True))


def _stats_file_sizes(call: Invocation) -> list[Row]:
    """Sizes of base files by the commit that wrote them, and of all of them."""
    sizes: dict[str, list[int]] = {}
    for one in read_slices(call.table, below=str(call["partition_path"] or "").strip("/*")):
        if one.base_size_bytes >= 0:
            sizes.setdefault(one.slice.base_instant, []).append(one.base_size_bytes)
    every = [size for of in sizes.values() for size in of]
    rows = [_spread(instant, of) for instant, of in sorted(sizes.items(), reverse=True)]
    return call.limited([*rows, _spread("ALL", every)] if every else [])


def _spread(name: str, sizes: list[int]) -> Row:
    ordered = sorted(sizes)

    def at(share: float) -> float:
        return float(ordered[min(len(ordered) - 1, int(share * len(ordered)))])

    deviation = statistics.pstdev(ordered) if len(ordered) > 1 else 0.0
    return (
        name, ordered[0], at(0.1), at(0.5), statistics.fmean(ordered), at(0.95), ordered[-1], len(ordered), deviation,
    )  # fmt: skip


def _stats_wa(call: Invocation) -> list[Row]:
    upserted = written = 0
    rows: list[Row] = []
    for commit in read_commits(call.table):
        t = commit.totals
        upserted, written = upserted + t.updated_records, written + t.records
        rows.append((commit.instant.requested, t.updated_records, t.records, _factor(t.records, t.updated_records)))
    return [*call.limited(rows), ("Total", upserted, written, _factor(written, upserted))]


def _factor(written: int, upserted: int) -> str:
    return f"{written / upserted:.2f}" if upserted else "0"


def _show_table_properties(call: Invocation) -> list[Row]:
    return call.limited(sorted(call.table.properties.items()))


def _truncate_table(call: Invocation) -> list[Row]:
    named = call["partitions"]
    table = call.table
    if named:
        table.delete_partitions(table.partitions_like([part.strip() for part in str(named).split(",")]))
    else:
        table.insert_overwrite_table(table.schema().empty_table())
    return [("0",)]


def _drop_partition(call: Invocation) -> list[Row]:
    named = call["partition"]
    table = call.table
    patterns = [part.strip() for part in str(named).split(",")] if named else []
    table.delete_partitions(table.partitions_like(patterns) if patterns else living_partitions(table))
    return [(True,)]


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


def _show_metadata_table_files(call: Invocation) -> list[Row]:
    partition = str(call["partition"] or "")
    files = call.table.metadata.list_files([partition])
    return call.limited((name,) for name in files.column("name").to_pylist())


def _show_metadata_table_partitions(call: Invocation) -> list[Row]:
    return call.limited((partition,) for partition in call.table.metadata.list_partitions())


def _show_metadata_table_stats(call: Invocation) -> list[Row]:
    found = call.table.metadata.stats()
    rows = [
        ("table_version", found.table_version), ("data_partitions", found.data_partitions),
        ("data_files", found.data_files), ("deltacommits_since_compaction", found.deltacommits_since_compaction),
        ("stored_files", found.stored_files), ("stored_bytes", found.stored_bytes),
        *(
            (f"{one.name}.{what}", value)
            for one in found.partitions
            for what, value in (
                ("totalBaseFileSizeInBytes", one.base_bytes), ("baseFileCount", one.base_files),
                ("totalLogFileSizeInBytes", one.log_bytes), ("logFileCount", one.log_files),
            )
        ),
    ]  # fmt: skip
    return call.limited((name, str(value)) for name, value in rows)


def _create_metadata_table(call: Invocation) -> list[Row]:
    made = call.table.metadata.create()
    return [(f"Created Metadata Table: {', '.join(made.after)}",)]


def _delete_metadata_table(call: Invocation) -> list[Row]:
    gone = call.table.metadata.delete()
    return [(f"Removed Metadata Table: {', '.join(gone.before)}",)]


_VIEW = (
    TABLE, Argument("max_instant", ""), Argument("include_max", default=False),
    Argument("include_in_flight", default=False), Argument("exclude_compaction", default=False), limit(10),
    Argument("path_regex", _ALL),
)  # fmt: skip
_COPY = (
    TABLE, Argument("query_type", "snapshot"), Argument("begin_instance_time", ""), Argument("end_instance_time", ""),
    Argument("as_of_instant", ""),
)  # fmt: skip

FILES: dict[str, Procedure] = {
    "show_fsview_all": Procedure(
        "every file slice", (*_VIEW, PATH),
        "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
        "num_delta_files long, total_delta_file_size long, delta_files string", _show_fsview_all,
    ),
    "show_fsview_latest": Procedure(
        "the newest file slice of each file group",
        (*_VIEW, Argument("partition_path", _ALL), Argument("merge", default=True), PATH),
        "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
        "num_delta_files long, total_delta_file_size long, delta_size_compaction_scheduled long, "
        "delta_size_compaction_unscheduled long, delta_to_base_radio_compaction_scheduled double, "
        "delta_to_base_radio_compaction_unscheduled double, delta_files_compaction_scheduled string, "
        "delta_files_compaction_unscheduled string", _show_fsview_latest,
    ),
    "stats_file_sizes": Procedure(
        "sizes of base files", (TABLE, Argument("partition_path", ""), limit(10), PATH),
        "commit_time string, min long, `10th` double, `50th` double, avg double, `95th` double, max long, "
        "num_files int, std_dev double", _stats_file_sizes,
    ),
    "stats_wa": Procedure(
        "write amplification: rows written for each row that changed", (TABLE, limit(10), PATH),
        "commit_time string, total_upserted long, total_written long, write_amplification_factor string", _stats_wa,
    ),
    "show_table_properties": Procedure(
        "hoodie.properties", (TABLE, PATH, limit(None)), "key string, value string", _show_table_properties
    ),
    "truncate_table": Procedure(
        "delete all rows, or those of partitions", (TABLE, PATH, Argument("partitions")), "result string",
        _truncate_table,
    ),
    "drop_partition": Procedure(
        "delete partitions by their paths, with *", (TABLE, Argument("partition"), PATH), "result boolean",
        _drop_partition,
    ),
    "copy_to_temp_view": Procedure(
        "a temporary view of a query",
        (TABLE, Argument("query_type", "snapshot"), Argument("view_name", REQUIRED), *_COPY[2:],
         Argument("replace", default=False), Argument("global", default=False), PATH), "status int",
        _copy_to_temp_view,
    ),
    "copy_to_table": Procedure(
        "copy a query's rows to a table",
        (TABLE, Argument("query_type", "snapshot"), Argument("new_table", REQUIRED), *_COPY[2:],
         Argument("save_mode", "overwrite"), Argument("columns", ""), PATH), "status int", _copy_to_table,
    ),
    "show_metadata_table_files": Procedure(
        "files of a partition, as the metadata table lists them", (TABLE, Argument("partition", ""), limit(100), PATH),
        "file_path string", _show_metadata_table_files,
    ),
    "show_metadata_table_partitions": Procedure(
        "partitions, as the metadata table lists them", (TABLE, limit(100), PATH), "partition string",
        _show_metadata_table_partitions,
    ),
    "show_metadata_table_stats": Procedure(
        "what the metadata table holds", (TABLE, PATH, limit(None)), "stat_key string, stat_value string",
        _show_metadata_table_stats,
    ),
    "create_metadata_table": Procedure(
        "make the metadata table", (TABLE, PATH), "result string", _create_metadata_table
    ),
    "delete_metadata_table": Procedure(
        "delete the metadata table", (TABLE, PATH), "result string", _delete_metadata_table
    ),
}  # fmt: skip
