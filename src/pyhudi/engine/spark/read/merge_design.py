"""How Spark reads slices with logs: chosen by sizes, before anything is read."""

from collections.abc import Sequence
from typing import Final

from pyhudi.table.read.plan import PlannedFile

LOG_SHARE_MAX: Final = 0.2
"""Bytes of logs for each byte of base files up to which it pays to read untouched rows apart."""

NATIVE_BYTES_MIN: Final = 32 << 20
"""Bytes of base files from which it pays: below, finding the touched rows takes longer than it spares."""

NATIVE_BYTES_MAX: Final = 32 << 30
"""Bytes of base files up to which the places of touched rows, a bit a row, are sent to every task."""

DRIVER_BYTES_MAX: Final = 512 << 20
"""Bytes of base files and logs up to which the driver finds the touched rows: a stage of tasks is slower to start."""

DRIVER_LOG_BYTES_MAX: Final = 64 << 20
"""Bytes of logs up to which the driver merges the touched rows, too: starting Python tasks takes a second."""

BASE_BYTES_A_BLOCK: Final = 3 << 20
"""Bytes of a base file for each data block of its log from which it pays to scan the blocks as files: opening one takes
as long as merging the rows of so much.
"""

WHOLE_ON_DRIVER_BYTES_MAX: Final = 512 << 20
"""Bytes of base files and logs of slices read whole, up to which the driver merges those that a query needs."""

MERGED_BYTES_A_BYTE: Final = 4
"""Bytes of a merged file for each byte of its slice, about: its rows are not compressed."""

FILE_ROWS_BYTES_MIN: Final = 4 << 20
"""Bytes of rows of the driver below which they get to Spark sooner as Arrow than as files."""


def split_by_design(slices: Sequence[PlannedFile]) -> tuple[list[PlannedFile], list[PlannedFile]]:
    """The slices of which Spark's own reader takes the untouched rows, and those that tasks merge whole.

    Pure. The former have a base file, and logs of up to `LOG_SHARE_MAX` of its size: the smallest share first, as far
    as `NATIVE_BYTES_MAX` goes; none where they come to less than `NATIVE_BYTES_MIN`. Both keep the order of `slices`.
    Files go by their names where places are sent: of slices whose base files share a name one at most is chosen.
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
    """Whether rows of the driver are worth files of this machine, of which Spark reads the columns that it needs."""
    return rows_bytes >= FILE_ROWS_BYTES_MIN


def base_size_bytes(planned_file: PlannedFile) -> int:
    return planned_file.size_bytes - sum(size_bytes for _, size_bytes in planned_file.logs)


def _log_share(planned_file: PlannedFile) -> float:
    """Bytes of logs for each byte of the base file; infinite without one."""
    base_bytes = base_size_bytes(planned_file)
    return sum(size_bytes for _, size_bytes in planned_file.logs) / base_bytes if base_bytes else float("inf")
