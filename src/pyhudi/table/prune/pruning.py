"""Partitions and file slices that statistics of the metadata table rule out. What is not ruled out for certain is read.

A slice is judged by the statistics of all its files together. Merging takes each value of a row from one of the files,
so a value that no file can hold is in no merged row.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import META_FIELDS, RECORD_KEY
from pyhudi.format.struct_fields import find_field
from pyhudi.predicate import Predicate, which_can_match
from pyhudi.predicate.nodes import columns_in
from pyhudi.table.prune.file_statistics import FILES, FileStatistics, PartitionStatistics

_CHANGING: Final = frozenset(META_FIELDS) - {RECORD_KEY}
"""Columns whose values a reader may show differently from a file's."""


_SUMMARY: Final = (
    ("min", "min", "says"), ("max", "max", "says"), ("null_count", "sum", "counts"), ("value_count", "sum", "counts"),
)  # fmt: skip
_OVER_FILES: Final = [*((name, aggregate) for name, aggregate, _ in _SUMMARY), ("says", "all"), ("counts", "all")]


@dataclass(frozen=True, slots=True)
class PrunedBy:
    """What an index spared a scan, after the indexes asked before. `files`: counts log files, too."""

    index: str
    partitions: int = 0
    files: int = 0


def match_partitions(
    statistics: PartitionStatistics, predicate: Predicate, partitions: Sequence[str], *, besides: Collection[str]
) -> npt.NDArray[np.bool_]:
    """For each of these distinct partitions, whether it may hold a matching row. `besides`: columns not to ask for.

    Cost: for each column of the predicate a look-up of a key for each partition.
    """
    paths = pa.array(partitions, pa.string())

    def known(column: pa.Field) -> pa.Table | None:
        found = statistics.of_partitions(column, partitions)
        return None if found is None else _by_slice(found, one_array(found.column("partition")), paths, None)

    return _matching(predicate, len(partitions), besides, known)


def match_slices(
    statistics: FileStatistics,
    predicate: Predicate,
    slices: Sequence[tuple[str, Sequence[str]]],
    *,
    besides: Collection[str],
) -> npt.NDArray[np.bool_]:
    """For each slice, whether it may hold a matching row. Slices: partition and paths of the files.

    Cost: for each column of the predicate a look-up of a key for each file.
    """
    owner = np.repeat(np.arange(len(slices)), [len(paths) for _, paths in slices])
    paths = pa.array([path for _, paths in slices for path in paths], pa.string())
    names = pa.array([path.rpartition("/")[2] for _, paths in slices for path in paths], pa.string())
    partitions = pa.array([partition for partition, _ in slices], pa.string()).take(pa.array(owner))
    files = pa.Table.from_arrays([partitions, names], schema=FILES)

    def known(column: pa.Field) -> pa.Table | None:
        found = statistics.of_files(column, files)
        if found is None:
            return None
        folder, name = one_array(found.column("partition")), one_array(found.column("file"))
        joined = pc.binary_join_element_wise(folder, name, "/")
        return _by_slice(found, pc.if_else(pc.equal(folder, ""), name, joined), paths, owner)

    return _matching(predicate, len(slices), besides, known)


def _matching(
    predicate: Predicate, count: int, besides: Collection[str], known: Callable[[pa.Field], pa.Table | None]
) -> npt.NDArray[np.bool_]:
    found = {}
    for column in _columns(predicate) if count else ():
        top = column.name.partition(".")[0]
        if top in besides or top in _CHANGING or pa.types.is_nested(column.type):
            continue
        if (statistics := known(column)) is not None:
            found[column.name] = statistics
    return which_can_match(predicate, found, count) if found else np.ones(count, np.bool_)


def _columns(predicate: Predicate) -> list[pa.Field]:
    if predicate.condition is None:
        return []
    if isinstance(predicate.condition, pc.Expression):
        names = sorted(predicate.columns)
        return [predicate.schema.field(name).remove_metadata() for name in names if name in predicate.schema.names]
    # Types as the table has them: of a timestamp, the unit tells what stored numbers count.
    asked = dict.fromkeys(".".join(column.path) for column in columns_in(predicate.condition))
    fields = [(name, find_field(predicate.schema, name)) for name in asked]
    return [pa.field(name, field.type) for name, field in fields if field is not None]


def _by_slice(found: pa.Table, at: pa.Array, wanted: pa.Array, owner: np.ndarray | None) -> pa.Table:
    """The statistics of each slice over all of its files. `owner`: the slice of each wanted file; None: one file each.

    A value is null if one of the files does not state it. Bounds may be missing only for a file without values.
    """
    empty = pc.equal(found.column("null_count"), found.column("value_count"))
    says = pc.or_(found.column("is_known"), pc.fill_null(empty, False))
    numbers = pc.and_(pc.is_valid(found.column("null_count")), pc.is_valid(found.column("value_count")))

    rows = found.select(["min", "max", "null_count", "value_count"])
    rows = rows.append_column("says", says).append_column("counts", numbers)
    rows = rows.take(pc.index_in(wanted, value_set=at))
    for name in ("says", "counts"):
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, pc.fill_null(rows.column(name), False))

    owners = np.arange(len(wanted)) if owner is None else owner
    merged = rows.append_column("owner", pa.array(owners)).group_by("owner").aggregate(_OVER_FILES).sort_by("owner")
    columns = {}
    for name, aggregate, said in _SUMMARY:
        column = merged.column(f"{name}_{aggregate}")
        columns[name] = pc.if_else(merged.column(f"{said}_all"), column, pa.scalar(None, column.type))
    return pa.table(columns)
