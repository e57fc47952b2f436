"""The partitions of the metadata table that the table's properties name: those for readers, and those being built."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyhudi.format.metadata.index_definitions import IndexDefinition, encode_index_definitions
from pyhudi.format.names import METADATA_TABLE
from pyhudi.metadata.store.indexes import DEFINITIONS_PATH, INDEX_DEFINITIONS, read_definitions
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, TableConfig, table_config
from pyhudi.table.facts.properties_file import read_table_properties, replace_table_properties


@dataclass(frozen=True)
class MetadataLists:
    """Changes the two lists of one table, under its guard. `confirm`: checks that it is held. `now_ms`: the clock."""

    storage: Storage
    now_ms: Callable[[], int]
    confirm: Callable[[], None]

    def config(self) -> TableConfig:
        """The table's facts as they are stored now."""
        return table_config(read_table_properties(self.storage), path=self.storage.location.uri)

    def put(self, *, ready: Collection[str], inflight: Collection[str]) -> None:
        """Replace both lists. Writes nothing if they stay the same.

        Seen: if a table's properties do not say where `index.json` is, Apache Hudi 1.2.0 takes it for a table without
        the file. It then leaves new keys out of a secondary index, and writes the file anew.
        """
        config = self.config()
        lists = {METADATA_PARTITIONS: ",".join(sorted(ready)), METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(inflight))}

        has_definitions = len({*ready, *inflight}) > 1 and bool(read_definitions(self.storage))
        if has_definitions and DEFINITIONS_PATH not in config.properties:
            lists[DEFINITIONS_PATH] = INDEX_DEFINITIONS

        if any(config.properties.get(name, "") != text for name, text in lists.items()):
            self.confirm()  # what is replaced was read before, and another writer may have changed it since
            replace_table_properties(self.storage, {**config.properties, **lists}, epoch_ms=self.now_ms())

    def drop(self, partitions: Collection[str]) -> None:
        """Drop partitions. Order: readers and writers lose them before their files are deleted."""
        config = self.config()
        self.put(
            ready=set(config.metadata_partitions) - set(partitions),
            inflight=set(config.metadata_partitions_inflight) - set(partitions),
        )
        self.confirm()
        put_definitions(self.storage, dict.fromkeys(partitions))
        self.confirm()  # a file that is written may take as long as a lease lasts
        for name in sorted(partitions):
            self.storage.delete_prefix(f"{METADATA_TABLE}/{name}")


def put_definitions(storage: Storage, changed: Mapping[str, IndexDefinition | None]) -> None:
    """Put entries into `index.json`, or take them out (None), in one step. Writes nothing if nothing changes."""
    before = read_definitions(storage)
    kept = {name: definition for name, definition in before.items() if changed.get(name, definition) is not None}
    kept |= {name: definition for name, definition in changed.items() if definition is not None}
    if kept != before:
        storage.put(INDEX_DEFINITIONS, encode_index_definitions(kept))
