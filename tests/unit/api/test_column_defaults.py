"""The default of a column, say 0, could replace a value that the rules keep: the value would be lost."""

import json
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Unsupported
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.facts.properties_file import read_table_properties, replace_table_properties
from tests.support.model import StepClock, seeded_uuids

MODEL = "org.apache.hudi.common.model."
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("m", pa.int32()), ("s", pa.string())])
DEFAULTS = {"n": (["int", "null"], 0), "s": (["string", "null"], "none")}
MODES = [
    (8, {"hoodie.compaction.payload.class": f"{MODEL}OverwriteNonDefaultsWithLatestAvroPayload"}),
    (9, {"hoodie.compaction.payload.class": f"{MODEL}OverwriteNonDefaultsWithLatestAvroPayload"}),
    (9, {"hoodie.compaction.payload.class": f"{MODEL}PartialUpdateAvroPayload"}),
    (9, {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}),
]


def table_with_defaults(table_type: str, version: int, properties: dict[str, Any]) -> HudiTable:
    """A table as another writer may make it: pyhudi's own columns have no default but null."""
    storage = MemoryStorage()
    HudiTable.create(
        "", name="t", record_key="id", ordering="ts", table_type=table_type, table_version=version, schema=SCHEMA,
        properties=properties, storage=storage, clock=StepClock(), random=seeded_uuids(3),
    )  # fmt: skip
    stored = read_table_properties(storage)
    schema = json.loads(stored["hoodie.table.create.schema"])
    for field in schema["fields"]:
        if field["name"] in DEFAULTS:
            field["type"], field["default"] = DEFAULTS[field["name"]]
    replace_table_properties(storage, {**stored, "hoodie.table.create.schema": json.dumps(schema)}, epoch_ms=0)
    return HudiTable.open("", storage=storage, clock=StepClock(2_000_000_000_000), random=seeded_uuids(4))


def row(ts: int, n: int | None, m: int | None, s: str | None) -> pa.Table:
    return pa.table([["a"], [ts], pa.array([n], pa.int32()), pa.array([m], pa.int32()), [s]], schema=SCHEMA)


def read(table: HudiTable) -> tuple[Any, ...]:
    (found,) = table.scan(columns=["n", "m", "s"]).to_arrow().to_pylist()
    return found["n"], found["m"], found["s"]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version, properties", MODES)
def test_a_default_that_is_not_null_gives_way_and_a_null_beside_it_does_not(
    version: int, properties: dict[str, Any], table_type: str
) -> None:
    table = table_with_defaults(table_type, version, properties)
    table.upsert(row(1, 5, 5, "five"))
    table.upsert(row(2, 0, 0, "none"))
    assert read(table) == (5, 0, "five")
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert read(table) == (5, 0, "five")
    table.upsert(row(3, None, None, None))
    assert read(table) == (None, 0, None)
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert read(table) == (None, 0, None)


def test_rows_of_one_batch_pass_defaults_over_as_records_of_a_log_do() -> None:
    table = table_with_defaults("COPY_ON_WRITE", *MODES[2])
    table.upsert(pa.concat_tables([row(1, 5, 5, "five"), row(2, 0, 0, "none")]))
    assert read(table) == (5, 0, "five")


def test_a_default_is_the_wider_type_s_after_its_column_widened() -> None:
    table = table_with_defaults("MERGE_ON_READ", *MODES[2])
    table.upsert(row(1, 5, 5, "five"))
    table.upsert(row(2, 0, 0, "none").set_column(2, "n", pa.array([0], pa.int64())))
    assert read(table) == (5, 0, "five")
    table.compact()
    assert read(table) == (5, 0, "five")


def test_columns_whose_defaults_count_are_not_altered_since_their_history_would_forget_them() -> None:
    table = table_with_defaults("MERGE_ON_READ", *MODES[2])
    table.upsert(row(1, 5, 5, "five"))
    table.upsert(row(2, 0, 0, "none"))
    with pytest.raises(Unsupported, match="column 'n' has a default, which gives way to older values"):
        table.alter().rename("m", "k").commit()
    assert read(table) == (5, 0, "five")

    wider = table_with_defaults("MERGE_ON_READ", 9, {})  # here no default counts
    wider.upsert(row(1, 5, 5, "five"))
    wider.alter().rename("m", "k").commit()
    assert wider.scan(columns=["k"]).to_arrow()["k"].to_pylist() == [5]
