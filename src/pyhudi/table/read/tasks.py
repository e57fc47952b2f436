"""Pieces of a query that are read alone: by a thread, by another process, or on another machine."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.read.files import read_planned
from pyhudi.table.read.plan import ReadPlan


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One base file, or one file slice with its logs, and what to read of it. Picklable.

    The pickle holds the storage options of the table, which may be secrets. It reads the files that the scan planned,
    as long as no clean has removed them.
    """

    location: StorageLocation
    plan: ReadPlan

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer, in order."""
        return self.plan.schema

    @property
    def size_bytes(self) -> int:
        """The bytes of the files that the task may read, to spread tasks by."""
        return sum(file.size_bytes for file in self.plan.files)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, of bounded memory."""
        storage = open_storage(self.location)
        for file in self.plan.files:
            yield from read_planned(storage, self.plan, file, use_threads=False)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, in memory."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def __repr__(self) -> str:
        return f"ScanTask({', '.join(file.path for file in self.plan.files)})"


def scan_tasks(location: StorageLocation, plan: ReadPlan) -> list[ScanTask]:
    """A task for each file, or slice with logs, of a plan."""
    return [ScanTask(location, replace(plan, files=(file,))) for file in plan.files]
