"""`bloom_filters`: the Bloom filter of each base file's record keys, as its footer holds it."""

from typing import ClassVar

from pyhudi.format.index_definitions import IndexDefinition
from pyhudi.format.metadata_groups import BLOOM_FILTERS
from pyhudi.format.names import BaseFileName
from pyhudi.metadata.changes import InitialPartition
from pyhudi.metadata.derive_blooms import read_blooms
from pyhudi.metadata.index_changes import bloom_change
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind
from pyhudi.metadata.kinds.settings import BLOOM_FILTERS_OPTION, IndexSettings


class BloomFiltersKind(IndexKind):
    """It has no definition."""

    name: ClassVar[str] = BLOOM_FILTERS
    since: ClassVar[int] = 6
    request_names: ClassVar[tuple[str, ...]] = (BLOOM_FILTERS,)

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.bloom_filters

    def option(self, settings: IndexSettings) -> str:
        return BLOOM_FILTERS_OPTION

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
