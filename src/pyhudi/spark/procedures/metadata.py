"""Procedures about the metadata table."""

from collections.abc import Iterator
from time import monotonic_ns

from pyhudi.inspect.bounds import read_bounds_of_files, read_overlaps
from pyhudi.inspect.listings import compare_listings
from pyhudi.spark.procedures.procedure import (
    FILTER,
    PATH,
    TABLE,
    Argument,
    Invocation,
    Procedure,
    Row,
    flag,
    limit,
)


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


def _init_metadata_table(call: Invocation) -> list[Row]:
    """`read_only`: only opens it. Otherwise as the next write would: made where there is none, else brought up."""
    metadata, start_ns = call.table.metadata, monotonic_ns()
    if call["read_only"]:
        metadata.stats()
    else:
        metadata.update()
    verb = "Opened" if call["read_only"] else "Initialized"
    seconds = (monotonic_ns() - start_ns) / 1e9
    return [(f"{verb} Metadata Table in {call.table.path.rstrip('/')}/.hoodie/metadata (duration={seconds:.3f}sec)",)]


def _validate_metadata_table_files(call: Invocation) -> list[Row]:
    return [
        (
            one.partition, one.name, one.stored_bytes is not None, one.known_bytes is not None, one.stored_bytes or 0,
            one.known_bytes or 0,
        )
        for one in compare_listings(call.table)
        if call["verbose"] or one.stored_bytes != one.known_bytes
    ]  # fmt: skip


def _named(call: Invocation, name: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in str(call[name] or "").split(",") if one.strip())


def _show_column_stats(call: Invocation) -> list[Row]:
    def rows() -> Iterator[Row]:
        partitions, columns = _named(call, "partition"), _named(call, "targetColumns")
        for bounds in read_bounds_of_files(call.table, partitions, columns, newest_only=True):
            yield from zip(*(column.to_pylist() for column in bounds.texts()), strict=True)

    return list(rows())


def _show_overlap(call: Invocation) -> list[Row]:
    return [
        (
            one.partition, one.column, one.average, one.most, one.files, *(one.at(share) for share in _SHARES),
            len(one.depths),
        )
        for one in read_overlaps(call.table, _named(call, "partition"), _named(call, "targetColumns"))
    ]  # fmt: skip


_SHARES = (0.5, 0.75, 0.95, 0.99)
_OF_COLUMNS = (TABLE, PATH, Argument("partition"), Argument("targetColumns"), FILTER)

METADATA: dict[str, Procedure] = {
    "show_metadata_table_files": Procedure(
        "files of a partition, as the metadata table lists them",
        (TABLE, PATH, Argument("partition", ""), limit(100), FILTER),
        "file_path string", _show_metadata_table_files,
    ),
    "show_metadata_table_partitions": Procedure(
        "partitions, as the metadata table lists them", (TABLE, PATH, FILTER), "partition string",
        _show_metadata_table_partitions,
    ),
    "show_metadata_table_stats": Procedure(
        "what the metadata table holds", (TABLE, PATH, FILTER), "stat_key string, stat_value string",
        _show_metadata_table_stats,
    ),
    "create_metadata_table": Procedure(
        "make the metadata table anew", (TABLE, PATH), "result string", _create_metadata_table
    ),
    "delete_metadata_table": Procedure(
        "delete the metadata table", (TABLE, PATH), "result string", _delete_metadata_table
    ),
    "init_metadata_table": Procedure(
        "bring the metadata table to where the next write needs it, or look whether it opens",
        (TABLE, flag("read_only"), PATH), "result string", _init_metadata_table,
    ),
    "validate_metadata_table_files": Procedure(
        "files of which the metadata table and the storage differ; with verbose all files",
        (TABLE, flag("verbose"), PATH),
        "partition string, file_name string, is_present_in_fs boolean, is_present_in_metadata boolean, fs_size long, "
        "metadata_size long", _validate_metadata_table_files,
    ),
    "show_metadata_table_column_stats": Procedure(
        "least and greatest values of columns in each file, as the metadata table has them", _OF_COLUMNS,
        "file_name string, column_name string, min_value string, max_value string, null_number long",
        _show_column_stats,
    ),
    "show_metadata_column_stats_overlap": Procedure(
        "how many files of a partition hold a value of a column, as far as bounds tell", _OF_COLUMNS,
        "`Partition path` string, `Field name` string, `Average overlap` double, `Maximum file overlap` int, "
        "`Total file number` int, `50% overlap` int, `75% overlap` int, `95% overlap` int, `99% overlap` int, "
        "`Total value number` int", _show_overlap,
    ),
}  # fmt: skip
