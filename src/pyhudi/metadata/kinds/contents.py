"""A table as an index sees it when it is defined and built: its files, and the options."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

from pyhudi.executor import Executor
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.metadata.derive.keys import RowReading
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.table.view.cleaned import paths_being_cleaned
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.listing import ListedFile
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion

_SAMPLE_MAX = 64
_ROW_SIZE = 100


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
        snapshot = self.snapshot
        return RowReading(snapshot.storage, snapshot.schema_with_meta, log_reading(snapshot), snapshot.as_written)

    @cached_property
    def slices(self) -> list[FileSlice]:
        """The newest slices, by partition."""
        return [s for partition in self.snapshot.listing.partitions() for s in self.snapshot.slices(partition)]

    def committed_files(self) -> Iterator[tuple[str, ListedFile]]:
        """Every file of a completed write, with its partition. Older slices count, too: Apache Hudi indexes them.

        Files that a pending clean names are left out: they may be gone, and will be.
        """
        going = paths_being_cleaned(self.snapshot)
        for partition in self.snapshot.listing.partitions():
            for file in self.snapshot.listing.files(partition):
                if join(partition, file.name) in going:
                    continue
                base, log = BaseFileName.parse(file.name), LogFileName.parse(file.name)
                instant = base.requested if base else log.instant if log else ""
                if self.snapshot.timeline.is_committed(instant):
                    yield partition, file

    def estimate_rows(self) -> dict[str, int]:
        """Estimated rows by partition, without reading the rows.

        The footers of some base files give the average bytes per row; the sizes of all base files then give the rows.
        Logs are counted at 100 bytes per row, as if each of their rows was new. Cost: at most 64 footers, evenly
        spread over the slices.
        """
        bases = [file_slice for file_slice in self.slices if file_slice.base_file is not None]
        rows, size_bytes = 0, 0
        for file_slice in bases[:: max(1, -(-len(bases) // _SAMPLE_MAX))]:
            assert file_slice.base_file is not None
            path = join(file_slice.partition, file_slice.base_file.name.format())
            with closing(open_base_file(self.snapshot.storage, path)) as file:
                rows += file.row_count
            size_bytes += file_slice.base_file.size_bytes
        per_row = size_bytes / rows if rows else _ROW_SIZE

        found: dict[str, int] = {}
        for file_slice in self.slices:
            base_bytes = file_slice.base_file.size_bytes if file_slice.base_file is not None else 0
            count = int(base_bytes / per_row + file_slice.log_bytes / _ROW_SIZE)
            found[file_slice.partition] = found.get(file_slice.partition, 0) + count
        return found
