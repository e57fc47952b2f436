"""A write of a DataFrame to logs could put other rows there than the same rows as Arrow, or read them otherwise.

Each write is done twice, on Spark and with the same rows as Arrow; rows, counts and statements must be equal, and
what Spark reads must be what this process reads.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.table.view.commits import read_commit
from tests.spark.handovers import handed
from tests.spark.test_indexes import SMALL, first_rows, moving_rows, rows
from tests.spark.test_writes import Twins, rows_of_all_types
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

FACTS = {"record_key": "id", "partition_by": "part", "table_type": "MERGE_ON_READ"}
ONLY_LOGS = {"hoodie.parquet.small.file.limit": "0"}


def assert_read_alike(spark: Any, twins: Twins) -> None:
    for table in (twins.on_spark, twins.here):
        assert_same_rows(collected(table.scan().to_spark(spark)), table.scan().to_arrow())


@handed(
    "block_format, version, ordering",
    [(*block, ordering) for block in (("parquet", 8), ("avro", 9), ("hfile", 6)) for ordering in ("ts", None)],
    [
        ("files", ("parquet", 8, "ts")),
        ("gathered", ("hfile", 6, "ts")),
        ("shuffle", ("avro", 9, None)),
    ],
)
def test_operations_on_spark_are_those_in_this_process(
    spark: Any, tmp_path: Path, handover: str, block_format: str, version: int, ordering: str | None
) -> None:
    properties = {"hoodie.logfile.data.block.format": block_format, **ONLY_LOGS}
    twins = Twins(spark, tmp_path, **FACTS, ordering=ordering, table_version=version, properties=properties)

    twins.write("bulk_insert", rows_of_all_types(0, 60, version=2))
    upserted = twins.write("upsert", rows_of_all_types(40, 80, version=3))
    assert (upserted.inserted, upserted.updated) == (20, 20)
    twins.write("upsert", rows_of_all_types(0, 20, version=1))  # late, where an ordering says so
    changed = rows_of_all_types(30, 50, version=4)  # some columns only, where version 6 would refuse that
    twins.write("upsert", changed if version == 6 else changed.select(["id", "part", "ts", "price", "inner"]))
    twins.write("delete", rows_of_all_types(35, 45, version=3))
    gone = twins.write("delete", rows_of_all_types(50, 55, version=0).select(["id", "part"]))

    assert gone.deleted == 5
    assert_read_alike(spark, twins)
    newest = twins.here.timeline()[-1]
    snapshot = twins.here._access.snapshot()
    stats = read_commit(snapshot.storage, snapshot.timeline, newest).partition_to_write_stats
    assert newest.action == "deltacommit"
    assert all(stat.is_log for of in stats.values() for stat in of)


@handed(
    "table_type, engine",
    [("COPY_ON_WRITE", "SIMPLE"), ("MERGE_ON_READ", "SIMPLE"), ("MERGE_ON_READ", "CONSISTENT_HASHING")],
    [("shuffle", ("MERGE_ON_READ", "CONSISTENT_HASHING"))],
)
def test_rows_go_to_the_same_buckets_as_in_this_process(
    spark: Any, tmp_path: Path, handover: str, table_type: str, engine: str
) -> None:
    properties = {
        "hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": engine, "hoodie.bucket.index.num.buckets": "5",
    }  # fmt: skip
    twins = Twins(spark, tmp_path, **{**FACTS, "table_type": table_type}, ordering="ts", properties=properties)

    twins.write("bulk_insert", rows_of_all_types(0, 20, version=2), {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    twins.write("upsert", rows_of_all_types(10, 60, version=3))
    twins.write("upsert", rows_of_all_types(0, 30, version=1))  # late
    twins.write("insert", rows_of_all_types(60, 70, version=1))
    twins.write("delete", rows_of_all_types(55, 80, version=4).select(["id", "part"]))
    twins.write("delete", rows_of_all_types(0, 9, version=3, parts=("p1", "absent", "p2")))
    if engine == "SIMPLE":
        twins.write("insert_overwrite", rows_of_all_types(0, 3, version=1, parts=("p3", "p4")))

    assert buckets(twins.on_spark) == buckets(twins.here)
    assert_read_alike(spark, twins)


@handed("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"], [("files", "COPY_ON_WRITE"), ("shuffle", "MERGE_ON_READ")])
def test_rows_of_a_bucket_are_looked_up_as_they_are_written(
    spark: Any, tmp_path: Path, handover: str, table_type: str
) -> None:
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    twins = Twins(spark, tmp_path, **{**FACTS, "table_type": table_type}, ordering="ts", properties=properties)
    twins.write("upsert", rows_of_all_types(0, 30, version=1))
    twins.write("upsert", rows_of_all_types(20, 40, version=2))
    twins.write("delete", rows_of_all_types(0, 5, version=2).select(["id", "part"]))

    drop = {"hoodie.datasource.insert.dup.policy": "drop"}
    assert twins.write("insert", rows_of_all_types(3, 50, version=3), drop).inserted == 12
    if table_type == "MERGE_ON_READ":
        some = rows_of_all_types(35, 60, version=4)
        twins.write("upsert", some.select(["id", "part", "ts", *some.column_names[5:7]]))

    assert_read_alike(spark, twins)


def buckets(table: HudiTable) -> set[tuple[str, str, str]]:
    """Of each row its partition, key and, but for the random part of it, file group."""
    rows = table.scan(["_hoodie_partition_path", "_hoodie_record_key", "_hoodie_file_name"]).to_arrow()
    return {(path, key, file[:8]) for path, key, file in zip(*(c.to_pylist() for c in rows.columns), strict=True)}


@pytest.mark.parametrize(
    "index, is_ordered",
    [
        ("GLOBAL_SIMPLE", True),
        pytest.param("GLOBAL_BLOOM", False, marks=pytest.mark.long),
        pytest.param("GLOBAL_SIMPLE", False, marks=pytest.mark.long),
        pytest.param("GLOBAL_BLOOM", True, marks=pytest.mark.long),
    ],
)
def test_keys_move_between_partitions_by_what_the_logs_say(
    spark: Any, tmp_path: Path, handover: str, index: str, is_ordered: bool
) -> None:
    properties = {**SMALL, **ONLY_LOGS, "hoodie.index.type": index}
    twins = Twins(spark, tmp_path, **FACTS, ordering="rank" if is_ordered else None, properties=properties)

    twins.write("upsert", first_rows())
    twins.write("upsert", pc_set(first_rows().slice(0, 6), 9.0))  # in the logs only: what moves next must not beat it
    twins.write("upsert", moving_rows())
    twins.write("delete", rows(("k00", "", 0, 0), ("new", "", 0, 0), ("none", "", 0, 0)).select(["id"]))
    twins.write("upsert", first_rows())

    keys = twins.here.scan().to_arrow().column("id").to_pylist()
    assert len(keys) == len(set(keys))
    if is_ordered:
        stays = twins.here.scan(where="rank = 9.0").to_arrow()
        assert sorted(stays.column("id").to_pylist()) == [f"k{n:02}" for n in range(1, 6)]
    assert_read_alike(spark, twins)


def pc_set(table: pa.Table, rank: float) -> pa.Table:
    at = table.schema.get_field_index("rank")
    return table.set_column(at, "rank", pc.add(pc.multiply(table.column("rank"), 0.0), rank))


def test_an_insert_drops_what_the_logs_left_and_takes_what_they_deleted(
    spark: Any, tmp_path: Path, handover: str
) -> None:
    twins = Twins(spark, tmp_path, **FACTS, ordering="ts", properties=ONLY_LOGS)
    twins.write("bulk_insert", rows_of_all_types(0, 30, version=1))
    twins.write("delete", rows_of_all_types(0, 10, version=1).select(["id", "part"]))

    inserted = twins.write(
        "insert", rows_of_all_types(5, 35, version=2), {"hoodie.datasource.insert.dup.policy": "drop"}
    )

    assert (inserted.inserted, inserted.updated) == (5, 5)  # new ones, and those that logs had deleted
    assert twins.here.scan().to_arrow().num_rows == 30
    assert_read_alike(spark, twins)


@handed(
    "index",
    ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"],
    [("files", "GLOBAL_SIMPLE")],
)
def test_a_key_that_comes_back_is_one_row(spark: Any, tmp_path: Path, handover: str, index: str) -> None:
    """Its base row is still in the file group whose log deleted it."""
    twins = Twins(spark, tmp_path, **FACTS, ordering="ts", properties={"hoodie.index.type": index, **ONLY_LOGS})
    drop = {"hoodie.datasource.insert.dup.policy": "drop"}
    twins.write("bulk_insert", rows_of_all_types(0, 20, version=1))

    for version in (3, 5):
        twins.write("delete", rows_of_all_types(0, 10, version=0).select(["id", "part"]))
        twins.write("insert", rows_of_all_types(0, 10, version=version), drop if version == 5 else None)
        twins.write("upsert", rows_of_all_types(0, 12, version=version + 1))

        assert twins.on_spark.scan().to_arrow().num_rows == 20
        assert_read_alike(spark, twins)


@handed("index", ["SIMPLE", "BUCKET"], [("files", "BUCKET"), ("shuffle", "SIMPLE")])
def test_a_deleted_row_stays_deleted_when_an_older_one_comes(
    spark: Any, tmp_path: Path, handover: str, index: str
) -> None:
    """Readers of its log would show the base row again, which is greater."""
    properties = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2", **ONLY_LOGS}
    twins = Twins(spark, tmp_path, **FACTS, ordering="ts", properties=properties)
    twins.write("upsert", rows_of_all_types(0, 20, version=9))
    twins.write("delete", rows_of_all_types(0, 10, version=0).select(["id", "part"]))

    result = twins.write("upsert", rows_of_all_types(5, 15, version=4))

    older = pc.equal(twins.here.scan().to_arrow().column("ts"), rows_of_all_types(0, 1, version=4).column("ts")[0])
    assert pc.sum(older).as_py() == 5
    assert result.inserted + result.updated == 10
    assert_read_alike(spark, twins)
