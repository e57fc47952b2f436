"""A storage could keep another contract than the others, so that code safe on one is not on the next."""

from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from obstore.store import MemoryStore

from pyhudi.errors import Invalid
from pyhudi.storage.fsspec_store import FsspecStorage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.object_client import Clients
from pyhudi.storage.object_store import ObjectStorage
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.paths import check_file_path
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.testing.counting import CountingStorage
from pyhudi.testing.crashing import CrashingStorage
from pyhudi.testing.storage_contract import NAMES, ReadContract, StorageContract
from tests.support.store_server import StoreServer


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


class TestObjectStores(StorageContract):
    has_folders = False

    @pytest.fixture
    def storage(self, store_server: StoreServer) -> Storage:
        return open_storage(parse_location(store_server.new_path(), store_server.options))

    @pytest.mark.parametrize("name", NAMES)
    def test_names_are_kept_as_they_are(self, storage: Storage, name: str) -> None:
        if "\\" in name and storage.location.uri.startswith("az:"):
            for call in (lambda: storage.put(f"{name}/file", b"x"), lambda: storage.list(name)):
                with pytest.raises(Invalid, match="Azure changes names"):
                    call()
        else:
            super().test_names_are_kept_as_they_are(storage, name)

    @pytest.mark.parametrize("path", ["a./file", "a/file.", "a.b./c", ".a./b"])
    def test_a_part_that_ends_in_a_dot_is_refused_where_it_would_change(self, storage: Storage, path: str) -> None:
        if storage.location.uri.startswith("az:"):
            with pytest.raises(Invalid, match="Azure changes names"):
                storage.put(path, b"x")
        else:
            storage.put(path, b"x")
            assert [file.path for file in storage.list("", recursive=True)] == [path]


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
