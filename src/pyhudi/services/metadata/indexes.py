"""Building the indexes of the metadata table within a write, as its options ask.

An index is built from the data files as they are before the write begins. Readers find it once the table's properties
name it. Spec: format/metadata-table.md sections 3 and 7.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyhudi.executor import Executor
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.timeline.instant_text import INIT_INSTANT
from pyhudi.metadata.kinds import registry
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.indexing.definitions import define_wanted
from pyhudi.services.metadata.lists import put_definitions
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.creation import create_partition
from pyhudi.write.settings import WriteSettings

log = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class IndexBuilder:
    """Builds indexes of one table, under its guard. `snapshot`: the table, which nobody else changes meanwhile.

    `executor`, `readers`: as in `IndexContents`.
    """

    snapshot: Snapshot
    settings: IndexSettings
    executor: Executor
    readers: Executor
    epoch_ms: int
    issue_instant: Callable[[], str]
    confirm: Callable[[], None]

    def build(self, partition: str, kept: IndexDefinition | None = None) -> IndexDefinition | None:
        """Build a partition of the metadata table. Returns its entry of `index.json`, if it has one.

        `kept`: the entry of an index that was lost; None: as the options say. Leftovers of an earlier attempt are
        deleted first. Memory: all keys, for record and secondary indexes; the filters, for Bloom filters.
        """
        contents = IndexContents(self.snapshot, self.settings, self.executor, self.readers)
        definition, requested = (
            kept or define_wanted(contents, partition),
            self.snapshot.timeline.newest or INIT_INSTANT,
        )

        create_partition(
            open_metadata_table(self.snapshot.storage, self.snapshot.zone),
            registry.get_kind(partition).initial(contents, partition, definition, requested=requested),
            data_timeline=self.snapshot.timeline, epoch_ms=self.epoch_ms, executor=self.executor,
            issue_instant=self.issue_instant, confirm=self.confirm,
        )  # fmt: skip
        log.info("%s: built the metadata partition '%s'", self.snapshot.storage.location.uri, partition)
        return definition

    def complete_definitions(self, config: TableConfig) -> None:
        """Complete the definitions of indexes that were switched on before the table had the columns they need."""
        kinds = {name: registry.find_kind(name) for name in config.metadata_partitions}
        late = {name: kind for name, kind in kinds.items() if kind is not None and kind.is_completed_later}
        if not late:
            return
        storage = self.snapshot.storage
        definitions = read_definitions(storage)
        contents = IndexContents(self.snapshot, self.settings, self.executor, self.readers)
        completed = {
            name: kind.completed(contents, definitions[name]) for name, kind in late.items() if name in definitions
        }
        put_definitions(storage, completed)


def wanted_partitions(
    settings: IndexSettings,
    present: Iterable[str],
    definitions: Mapping[str, IndexDefinition],
    table_version: TableVersion,
) -> tuple[set[str], set[str]]:
    """The metadata partitions to build and to drop. `present`: those that the table has or is getting. `definitions`:
    those of its indexes.

    Raises: Invalid for a secondary index without a global record index, which finds the rows of its record keys: keys
    that are only unique within partitions would share their entries. Invalid for a name that an index of another
    column has.
    """
    have, wanted = set(present), set(registry.wanted_by(settings, definitions, table_version))
    for kind in registry.KINDS:
        kind.refuse_taken_names(settings, definitions, table_version)

    build = wanted - have
    drop = {name for name in have - wanted if registry.switched_off_by(settings, name)}
    there = (have | build) - drop
    build = {name for name in build if registry.get_kind(name).may_be_built(settings, there)}

    drop |= registry.dependents(drop, have)
    return set() if settings.is_async else build, drop


def refuse_absent(config: TableConfig, settings: WriteSettings) -> None:
    """Refuse settings that ask for indexes or services which the metadata table of this version does not have.

    Raises: Unsupported; Invalid for an index without the one that it needs.
    """
    if not settings.metadata_enabled:
        return
    wanted = registry.wanted_by(settings.indexes, {}, config.version)
    by_name.refuse_indexes(config, wanted, is_partitioned=bool(settings.indexes.partitioned_record_index))
    by_name.refuse_log_compaction(config, settings.metadata_log_blocks_min)
    wanted_partitions(settings.indexes, config.metadata_partitions_named, {}, config.version)
