"""The bounds of columns in files, as the metadata table has them, and how far those of several files overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid, NotFound
from pyhudi.format.arrow_arrays import one_array
from pyhudi.metadata.kinds.column_stats import ColumnStatsKind
from pyhudi.metadata.kinds.stats_reading import read_column_stats
from pyhudi.metadata.store.indexes import open_indexes
from pyhudi.options.told_names import listed
from pyhudi.table.view.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class FileBounds:
    """The bounds of one column: a row for each file. `stats`: as `read_column_stats` gives them."""

    column: str
    stats: pa.Table

    def texts(self) -> tuple[pa.Array, ...]:
        """File, column, least and greatest value as text, and the number of nulls. Unknown bounds are null."""
        known = self.stats.column("is_known")
        low, high = (
            pc.if_else(known, _as_text(self.stats.column(side)), pa.scalar(None, pa.string()))
            for side in ("min", "max")
        )
        names = pa.repeat(self.column, len(self.stats))
        return self.stats.column("file"), names, low, high, self.stats.column("null_count")


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many files of a partition hold a value of a column, as far as their bounds tell.

    `depths`: for each distinct bound the number of files whose range has it, ascending. `files`: of the partition.
    """

    partition: str
    column: str
    files: int
    depths: tuple[int, ...]

    @property
    def average(self) -> float:
        return sum(self.depths) / len(self.depths)

    @property
    def most(self) -> int:
        return self.depths[-1]

    def at(self, share: float) -> int:
        """The number of files that this share of the values is at most in."""
        return self.depths[int(share * (len(self.depths) - 1))]


def read_bounds_of_files(
    table: HudiTable, partitions: Sequence[str], columns: Sequence[str], *, newest_only: bool = False
) -> Iterator[FileBounds]:
    """The bounds of these columns, or of all that have some, in files of these partitions, or of all.

    `partitions`: paths, or what they begin with. `newest_only`: only base files that a reader sees now.
    Raises: NotFound for a table without column statistics; Invalid for a column that it does not have.
    """
    snapshot = table._access.snapshot()
    indexes = open_indexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone)
    if indexes is None or ColumnStatsKind.name not in snapshot.config.metadata_partitions:
        raise NotFound(
            f"{table.path}: expected column statistics in the metadata table, found none; table.build_index("
            "'column_stats') makes them"
        )
    schema = snapshot.schema
    unknown = next((name for name in columns if name not in schema.names), None)
    if unknown is not None:
        raise Invalid(f"column '{unknown}': expected one of {listed(schema.names)}")
    chosen = _partitions(snapshot, partitions)
    newest = _newest_base_files(snapshot, chosen) if newest_only else None
    for field in (schema.field(name) for name in columns or schema.names):
        stats = read_column_stats(indexes, field, partitions=chosen, index=ColumnStatsKind.name, as_stored=True)
        if stats is not None and len(stats):
            if newest is not None:
                stats = stats.filter(pc.is_in(stats.column("file"), value_set=newest))
            yield FileBounds(field.name, stats)


def read_overlaps(table: HudiTable, partitions: Sequence[str], columns: Sequence[str]) -> list[Overlap]:
    """The overlaps of the newest base files' bounds, sorted by column and average.

    Raises: as `read_bounds_of_files`.
    """
    snapshot = table._access.snapshot()
    found: list[Overlap] = []
    for bounds in read_bounds_of_files(table, partitions, columns, newest_only=True):
        known = bounds.stats.filter(pc.and_(bounds.stats.column("is_known"), pc.is_valid(bounds.stats.column("min"))))
        for partition in pc.unique(one_array(known.column("partition"))).to_pylist():
            of = known.filter(pc.equal(known.column("partition"), partition))
            files = len(snapshot.slices(partition))
            found.append(Overlap(partition, bounds.column, files, _depths(of.column("min"), of.column("max"))))
    return sorted(found, key=lambda one: (one.column, one.average, one.partition))


def _depths(low: pa.ChunkedArray, high: pa.ChunkedArray) -> tuple[int, ...]:
    """For each distinct bound, how many ranges are open when the values are passed in ascending order.

    At a value where ranges begin: all that are open then, those that end there too. At one where ranges only end: all
    that were open before.
    """
    values = pa.concat_arrays([one_array(low), one_array(high)])
    ranks = pc.rank(values, tiebreaker="dense").to_numpy() - 1
    count = int(ranks.max()) + 1
    begins = np.bincount(ranks[: len(low)], minlength=count)
    ends = np.bincount(ranks[len(low) :], minlength=count)
    opened = np.cumsum(begins) - (np.cumsum(ends) - ends)
    return tuple(sorted(int(depth) for depth in opened))


def _partitions(snapshot: Snapshot, named: Sequence[str]) -> list[str]:
    known = snapshot.listing.partitions()
    return [one for one in known if any(one.startswith(prefix) for prefix in named)] if named else list(known)


def _newest_base_files(snapshot: Snapshot, partitions: Sequence[str]) -> pa.Array:
    slices = (one for partition in partitions for one in snapshot.slices(partition))
    return pa.array([one.base_file.name.format() for one in slices if one.base_file is not None], pa.string())


def _as_text(values: pa.ChunkedArray) -> pa.Array:
    """Values as Java spells them, where Arrow's spelling differs."""
    kind = values.type
    array = one_array(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if value is None else value.hex() for value in array.to_pylist()], pa.string())
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else repr(value) for value in array.to_pylist()], pa.string())
    return array.cast(pa.string())
