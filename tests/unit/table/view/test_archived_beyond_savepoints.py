"""What was archived beyond a savepoint was forgotten once the savepoint was gone: its commit is the first one then."""

import pyarrow as pa
import pytest

from pyhudi import HudiTable, NotFound, WriteResult
from pyhudi.storage.memory import MemoryStorage

OPTIONS = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
    "hoodie.metadata.compact.max.delta.commits": "1",
}


def written(version: int) -> tuple[HudiTable, list[WriteResult]]:
    """Ten commits of one row each, the first with a savepoint. What follows it is cleaned away and archived."""
    table = HudiTable.create(
        "", name="t", record_key="id", ordering="ts", table_version=version, storage=MemoryStorage(), properties=OPTIONS
    )
    commits = []
    for number in range(10):
        commits.append(table.upsert(pa.table({"id": [f"k{number}"], "ts": [1], "v": [number]})))
        if number == 0:
            table.savepoint(commits[0].requested)
        elif number < 7:
            table.clean()
    assert table.archive().archived
    assert next(i.requested for i in table.timeline() if i.action == "commit") == commits[0].requested
    return table, commits


@pytest.mark.parametrize("version", [6, 9])
def test_queries_answer_alike_with_the_savepoint_and_without_it(version: int) -> None:
    table, commits = written(version)
    saved = commits[0].requested
    assert saved is not None
    for _ in range(2):
        start = commits[3].requested if version == 6 else commits[3].completed
        assert sorted(table.incremental(start).to_arrow()["v"].to_pylist()) == [4, 5, 6, 7, 8, 9]
        for commit in commits[1:6]:
            with pytest.raises(NotFound, match="files were cleaned away"):
                table.scan(as_of=commit.requested).to_arrow()
            with pytest.raises(NotFound, match="files that tell a change were cleaned away"):
                table.cdc(start=commit.requested).to_arrow()
        assert table.scan(as_of=commits[6].requested).count() == 7
        if any(i.action == "savepoint" for i in table.timeline()):
            table.delete_savepoint(saved)
    assert not any(i.action == "savepoint" for i in table.timeline())
