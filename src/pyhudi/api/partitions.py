"""The partitions of a table that have rows, and what their paths tell."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.api.writes import WriteCall, write
from pyhudi.format.keys.record_keys import KeySpec, partition_text, partition_values
from pyhudi.table.read.path_times import with_path_times
from pyhudi.table.read.shown_columns import AS_STORED
from pyhudi.write.input.source import Operation
from pyhudi.write.operation import WriteResult
from pyhudi.write.rows.partitions import rows_of_partitions


def living_partitions(table: HudiTable, among: Collection[str] | None = None) -> tuple[str, ...]:
    """The paths of partitions that have file groups, sorted. Requests: a listing of each partition.

    `among`: the paths to look at; None: those of all partitions.
    """
    snapshot = table._access.snapshot()
    looked_at = [path for path in snapshot.listing.partitions() if among is None or path in among]
    return tuple(sorted(path for path in looked_at if snapshot.slices(path)))


def has_rows(table: HudiTable, paths: Collection[str]) -> bool:
    """Whether any of these partitions has a row. Reads up to the first one: rows may all be deleted where files are."""
    return bool(paths) and any(len(batch) for batch in rows_of_partitions(table._access.snapshot(), paths))


def overwrite_partitions(
    table: HudiTable,
    rows: Any,
    partitions: Collection[str],
    options: Mapping[str, object],
    may_replace: Callable[[Collection[str]], None] | None = None,
) -> WriteResult:
    """Replace these partitions, and those of the rows, by the rows: in one commit. `rows`: as of `insert_overwrite`.

    `may_replace`: as of `WriteCall`.
    """
    call = WriteCall(options, also_replaced=frozenset(partitions), may_replace=may_replace)
    return write(table._handle, Operation.INSERT_OVERWRITE, rows, call)


def partition_texts(table: HudiTable, paths: Collection[str]) -> dict[str, dict[str, str | None]]:
    """The texts of partition columns as paths tell them, by path and column. The table is read once."""
    spec = _spec(table)
    return {path: dict(partition_values(path, spec)) for path in paths}


def has_slashed_dates(table: HudiTable) -> bool:
    """Whether paths spell the `-` of the partition column's text as `/`."""
    return table._access.snapshot().key_spec.has_slashed_dates


def text_in_path(table: HudiTable, name: str, value: pa.Scalar) -> str | None:
    """The text that paths have for a value of a partition column; None for a null and for an empty text.

    The column's paths are made of values as they are, and not of times.
    """
    rows = pa.table({name: pa.array([value.as_py()], value.type)})
    found: str | None = partition_text(rows, name, _spec(table))[0].as_py()
    return found or None


def _spec(table: HudiTable) -> KeySpec:
    snapshot = table._access.snapshot()
    return with_path_times(snapshot.key_spec, snapshot)


def shows_other_values(table: HudiTable) -> bool:
    """Whether queries show a partition column otherwise than it is stored: as text, or as its path has it."""
    return table._access.snapshot().shown_columns("snapshot") != AS_STORED


def has_times_in_paths(table: HudiTable, name: str) -> bool:
    """Whether many values of a partition column share a path: that of their day, for one."""
    return name in table._access.snapshot().key_spec.time_based
