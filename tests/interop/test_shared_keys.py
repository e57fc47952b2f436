"""Base rows that share a record key: `insert` and `bulk_insert` do not look whether a key is there.

A log can change all of them or one. Apache Hudi changes all by record positions, for its writer then logs a record for
each, and the first of a file where it merges by keys, as with a bucket index; we change all, either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.mor_tables import BLOCK_FORMAT, BY_ID_AND_TS
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

KEYS = 3_000
OPTIONS = BY_ID_AND_TS | {"hoodie.bulkinsert.shuffle.parallelism": 1}


def rows(ids: Sequence[str], ts: Sequence[int], value: str) -> pa.Table:
    """`v` is another in each row."""
    return pa.table({"id": ids, "ts": pa.array(ts, pa.int64()), "v": [f"{value} {n}" for n in range(len(ids))]})


def random_rows(random: np.random.Generator, numbers: np.ndarray, value: str) -> pa.Table:
    return rows([f"k{n:05}" for n in numbers], random.integers(0, 10, len(numbers)).tolist(), value)


def without_sequence(table: pa.Table) -> pa.Table:
    """Which of the equal records of a key was taken is told by nothing but its number in the commit."""
    return table.drop_columns(["_hoodie_commit_seqno"])


@pytest.mark.parametrize("name, version", [("hudi_102", 8), ("hudi_120", 9)], ids=["1.0.2 on 8", "1.2.0 on 9"])
@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_we_change_all_that_hudi_changes(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, kind: str
) -> None:
    """1.0.2 deletes nothing here: it cannot read deletes of its own over its upserts of this table (an Integer is no
    Long).
    """
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path, random = tmp_path / "t", np.random.default_rng(7)
    options = OPTIONS | {BLOCK_FORMAT: kind, "hoodie.write.table.version": version}
    base = random_rows(random, random.integers(0, KEYS, 2 * KEYS), "base")
    hudi.write(path, base, operation="bulk_insert", mode="overwrite", **options)
    for turn in range(3):
        some = random_rows(random, random.choice(KEYS, KEYS // 10, replace=False), f"turn {turn}")
        hudi.write(path, some, operation="upsert", **options)
        if version == 9:
            gone = random_rows(random, random.choice(KEYS, KEYS // 50, replace=False), "gone")
            hudi.write(path, gone, operation="delete", **options)

        read = HudiTable.open(path).scan().to_arrow()
        assert len(read) > len(set(read["id"].to_pylist()))
        assert_same_rows(without_sequence(read), without_sequence(hudi.read(path)))


def values(table: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(table["id"].to_pylist(), table["ts"].to_pylist(), strict=True))


FIRST_OF_THREE = [("a", 1), ("a", 1), ("a", 2), ("b", 1)]
ALL_THREE = [("a", 2), ("a", 2), ("a", 2), ("b", 1)]


def test_hudi_120_changes_the_first_by_keys(hudi_120: ReferenceHudi, tmp_path: Path) -> None:
    """Seen: in its own tables. A deleted key is there again."""
    path = tmp_path / "t"
    options = OPTIONS | {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 1}
    hudi_120.write(path, rows("aaba", [1] * 4, "v"), operation="bulk_insert", mode="overwrite", **options)
    hudi_120.write(path, rows("a", [2], "v"), operation="upsert", **options)
    assert values(hudi_120.read(path)) == FIRST_OF_THREE
    assert values(HudiTable.open(path).scan().to_arrow()) == ALL_THREE

    hudi_120.write(path, rows("a", [3], "v"), operation="delete", **options)
    assert values(hudi_120.read(path)) == [("a", 1), ("a", 1), ("b", 1)]
    assert values(HudiTable.open(path).scan().to_arrow()) == [("b", 1)]


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_hudi_120_changes_the_first_in_our_logs_and_all_once_we_compacted(
    hudi_120: ReferenceHudi, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(
        path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ", table_version=9,
        properties={"hoodie.compact.inline": "false", BLOCK_FORMAT: kind},
    )  # fmt: skip
    table.insert(rows("aaba", [1] * 4, "v"))
    table.upsert(rows("a", [2], "v"))
    assert values(table.scan().to_arrow()) == ALL_THREE
    assert values(hudi_120.read(path)) == FIRST_OF_THREE

    table.compact()
    assert values(table.scan().to_arrow()) == ALL_THREE
    assert values(hudi_120.read(path)) == ALL_THREE
