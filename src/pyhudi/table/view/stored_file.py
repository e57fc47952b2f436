"""A stored file that is read in ranges."""

from dataclasses import dataclass

from pyhudi.storage.protocol import Storage
from pyhudi.table.view.missing_files import told_as_missing


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that is read in ranges, with one request for each read."""

    storage: Storage
    path: str

    def read_at(self, offset: int, size: int) -> bytes:
        with told_as_missing(self.path):
            return self.storage.get(self.path, offset, offset + size)
