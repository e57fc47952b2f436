"""A rollback could take back more than one write, less than all of it, or a write that another hangs on."""

from itertools import product

import pytest

from pyhudi import HudiTable
from pyhudi.errors import Invalid, NotFound
from pyhudi.format.names import heartbeat_path
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.txn.locks.heartbeat import OURS
from tests.support.metadata_indexes import index_problems
from tests.support.model import Handles, Row, arrow, problems_on, read_rows
from tests.unit.services.undo.test_restore import COW, INDEXES, MOR, PARTITION_STATS, made, rows


def contents(storage: Storage) -> dict[str, bytes]:
    return {file.path: storage.get(file.path) for file in storage.list("", recursive=True)}


def state(table: HudiTable) -> tuple[object, ...]:
    return read_rows(table.scan().to_arrow()), sorted(table.scan().files()), set(table.metadata.partitions_in_use)


QUICK = ((6, MOR, "upsert"), (8, MOR, "delete"), (8, COW, "insert_overwrite"), (9, COW, "upsert"))
EVERY = tuple(product((5, 6, 8, 9), (COW, MOR), ("upsert", "delete", "insert_overwrite", "delete_partitions")))


@pytest.mark.parametrize(
    "version,table_type,operation", [*QUICK, *(pytest.param(*of, marks=pytest.mark.long) for of in EVERY)]
)
def test_rows_files_and_indexes_are_those_before_the_newest_write(
    version: int, table_type: str, operation: str
) -> None:
    asked = {name: text for name, text in INDEXES.items() if version > 5 or "record.level" not in name}
    storage, table, _ = made(version, table_type, **asked, **(PARTITION_STATS if version > 6 else {}))
    before = state(table)
    match operation:
        case "upsert":
            written = table.upsert(rows(5, 9))
        case "delete":
            written = table.delete(arrow([Row("k3", "rome", 9, 9)], ["id", "city"]))
        case "insert_overwrite":
            written = table.insert_overwrite(arrow([Row("q", "rome", 1, 1)]))
        case _:
            written = table.delete_partitions(["oslo"])
    assert state(table)[0] != before[0]

    result = table.rollback(written.requested or "")

    found = state(table)
    assert (found[0], found[2]) == (before[0], before[2])
    is_voided = version <= 6 and table_type == MOR and operation in ("upsert", "delete")
    assert is_voided or found[1] == before[1]
    assert result.rolled_back == written.requested
    assert result.dropped == ()
    instants = table.timeline()
    assert (instants[-1].requested, instants[-1].action) == (result.requested, "rollback")
    assert all(i.requested != written.requested for i in instants)
    assert index_problems(storage) == []
    assert table.metadata.validate().differences == ()
    assert problems_on(storage) == []

    table.upsert(rows(4, 8))
    assert table.metadata.validate().differences == ()
    assert table.incremental(result.requested).to_arrow().num_rows == 5


def test_one_write_after_the_other_down_to_an_empty_table() -> None:
    storage, table, commits = made()
    for requested in reversed(commits):
        assert table.rollback(requested).rolled_back == requested
        assert table.metadata.validate().differences == ()

    assert table.scan().to_arrow().num_rows == 0
    assert problems_on(storage) == []
    table.upsert(rows(1))
    assert table.scan().to_arrow().num_rows == 6


def test_indexes_that_were_built_from_the_write_go_with_it() -> None:
    storage, table, _ = made(8, MOR, **INDEXES)
    before = read_rows(table.scan().to_arrow())
    newest = table.upsert(rows(5, 9)).requested or ""
    table.build_index("secondary_index", columns="note", name="by_note")

    result = table.rollback(newest)

    assert result.dropped == ("secondary_index_by_note",)
    assert read_rows(table.scan().to_arrow()) == before
    assert index_problems(storage) == []


def test_a_metadata_table_that_was_compacted_with_the_write_is_made_anew() -> None:
    storage, table, _ = made(8, MOR, **INDEXES)
    before = read_rows(table.scan().to_arrow())
    newest = table.upsert(rows(5, 9)).requested or ""
    table.metadata.update(options={"hoodie.metadata.compact.max.delta.commits": "1"})

    result = table.rollback(newest)

    assert read_rows(table.scan().to_arrow()) == before
    assert "files" in table.metadata.partitions_in_use
    assert "files" not in result.dropped
    assert table.metadata.validate().differences == ()
    assert problems_on(storage) == []


def test_what_a_rollback_would_break_stops_it() -> None:
    storage, table, commits = made(8, MOR)
    held = contents(storage)

    with pytest.raises(Invalid, match=f"'{commits[2]}' came after it; restore\\('{commits[0]}'\\)"):
        table.rollback(commits[1])
    with pytest.raises(NotFound, match="expected a write on the active timeline"):
        table.rollback("20200101000000000")
    assert contents(storage) == held

    table.savepoint()
    with pytest.raises(Invalid, match="delete_savepoint"):
        table.rollback(commits[2])
    table.delete_savepoint(commits[2])
    plan = table.schedule_compaction()
    with pytest.raises(Invalid, match="no plan made since then, found compaction"):
        table.rollback(commits[2])
    assert table.rollback(plan.requested or "").rolled_back == plan.requested
    assert not table.timeline()[-1].action.startswith("compaction")
    done = table.compact()
    with pytest.raises(Invalid, match="expected a write of rows, found COMPACT"):
        table.rollback(done.requested or "")


def test_a_write_is_not_taken_back_onto_files_that_were_cleaned() -> None:
    _, table, commits = made(8, COW)
    versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert table.clean(options=versions).files_deleted > 0

    with pytest.raises(NotFound, match=f"rollback of '{commits[2]}'.*cleaned"):
        table.rollback(commits[2])


def test_no_way_goes_back_to_logs_that_were_cleaned_away() -> None:
    """A slice without a base file: a bucket's first rows are a log where writers do not block each other."""
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1", "hoodie.clean.automatic": "false"}
    table = Handles(MemoryStorage()).create(table_type=MOR, properties=bucket)
    freely = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
    first = table.upsert(arrow([Row("a", "oslo", 1, 1)]), options=freely).requested or ""
    assert not any(file.endswith(".parquet") for file in table.scan().files())
    second = table.insert_overwrite(arrow([Row("b", "oslo", 1, 1)])).requested or ""
    assert table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}).files_deleted == 1

    for go_back in (
        lambda: table.scan(as_of=first).to_arrow(),
        lambda: table.savepoint(first),
        lambda: table.restore(first),
        lambda: table.rollback(second),
    ):
        with pytest.raises(NotFound, match="files were cleaned away"):
            go_back()


def test_a_write_that_died_is_rolled_back_when_asked_for() -> None:
    storage, table, commits = made(8, COW)
    path = table._access.snapshot().timeline.layout.path
    dead = str(int(commits[2]) + 500)
    storage.put(heartbeat_path(dead), OURS)
    storage.put_new(path(Instant(dead, "commit", "REQUESTED")), b"")

    result = table.rollback(dead)

    assert (result.rolled_back, result.files_deleted) == (dead, 0)
    assert [i.requested for i in table.timeline() if i.action == "commit"] == commits
