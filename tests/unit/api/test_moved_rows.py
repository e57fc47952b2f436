"""A change that gives a row another partition could leave the old row, lose the new one, or double its key."""

import random
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, When
from pyhudi.storage.memory import MemoryStorage

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])
CITIES = ["oslo", "rome", "bonn"]
RECORD_INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.record.index.update.partition.path": "true",
}
SIMPLE, BLOOM = {"hoodie.index.type": "GLOBAL_SIMPLE"}, {"hoodie.index.type": "GLOBAL_BLOOM"}
MOVING = [
    ("COPY_ON_WRITE", 6, SIMPLE), ("COPY_ON_WRITE", 8, BLOOM), ("COPY_ON_WRITE", 9, RECORD_INDEX),
    ("MERGE_ON_READ", 6, SIMPLE), ("MERGE_ON_READ", 6, RECORD_INDEX), ("MERGE_ON_READ", 8, SIMPLE),
    ("MERGE_ON_READ", 9, BLOOM), ("MERGE_ON_READ", 9, RECORD_INDEX),
]  # fmt: skip
STAYING: list[tuple[dict[str, str], str]] = [
    ({"hoodie.index.type": "SIMPLE"}, "GLOBAL_SIMPLE"),
    ({"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}, "GLOBAL_SIMPLE"),
    (
        {**RECORD_INDEX, "hoodie.record.index.update.partition.path": "false"},
        "hoodie.record.index.update.partition.path=true",
    ),
]
Rows = dict[str, tuple[str, int, int]]


def make(kind: str, version: int, options: dict[str, str]) -> HudiTable:
    storage = MemoryStorage()
    HudiTable.create(
        "unused", name="t", record_key="id", partition_by="city", ordering="ts", table_type=kind,
        table_version=version, schema=SCHEMA, storage=storage,
    )  # fmt: skip
    return HudiTable.open("unused", storage=storage, options=options)


def rows_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, (key, *row), strict=True)) for key, row in rows.items()], SCHEMA
    )


def read(table: HudiTable) -> Rows:
    found = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    assert all(row["_hoodie_partition_path"] == row["city"] for row in found)
    return {row["id"]: (row["city"], row["ts"], row["n"]) for row in found}


@pytest.mark.parametrize("kind,version,options", MOVING)
def test_random_moves_are_as_a_dict_says(kind: str, version: int, options: dict[str, str]) -> None:
    draw = random.Random(version)
    table = make(kind, version, options)
    model: Rows = {f"k{n}": (draw.choice(CITIES), 0, n) for n in range(20)}
    table.upsert(rows_of(model))

    for turn in range(1, 4):
        old, new = draw.sample(CITIES, 2)
        table.update({"city": f"'{new}'", "ts": f"{turn}"}, where=f"city = '{old}' AND n % 3 = {turn % 3}")
        for key, (city, _, n) in list(model.items()):
            if city == old and n % 3 == turn % 3:
                model[key] = (new, turn, n)
        assert read(table) == model, turn

        given = {key: (draw.choice(CITIES), turn, draw.randrange(30)) for key in draw.sample([*model, "x", "y"], 8)}
        table.merge(
            rows_of(given), ["id"], when_matched_update=When("source.n > 5", None), when_matched_delete="source.n <= 5",
            when_not_matched_insert=True,
        )  # fmt: skip
        for key, row in given.items():
            if key in model and row[2] <= 5:
                del model[key]
            else:
                model[key] = row
        assert read(table) == model, turn

    table.metadata.validate()
    assert {key: row for key, row in model.items() if row[0] == "rome"} == {
        row["id"]: (row["city"], row["ts"], row["n"])
        for row in table.scan(where="city = 'rome'", meta_fields=False).to_arrow().to_pylist()
    }


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("options,way_out", STAYING, ids=["by partition", "rows stay", "record index"])
def test_partition_columns_stay_where_the_write_moves_no_row(kind: str, options: dict[str, str], way_out: str) -> None:
    table = make(kind, 9, options)
    stored: Rows = {"a": ("oslo", 0, 1), "b": ("rome", 0, 2)}
    table.upsert(rows_of(stored))

    changes: list[Any] = [
        lambda: table.update({"city": "'rome'"}, where="n = 1"),
        lambda: table.merge(rows_of({"a": ("rome", 1, 5)}), ["id"], when_matched_update=True),
    ]
    for change in changes:
        with pytest.raises(Invalid, match="column 'city'") as error:
            change()
        assert way_out in str(error.value)
    assert read(table) == stored


def test_key_columns_stay_whatever_the_index_is() -> None:
    table = make("COPY_ON_WRITE", 9, SIMPLE)
    table.upsert(rows_of({"a": ("oslo", 0, 1)}))

    with pytest.raises(Invalid, match="column 'id' is a record key column"):
        table.update({"id": "'b'"})
