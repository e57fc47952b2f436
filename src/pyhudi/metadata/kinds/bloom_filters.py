"""`bloom_filters`: the Bloom filter of each base file's record keys, as its footer holds it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pyhudi.format.index_definitions import IndexDefinition
from pyhudi.format.metadata_groups import BLOOM_FILTERS
from pyhudi.format.names import BaseFileName
from pyhudi.metadata.changes import InitialPartition, PartitionChange
from pyhudi.metadata.check import Difference, DifferenceKind
from pyhudi.metadata.derive_blooms import BLOOMS, read_blooms
from pyhudi.metadata.index_changes import bloom_change
from pyhudi.metadata.key_indexes import read_bloom_filters
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.settings import BLOOM_FILTERS_OPTION, IndexSettings
from pyhudi.metadata.kinds.views import CleanView, CommitView, IndexCheck, IndexedTable


@dataclass(frozen=True, slots=True)
class BloomFiltersIndex(TableIndex):
    """The filters of one table."""

    partition: str

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        blooms = read_blooms(commit.snapshot.storage, commit.new_base_files, commit.executor)
        yield bloom_change(blooms, (), table_version=commit.table_version)

    def clean_changes(self, clean: CleanView) -> Iterator[PartitionChange]:
        removed = [(partition, name) for partition, name in clean.files if BaseFileName.parse(name) is not None]
        yield bloom_change(BLOOMS.empty_table(), removed, table_version=clean.table_version)

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Of every base file that a query reads. Memory: the filters of a data partition twice."""
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


class BloomFiltersKind(IndexKind):
    """It has no definition."""

    name: ClassVar[str] = BLOOM_FILTERS
    since: ClassVar[int] = 6
    request_names: ClassVar[tuple[str, ...]] = (BLOOM_FILTERS,)

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.bloom_filters

    def option(self, settings: IndexSettings) -> str:
        return BLOOM_FILTERS_OPTION

    def known(self, table: IndexedTable) -> list[TableIndex]:
        return [BloomFiltersIndex(name) for name in table.partitions if self.owns(name)]

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Of every base file of a completed write. Memory: the filters."""
        names = ((partition, BaseFileName.parse(file.name)) for partition, file in contents.committed_files())
        files = [(partition, name) for partition, name in names if name is not None]
        blooms = read_blooms(contents.snapshot.storage, files, contents.readers)
        change = bloom_change(blooms, (), table_version=contents.table_version)
        return InitialPartition(partition, [change], self.group_counts(contents, partition, definition))

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.bloom_filter_groups}
