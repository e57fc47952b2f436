"""A folder within a table could be taken for none, or a path that this process cannot look at for a failure."""

from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.api.table_paths import find_table_at_or_above
from pyhudi.errors import Unavailable


def test_a_table_is_found_from_the_folders_within(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    for within in ("", "/a", "/a/b/c/d"):
        assert find_table_at_or_above(f"{table.path}{within}") == str(tmp_path / "t")
    assert find_table_at_or_above(str(tmp_path)) is None


def test_a_path_that_cannot_be_looked_at_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under Connect the server may write where the client sees nothing."""

    def exists(path: str) -> bool:
        raise Unavailable(f"{path}: cannot look at it")

    monkeypatch.setattr(HudiTable, "exists", exists)
    for path in ("hdfs://somewhere/a/b", "dbfs:/a/b", "t", ""):
        assert find_table_at_or_above(path) is None
