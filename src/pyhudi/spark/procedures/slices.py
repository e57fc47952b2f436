"""Procedures about file slices and their sizes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from pyhudi.errors import Invalid
from pyhudi.inspect.commits import read_commits
from pyhudi.inspect.file_status import find_file_status
from pyhudi.inspect.slices import ShownSlice, read_slices
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

_ALL = "ALL_PARTITIONS"


def _slices(call: Invocation, *, newest_only: bool) -> Iterator[ShownSlice]:
    for name in ("max_instant", "include_max", "include_in_flight", "exclude_compaction"):
        if call[name]:
            raise Invalid(f"CALL {call.procedure}: {name}: all completed writes are shown; use a query's WHERE instead")
    named = call.values.get("partition_path", _ALL)
    below = named if named != _ALL else call["path_regex"]
    return read_slices(call.table, newest_only=newest_only, below="" if below in (_ALL, None) else str(below))


def _show_fsview_all(call: Invocation) -> list[Row]:
    return call.limited(
        (
            one.slice.partition, one.slice.file_id, one.slice.base_instant, one.base_path, max(0, one.base_size_bytes),
            len(one.log_paths), one.log_size_bytes, f"[{', '.join(one.log_paths)}]",
        )
        for one in _slices(call, newest_only=False)
    )  # fmt: skip


def _show_fsview_latest(call: Invocation) -> list[Row]:
    """Seen: Apache Hudi 1.2.0 counts the bytes of every completed log as scheduled, and names those of the slice's own
    instant only.
    """

    def row(one: ShownSlice) -> Row:
        base = max(0, one.base_size_bytes)
        of_base = [size / base if base else -1.0 for size in (one.log_size_bytes, 0)]
        names = [
            f"[{','.join(log.name.format() for log in logs)}]" for logs in (one.scheduled_logs, one.unscheduled_logs)
        ]
        return (
            one.slice.partition, one.slice.file_id, one.slice.base_instant, one.base_path, base, len(one.log_paths),
            one.log_size_bytes, one.log_size_bytes, 0, *of_base, *names,
        )  # fmt: skip

    return call.limited(row(one) for one in _slices(call, newest_only=True))


def _stats_file_sizes(call: Invocation) -> list[Row]:
    """Sizes of base files and logs by the instant that wrote them, and of all of them."""
    sizes: dict[str, list[int]] = {}
    for one in read_slices(call.table, below=str(call["partition_path"] or "")):
        if one.base_size_bytes >= 0:
            sizes.setdefault(one.slice.base_instant, []).append(one.base_size_bytes)
        for log in one.slice.log_files:
            sizes.setdefault(log.name.instant, []).append(log.size_bytes)
    every = [size for of in sizes.values() for size in of]
    rows = [_spread(instant, of) for instant, of in sorted(sizes.items(), reverse=True)]
    return call.limited([*rows, _spread("ALL", every)] if every else [])


def _spread(name: str, sizes: list[int]) -> Row:
    """Quantiles lie between neighbours, at the place `share * (count + 1)`; the deviation is that of a sample."""
    ordered = sorted(sizes)

    def at(share: float) -> float:
        place = share * (len(ordered) + 1)
        if place < 1 or place >= len(ordered):
            return float(ordered[0] if place < 1 else ordered[-1])
        low, high = ordered[int(place) - 1], ordered[int(place)]
        return low + (place - int(place)) * (high - low)

    deviation = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
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


def _show_file_status(call: Invocation) -> list[Row]:
    found = find_file_status(call.table, call["partition"], str(call["file"]))
    return [(found.status, found.action, found.instant, found.timeline, found.full_path)]


_VIEW = (
    TABLE, PATH, Argument("max_instant", ""), flag("include_max"), flag("include_in_flight"),
    flag("exclude_compaction"), limit(10), Argument("path_regex", _ALL), FILTER,
)  # fmt: skip
SLICES: dict[str, Procedure] = {
    "show_fsview_all": Procedure(
        "every file slice", _VIEW,
        "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
        "num_delta_files long, total_delta_file_size long, delta_files string", _show_fsview_all,
    ),
    "show_fsview_latest": Procedure(
        "the newest file slice of each file group",
        (*_VIEW, Argument("partition_path", _ALL), flag("merge", True)),
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
    "show_file_status": Procedure(
        "whether a data file is there, or which action deleted it",
        (TABLE, PATH, Argument("partition"), Argument("file", REQUIRED), FILTER),
        "status string, action string, instant string, timeline string, full_path string", _show_file_status,
    ),
}  # fmt: skip
