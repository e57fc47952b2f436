"""Whoever writes a storage could find that its contract cannot be kept, or that a table needs more than it says.

The contract runs over a storage of a scheme that no release knows, and a table lies in it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable, Unsupported
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.testing.storage_contract import StorageContract


class OwnStorage(MemoryStorage):
    """Files of this process, at a place that only this test knows."""

    @property
    def location(self) -> StorageLocation:
        return StorageLocation("own-scheme://place")


class OneProcess:
    """A lock of a table that only one process writes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator["OneProcess"]:
        if not self._lock.acquire(blocking=False):
            raise Conflict(f"{purpose}: another thread holds the table")
        try:
            yield self
        finally:
            self._lock.release()

    def confirm(self) -> None:
        """This lock ends when its holder says so, and never before."""


class TestOwnStorage(StorageContract):
    opens_by_location = False

    @pytest.fixture
    def storage(self, request: pytest.FixtureRequest) -> OwnStorage:
        return OwnStorage(request.node.nodeid)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_lies_in_a_storage_of_ones_own_under_a_lock_of_ones_own(tmp_path: Path, table_type: str) -> None:
    storage, lock, path = OwnStorage(str(tmp_path)), OneProcess(), "own-scheme://place"
    table = HudiTable.create(path, name="t", record_key="id", table_type=table_type, storage=storage, lock=lock)
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    batches = (pa.record_batch([pa.array(range(n, n + 5_000)), ["x" * 90] * 5_000], schema) for n in (0, 5_000, 10_000))

    memory = {"pyhudi.memory.max.bytes": 1_048_576, "pyhudi.memory.spill.folder": str(tmp_path)}
    table.bulk_insert(pa.RecordBatchReader.from_batches(schema, batches), options=memory)
    assert table.upsert(pa.table({"id": [1, -1], "text": ["new", "new"]})).updated == 1
    table.delete(pa.table({"id": [2]}))
    if table_type == "MERGE_ON_READ":
        table.compact()

    again = HudiTable.open(path, storage=storage, lock=lock)
    assert again.scan().to_arrow().num_rows == 15_000
    assert sorted(again.scan(["id"], where="text = 'new'").to_arrow()["id"].to_pylist()) == [-1, 1]
    with lock.acquire("test", ""), pytest.raises(Conflict, match="another thread holds the table"):
        HudiTable.open(path, storage=storage, lock=lock, options={"hoodie.write.lock.wait_time_ms": 0}).delete(
            pa.table({"id": [3]})
        )


def test_a_storage_of_ones_own_without_a_lock_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    storage = OwnStorage(str(tmp_path))
    with pytest.raises(Unsupported, match="pass storage= and lock="):
        HudiTable.create("own-scheme://place", name="t", record_key="id", storage=storage).upsert(pa.table({"id": [1]}))
