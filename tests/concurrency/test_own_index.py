"""Writers at once could tell an index of the user's in another order than they commit, or look keys up in two states.

Threads upsert the same keys, delete and cluster. Afterwards each key has one row, and the index has it there.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable, register_index
from tests.support.own_index import assert_true
from tests.support.sqlite_index import SqliteIndex

KEYS, ROUNDS, WRITERS = 12, 5, 3


@pytest.mark.parametrize(
    "kind, version", [("MERGE_ON_READ", 9), pytest.param("COPY_ON_WRITE", 6, marks=pytest.mark.long)]
)
def test_keys_stay_single_and_the_index_true_beside_others(tmp_path: Path, kind: str, version: int) -> None:
    path = str(tmp_path / "index.db")
    register_index(name := f"beside.{tmp_path.name}", partial(SqliteIndex, path))
    HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="part", table_type=kind, table_version=version,
        properties={
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
        },
    )  # fmt: skip
    table = HudiTable.open(tmp_path / "t", options={"hoodie.index.class": name})

    def work(writer: int) -> None:
        own = HudiTable.open(table.path, options={"hoodie.index.class": name})
        for n in range(ROUNDS):
            ids = [f"k{(writer + n + step) % KEYS:02}" for step in range(0, KEYS, 2)]
            parts = [f"p{(int(key[1:]) + n) % 2}" for key in ids]
            own.upsert(pa.table({"id": ids, "part": parts, "v": [writer * 100 + n] * len(ids)}))
            if writer == 1:
                own.delete(pa.table({"id": ids[:1]}))
            if writer == 2 and n % 2:
                try:
                    own.cluster()
                except Conflict:  # a write was in its way
                    continue

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))

    last = [f"k{n:02}" for n in range(KEYS)]
    ids = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert len(ids) == len(set(ids))
    table.upsert(pa.table({"id": last, "part": ["p0"] * KEYS, "v": list(range(KEYS))}))
    found = table.scan(columns=["id", "v"]).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": key, "v": n} for n, key in enumerate(last)]
    assert_true(table, path)
