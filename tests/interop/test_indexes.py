"""A key could move by our global index where it stays by Apache Hudi's, or one side only could find it: a row twice.

Both sides do the same writes on copies of one table, then each goes on with the other's copy.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.reference.client import ReferenceHudi

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
FACTS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


def rows(*values: tuple[str, str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, of, strict=True)) for of in values], SCHEMA)


def first_rows() -> pa.Table:
    return rows(*((f"k{n:02}", ("oslo", "rome")[n % 2], 5, 1) for n in range(24)))


def moving_rows(turn: int) -> pa.Table:
    """Some move, by a greater, an equal or a lesser ordering value; some stay, some are new, some come twice."""
    moved = [(f"k{n:02}", ("rome", "york")[n % 2], 5 + n % 3 - 1, turn) for n in range(0, 16, 2)]
    stayed = [(f"k{n:02}", "rome", 4 + n % 4, turn) for n in range(1, 12, 2)]
    fresh = [(f"n{turn}{n}", "york", 1, turn) for n in range(3)]
    twice = [
        ("twice", "oslo", turn, 1),
        ("twice", "rome", turn + 1, 2),
        ("k20", "rome", 7, turn),
        ("k20", "york", 6, 0),
    ]
    return rows(*moved, *stayed, *fresh, *twice)


def shown(table: pa.Table) -> list[tuple[Any, ...]]:
    names = ("_hoodie_record_key", "_hoodie_partition_path", "id", "ts", "v")
    return sorted(tuple(row[name] for name in names) for row in table.to_pylist())


@pytest.mark.parametrize("moves", [True, False], ids=["moves", "stays"])
@pytest.mark.parametrize("index", ["GLOBAL_BLOOM", "GLOBAL_SIMPLE"])
def test_keys_move_alike(tmp_path: Path, hudi_102: ReferenceHudi, index: str, moves: bool) -> None:
    kind = "bloom" if index == "GLOBAL_BLOOM" else "simple"
    by = {"hoodie.index.type": index, f"hoodie.{kind}.index.update.partition.path": str(moves).lower()}
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    table = HudiTable.create(ours, name="rides", record_key="id", partition_by="city", ordering="ts")
    table.bulk_insert(first_rows())
    shutil.copytree(ours, theirs)

    for turn, (by_us, by_hudi) in enumerate([(ours, theirs), (theirs, ours)], 2):
        ours_did = HudiTable.open(by_us).upsert(moving_rows(turn), options=by)
        hudi_102.write(by_hudi, moving_rows(turn), operation="upsert", **FACTS, **by)
        check_alike(hudi_102, ours, theirs)
        assert ours_did.updated > 0
        gone = rows(("k01", "nowhere", 9, 9), ("k02", "nowhere", 9, 9), ("none", "oslo", 9, 9))
        gone = gone.slice(turn - 2, 2)
        result = HudiTable.open(by_us).delete(gone.select(["id"]), options=by)
        assert result.deleted == (2 if turn == 2 else 1)
        hudi_102.write(by_hudi, gone, operation="delete", **FACTS, **by)
        check_alike(hudi_102, ours, theirs)


def check_alike(hudi: ReferenceHudi, ours: Path, theirs: Path) -> None:
    found = shown(HudiTable.open(ours).scan().to_arrow())
    assert len({row[0] for row in found}) == len(found), "a key is there twice"
    assert found == shown(HudiTable.open(theirs).scan().to_arrow())
    assert found == shown(hudi.read(ours)) == shown(hudi.read(theirs))


def test_both_find_keys_by_the_filters_of_the_other(tmp_path: Path, hudi_102: ReferenceHudi) -> None:
    path, by = tmp_path / "rides", {"hoodie.index.type": "BLOOM"}
    HudiTable.create(path, name="rides", record_key="id", partition_by="city", ordering="ts").upsert(first_rows())
    for turn in range(6, 9):
        again = rows(*((row["id"], row["city"], turn, turn) for row in first_rows().to_pylist()))
        hudi_102.write(path, again.slice(turn), operation="upsert", **FACTS, **by)
        result = HudiTable.open(path).upsert(again, options=by)
        assert (result.inserted, result.updated) == (0, 24)
        assert [row[4] for row in shown(hudi_102.read(path))] == [turn] * 24


ENGINES = {
    "fixed": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
    "rings": {
        "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    },
}  # fmt: skip


@pytest.mark.parametrize("begins", ["we", "hudi"])
@pytest.mark.parametrize("version, table_type, engine", [
    (8, "COPY_ON_WRITE", "fixed"), (9, "MERGE_ON_READ", "fixed"), (9, "MERGE_ON_READ", "rings"),
])  # fmt: skip
def test_both_put_a_key_into_the_same_bucket(
    tmp_path: Path,
    hudi_102: ReferenceHudi,
    hudi_120: ReferenceHudi,
    version: int,
    table_type: str,
    engine: str,
    begins: str,
) -> None:
    """In turns, with keys that are stored and new ones, new buckets and new partitions among them; a group a bucket."""
    hudi, by, path = (hudi_102 if version == 8 else hudi_120), ENGINES[engine], tmp_path / "rides"
    facts = {**FACTS, **by, "hoodie.datasource.write.table.type": table_type}
    held: dict[tuple[str, str], tuple[int, int]] = {}
    if begins == "we":
        HudiTable.create(
            path, name="rides", record_key="id", partition_by="city", ordering="ts", table_type=table_type,
            table_version=version, properties=by,
        )  # fmt: skip

    for turn in range(1, 7):
        batch = rows(
            *((f"k{n:02}", ("oslo", "rome")[n % 2], turn, n) for n in range(turn, 2 + 4 * turn)),
            (f"n{turn}", f"city{turn // 2}", turn, 0),
        )
        if (turn % 2 == 1) == (begins == "we"):
            HudiTable.open(path, options=by).upsert(batch)
        else:
            hudi.write(path, batch, operation="upsert", **facts)
        held |= {(row["city"], row["id"]): (row["ts"], row["v"]) for row in batch.to_pylist()}

        found = shown(HudiTable.open(path).scan().to_arrow())
        assert found == sorted((key, city, key, ts, v) for (city, key), (ts, v) in held.items())
        assert found == shown(hudi.read(path))
        groups = live_groups(HudiTable.open(path))
        assert engine == "rings" or len({(city, of[:8]) for city, of in groups}) == len(groups)
        assert all(sum(city == of for of, _ in groups) <= 3 for city, _ in groups)

    gone = rows(*((f"k{n:02}", ("oslo", "rome")[n % 2], 9, n) for n in range(4, 9)))
    HudiTable.open(path, options=by).delete(gone.slice(0, 2).select(["id", "city"]))
    hudi.write(path, gone.slice(2), operation="delete", **facts)
    left = [row for row in found if row[0] not in gone.column("id").to_pylist()]
    assert shown(HudiTable.open(path).scan().to_arrow()) == left == shown(hudi.read(path))


def live_groups(table: HudiTable) -> list[tuple[str, str]]:
    snapshot = table._access.snapshot()
    return [(path, piece.file_id) for path in snapshot.listing.partitions() for piece in snapshot.slices(path)]
