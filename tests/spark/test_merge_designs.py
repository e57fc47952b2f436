"""Of slices with logs Spark's own reader takes the rows that no log touches, and tasks merge the others: a row could be
lost between the two, come twice, or be filtered by what it was before the log changed it.

Both designs and this process must give the same rows, over tables that Apache Hudi wrote and over random ones.
"""

import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.api.scan import Scan
from pyhudi.engine.spark.read import merge_design
from pyhudi.engine.spark.read.base_files import read_as
from pyhudi.engine.spark.read.native_merge import pack_bits, untouched_rows
from pyhudi.engine.spark.read.standing import find_standing_slices
from pyhudi.storage.protocol import StorageLocation
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

BLOCK_FORMAT = "hoodie.logfile.data.block.format"

GOLDEN = (
    *("mor_avro_v6_h0150", "mor_avro_v8_h102", "mor_event_time_v9_h120", "mor_commit_time_v8_h102"),
    *("mor_delete_field_v9_h120", "mor_is_deleted_v9_h120", "mor_hfile_log_v6_h0150", "mor_parquet_log_v9_h120"),
    *("mor_partial_update_v8_h102", "mor_partial_payload_v6_h0150", "mor_nondefaults_v9_h120", "mor_no_meta_v9_h120"),
    *("mor_schema_promote_v9_h120", "mor_logonly_v9_h120", "mor_nbcc_v9_h120", "mor_compact_scheduled_v9_h120"),
    *("mor_log_compact_v9_h120", "mor_inflight_v9_h120", "mor_bucket_v9_h120"),
)
"""One of each family: event time, commit time, payload classes, partial blocks, each kind of block and of delete."""


@pytest.fixture(params=["blocks", "sent", "driver", "tasks"])
def finder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who finds the touched rows; `blocks`, `sent`: nobody, where rows stand in blocks: these are scanned, or sent."""
    monkeypatch.setattr(merge_design, "BASE_BYTES_A_BLOCK", 1)
    if request.param == "sent":
        monkeypatch.setattr("pyhudi.engine.spark.read.standing.takes_files", lambda *arguments: False)
    if request.param == "driver":
        monkeypatch.setattr("pyhudi.engine.spark.read.scan.find_standing_slices", lambda *arguments: [])
    if request.param == "tasks":
        monkeypatch.setattr(merge_design, "DRIVER_BYTES_MAX", 0)
    return str(request.param)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Untouched rows are read apart however small a table is."""
    monkeypatch.setattr(merge_design, "NATIVE_BYTES_MIN", 0)
    monkeypatch.setattr(merge_design, "LOG_SHARE_MAX", 1_000)


def assert_reads_apart(spark: Any, scan: Scan) -> None:
    """The rows by the native design are those of this process; and it was the native design."""
    frame = scan.to_spark(spark)
    assert_same_rows(collected(frame), scan.to_arrow())
    has_base = any(file.logs and file.slice_files.base_path for file in scan._plan.files)
    if has_base:
        apart, _ = merge_design.split_by_design([file for file in scan._plan.files if file.logs])
        assert apart


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_tables_have_the_same_rows(spark: Any, golden: GoldenTables, apart: None, name: str) -> None:
    assert_reads_apart(spark, HudiTable.open(golden.get(name).path).scan())


def test_tables_of_a_moment_and_of_a_range_have_the_same_rows(spark: Any, golden: GoldenTables, apart: None) -> None:
    table = HudiTable.open(golden.get("mor_event_time_v9_h120").path)
    first, *_, last = [instant for instant in table.timeline() if instant.completed]

    assert_reads_apart(spark, table.incremental(start=first.completed))
    assert_reads_apart(spark, table.scan(as_of=first.requested))
    assert_reads_apart(
        spark, table.incremental(start=first.completed, end=last.completed, columns=["_hoodie_record_key"])
    )


def random_table(path: Path, seed: int, ordering: str | None) -> HudiTable:
    """Rows in two partitions, then upserts, new keys and deletes in random order, with random ordering values."""
    rand = random.Random(seed)

    def rows(keys: list[int]) -> pa.Table:
        return pa.table(
            {
                "id": pa.array([f"k{key}" for key in keys], pa.string()),
                "part": pa.array([f"p{key % 2}" for key in keys], pa.string()),
                "ts": pa.array([rand.choice([1, 2, 3]) for _ in keys], pa.int64()),
                "n": pa.array([rand.choice([None, *range(100)]) for _ in keys], pa.int64()),
                "x": pa.array([rand.choice([0.0, -0.0, float("nan"), 1.5]) for _ in keys], pa.float64()),
            }
        )

    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="part", ordering=ordering, table_type="MERGE_ON_READ",
        properties={"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0", BLOCK_FORMAT: "parquet"},
    )  # fmt: skip
    table.bulk_insert(rows(list(range(200))))
    for _ in range(4):
        some = rand.sample(range(260), 40)
        table.delete(rows(some)) if rand.random() < 0.3 else table.upsert(rows(some))
    return table


@pytest.mark.parametrize(
    "seed, ordering",
    [(1, "ts"), (2, None), *(pytest.param(*case, marks=pytest.mark.long) for case in ((3, "x"), (4, "ts")))],
)
def test_random_tables_have_the_same_rows(
    spark: Any, tmp_path: Path, apart: None, finder: str, seed: int, ordering: str | None
) -> None:
    table = random_table(tmp_path / "t", seed, ordering)

    if finder in ("blocks", "sent"):
        plan = table.scan()._plan
        logged = [file for file in plan.files if file.logs]
        assert find_standing_slices(spark, StorageLocation(str(tmp_path / "t"), ()), plan, logged)
    assert_reads_apart(spark, table.scan())
    assert_reads_apart(spark, table.scan(columns=["n"], where="n > 50 and part = 'p1'"))


@pytest.mark.parametrize("name", ["_metadata", "_METADATA", "_tmp_metadata_row_index"])
def test_a_column_may_have_the_name_of_what_spark_tells_of_files(
    spark: Any, tmp_path: Path, apart: None, finder: str, name: str
) -> None:
    """Spark's own `_metadata` says which row of which file a row is: with such a column nothing does."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.bulk_insert(pa.table({"id": list("abc"), "ts": [1, 1, 9], name: [11, 12, 13]}))
    changed = [("a", 2, 21), ("b", 2, None), ("c", 2, 23), ("d", 2, 24)]
    table.upsert(spark.createDataFrame(changed, f"id string, ts bigint, {name} bigint"))

    assert_same_rows(collected(table.scan().to_spark(spark)), table.scan().to_arrow())
    assert_reads_apart(spark, table.scan(columns=["id", "ts"]))
    assert_same_rows(
        collected(table.scan(columns=["id"], where=f"{name} = 21").to_spark(spark)), pa.table({"id": ["a"]})
    )


@pytest.mark.parametrize("where", ["n < 0", "n >= 0", "n is null", "id = 'b'", pc.field("n") < 0])
def test_a_filter_sees_the_merged_row(spark: Any, tmp_path: Path, apart: None, where: Any) -> None:
    """`a` matches only once the log changed it, `b` no longer does, `c` loses to the stored row, `d` is deleted."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.bulk_insert(pa.table({"id": list("abcde"), "ts": [1, 1, 9, 1, 1], "n": [1, -1, 1, -1, -1]}))
    changed = pa.array([-1, 1, -1, None], pa.int64())
    table.upsert(pa.table({"id": list("abcf"), "ts": [2, 2, 2, 2], "n": changed}))
    table.delete(pa.table({"id": ["d"], "ts": [2]}))

    assert_reads_apart(spark, table.scan(columns=["id", "n"], where=where))


def test_tables_below_the_bound_are_merged_whole(spark: Any, tmp_path: Path) -> None:
    table = random_table(tmp_path / "t", 5, "ts")
    scan = table.scan()

    apart, whole = merge_design.split_by_design([file for file in scan._plan.files if file.logs])

    assert whole
    assert not apart
    assert_same_rows(collected(scan.to_spark(spark)), scan.to_arrow())


def test_a_file_of_which_nobody_knows_what_is_touched_is_an_error(
    spark: Any, tmp_path: Path, apart: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a file that is not found by its name would all count as untouched: changed ones would come twice."""
    monkeypatch.setattr("pyhudi.engine.spark.read.native_merge.go_by_size", lambda files: False)
    table = random_table(tmp_path / "t", 6, "ts")
    location, plan = StorageLocation(str(tmp_path / "t"), ()), table.scan()._plan
    logged = [file for file in plan.files if file.logs]
    files = [(file.path, merge_design.base_size_bytes(file)) for file in logged]
    scan = partial(read_as, spark, location, files, plan.stored_schema)

    assert untouched_rows(spark, location, plan, logged, scan).collect()
    with pytest.raises(Exception, match="nobody looked which rows of this file"):
        untouched_rows(spark, location, plan, logged[:1], scan).collect()


def test_rows_of_many_words_of_bits_in_files_of_unlike_length_are_told_apart(
    spark: Any, tmp_path: Path, apart: None, finder: str
) -> None:
    """A bit that is looked up a row too far, or in the next file's, leaves a row out or brings it twice."""
    keys = np.arange(10_000)
    part = np.where(keys < 6_500, "p0", np.where(keys < 9_936, "p1", "p2"))  # 6,500, 3,436 and 64 rows

    def rows(of: np.ndarray, n: int) -> pa.Table:
        return pa.table({"id": np.char.add("k", of.astype(str)), "part": part[of], "n": np.full(len(of), n)})

    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part", table_type="MERGE_ON_READ")
    table.bulk_insert(rows(keys, 0))
    changed = np.unique(np.concatenate([keys[::7], keys[6_400:6_600], keys[-1:]]))
    table.upsert(rows(changed, 1))
    table.delete(rows(keys[::70], 1))

    assert_reads_apart(spark, table.scan(columns=["id", "part", "n"]))
    assert table.scan().to_spark(spark).where("n = 1").count() == len(np.setdiff1d(changed, keys[::70]))


def test_a_row_of_which_nobody_knows_whether_it_counts_is_an_error(
    spark: Any, tmp_path: Path, apart: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row without a bit would be left out in silence."""
    monkeypatch.setattr(merge_design, "BASE_BYTES_A_BLOCK", 1)
    scan = random_table(tmp_path / "t", 6, "ts").scan()
    assert scan.to_spark(spark).collect()

    monkeypatch.setattr("pyhudi.engine.spark.read.standing.pack_bits", lambda of: pack_bits(of[:0]))
    with pytest.raises(Exception, match="more rows than as the query was planned"):
        scan.to_spark(spark).collect()
