"""How Spark reads slices with logs: chosen by sizes, before anything is read."""

from collections.abc import Sequence
from typing import Final

from pyhudi.table.read.plan import PlannedFile

LOG_SHARE_MAX: Final = 0.2
"""Untouched rows are read apart if logs have at most this many bytes for each byte of base files."""

NATIVE_BYTES_MIN: Final = 32 << 20
"""Untouched rows are read apart from this many bytes of base files on. Below, finding the touched rows takes longer
than it saves.
"""

NATIVE_BYTES_MAX: Final = 32 << 30
"""Positions of touched rows, a bit a row, are sent to every task for at most this many bytes of base files."""

DRIVER_BYTES_MAX: Final = 512 << 20
"""The driver finds the touched rows in at most this many bytes of base files and logs.

A stage of tasks starts slower.
"""

DRIVER_LOG_BYTES_MAX: Final = 64 << 20
"""The driver also merges the touched rows in at most this many bytes of logs. Starting Python tasks takes a second."""

BASE_BYTES_A_BLOCK: Final = 3 << 20
"""Blocks are scanned as files if the base file has at least this many bytes for each data block of its log. Opening a
block takes as long as merging the rows of so many bytes.
"""

WHOLE_ON_DRIVER_BYTES_MAX: Final = 512 << 20
"""The driver merges whole slices that a query needs if all of them have at most this many bytes."""

MERGED_BYTES_A_BYTE: Final = 4
"""About how many bytes a merged file has for each byte of its slice. Its rows are not compressed."""

FILE_ROWS_BYTES_MIN: Final = 4 << 20
"""Rows of the driver with fewer bytes reach Spark sooner as Arrow than as files."""


def split_by_design(slices: Sequence[PlannedFile]) -> tuple[list[PlannedFile], list[PlannedFile]]:
    """The slices of which Spark's own reader takes the untouched rows, and the slices that are merged whole.

    Pure. The former have a base file, and logs of at most `LOG_SHARE_MAX` of its size. The smallest share comes first,
    up to `NATIVE_BYTES_MAX` in all. If they have less than `NATIVE_BYTES_MIN` in all, none is chosen. Both lists keep
    the order of `slices`. Positions are sent by file name, so of slices whose base files share a name at most one is
    chosen.
    """
    chosen: set[int] = set()
    names: set[str] = set()
    total_bytes = 0

    for at in sorted(range(len(slices)), key=lambda at: (_log_share(slices[at]), at)):
        name, size_bytes = slices[at].path.rpartition("/")[2], base_size_bytes(slices[at])
        if _log_share(slices[at]) > LOG_SHARE_MAX or name in names or total_bytes + size_bytes > NATIVE_BYTES_MAX:
            continue
        chosen.add(at)
        names.add(name)
        total_bytes += size_bytes

    if total_bytes < NATIVE_BYTES_MIN:
        chosen = set()
    whole = [planned_file for at, planned_file in enumerate(slices) if at not in chosen]
    return [slices[at] for at in sorted(chosen)], whole


def finds_on_driver(slices: Sequence[PlannedFile]) -> bool:
    """Whether the driver looks which rows of these slices are touched, as the query is planned."""
    return sum(planned_file.size_bytes for planned_file in slices) <= DRIVER_BYTES_MAX


def merges_on_driver(slices: Sequence[PlannedFile]) -> bool:
    """Whether the driver merges the touched rows of these slices, as the query is planned."""
    log_bytes = sum(planned_file.size_bytes - base_size_bytes(planned_file) for planned_file in slices)
    return finds_on_driver(slices) and log_bytes <= DRIVER_LOG_BYTES_MAX


def merges_whole_on_driver(slices: Sequence[PlannedFile]) -> bool:
    """Whether the driver merges slices that are read whole, once a query needs them."""
    return sum(planned_file.size_bytes for planned_file in slices) <= WHOLE_ON_DRIVER_BYTES_MAX


def merged_bytes(slices: Sequence[PlannedFile]) -> int:
    """Bytes of the files of these slices as they are merged, about."""
    return MERGED_BYTES_A_BYTE * sum(planned_file.size_bytes for planned_file in slices)


def data_blocks_max(planned_file: PlannedFile) -> int:
    """How many data blocks of a slice's log pay to be scanned as files."""
    return base_size_bytes(planned_file) // BASE_BYTES_A_BLOCK


def pays_as_files(rows_bytes: int) -> bool:
    """Whether it pays to write rows of the driver to files of this machine, where Spark reads needed columns only."""
    return rows_bytes >= FILE_ROWS_BYTES_MIN


def base_size_bytes(planned_file: PlannedFile) -> int:
    return planned_file.size_bytes - sum(size_bytes for _, size_bytes in planned_file.logs)


def _log_share(planned_file: PlannedFile) -> float:
    """Bytes of logs for each byte of the base file; infinite without one."""
    base_bytes = base_size_bytes(planned_file)
    return sum(size_bytes for _, size_bytes in planned_file.logs) / base_bytes if base_bytes else float("inf")
