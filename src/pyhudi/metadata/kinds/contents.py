"""A table as an index sees it when it is defined and built: its files, and the options."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pyhudi.executor import Executor
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.metadata.derive.keys import RowReading
from pyhudi.metadata.kinds.row_estimate import estimate_rows
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.table.read.plan import log_reading
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.listing import ListedFile
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion


@dataclass(frozen=True)
class IndexContents:
    """One table, as it was when `snapshot` was taken. `executor`: looks into the metadata table. `readers`: read the
    data files.
    """

    snapshot: Snapshot
    settings: IndexSettings
    executor: Executor
    readers: Executor

    @property
    def table_version(self) -> TableVersion:
        return self.snapshot.config.version

    def stored_definitions(self) -> dict[str, IndexDefinition]:
        """Those of `index.json`."""
        return read_definitions(self.snapshot.storage)

    def reading(self) -> RowReading:
        """How rows of the newest slices are read."""
        return RowReading(self.snapshot.storage, self.snapshot.schema_with_meta, log_reading(self.snapshot))

    @cached_property
    def slices(self) -> list[FileSlice]:
        """The newest slices, by partition."""
        return [s for partition in self.snapshot.listing.partitions() for s in self.snapshot.slices(partition)]

    def committed_files(self) -> Iterator[tuple[str, ListedFile]]:
        """Every file of a completed write, with its partition. Older slices count, too: Apache Hudi indexes them."""
        for partition in self.snapshot.listing.partitions():
            for file in self.snapshot.listing.files(partition):
                base, log = BaseFileName.parse(file.name), LogFileName.parse(file.name)
                instant = base.requested if base else log.instant if log else ""
                if self.snapshot.timeline.is_committed(instant):
                    yield partition, file

    def estimate_rows(self) -> dict[str, int]:
        """Rows that the files of each partition may have. Cost: the footers of a bounded number of files."""
        return estimate_rows(self.snapshot.storage, self.slices)
