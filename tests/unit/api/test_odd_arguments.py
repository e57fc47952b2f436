"""An argument of a wrong type or value could end in Python's or a library's own error, or half-way through a write.

Each is `Invalid`, before anything is written.
"""

import pickle
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi.services
import pyhudi.spark
from pyhudi import HudiTable, Invalid
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage

ROWS = pa.table({"k": ["a"], "v": [1]})
BEYOND = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
LONE_SURROGATE = "\ud800"


def create(**arguments: Any) -> HudiTable:
    storage = MemoryStorage()
    given = {"name": "t", "record_key": "k", "storage": storage, "executor": SerialExecutor(), **arguments}
    return HudiTable.create(storage.location.uri, **given)


def open_with(table: HudiTable, **arguments: Any) -> HudiTable:
    return HudiTable.open(table.path, storage=table._access.storage, **arguments)


CALLS: dict[str, Callable[[HudiTable], object]] = {
    "options that are text": lambda t: t.upsert(ROWS, options="hoodie.index.type"),  # type: ignore[arg-type]
    "options that are a list": lambda t: t.compact(options=["a"]),  # type: ignore[arg-type]
    "options that are a number": lambda t: t.upsert(ROWS, options=5),  # type: ignore[arg-type]
    "options that are False": lambda t: t.clean(options=False),  # type: ignore[arg-type]
    "a handle's options that are bytes": lambda t: open_with(t, options=b"x"),
    "a number of partitions that is text": lambda t: t.metadata.time_listings(partitions_max="9"),  # type: ignore[arg-type]
    "a number of partitions below 1": lambda t: t.metadata.time_listings(partitions_max=-1),
    "extra metadata that is text": lambda t: t.upsert(ROWS, extra_metadata="job"),  # type: ignore[arg-type]
    "extra metadata that is a list": lambda t: t.upsert(ROWS, extra_metadata=["job"]),  # type: ignore[arg-type]
    "extra metadata that is no UTF-8": lambda t: t.upsert(ROWS, extra_metadata={"job": LONE_SURROGATE}),
    "an option that is no UTF-8": lambda t: t.upsert(ROWS, options={"_job": LONE_SURROGATE}),
    "on_commit that cannot be called": lambda t: t.upsert(ROWS, on_commit="me"),  # type: ignore[arg-type]
    "as_of beyond the year 9999": lambda t: t.scan(as_of=BEYOND),
    "start beyond the year 9999": lambda t: t.incremental(start=BEYOND),
    "as_of in other digits": lambda t: t.scan(as_of="２０２６１１２４２２００００"),
    "half a byte that is compared with a number": lambda t: t.scan(where="v = 0x1"),
    "columns that are a number": lambda t: t.scan(5),  # type: ignore[arg-type]
    "a column that is a number": lambda t: t.incremental(columns=[5]),  # type: ignore[list-item]
    "a column twice": lambda t: t.scan(["k", "k"]),
    "a column of changes twice": lambda t: t.cdc(columns=["k", "k"]),
    "a pickle of a scan": lambda t: pickle.dumps(t.scan()),
    "partitions that are none": lambda t: t.delete_partitions(None),  # type: ignore[arg-type]
    "a partition that is no text": lambda t: t.delete_partitions([5]),  # type: ignore[list-item]
    "a rollback of nothing": lambda t: t.rollback(None),  # type: ignore[arg-type]
    "a savepoint of a number": lambda t: t.savepoint(5),  # type: ignore[arg-type]
    "a savepoint that is no text": lambda t: t.delete_savepoint(None),  # type: ignore[arg-type]
    "a savepoint's user that is no UTF-8": lambda t: t.savepoint(user=LONE_SURROGATE),
    "a savepoint's comment that is a number": lambda t: t.savepoint(comment=5),  # type: ignore[arg-type]
    "an index of a number": lambda t: t.build_index("column_stats", columns=5),  # type: ignore[arg-type]
    "an index of columns that are numbers": lambda t: t.build_index("column_stats", columns=[5]),  # type: ignore[list-item]
}


@pytest.mark.parametrize("call", CALLS)
def test_it_is_refused_and_nothing_is_written(call: str) -> None:
    table = create()
    table.upsert(ROWS)
    before = table.timeline()

    with pytest.raises(Invalid):
        CALLS[call](table)

    assert table.timeline() == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": 5},
        {"record_key": 5},
        {"partition_by": 5.0},
        {"ordering": object()},
        {"properties": "x"},
        {"properties": 5},
        {"schema": pa.int64()},
        {"schema": pa.field("k", pa.int64())},
        {"schema": [("k", pa.int64())]},
    ],
)
def test_a_table_is_not_made_by_them(arguments: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        create(**arguments)


@pytest.mark.parametrize("path", [None, 5, "/tmp/\ud800"])
def test_a_path_that_none_can_be(path: Any) -> None:
    with pytest.raises(Invalid, match="path"):
        HudiTable.open(path)


@pytest.mark.parametrize("options", ["a", 5, 0, ["a"], {5: "x"}, {"a": 5}, [("a", "b")]])
def test_options_of_a_storage_that_none_can_be(options: Any, tmp_path: Path) -> None:
    for call in (HudiTable.open, HudiTable.exists):
        with pytest.raises(Invalid, match=r"storage_options of '.*': expected"):
            call(tmp_path, storage_options=options)


@pytest.mark.parametrize("spark", [5, "local[1]", None, object()])
def test_a_session_that_is_none(spark: Any, tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="k", executor=SerialExecutor())
    table.upsert(ROWS)
    before = table.timeline()
    calls: list[Callable[[], object]] = [
        lambda: table.scan().to_spark(spark),
        lambda: table.incremental().to_spark(spark),
        lambda: table.cdc().to_spark(spark),
        lambda: table.metadata.records_to_spark(spark),
        lambda: pyhudi.spark.register(spark),
    ]
    if spark is not None:  # which is this process, where it is the default
        calls += [
            lambda: table.build_index("column_stats", spark=spark),
            lambda: table.cluster(spark=spark),
            lambda: pyhudi.services.run(table, once=True, spark=spark),
        ]
    for call in calls:
        with pytest.raises(Invalid, match=r"spark=.*: expected a SparkSession, found (int|str|NoneType|object)"):
            call()
    assert table.timeline() == before


def test_a_clean_may_retain_more_hours_than_there_were() -> None:
    table = create()
    for _ in range(3):
        table.upsert(ROWS)

    cleaned = table.clean(
        options={"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": 10**12}
    )

    assert cleaned.files_deleted == 0


def test_the_error_says_how_to_restore_to_a_savepoint() -> None:
    table = create()
    table.upsert(ROWS)

    with pytest.raises(Invalid, match=r"restore: expected the requested time .* give its 'requested'"):
        table.restore(table.savepoint())  # type: ignore[arg-type]


def test_a_limit_beyond_what_a_machine_counts_gives_all_rows() -> None:
    table = create()
    table.upsert(ROWS)

    assert table.scan().limit(10**30).to_arrow().num_rows == 1
