"""A write on Spark could find other keys than the same write in this process, or move a row that stays there.

Each write is done twice, on Spark and with the same rows as Arrow; rows, counts and statements must be equal.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.spark.write.tagging import find_candidates
from pyhudi.errors import Unsupported
from tests.spark.handovers import handed
from tests.spark.test_writes import Twins
from tests.support.compare import assert_same_rows

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("rank", pa.float64()), ("v", pa.int64())])
SMALL = {
    "hoodie.parquet.max.file.size": "6000", "hoodie.copyonwrite.record.size.estimate": "600",
    "hoodie.index.bloom.num_entries": "10", "hoodie.index.bloom.fpp": "0.3",
}  # fmt: skip


def rows(*values: tuple[str, str, float, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, of, strict=True)) for of in values], SCHEMA)


def first_rows() -> pa.Table:
    return rows(*((f"k{n:02}", f"p{n % 3}", float(n % 4), 1) for n in range(30)))


def moving_rows() -> pa.Table:
    """Keys that move and are beaten or not, that repeat in one partition and in several, ties, and new ones."""
    moved = [(f"k{n:02}", f"p{(n + 1) % 4}", 2.0, 2) for n in range(0, 20)]
    repeated = [("k02", "p1", 3.0, 3), ("k02", "p2", 3.0, 4), ("k03", "p9", 1.0, 3), ("k04", "p2", 2.0, 5)]
    fresh = [("new", "p1", 0.0, 1), ("new", "p2", -0.0, 2), ("late", "p2", 5.0, 1), ("late", "p0", 5.0, 2)]
    numbers = [("nan", "p0", 1.0, 1), ("nan", "p1", float("nan"), 2), ("k21", "p0", float("nan"), 9)]
    return rows(*moved, *repeated, *fresh, *numbers)


@pytest.mark.parametrize(
    "is_ordered", [True, pytest.param(False, marks=pytest.mark.long)], ids=["event time", "commit time"]
)
@handed(
    "index, moves",
    [("BLOOM", "true"), ("GLOBAL_SIMPLE", "true"), ("GLOBAL_BLOOM", "true"), ("GLOBAL_SIMPLE", "false")],
    [
        ("files", ("GLOBAL_SIMPLE", "false")),
        ("gathered", ("BLOOM", "true")),
        ("shuffle", ("GLOBAL_BLOOM", "true")),
    ],
)
def test_indexes_on_spark_find_what_they_find_in_this_process(
    spark: Any, tmp_path: Path, handover: str, index: str, moves: str, is_ordered: bool
) -> None:
    kind = "bloom" if "BLOOM" in index else "simple"
    by = {"hoodie.index.type": index, f"hoodie.{kind}.index.update.partition.path": moves}
    facts = {"record_key": "id", "partition_by": "part", "ordering": "rank" if is_ordered else None}
    twins = Twins(spark, tmp_path, properties={**SMALL, **by}, **facts)

    twins.write("upsert", first_rows())
    twins.write("upsert", moving_rows())
    if index.startswith("GLOBAL"):
        keys = [of["id"] for of in twins.here.scan().to_arrow().to_pylist()]
        assert len(keys) == len(set(keys)) == 33
        deleted = twins.write("delete", rows(("k00", "", 0, 0), ("new", "", 0, 0), ("none", "", 0, 0)).select(["id"]))
        assert deleted.deleted == 2
    else:
        assert twins.write("delete", moving_rows().slice(0, 9).select(["id", "part"])).deleted > 0
    twins.write("upsert", first_rows())


def test_moves_cannot_be_ordered_by_what_hides_their_file(spark: Any, tmp_path: Path, by_shuffle: None) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="part", ordering="_metadata",
        properties={"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"},
    )  # fmt: skip
    rows = {"id": ["a", "b"], "part": ["p", "p"], "_metadata": [1, 5]}
    table.bulk_insert(pa.table(rows))
    moved = [("a", "q", 2), ("b", "q", 2)]

    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(Unsupported, match="expected other names than _metadata"):
        table.upsert(spark.createDataFrame(moved, "id string, part string, _metadata bigint"))
    assert sorted(tmp_path.rglob("*")) == files
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), pa.table(rows))
    table.upsert(pa.table({"id": ["a", "b"], "part": ["q", "q"], "_metadata": [2, 2]}))
    assert sorted(table.scan(columns=["id", "part"]).to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": "a", "part": "q"}, {"id": "b", "part": "p"},
    ]  # fmt: skip


def test_a_bloom_index_on_a_cluster_joins_the_files_that_may_hold_keys(
    spark: Any, tmp_path: Path, by_shuffle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the filters while the driver holds the keys, by ranges beyond that."""
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id",
        properties={"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip
    for low in (10, 20, 30):
        table.bulk_insert(rows(*((f"k{n}", "", 0.0, 1) for n in range(low, low + 10, 2))))
    asked: list[int] = []

    def found(lookup: Any) -> list[int]:
        candidates = find_candidates(lookup)
        asked.append(len(candidates))
        return candidates

    monkeypatch.setattr("pyhudi.engine.spark.write.source.find_candidates", found)
    frame = spark.createDataFrame(
        [("k12", "", 1.0, 2), ("k31", "", 1.0, 2)], "id string, part string, rank double, v long"
    )
    assert table.upsert(frame).updated == 1
    monkeypatch.setattr("pyhudi.engine.spark.write.tagging.DRIVER_KEYS_MAX", 0)
    assert table.upsert(frame).updated == 2
    assert table.upsert(frame.where("id = 'k12'")).updated == 1
    assert asked == [1, 4, 1], "the first upsert added a file for k31"
