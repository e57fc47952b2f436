"""A bootstrap could die at any step, and leave a table that holds some of the source's rows, or a folder that no table
can be made in.

It is stopped at every change of the storage, both ways. Then there is no table, or the whole one; a bootstrap that
follows, or a write, must succeed, and give the right rows.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid
from pyhudi.format.names import PROPERTIES
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.crashes import crash_points
from tests.support.model import StepClock, problems_on, seeded_uuids

START = 1_780_000_000_000
PARTS = ("oslo", "rome")
MIXED = {
    "hoodie.bootstrap.mode.selector": "BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": "city=oslo",
}
CASES = [(8, "COPY_ON_WRITE"), (6, "MERGE_ON_READ"), (9, "MERGE_ON_READ"), (6, "COPY_ON_WRITE")]


@pytest.fixture
def source() -> Iterator[MemoryStorage]:
    storage = MemoryStorage("bootstrap-crashes-source")
    for city in PARTS:
        for number in range(2):
            rows = pa.table({"id": [f"{city}{number}{n}" for n in range(3)], "ts": [1, 1, 1]})
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink)
            storage.put(f"city={city}/{number}.parquet", sink.getvalue().to_pybytes())
    yield storage
    storage.delete_prefix("")


def bootstrap(storage: Storage, version: int, table_type: str, *, later_ms: int = 0) -> HudiTable:
    return HudiTable.bootstrap(
        "memory://bootstrap-crashes-source", "", name="t", record_key="id", partition_by="city", ordering="ts",
        table_version=version, table_type=table_type, options=MIXED, storage=storage,
        clock=StepClock(START + later_ms), random=seeded_uuids(later_ms), executor=SerialExecutor(),
    )  # fmt: skip


def dying(version: int, table_type: str) -> Callable[[Storage], None]:
    def run(storage: Storage) -> None:
        bootstrap(storage, version, table_type)

    return run


def reopened(storage: Storage) -> HudiTable:
    return HudiTable.open(
        "", storage=storage, clock=StepClock(START + 9_000_000), random=seeded_uuids(9), executor=SerialExecutor()
    )


def keys(table: HudiTable) -> list[str]:
    return sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())


ALL = sorted(f"{city}{number}{n}" for city in PARTS for number in range(2) for n in range(3))


@pytest.mark.parametrize(
    "version, table_type", [CASES[0], *(pytest.param(*case, marks=pytest.mark.long) for case in CASES[1:])]
)
def test_a_bootstrap_that_dies_leaves_the_whole_table_or_none(
    source: MemoryStorage, version: int, table_type: str
) -> None:
    del source
    seen = {"none": 0, "whole": 0}
    for what, disk in crash_points(dying(version, table_type), MemoryStorage):
        is_there = disk.head(PROPERTIES) is not None
        seen["whole" if is_there else "none"] += 1
        if is_there:
            table = reopened(disk)
            assert keys(table) == ALL, what
            assert len(keys(table)) == len(table.incremental().to_arrow()), what
            with pytest.raises(Invalid, match="expected no table, found one"):
                bootstrap(disk, version, table_type, later_ms=5_000)
        else:
            table = bootstrap(disk, version, table_type, later_ms=5_000_000)
            assert keys(table) == ALL, what
        if not is_there and seen["none"] % 5:
            continue  # the table is as any other that a bootstrap made
        table = reopened(disk)
        table.upsert(pa.table({"id": ["oslo00", "rome00", "x"], "ts": [2, 2, 2], "city": ["oslo", "rome", "rome"]}))
        assert keys(table) == sorted([*ALL, "x"]), what
        assert problems_on(disk) == [], what
    assert seen["none"] > 30
    assert seen["whole"] > 0


def test_no_other_table_is_made_where_a_bootstrap_died(source: MemoryStorage) -> None:
    del source
    what, disk = next(
        point
        for point in crash_points(dying(8, "COPY_ON_WRITE"), MemoryStorage)
        if any(file.path.endswith(".parquet") for file in point[1].list("", recursive=True))
    )
    with pytest.raises(Invalid, match="a bootstrap left that runs or died"):
        HudiTable.create("", name="t", record_key="id", storage=disk)
    assert disk.head(PROPERTIES) is None, what
