"""A merge-on-read table without meta fields stores no record keys: its logs, indexes and compactions could match rows
by a column that is null in every file, and lose rows or double them.

Random operations run on such tables, and on a dict. The files are looked at: none may hold what meta fields hold.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.schema.conversion import FILE_NAME, META_FIELDS
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import StepClock, seeded_uuids

INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "BUCKET")
FORMATS = ("avro", "parquet", "hfile", None)
SCHEMA = pa.schema(
    [("id", pa.int64()), ("code", pa.string()), ("day", pa.string()), ("ts", pa.int64()), ("note", pa.string())]
)
SEEDS = [1, 6, 11, *(pytest.param(n, marks=pytest.mark.long) for n in range(12, 30))]
OPERATIONS = ("upsert", "upsert", "upsert", "delete", "insert", "update", "compact", "log_compact")

Key = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class Row:
    id: int
    code: str
    day: str
    ts: int
    note: str | None

    @property
    def key(self) -> Key:
        return self.id, self.code, self.day


def arrow(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist([{name: getattr(row, name) for name in SCHEMA.names} for row in rows], SCHEMA)


def new_table(seed: int, storage: MemoryStorage, clock: StepClock) -> HudiTable:
    chance = random.Random(seed)
    index, ordering = INDEXES[seed % 4], chance.choice(["ts", None])
    properties = {
        "hoodie.populate.meta.fields": "false",
        "hoodie.index.type": index,
        "hoodie.compact.inline": "false",
    }
    block_format = FORMATS[seed // 4 % 4]
    if block_format is not None:
        properties["hoodie.logfile.data.block.format"] = block_format
    if index == "BUCKET":
        properties |= {"hoodie.bucket.index.num.buckets": "2"}
    return HudiTable.create(
        "unused", name="t", record_key=chance.choice(["id", ["id", "code"]]), ordering=ordering,
        partition_by=chance.choice(["day", None]), table_type="MERGE_ON_READ", table_version=(6, 8, 9)[seed % 3],
        properties=properties, storage=storage, clock=clock, random=seeded_uuids(seed), executor=SerialExecutor(),
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_without_meta_fields_is_a_dict(seed: int) -> None:
    chance = random.Random(seed * 7)
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    table = new_table(seed, storage, clock)
    by_ordering = bool(table.ordering)
    model: dict[Key, Row] = {}

    for ts in range(1, 16):
        rows = [
            Row(n, f"c{n % 3}", f"d{n % 2}", chance.choice([ts, 5]), chance.choice(["x", "y", None]))
            for n in chance.sample(range(24), 6)
        ]
        match "upsert" if ts == 1 else chance.choice(OPERATIONS):
            case "upsert":
                table.upsert(arrow(rows))
                for row in rows:
                    stored = model.get(row.key)
                    if stored is None or not by_ordering or row.ts >= stored.ts:
                        model[row.key] = row
            case "insert":
                new = [row for row in rows if row.key not in model]
                table.insert(arrow(new))
                model |= {row.key: row for row in new}
            case "delete":
                table.delete(arrow(rows).select(["id", "code", "day"]))
                for row in rows:
                    model.pop(row.key, None)
            case "update":
                table.update(set={"note": "'new'", "ts": "ts + 1"}, where="code = 'c1'")
                model = {
                    key: Row(row.id, row.code, row.day, row.ts + 1, "new") if row.code == "c1" else row
                    for key, row in model.items()
                }
            case "compact":
                table.compact()
            case _:
                if seed % 3:  # version 6 has none
                    table.log_compact()
        assert rows_of(table) == sorted(model.values(), key=str), (seed, ts)

    table.compact()
    assert rows_of(table, "read_optimized") == sorted(model.values(), key=str)
    sought = list(model.values())[:3]
    if sought:
        assert rows_in(table.lookup(arrow(sought))) == sorted(sought, key=str)
    assert_no_meta(storage)


def rows_of(table: HudiTable, query: str = "snapshot") -> list[Row]:
    return rows_in(table.scan(query=query).to_arrow())


def rows_in(found: pa.Table) -> list[Row]:
    assert not set(META_FIELDS) & set(found.column_names)
    return sorted((Row(**row) for row in found.to_pylist()), key=str)


def assert_no_meta(storage: MemoryStorage) -> None:
    """Every file has the meta fields, and nothing in them but the name of a base file."""
    seen = set()
    for info in storage.list("", recursive=True):
        name = info.path.rpartition("/")[2]
        if info.path.startswith(".hoodie/"):
            continue
        if BaseFileName.parse(name):
            with storage.open_input(info.path) as file:
                found = pq.read_table(file)
            seen.add("base")
        elif LogFileName.parse(name):
            blocks = [b for b in read_blocks(storage.get(info.path), path=info.path) if b.type is not BlockType.DELETE]
            tables = [pa.Table.from_batches(read_batches(block)) for block in blocks]
            if not tables:
                continue
            found = pa.concat_tables(tables, promote_options="default")
            seen.add("log")
        else:
            continue
        for meta in META_FIELDS:
            values = set(found.column(meta).to_pylist())
            assert values <= ({None, name} if meta == FILE_NAME else {None}), (info.path, meta)
    assert seen
