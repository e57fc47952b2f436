"""The partitions of the metadata table that the table's properties name: those for readers, those being built, and
those that were lost and are to be made anew.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyhudi.format.metadata.index_definitions import IndexDefinition, encode_index_definitions
from pyhudi.metadata.kinds.registry import LISTING
from pyhudi.metadata.store.indexes import DEFINITIONS_PATH, INDEX_DEFINITIONS, read_definitions
from pyhudi.metadata.store.table import delete_metadata_table, delete_partition, metadata_storage
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import (
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    METADATA_PARTITIONS_LOST,
    TableConfig,
    table_config,
)
from pyhudi.table.facts.properties_file import read_table_properties, replace_table_properties


@dataclass(frozen=True)
class MetadataLists:
    """Changes these lists of one table, under its guard. `confirm`: checks that it is held. `now_ms`: the clock."""

    storage: Storage
    now_ms: Callable[[], int]
    confirm: Callable[[], None]

    def config(self) -> TableConfig:
        """The table's facts as they are stored now."""
        return table_config(read_table_properties(self.storage), path=self.storage.location.uri)

    def put(self, *, ready: Collection[str], inflight: Collection[str], lost: Collection[str] | None = None) -> None:
        """Replace the lists. Writes nothing if they stay the same.

        `lost`: the indexes that are to be made anew; None: those that were so before, but for what is named by now.
        They are noted in the same step in which they are named no more, so that a crash forgets none.

        Seen: if a table's properties do not say where `index.json` is, Apache Hudi 1.2.0 takes it for a table without
        the file. It then leaves new keys out of a secondary index, and writes the file anew.
        """
        config = self.config()
        noted = set(config.metadata_partitions_lost if lost is None else lost) - {LISTING, *ready, *inflight}
        lists = {
            METADATA_PARTITIONS: ",".join(sorted(ready)),
            METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(inflight)),
            METADATA_PARTITIONS_LOST: ",".join(sorted(noted)),
        }

        has_definitions = len({*ready, *inflight}) > 1 and bool(read_definitions(self.storage))
        if has_definitions and DEFINITIONS_PATH not in config.properties:
            lists[DEFINITIONS_PATH] = INDEX_DEFINITIONS

        if any(config.properties.get(name, "") != text for name, text in lists.items()):
            self.confirm()  # what is replaced was read before, and another writer may have changed it since
            properties = {**config.properties, **lists}
            if not noted:
                del properties[METADATA_PARTITIONS_LOST]
            replace_table_properties(self.storage, properties, epoch_ms=self.now_ms())

    def drop(self, partitions: Collection[str]) -> None:
        """Drop partitions. Order: readers and writers lose them before their files are deleted."""
        config = self.config()
        self.put(
            ready=set(config.metadata_partitions) - set(partitions),
            inflight=set(config.metadata_partitions_inflight) - set(partitions),
            lost=set(config.metadata_partitions_lost) - set(partitions),
        )
        self.confirm()
        put_definitions(self.storage, dict.fromkeys(partitions))
        self.confirm()  # a file that is written may take as long as a lease lasts
        for name in sorted(partitions):
            delete_partition(metadata_storage(self.storage), name)

    def drop_table(self) -> None:
        """Drop the whole metadata table, whatever its state, with what is known of its indexes."""
        config = self.config()
        self.put(ready=(), inflight=(), lost=())
        known = (*config.metadata_partitions_named, *config.metadata_partitions_lost)
        put_definitions(self.storage, dict.fromkeys(known))
        self._delete_table()

    def give_up_table(self) -> None:
        """As `drop_table`, but its indexes are noted as lost, and their definitions stay."""
        config = self.config()
        self.put(ready=(), inflight=(), lost=config.metadata_partitions_kept)
        self._delete_table()

    def _delete_table(self) -> None:
        self.confirm()
        delete_metadata_table(self.storage)


def put_definitions(storage: Storage, changed: Mapping[str, IndexDefinition | None]) -> None:
    """Put entries into `index.json`, or take them out (None), in one step. Writes nothing if nothing changes."""
    before = read_definitions(storage)
    kept = {name: definition for name, definition in before.items() if changed.get(name, definition) is not None}
    kept |= {name: definition for name, definition in changed.items() if definition is not None}
    if kept != before:
        storage.put(INDEX_DEFINITIONS, encode_index_definitions(kept))
