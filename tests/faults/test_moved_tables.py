"""A table that was moved or copied could look for its files where it was: plans name files by their absolute paths.

Tables with everything that may be pending are moved to another store; so are tables whose writer died at some step.
There they show their rows, carry out what is pending, take rollbacks and restores, and their metadata table is true.
"""

import itertools
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from tests.faults.test_crash_everywhere import NEXT, START, STORED, handles, snapshot, values
from tests.support.crashes import crash_points, every_nth
from tests.support.model import Row, arrow, problems_on, read_rows

SELDOM = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "100",
}
KEEP_LITTLE = {"hoodie.cleaner.commits.retained": "1"}
FORMATS = ("PARQUET", "ORC", "HFILE", *(("LANCE",) if find_spec("lance") else ()))
DEAD_MS = 3_600_000


def a_table(disk: Storage, table_type: str, version: int, base_format: str = "PARQUET") -> HudiTable:
    """A table with a savepoint, commits since, and slices to compact or to cluster."""
    table = handles(disk).create(
        table_type=table_type, table_version=version,
        properties={**SELDOM, **INDEXES, "hoodie.table.base.file.format": base_format},
    )  # fmt: skip
    table.upsert(arrow(STORED))
    table.savepoint(comment="before it moves")
    table.upsert(arrow([Row("k0", "oslo", 9, 77, "x"), Row("z", "bonn", 1, 1)]))
    table.delete(arrow([STORED[1]], ["id", "city"]))
    return table


def put_elsewhere(disk: MemoryStorage, folder: Path) -> Storage:
    moved = open_storage(StorageLocation(folder.as_uri()))
    for file in list(disk.list("", recursive=True)):
        moved.put(file.path, disk.get(file.path))
    return moved


QUICK = (("COPY_ON_WRITE", "PARQUET", 6), ("MERGE_ON_READ", "PARQUET", 9), ("COPY_ON_WRITE", "HFILE", 9))
KINDS = [
    pytest.param(*kind, marks=() if kind in QUICK else pytest.mark.long)
    for kind in itertools.product(("COPY_ON_WRITE", "MERGE_ON_READ"), FORMATS, (6, 9))
]


@pytest.mark.parametrize("table_type, base_format, version", KINDS)
def test_a_moved_table_goes_on(tmp_path: Path, table_type: str, base_format: str, version: int) -> None:
    disk = MemoryStorage(clock_ms=lambda: START)
    table = a_table(disk, table_type, version, base_format)
    saved = table.savepoints()[0].requested
    at_savepoint = values(read_rows(table.scan(as_of=saved).to_arrow()))
    if table_type == "MERGE_ON_READ":
        table.schedule_compaction()
        table.upsert(arrow([Row("k2", "oslo", 9, 79)]))
    else:
        table.schedule_clustering(options={"hoodie.clustering.plan.strategy.sort.columns": "ts"})
    rows = values(snapshot(table))

    storage = put_elsewhere(disk, tmp_path / "elsewhere")
    table = handles(storage, later_ms=DEAD_MS).open()
    assert values(snapshot(table)) == rows
    assert values(read_rows(table.scan(as_of=saved).to_arrow())) == at_savepoint
    assert table.lookup(["k4"]).num_rows == 1
    done = table.compact() if table_type == "MERGE_ON_READ" else table.cluster()
    assert done.completed
    assert values(snapshot(table)) == rows

    newest = table.upsert(arrow(NEXT)).requested
    assert newest is not None
    with_next = {**rows, **{(row.city, row.id): row for row in NEXT}}
    assert values(snapshot(table)) == with_next
    table.rollback(newest)
    assert values(snapshot(table)) == rows
    table.upsert(arrow(NEXT))
    table.upsert(arrow([Row("k0", "oslo", 10, 1)]))
    table.clean(options=KEEP_LITTLE)
    table.restore(saved)
    assert values(snapshot(table)) == at_savepoint
    assert (
        values(snapshot(handles(storage, later_ms=DEAD_MS).open({"hoodie.metadata.enable": "false"}))) == at_savepoint
    )
    table.upsert(arrow(NEXT))
    assert problems_on(storage) == []


def upsert(table: HudiTable) -> None:
    table.upsert(arrow(NEXT))


def compact(table: HudiTable) -> None:
    table.compact()


def cluster(table: HudiTable) -> None:
    table.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "ts"})


def clean(table: HudiTable) -> None:
    table.upsert(arrow([Row("k0", "oslo", 10, 1), Row("k1", "rome", 10, 1)]))
    table.delete_savepoint(table.savepoints()[0].requested)
    table.clean(options=KEEP_LITTLE)


def rollback(table: HudiTable) -> None:
    requested = table.upsert(arrow(NEXT)).requested
    assert requested is not None
    table.rollback(requested)


def restore(table: HudiTable) -> None:
    table.restore(table.savepoints()[0].requested)


FINISHED_BY: dict[Callable[[HudiTable], None], Callable[[HudiTable], object]] = {
    compact: compact,
    cluster: cluster,
    clean: lambda table: table.clean(options=KEEP_LITTLE),
}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    "table_type, operation",
    [
        ("COPY_ON_WRITE", rollback),
        ("MERGE_ON_READ", restore),
        ("MERGE_ON_READ", compact),
        *(
            pytest.param(table_type, operation, marks=pytest.mark.long)
            for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
            for operation in (upsert, cluster, clean, rollback, restore)
        ),
    ],
)
def test_what_a_dead_writer_left_is_cleared_up_elsewhere(
    table_type: str, operation: Callable[[HudiTable], None], version: int, request: pytest.FixtureRequest
) -> None:
    is_long = request.node.get_closest_marker("long") is not None
    disk = MemoryStorage(clock_ms=lambda: START)
    a_table(disk, table_type, version)

    def dying(storage: Storage) -> None:
        operation(handles(storage, later_ms=1_000).open())

    for what, after in every_nth(crash_points(dying, disk.copy), 1 if is_long else 30):
        try:
            there = values(snapshot(handles(after, later_ms=DEAD_MS).open()))
            moved = after.copy()
            table = handles(moved, later_ms=DEAD_MS).open()
            assert values(snapshot(table)) == there
            if operation in FINISHED_BY:  # what was planned stays until it is carried out
                FINISHED_BY[operation](table)
            table.upsert(arrow([Row("after", "york", 1, 1)]))
            assert values(snapshot(table)) == {**there, ("york", "after"): Row("after", "york", 1, 1)}
            assert problems_on(moved) == []
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise
