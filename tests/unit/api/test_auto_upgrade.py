"""A write could change its table's version though nobody asked for it, or not though somebody did."""

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.storage.memory import MemoryStorage

ROWS = pa.table({"id": ["a"], "ts": [1]})
AUTO = {"hoodie.write.auto.upgrade": "true"}


def made(version: int) -> HudiTable:
    storage = MemoryStorage()
    table = HudiTable.create(
        storage.location.uri, name="t", record_key="id", ordering="ts", table_version=version, storage=storage,
        properties={"hoodie.metadata.enable": "false", **AUTO},
    )  # fmt: skip
    table.upsert(ROWS)
    return table


def test_a_write_that_asks_for_it_upgrades_first() -> None:
    table = made(5)
    assert table.table_version == 5, "what the table itself says does not count"
    table.upsert(ROWS, options={**AUTO, "hoodie.write.table.version": 6})
    assert (table.table_version, table.scan().count()) == (6, 1)
    table.delete(ROWS, options={**AUTO, "hoodie.write.table.version": 6})
    assert table.table_version == 6
    table.insert(ROWS, options=AUTO)
    assert (table.table_version, table.scan().count()) == (9, 1)


def test_a_write_that_does_not_ask_keeps_the_version() -> None:
    table = made(6)
    table.upsert(ROWS, options={"hoodie.write.auto.upgrade": "false"})
    with pytest.raises(Unsupported, match=r"or write with hoodie\.write\.auto\.upgrade=true"):
        table.upsert(ROWS, options={"hoodie.write.table.version": 8})
    with pytest.raises(Unsupported, match="has version 6, and a write does not change it"):
        table.upsert(ROWS, options={**AUTO, "hoodie.write.table.version": 5})
    with pytest.raises(Invalid, match="expected one of the numbers"):
        table.upsert(ROWS, options={**AUTO, "hoodie.write.table.version": 99})
    assert table.table_version == 6


def test_the_handle_may_ask_too() -> None:
    table = made(8)
    other = HudiTable.open("unused", storage=table._access.storage, options={**AUTO, "hoodie.write.table.version": "9"})
    other.upsert(ROWS)
    assert other.table_version == 9
