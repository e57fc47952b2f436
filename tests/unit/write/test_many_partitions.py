"""A write into many partitions could hold a file open for each, or run out of memory.

Files that are being written are counted while they are; the long run does ten thousand partitions and looks at the
process.
"""

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.storage.memory import MemoryStorage

WORKERS = 2
SMALL_FILTERS = {"hoodie.index.bloom.num_entries": 100}


class WatchedStorage(MemoryStorage):
    """Notes how many files are being written at once."""

    def __init__(self) -> None:
        super().__init__()
        self._watch = threading.Lock()
        self._open = 0
        self.open_max = 0

    @contextmanager
    def put_stream(self, path: str) -> Iterator[BinaryIO]:
        with self._watch:
            self._open += 1
            self.open_max = max(self.open_max, self._open)
        try:
            with super().put_stream(path) as sink:
                yield sink
        finally:
            with self._watch:
                self._open -= 1


def rows(partitions: int, *, each: int) -> pa.Table:
    """Rows of all partitions in turns."""
    numbers = np.arange(partitions * each)
    return pa.table(
        {"id": numbers.astype(str), "part": np.char.add("p", (numbers % partitions).astype(str)), "n": numbers}
    )


def test_as_many_files_are_open_as_threads_work() -> None:
    storage = WatchedStorage()
    table = HudiTable.create(
        "unused", name="t", record_key="id", partition_by="part", properties=SMALL_FILTERS, storage=storage,
        executor=LocalExecutor(WORKERS),
    )  # fmt: skip

    loaded = table.bulk_insert(rows(200, each=3))
    changed = table.upsert(rows(200, each=1))

    assert (loaded.files, loaded.inserted, changed.updated) == (200, 600, 200)
    assert 1 <= storage.open_max <= WORKERS


@pytest.mark.long
def test_ten_thousand_partitions_are_written_within_a_gigabyte(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part", properties=SMALL_FILTERS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    loaded = table.bulk_insert(rows(10_000, each=3))

    assert (loaded.files, loaded.inserted) == (10_000, 30_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # in kilobytes
    assert table.scan(columns=["n"]).to_arrow().num_rows == 30_000
