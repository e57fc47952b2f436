"""Procedures about log files."""

from pyhudi.errors import Unsupported
from pyhudi.inspect.logs import read_log_blocks, read_log_records
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

_PATTERN = Argument("log_file_path_pattern", REQUIRED)


def _show_logfile_metadata(call: Invocation) -> list[Row]:
    return call.limited(
        (block.instant, block.records, block.type, block.header_text, "{}")
        for block in read_log_blocks(call.table, str(call["log_file_path_pattern"]))
    )


def _show_logfile_records(call: Invocation) -> list[Row]:
    if call["merge"]:
        raise Unsupported(
            "CALL show_logfile_records: merge => true: logs are merged with their base files by queries only: "
            "SELECT from the table; without merge the records are shown as they are stored"
        )
    return call.limited((text,) for text in read_log_records(call.table, str(call["log_file_path_pattern"])))


LOGS: dict[str, Procedure] = {
    "show_logfile_metadata": Procedure(
        "the blocks of log files, by a pattern of their paths", (TABLE, PATH, _PATTERN, limit(10), FILTER),
        "instant_time string, record_count int, block_type string, header_metadata string, footer_metadata string",
        _show_logfile_metadata,
    ),
    "show_logfile_records": Procedure(
        "the records of log files as JSON, by a pattern of their paths",
        (TABLE, PATH, _PATTERN, flag("merge"), limit(10), FILTER), "records string", _show_logfile_records,
    ),
}  # fmt: skip
