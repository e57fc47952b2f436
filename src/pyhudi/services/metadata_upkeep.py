"""The metadata table's part in a commit: made where missing, kept true, compacted when due, never stale."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

from pyhudi.errors import NotFound
from pyhudi.format.names import METADATA_TABLE, BaseFileName, LogFileName
from pyhudi.metadata.table import FILES, open_metadata_table
from pyhudi.model.commit import CleanMetadata, CommitMetadata
from pyhudi.services.clean_settings import CleanSettings
from pyhudi.services.metadata_clean import clean_metadata_table
from pyhudi.services.metadata_compaction import compact_when_due, remove_pending_compactions
from pyhudi.storage.protocol import Storage
from pyhudi.table.config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, TableConfig, table_config
from pyhudi.table.listing import StorageListing
from pyhudi.table.properties_file import read_table_properties, replace_table_properties
from pyhudi.table.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.clock import Clock, issue_instant
from pyhudi.txn.hold import Hold
from pyhudi.write.metadata_table import MetadataTableWriter, create_metadata_table

INDEX_DEFINITIONS = ".hoodie/.index_defs/index.json"

log = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class MetadataTableUpkeep:
    """A participant of every commit of a table.

    `is_enabled` False: a metadata table that exists is dropped, for nobody would keep it true.
    `deltacommits_max`: deltacommits upon its base file before it is compacted. `clean`: of the data table; the
    metadata table's own cleaning follows from it. `hold`: of the data table; confirmed before anything is deleted,
    completed or named in its properties.
    """

    storage: Storage
    clock: Clock
    zone: tzinfo
    issue_instant: Callable[[], str]
    is_enabled: bool
    deltacommits_max: int
    clean: CleanSettings
    hold: Hold

    def roll_back(self, target: str, rollback: str) -> None:
        if self._config().has_metadata_table:
            self._writer().roll_back(target, rollback)

    def begin(self, snapshot: Snapshot) -> None:
        """Create the metadata table where there is none; else undo its dead compactions and compact it when due."""
        config = snapshot.config
        if not self.is_enabled:
            return
        if not config.has_metadata_table:
            files = committed_files(StorageListing(self.storage), snapshot.timeline)
            create_metadata_table(
                self.storage, config, files,
                epoch_ms=self.clock.now_ms(), zone=self.zone, issue_instant=self.issue_instant,
                confirm=self.hold.confirm,
            )  # fmt: skip
            self._set_partitions(config, (FILES,))
            return
        table = open_metadata_table(self.storage, self.zone)
        if any(instant.action == "compaction" for instant in table.timeline.pending):
            remove_pending_compactions(table, confirm=self.hold.confirm)
            table = open_metadata_table(self.storage, self.zone)
        newest = table.timeline.newest or ""
        if newest > (snapshot.timeline.newest or ""):
            # A write died after it had begun here: the next one comes later, wherever the clock stands now.
            issue_instant(self.clock, self.zone, after=newest)
        has_compacted = compact_when_due(
            table, snapshot.timeline, deltacommits_max=self.deltacommits_max, issue_instant=self.issue_instant,
            confirm=self.hold.confirm,
        )  # fmt: skip
        clean_metadata_table(
            open_metadata_table(self.storage, self.zone) if has_compacted else table,
            self.clean.of_metadata_table(), self.zone,
            is_due=has_compacted, issue_instant=self.issue_instant, clock=self.clock, hold=self.hold,
        )  # fmt: skip

    def before_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Take the commit into `files`; drop every other partition of the metadata table, which would go stale.

        Spec: format/metadata-table.md section 14.
        """
        config = self._config()
        if not self.is_enabled:
            self._drop_all(config)
            return
        self._writer().before_completion(requested, metadata)
        self._drop_others(config)

    def before_clean(self, requested: str, metadata: CleanMetadata) -> None:
        """Take the deleted files out of `files`, as a commit's are taken in."""
        config = self._config()
        if not self.is_enabled:
            self._drop_all(config)
            return
        self._writer().before_clean(requested, metadata)
        self._drop_others(config)

    def _drop_others(self, config: TableConfig) -> None:
        inflight = config.properties.get(METADATA_PARTITIONS_INFLIGHT, "")
        others = sorted({*config.metadata_partitions, *(p for p in inflight.split(",") if p)} - {FILES})
        if others:
            log.warning(
                "%s: dropping the metadata partitions %s: this release does not keep them up to date",
                self.storage.location.uri, ", ".join(others),
            )  # fmt: skip
            self._set_partitions(config, (FILES,))
            drop_index_definitions(self.storage, others)
            self.hold.confirm()
            for name in others:
                self.storage.delete_prefix(f"{METADATA_TABLE}/{name}")

    def _drop_all(self, config: TableConfig) -> None:
        if config.metadata_partitions or config.properties.get(METADATA_PARTITIONS_INFLIGHT):
            log.warning("%s: dropping the metadata table: hoodie.metadata.enable=false", self.storage.location.uri)
            self._set_partitions(config, ())
            drop_index_definitions(self.storage, config.metadata_partitions)
            self.hold.confirm()
            self.storage.delete_prefix(METADATA_TABLE)

    def _set_partitions(self, config: TableConfig, partitions: tuple[str, ...]) -> None:
        changed = {
            **config.properties,
            METADATA_PARTITIONS: ",".join(partitions),
            METADATA_PARTITIONS_INFLIGHT: "",
        }
        self.hold.confirm()  # what is replaced was read before, and another writer may have changed it since
        replace_table_properties(self.storage, changed, epoch_ms=self.clock.now_ms())

    def _config(self) -> TableConfig:
        return table_config(read_table_properties(self.storage), path=self.storage.location.uri)

    def _writer(self) -> MetadataTableWriter:
        return MetadataTableWriter(self.storage, self.zone, self.issue_instant, self.hold)


def committed_files(listing: StorageListing, timeline: Timeline) -> dict[str, dict[str, int]]:
    """Partition -> file name -> bytes, of the files whose instants are completed."""
    found: dict[str, dict[str, int]] = {}
    for partition in listing.partitions():
        files = {}
        for file in listing.files(partition):
            base, logged = BaseFileName.parse(file.name), LogFileName.parse(file.name)
            instant = base.requested if base else logged.instant if logged else None
            if instant is not None and timeline.is_committed(instant):
                files[file.name] = file.size_bytes
        found[partition] = files
    return found


def drop_index_definitions(storage: Storage, names: tuple[str, ...] | list[str]) -> None:
    """Take the definitions of metadata partitions out of `index.json`, where there is one."""
    try:
        content = json.loads(storage.get(INDEX_DEFINITIONS))
    except NotFound:
        return
    kept = {name: of for name, of in content.get("indexDefinitions", {}).items() if name not in names}
    if kept != content.get("indexDefinitions"):
        storage.put(INDEX_DEFINITIONS, json.dumps({**content, "indexDefinitions": kept}, indent=2).encode())
