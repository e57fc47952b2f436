"""A storage could keep another contract than the others, so that code safe on one is not on the next."""

from pathlib import Path

import pytest

from pyhudi.storage.counting import CountingStorage
from pyhudi.storage.crashing import CrashingStorage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.conformance.storage_contract import StorageContract


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
