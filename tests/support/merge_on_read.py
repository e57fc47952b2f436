"""Merge-on-read tables that Apache Hudi wrote, in memory, for tests that change them."""

from datetime import UTC, datetime

import pyarrow as pa

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.golden_tables import GoldenTable
from tests.support.model import Handles, StepClock, seeded_uuids

AFTER_ALL_MS = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp() * 1_000)
"""Later than whatever stands on the timeline of a golden table."""

OWN_COLUMN = "_hoodie_file_name"
"""The one column that a compaction may change."""


def in_memory(table: GoldenTable) -> MemoryStorage:
    """A copy of a golden table, whose files are as old as `AFTER_ALL_MS`."""
    storage = MemoryStorage(clock_ms=lambda: AFTER_ALL_MS)
    for file in sorted(path for path in table.path.rglob("*") if path.is_file() and not path.name.endswith(".crc")):
        storage.put(file.relative_to(table.path).as_posix(), file.read_bytes())
    return storage


def handle(storage: Storage, *, later_ms: int = 0) -> HudiTable:
    """A handle whose clock stands so much later than `AFTER_ALL_MS`, with randomness of its own, in one thread."""
    return Handles(storage, StepClock(AFTER_ALL_MS + later_ms), seeded_uuids(later_ms), SerialExecutor()).open()


def rows(table: HudiTable, **options: str) -> pa.Table:
    """The rows of a scan, without the one column that services may change."""
    return without_file_names(table.scan(**options).to_arrow())  # type: ignore[arg-type]


def without_file_names(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([name for name in (OWN_COLUMN,) if name in rows.column_names])
