"""A service on a table without a commit could leave something behind that no later write can stand upon.

Each call runs on an empty table of each version and type, with and without a schema; then come writes, the call again,
and a look at the rows. What such a call may do on an empty table is to refuse; it may not change what comes after it.
"""

from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import HudiError, NotFound
from pyhudi.storage.memory import MemoryStorage

ROWS = pa.table({"k": ["a", "b"], "p": ["x", "y"], "t": [1, 1], "v": [1, 2]})
NO_ROWS = ROWS.slice(0, 0)
NO_INSTANT = "20260101000000000"

CALLS: dict[str, Callable[[HudiTable], object]] = {
    "compact": lambda table: table.compact(),
    "schedule_compaction": lambda table: table.schedule_compaction(),
    "log_compact": lambda table: table.log_compact(),
    "clean": lambda table: table.clean(),
    "archive": lambda table: table.archive(),
    "savepoint": lambda table: table.savepoint(),
    "restore": lambda table: table.restore(NO_INSTANT),
    "rollback": lambda table: table.rollback(NO_INSTANT),
    "build record_index": lambda table: table.build_index("record_index"),
    "build column_stats": lambda table: table.build_index("column_stats"),
    "build secondary_index": lambda table: table.build_index("secondary_index", columns=["v"]),
    "schedule_index": lambda table: table.schedule_index("bloom_filters"),
    "drop_index": lambda table: table.drop_index("column_stats"),
    "metadata create": lambda table: table.metadata.create(),
    "metadata update": lambda table: table.metadata.update(),
    "metadata validate": lambda table: table.metadata.validate(),
    "metadata delete": lambda table: table.metadata.delete(),
    "empty upsert": lambda table: table.upsert(NO_ROWS),
    "delete": lambda table: table.delete(ROWS.select(["k", "p"])),
    "empty overwrite": lambda table: table.insert_overwrite_table(NO_ROWS),
    "delete_partitions": lambda table: table.delete_partitions([]),
}


TABLES = [
    *((version, table_type, None) for version in (6, 8, 9) for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")),
    (6, "MERGE_ON_READ", ROWS.schema),
    (9, "COPY_ON_WRITE", ROWS.schema),
]


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in CALLS.items()])
@pytest.mark.parametrize("version, table_type, schema", TABLES)
def test_every_call_on_an_empty_table_leaves_one_that_is_written(
    version: int, table_type: str, schema: pa.Schema | None, call: Callable[[HudiTable], object]
) -> None:
    storage = MemoryStorage()
    table = HudiTable.create(
        storage.location.uri, name="empty", record_key="k", partition_by="p", ordering="t", schema=schema,
        table_type=table_type, table_version=version, storage=storage, executor=SerialExecutor(),
    )  # fmt: skip
    with suppress(HudiError):
        call(table)

    table.upsert(ROWS)
    with suppress(HudiError):
        call(table)
    table.upsert(ROWS.set_column(3, "v", pa.array([3, 4])))

    found = table.scan(columns=["k", "v"]).to_arrow().sort_by("k").to_pylist()
    assert found == [{"k": "a", "v": 3}, {"k": "b", "v": 4}]


def test_what_makes_a_metadata_table_is_told_where_there_is_none_yet() -> None:
    storage = MemoryStorage()
    table = HudiTable.create(storage.location.uri, name="t", record_key="k", schema=ROWS.schema, storage=storage)
    with pytest.raises(NotFound, match=r"its next write makes one .* and so does metadata\.create\(\)"):
        table.metadata.validate()
    table.metadata.create()
    assert table.metadata.validate().is_valid


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_without_columns_counts_no_rows(version: int) -> None:
    properties = {"hoodie.populate.meta.fields": "false"}
    table = HudiTable.create(
        "", name="t", record_key="k", table_version=version, storage=MemoryStorage(), properties=properties
    )
    assert table.scan().count() == 0
