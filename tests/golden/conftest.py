"""Golden tables, unpacked once a run."""

import pytest

from tests.support.golden_tables import GoldenTables


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))
