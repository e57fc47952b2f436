"""Golden tables, unpacked once a run."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.golden_tables import GoldenTables


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def unpacked(golden: GoldenTables, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a golden table that a test may change."""

    def unpack(name: str) -> Path:
        return Path(shutil.copytree(golden.get(name).path, tmp_path / name))

    return unpack
