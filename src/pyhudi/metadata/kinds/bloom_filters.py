"""`bloom_filters`: the Bloom filter of each base file's record keys, as its footer holds it."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, cast, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.format.keys.bloom import BloomFilter, BloomKind
from pyhudi.format.metadata.groups import BLOOM_FILTERS
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.metadata.key_records import decode_bloom_filters
from pyhudi.format.metadata.keys import bloom_filter_keys
from pyhudi.format.names import BaseFileName, join
from pyhudi.metadata.check.differences import Difference, DifferenceKind
from pyhudi.metadata.derive.blooms import BLOOMS, read_blooms
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange
from pyhudi.metadata.derive.index_changes import bloom_change
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.settings import BLOOM_FILTERS_OPTION, IndexSettings
from pyhudi.metadata.kinds.views import CleanView, CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.versions import RecordVersions
from pyhudi.table.prune.file_statistics import Kept
from pyhudi.table.prune.index_pruning import IndexPruner, PrunedQuery, Slice, pruned_files
from pyhudi.table.prune.key_pruning import match_base_files
from pyhudi.table.prune.pruning import PrunedBy
from pyhudi.table.view.snapshot import Snapshot

log = logging.getLogger("pyhudi")

STORED_BLOOMS: Final = pa.schema([("file", pa.string()), ("type", pa.string()), ("bloom_filter", pa.binary())])
"""Filters as the index holds them, as text."""

_ASKED_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class BloomFiltersIndex(TableIndex):
    """The filters of one table."""

    partition: str

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        blooms = read_blooms(commit.snapshot.storage, commit.new_base_files, commit.executor)
        yield bloom_change(blooms, (), table_version=commit.table_version, index=self.partition)

    def clean_changes(self, clean: CleanView) -> Iterator[PartitionChange]:
        removed = [(partition, name) for partition, name in clean.files if BaseFileName.parse(name) is not None]
        yield bloom_change(BLOOMS.empty_table(), removed, table_version=clean.table_version, index=self.partition)

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Compares every base file that a query reads. Memory: the filters of a data partition twice."""
        snapshot = check.snapshot
        for partition in snapshot.listing.partitions():
            names = [s.base_file.name for s in snapshot.slices(partition) if s.base_file is not None]
            stored = read_blooms(snapshot.storage, [(partition, name) for name in names], check.executor)
            known = read_bloom_filters(check.indexes, partition, stored.column("file").to_pylist())
            assert known is not None

            said = dict(zip(known["file"].to_pylist(), known["bloom_filter"].to_pylist(), strict=True))
            for file, text in zip(stored["file"].to_pylist(), stored["bloom_filter"].to_pylist(), strict=True):
                if file not in said:
                    yield Difference(self.partition, DifferenceKind.RECORD_MISSING, partition, file)
                elif said[file] != text:
                    yield Difference(self.partition, DifferenceKind.RECORD_VALUE, partition, file)


@dataclass(frozen=True, slots=True)
class BloomFiltersPruner(IndexPruner):
    """Rules out base files whose filters hold none of the record keys that a query names.

    Filters are large, so this pruner comes last. Where another index has located the keys' slices, it says nothing.
    """

    indexes: MetadataIndexes
    label: str = BLOOM_FILTERS

    def match_slices(
        self, query: PrunedQuery, slices: Sequence[Slice], *, is_located: bool
    ) -> tuple[Kept, Sequence[PrunedBy]] | None:
        if is_located or query.keys is None:
            return None
        may = match_base_files(self, query.keys, [(paths[0], has_logs) for _, paths, has_logs in slices])
        return None if may is None else (may, [pruned_files(self.label, slices, may)])

    def may_hold(self, keys: pa.Array, paths: Sequence[str]) -> npt.NDArray[np.bool_] | None:
        """Memory: the filters of `_ASKED_TOGETHER` files. A file without a usable filter may hold any key."""
        found = self.indexes.find(BLOOM_FILTERS)
        if found is None or not found.groups:
            return None

        result = np.ones(len(paths), np.bool_)
        for start in range(0, len(paths), _ASKED_TOGETHER):
            filters = read_filters(self.indexes, paths[start : start + _ASKED_TOGETHER])
            for at in range(start, min(start + _ASKED_TOGETHER, len(paths))):
                bloom = filters.get(paths[at])
                result[at] = bloom is None or bool(pc.any(bloom.may_contain(keys), min_count=0).as_py())
        return result


class BloomFiltersKind(IndexKind):
    """This kind has no definition."""

    name: ClassVar[str] = BLOOM_FILTERS
    request_names: ClassVar[tuple[str, ...]] = (BLOOM_FILTERS,)
    pruning_rank: ClassVar[int] = 6
    tells_of_keys: ClassVar[bool] = True

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.bloom_filters

    def option(self, settings: IndexSettings) -> str:
        return BLOOM_FILTERS_OPTION

    def known(self, table: IndexedTable) -> list[TableIndex]:
        return [BloomFiltersIndex(name) for name in table.partitions if self.owns(name)]

    def pruner(self, indexes: MetadataIndexes, snapshot: Snapshot) -> IndexPruner:
        return BloomFiltersPruner(indexes)

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Covers every base file of a completed write. Memory: the filters."""
        names = ((folder, BaseFileName.parse(file.name)) for folder, file in contents.committed_files())
        files = [(folder, name) for folder, name in names if name is not None]
        blooms = read_blooms(contents.snapshot.storage, files, contents.readers)
        change = bloom_change(blooms, (), table_version=contents.table_version, index=partition)
        return InitialPartition(partition, [change], self.group_counts(contents, partition, definition))

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.bloom_filter_groups}


def read_bloom_filters(
    indexes: MetadataIndexes, partition: str, files: Iterable[str], *, index: str = BLOOM_FILTERS
) -> pa.Table | None:
    """The Bloom filters of base files of a partition, as `STORED_BLOOMS`, in no order; a file without one gives no row.

    `files`: names without a directory. `index`: `bloom_filters`, or an index of filters on an expression. None if no
    such index is ready. `bloom_filter`: the filter's text, as in a Parquet footer.
    """
    names = pa.array(list(files), pa.string())
    found = read_bloom_filters_of(indexes, pa.repeat(pa.scalar(partition), len(names)), names, index=index)
    return None if found is None else found.drop_columns(["partition"])


def read_bloom_filters_of(
    indexes: MetadataIndexes, partitions: pa.Array, files: pa.Array, *, index: str = BLOOM_FILTERS
) -> pa.Table | None:
    """The Bloom filters of files in several partitions, by one look-up. As `read_bloom_filters`, after `partition`."""
    found = indexes.find(index)
    if found is None:
        return None

    nothing = pa.schema([("partition", pa.string()), *STORED_BLOOMS]).empty_table()
    if not len(files):
        return nothing

    keys = bloom_filter_keys(partitions, files)
    return pa.concat_tables([nothing, *(_decoded(part, keys, partitions, files) for part in found.lookup(keys))])


def read_filters(indexes: MetadataIndexes, paths: Sequence[str]) -> dict[str, BloomFilter]:
    """The filters of files, by path. A filter that cannot be used is left out, with a log line.

    Requests: those of one look-up. Memory: the filters.
    """
    split = [path.rpartition("/") for path in paths]
    partitions, names = (pa.array([parts[at] for parts in split], pa.string()) for at in (0, 2))
    blooms = read_bloom_filters_of(indexes, partitions, names)
    return {} if blooms is None else _usable(blooms)


def _decoded(part: RecordVersions, keys: pa.StringArray, partitions: pa.Array, names: pa.Array) -> pa.Table:
    schema = pa.schema([("partition", pa.string()), *STORED_BLOOMS])
    newest = part.newest()
    decoded = newest.decode(lambda values, text: decode_bloom_filters(values, text, path=newest.path))
    if decoded is None:
        return schema.empty_table()

    at = pc.index_in(newest.keys.cast(pa.string()), value_set=keys)
    columns = [partitions.take(at), names.take(at), decoded.column("type"), decoded.column("bloom_filter")]
    return pa.Table.from_arrays(columns, schema=schema).filter(pc.invert(decoded.column("is_deleted")))


def _usable(blooms: pa.Table) -> dict[str, BloomFilter]:
    found: dict[str, BloomFilter] = {}
    kinds = get_args(BloomKind)
    columns = [blooms.column(name).to_pylist() for name in ("partition", "file", "type", "bloom_filter")]
    for partition, name, kind, content in zip(*columns, strict=True):
        path = join(partition, name)
        try:
            if kind not in kinds:
                raise CorruptFile(path, 0, expected=" or ".join(kinds), found=f"a filter of kind '{kind}'")
            found[path] = BloomFilter.decode(cast(BloomKind, kind), content, path=f"{path}, Bloom filter")
        except CorruptFile as error:
            log.warning("a Bloom filter of the metadata table is passed over: %s", error)
    return found
