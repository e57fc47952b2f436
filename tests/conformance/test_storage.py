"""A storage could keep another contract than the others, so that code safe on one is not on the next."""

from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from obstore.store import MemoryStore

from pyhudi.storage.counting import CountingStorage
from pyhudi.storage.crashing import CrashingStorage
from pyhudi.storage.fsspec_store import FsspecStorage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.object_client import Clients
from pyhudi.storage.object_store import ObjectStorage
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.paths import check_file_path
from pyhudi.storage.protocol import Storage, StorageLocation
from tests.conformance.storage_contract import ReadContract, StorageContract
from tests.support.s3_server import S3Server


class TestLocalStorage(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalStorage(str(tmp_path / "a table"))


class TestMemoryStorage(StorageContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return MemoryStorage()


class TestCountingLocalStorage(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return CountingStorage(LocalStorage(str(tmp_path)))


class TestCountingMemoryStorage(StorageContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return CountingStorage(MemoryStorage())


class TestCrashingStorageThatDoesNotCrash(StorageContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return CrashingStorage(MemoryStorage(), survives=1_000_000, lands=True)


class TestObjectStorageInMemory(StorageContract):
    """obstore's own store in memory: another reading of the same calls than S3's."""

    has_folders = False

    @pytest.fixture
    def storage(self) -> Storage:
        store = MemoryStore()
        return ObjectStorage(Clients(store, store), StorageLocation("s3://in-memory/table"), "table")

    def test_the_location_opens_the_same_bytes(self, storage: Storage) -> None:
        pytest.skip("obstore's memory has no place")


class TestS3Storage(StorageContract):
    has_folders = False

    @pytest.fixture
    def storage(self, s3_server: S3Server) -> Storage:
        return open_storage(parse_location(s3_server.new_path(), s3_server.options))


class FilledFsspecStorage(FsspecStorage):
    """With a `put` past the storage, so that there is something to read."""

    def put(self, path: str, content: bytes) -> None:
        check_file_path(path)
        self._system.makedirs((self._base + path).rpartition("/")[0], exist_ok=True)
        self._system.pipe_file(self._base + path, content)


class TestFsspecMemory(ReadContract):
    @pytest.fixture
    def storage(self) -> Storage:
        root = f"/{uuid4()}/a table"
        location = StorageLocation(f"in-memory:/{root}")
        return FilledFsspecStorage(fsspec.filesystem("memory"), root, location, "in-memory")

    def test_the_location_opens_the_same_bytes(self, storage: Storage) -> None:
        pytest.skip("'memory://' is pyhudi's own")


class TestFsspecLocal(ReadContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        location = parse_location(f"local://{tmp_path}/a table")
        opened = open_storage(location)
        assert isinstance(opened, FsspecStorage)
        return FilledFsspecStorage(opened._system, opened._base, location, "local")
