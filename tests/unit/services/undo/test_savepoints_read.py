"""A commit with a savepoint could be refused to readers although its files are there, or be read without all files."""

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import NotFound
from pyhudi.storage.memory import MemoryStorage

ONE = {"hoodie.clean.commits.retained": "1", "hoodie.parquet.small.file.limit": "0"}
VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
COMPACTED = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


def row(key: str, ts: int) -> pa.Table:
    return pa.table({"id": [key], "ts": [ts], "v": [ts]})


@pytest.mark.parametrize("policy", [ONE, {**ONE, **VERSIONS}], ids=["commits", "versions"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_commit_with_a_savepoint_is_read_however_old_it_is(
    version: int, table_type: str, policy: dict[str, str]
) -> None:
    settings = {**policy, **COMPACTED}
    table = HudiTable.create(
        "", name="t", record_key="id", ordering="ts", table_type=table_type, table_version=version,
        storage=MemoryStorage(), properties=settings,
    )  # fmt: skip
    table.insert(row("old", 0))
    table.upsert(row("a", 1))
    saved = table.savepoint()
    commits = [table.upsert(row("a", ts)) for ts in range(2, 9)]

    def values(as_of: str | None) -> dict[str, int]:
        found = table.scan(["id", "v"], as_of=as_of).to_arrow().to_pylist()
        return {one["id"]: one["v"] for one in found}

    assert values(saved.requested) == {"old": 0, "a": 1}
    assert values(str(int(commits[0].requested or 0) - 1)) == {"old": 0, "a": 1}
    with pytest.raises(NotFound, match="its files were cleaned away"):
        values(commits[1].requested)

    table.delete_savepoint(saved.requested)
    table.upsert(row("a", 9))
    with pytest.raises(NotFound, match="its files were cleaned away"):
        values(saved.requested)
