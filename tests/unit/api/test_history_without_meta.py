"""Stored rows could lose their record keys where the history of columns names no meta fields.

Apache Hudi makes such a history for a table with `hoodie.populate.meta.fields=false`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.format.timeline.action_files import decode_commit, encode_commit_avro, encode_commit_json
from pyhudi.storage.memory import MemoryStorage

ROWS = pa.table({"id": ["a", "b"], "ts": [1, 1], "x": [1, 2], "y": [1, 2]})


def renamed(version: int, more: Mapping[str, str] = MappingProxyType({}), **facts: Any) -> HudiTable:
    """A table of two rows whose column x became z, with a history that names no meta fields."""
    storage = MemoryStorage()
    properties = {"hoodie.populate.meta.fields": "false", "hoodie.metadata.enable": "false", **more}
    table = HudiTable.create(
        "", storage=storage, name="t", record_key="id", schema=ROWS.schema, table_version=version,
        properties=properties, **facts,
    )  # fmt: skip
    table.upsert(ROWS)
    table.alter().rename("x", "z").commit()

    for path in [file.path for file in storage.list("", recursive=True)]:
        if path.endswith(".schemacommit"):
            history = json.loads(storage.get(path))
            storage.put(path, json.dumps({"schemas": list(map(_without_meta, history["schemas"]))}).encode())
        elif path.endswith("commit"):
            commit = decode_commit(storage.get(path), path=path)
            if "latest_schema" in commit.extra_metadata:
                latest = json.dumps(_without_meta(json.loads(commit.extra_metadata["latest_schema"])))
                encode = encode_commit_avro if version >= 8 else encode_commit_json
                changed = replace(commit, extra_metadata={**commit.extra_metadata, "latest_schema": latest})
                storage.put(path, encode(changed))
    return HudiTable.open("", storage=storage)


def _without_meta(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "fields": [one for one in schema["fields"] if not one["name"].startswith("_hoodie_")]}


def found(table: HudiTable) -> list[tuple[Any, ...]]:
    rows = table.scan(columns=["id", "ts", "z", "y"]).to_arrow().sort_by("id").to_pylist()
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("facts", [{}, {"ordering": "ts"}, {"ordering": "ts", "table_type": "MERGE_ON_READ"}])
@pytest.mark.parametrize("version", [6, 9])
def test_rows_are_inserted_changed_and_deleted_by_their_keys(version: int, facts: dict[str, Any]) -> None:
    table = renamed(version, **facts)
    table.upsert(pa.table({"id": ["c"], "ts": [2], "z": [3], "y": [3]}))
    assert found(table) == [("a", 1, 1, 1), ("b", 1, 2, 2), ("c", 2, 3, 3)]
    table.upsert(pa.table({"id": ["a"], "ts": [2], "z": [4], "y": [4]}))
    assert found(table) == [("a", 2, 4, 4), ("b", 1, 2, 2), ("c", 2, 3, 3)]
    table.delete(pa.table({"id": ["b"]}))
    assert found(table) == [("a", 2, 4, 4), ("c", 2, 3, 3)]


def test_rows_that_are_made_of_two_meet_by_their_keys() -> None:
    fills = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}
    table = renamed(9, fills, ordering="ts")
    table.upsert(pa.table({"id": ["a"], "ts": [2], "z": [9], "y": pa.array([None], pa.int64())}))
    assert found(table) == [("a", 2, 9, 1), ("b", 1, 2, 2)]
