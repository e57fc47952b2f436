"""Comparing Bloom filters, column statistics and secondary indexes of the metadata table with the data files.

What would mislead a reader is a difference: a bound that a value lies beyond, a filter that is not the file's, a row
that an index does not know. What only makes it read more is none: statistics that are missing or too wide.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata_groups import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS
from pyhudi.metadata.changed_groups import ChangedGroup
from pyhudi.metadata.check import Difference, DifferenceKind
from pyhudi.metadata.column_bounds import FileBounds, IndexedColumn, bounds_table, read_bounds
from pyhudi.metadata.column_stats import read_column_stats, read_partition_stats
from pyhudi.metadata.derive_action import SecondaryTask, secondary_keys_of
from pyhudi.metadata.derive_blooms import read_blooms
from pyhudi.metadata.derive_keys import RowReading
from pyhudi.metadata.derive_stats import files_of
from pyhudi.metadata.index_facts import IndexFacts, SecondaryIndex
from pyhudi.metadata.indexes import MetadataIndexes
from pyhudi.metadata.key_indexes import read_bloom_filters
from pyhudi.metadata.stats_changes import merge_by_partition
from pyhudi.table.file_statistics import FILES
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.read_plan import log_reading
from pyhudi.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """The newest slices of a table, and what its metadata table says of them. Cost: reads what the indexes are of."""

    snapshot: Snapshot
    indexes: MetadataIndexes
    facts: IndexFacts
    executor: Executor

    def bloom_filters(self) -> Iterator[Difference]:
        """Of every base file that a query reads. Memory: the filters of a data partition twice."""
        for partition in self.snapshot.listing.partitions():
            names = [s.base_file.name for s in self.snapshot.slices(partition) if s.base_file is not None]
            stored = read_blooms(self.snapshot.storage, [(partition, name) for name in names], self.executor)
            known = read_bloom_filters(self.indexes, partition, stored.column("file").to_pylist())
            assert known is not None
            said = dict(zip(known["file"].to_pylist(), known["bloom_filter"].to_pylist(), strict=True))
            for file, text in zip(stored["file"].to_pylist(), stored["bloom_filter"].to_pylist(), strict=True):
                if file not in said:
                    yield Difference(BLOOM_FILTERS, DifferenceKind.RECORD_MISSING, partition, file)
                elif said[file] != text:
                    yield Difference(BLOOM_FILTERS, DifferenceKind.RECORD_VALUE, partition, file)

    def column_stats(self) -> Iterator[Difference]:
        """Of every file that a query reads. Memory: the statistics of a data partition's files."""
        for partition in self.snapshot.listing.partitions():
            files, bounds = self._bounds(partition)
            table = pa.table([[p for p, _, _ in files], [name for _, name, _ in files]], schema=FILES)
            for column in self._columns():
                field = pa.field(column.name, column.type)
                known = read_column_stats(self.indexes, field, partitions=[partition], files=table)
                assert known is not None
                yield from beyond(COLUMN_STATS, partition, column, bounds_table(bounds, column), known, "file")

    def partition_stats(self) -> Iterator[Difference]:
        """Of every partition. Memory: as `column_stats`."""
        for partition in self.snapshot.listing.partitions():
            _, bounds = self._bounds(partition)
            for column in self._columns():
                field = pa.field(column.name, column.type)
                known = read_partition_stats(self.indexes, field, partitions=[partition])
                assert known is not None
                stored = merge_by_partition(bounds_table(bounds, column))
                yield from beyond(PARTITION_STATS, partition, column, stored, known, "partition")

    def secondary(self, index: SecondaryIndex) -> Iterator[Difference]:
        """How many rows the index does not know, and how many of its entries have none. Memory: all of its keys."""
        reading = RowReading(self.snapshot.storage, self.snapshot.schema_with_meta, log_reading(self.snapshot))
        slices = [s for p in self.snapshot.listing.partitions() for s in self.snapshot.slices(p)]
        tasks = [SecondaryTask(reading, _as_new(piece), index) for piece in slices]
        none = pa.array([], pa.string())
        stored = pa.concat_arrays([none, *(keys for _, keys in self.executor.run(secondary_keys_of, tasks))])
        found = self.indexes.find(index.partition)
        assert found is not None
        known = pa.concat_arrays([none, *(part.newest().keys.cast(pa.string()) for part in found.scan())])
        missing, extra = _count_without(stored, known), _count_without(known, stored)
        if missing:
            yield Difference(index.partition, DifferenceKind.RECORD_MISSING, "", index.column, f"{missing:,} rows")
        if extra:
            yield Difference(
                index.partition, DifferenceKind.RECORD_COUNT, "", index.column, known=f"{extra:,} entries without a row"
            )

    def _columns(self) -> Sequence[IndexedColumn]:
        assert self.facts.stats is not None
        return self.facts.stats.columns(self.snapshot.schema_with_meta)

    def _bounds(self, partition: str) -> tuple[list[tuple[str, str, int]], list[FileBounds]]:
        files = files_of(self.snapshot.slices(partition))
        schema = self.snapshot.schema_with_meta
        return files, read_bounds(self.snapshot.storage, files, self._columns(), schema, self.executor)


def beyond(
    index: str, partition: str, column: IndexedColumn, stored: pa.Table, known: pa.Table, named: str
) -> Iterator[Difference]:
    """Where values or nulls are stored that the statistics rule out. `named`: the column that names a row of both."""
    names = stored.column(named).to_pylist()
    at = pc.index_in(pa.array(names, pa.string()), one_array(known.column(named)))
    said = known.take(one_array(at))
    is_known = pc.fill_null(said.column("is_known"), False)
    below = pc.less(_plain(stored.column("min")), _plain(said.column("min")))
    above = pc.greater(_plain(stored.column("max")), _plain(said.column("max")))
    hidden = pc.and_(pc.equal(said.column("null_count"), 0), pc.greater(stored.column("null_count"), 0))
    wrong = pc.or_(pc.and_(is_known, pc.or_(pc.fill_null(below, False), pc.fill_null(above, False))), hidden)
    for row in _places(wrong):
        yield Difference(
            index, DifferenceKind.RECORD_VALUE, partition, f"{column.name} {names[row]}".strip(),
            stored=_span(stored, row), known=_span(said, row),
        )  # fmt: skip


def _span(table: pa.Table, row: int) -> str:
    low, high, nulls = (table.column(name)[row].as_py() for name in ("min", "max", "null_count"))
    return f"{low!r:.40} to {high!r:.40}, {nulls} nulls"


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column


def _places(mask: pa.ChunkedArray) -> Iterable[int]:
    found: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return found


def _as_new(piece: FileSlice) -> ChangedGroup:
    return ChangedGroup(piece.partition, piece.file_id, None, piece, may_change_keys=True)


def _count_without(keys: pa.Array, others: pa.Array) -> int:
    return len(keys) - int(pc.sum(pc.is_in(keys, others)).as_py() or 0)
