"""`partition_stats`: the statistics of columns over all files of each partition, made of `column_stats`."""

from collections.abc import Collection
from typing import ClassVar

from pyhudi.errors import Invalid
from pyhudi.format.index_definitions import IndexDefinition
from pyhudi.format.metadata_groups import COLUMN_STATS, PARTITION_STATS
from pyhudi.metadata.changes import InitialPartition
from pyhudi.metadata.derive_stats import all_partition_stats
from pyhudi.metadata.kinds.column_stats import initial_facts
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import PARTITION_STATS_OPTION, IndexSettings


class PartitionStatsKind(IndexKind):
    """It has no definition: its columns are those of the column statistics, without which it cannot be."""

    name: ClassVar[str] = PARTITION_STATS
    request_names: ClassVar[tuple[str, ...]] = (PARTITION_STATS,)

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.partition_stats

    def option(self, settings: IndexSettings) -> str:
        return PARTITION_STATS_OPTION

    def may_be_built(self, settings: IndexSettings, present: Collection[str]) -> bool:
        return COLUMN_STATS in present

    def falls_with(self, dropped: Collection[str], present: Collection[str]) -> bool:
        return COLUMN_STATS in dropped or COLUMN_STATS not in present

    def requested_definition(
        self, request: IndexRequest, contents: IndexContents, ready: Collection[str]
    ) -> IndexDefinition | None:
        if COLUMN_STATS not in ready:
            raise Invalid(
                f"{request.what}: expected column statistics, of which it is made; build '{COLUMN_STATS}' first"
            )
        return None

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Of every partition, by what `column_stats` has of its files."""
        facts = initial_facts(contents, contents.stored_definitions().get(COLUMN_STATS))
        change = all_partition_stats(contents.snapshot, facts, contents.executor)
        return InitialPartition(partition, [change], self.group_counts(contents, partition, definition))

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.partition_stats_groups}
