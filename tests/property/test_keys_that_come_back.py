"""A key that was deleted in a log and inserted again could live twice: its old base row is still found by its key.

Random deletes, inserts of absent keys and upserts run on merge-on-read tables of every index that looks into base
files, and on a dict.
"""

import random

import pyarrow as pa
import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, StepClock, arrow, read_rows, seeded_uuids
from tests.support.versions import EVERY_VERSION

INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")
DROP = {"hoodie.datasource.insert.dup.policy": "drop"}
NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}


def new_table(index: str, version: int, seed: int) -> Handles:
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(seed), SerialExecutor())
    properties = {"hoodie.index.type": index, **NEW_FILES}
    handles.create(table_type="MERGE_ON_READ", table_version=version, properties=properties)
    return handles


def row(key: str, ts: int) -> Row:
    return Row(key, "oslo" if key < "e" else "rome", ts, ts)


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("index", INDEXES)
def test_a_key_that_comes_back_is_one_row(index: str, version: int) -> None:
    table = new_table(index, version, seed=1).open()
    table.bulk_insert(arrow([row("a", 1), row("b", 1)]))
    table.delete(arrow([row("a", 1)], ["id", "city"]))
    table.insert(arrow([row("a", 2)]))

    table.upsert(arrow([row("a", 3)]))
    assert values(table.scan().to_arrow()) == {"a": 3, "b": 1}

    table.delete(arrow([row("a", 3)], ["id", "city"]))
    table.insert(arrow([row("a", 4)]), options=DROP)  # it is in two base files, and alive in none
    assert values(table.scan().to_arrow()) == {"a": 4, "b": 1}

    table.insert(arrow([row("a", 5)]), options=DROP)
    table.upsert(arrow([row("a", 6)]))
    assert values(table.scan().to_arrow()) == {"a": 6, "b": 1}


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 25))])
@pytest.mark.parametrize("index", INDEXES)
def test_tables_are_a_dict_whatever_comes_back(index: str, seed: int) -> None:
    chance = random.Random(seed)
    table = new_table(index, (6, 8, 9)[seed % 3], seed).open()
    expected: dict[str, int] = {}

    for ts in range(1, 12):
        keys = chance.sample("abcdefgh", k=chance.randint(1, 4))
        rows = [row(key, ts) for key in keys]
        match chance.choice(("upsert", "delete", "insert", "insert", "drop", "compact")):
            case "upsert":
                table.upsert(arrow(rows))
                expected |= dict.fromkeys(keys, ts)
            case "delete" if expected:
                table.delete(arrow(rows, ["id", "city"]))
                expected = {key: of for key, of in expected.items() if key not in keys}
            case "insert":
                absent = [one for one in rows if one.id not in expected]
                table.insert(arrow(absent))
                expected |= {one.id: ts for one in absent}
            case "drop":
                table.insert(arrow(rows), options=DROP)
                expected = dict.fromkeys(keys, ts) | expected
            case "compact" if expected:
                table.compact()
        assert values(table.scan().to_arrow()) == expected


def values(found: pa.Table) -> dict[str, int]:
    """The value of each key; `read_rows` refuses a key that shows twice."""
    return {key: stored.row.v for (_, key), stored in read_rows(found).items()}
