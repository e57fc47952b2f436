"""An entry that a caller puts into a commit could be taken for one of the table's own, and change what later reads and
writes make of its columns; a damaged entry of the table's own could do so, too, or end in a raw error.

Names that a reader gives meaning to are refused by every call, before anything is written. All others are the caller's.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import CorruptFile, HudiTable, Invalid
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.commits import read_commit

ROWS = pa.table({"k": ["a", "b", "c"], "p": ["x", "y", "x"], "n": pa.array([1, 2, 3], pa.int64())})
OWN = ("schema", "latest_schema", "_hudi_streaming_sink_checkpoint", "_pyhudi_streaming_query", "_pyhudi_anything")
USERS = {
    "deltastreamer.checkpoint.key": "topic,0:7",
    "streamer.checkpoint.key.v2": "7",
    "hoodie.note": "why",
    "_job": "7",
    "Schema": "x",
}
NUMBERED = {"max_column_id": 2, "version_id": 20260101000000000, "type": "record"}
COLUMNS = [
    {"id": 0, "name": "k", "optional": True, "type": "string"},
    {"id": 1, "name": "p", "optional": True, "type": "string"},
    {"id": 2, "name": "n", "optional": True, "type": "long"},
]


def made(**arguments: Any) -> HudiTable:
    storage = MemoryStorage()
    return HudiTable.create(
        storage.location.uri, name="t", record_key="k", storage=storage, executor=SerialExecutor(), **arguments
    )


CALLS: dict[str, Callable[[HudiTable, Mapping[str, str]], object]] = {
    "upsert": lambda t, texts: t.upsert(ROWS, extra_metadata=texts),
    "bulk_insert": lambda t, texts: t.bulk_insert(ROWS, extra_metadata=texts),
    "insert_overwrite_table": lambda t, texts: t.insert_overwrite_table(ROWS, extra_metadata=texts),
    "delete": lambda t, texts: t.delete(ROWS.slice(0, 1), extra_metadata=texts),
    "delete where": lambda t, texts: t.delete(where="n = 1", extra_metadata=texts),
    "update": lambda t, texts: t.update({"n": "n + 1"}, extra_metadata=texts),
    "merge": lambda t, texts: t.merge(ROWS, when_matched_update=True, extra_metadata=texts),
    "delete_partitions": lambda t, texts: t.delete_partitions(["x"], extra_metadata=texts),
    "alter": lambda t, texts: t.alter().add("z", "int64").commit(extra_metadata=texts),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", OWN)
def test_a_name_of_the_tables_own_is_refused(call: str, name: str) -> None:
    table = made(partition_by="p")
    table.upsert(ROWS)
    before = table.timeline()

    with pytest.raises(Invalid, match=f"'{name}' is an entry of the table's own; choose another name"):
        CALLS[call](table, {name: "x"})

    assert table.timeline() == before


@pytest.mark.parametrize("name", ["_hudi_streaming_sink_checkpoint", "_pyhudi_streaming_query"])
def test_an_option_that_goes_into_the_commit_bears_no_such_name(name: str) -> None:
    with pytest.raises(Invalid, match=f"'{name}' is an entry of the table's own"):
        made().upsert(ROWS, options={name: "{}"})


def test_all_other_names_are_the_callers() -> None:
    table = made()

    written = table.upsert(ROWS, extra_metadata=USERS)

    snapshot = table._access.snapshot()
    said = read_commit(snapshot.storage, snapshot.timeline, snapshot.timeline.get_completed(str(written.requested)))
    assert {name: said.extra_metadata[name] for name in USERS} == USERS


@pytest.mark.parametrize(
    "entries, told",
    [
        ({"job": 1}, "expected a text as the value of 'job', found 1"),
        ({1: "job"}, "expected a text as a name, found 1"),
    ],
)
def test_what_is_no_text_is_told_by_its_place(entries: Any, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        made().upsert(ROWS, extra_metadata=entries)


DAMAGED: dict[str, str] = {
    "no JSON": "x",
    "an object without columns": "{}",
    "a list": "[]",
    "a history": json.dumps({"schemas": []}),
    "no columns": json.dumps({**NUMBERED, "fields": []}),
    "columns of another table": json.dumps({**NUMBERED, "fields": [*COLUMNS[:2], {**COLUMNS[2], "name": "other"}]}),
    "without the meta fields": json.dumps({**NUMBERED, "fields": COLUMNS}),
}
USES: dict[str, Callable[[HudiTable], object]] = {
    "scan": lambda t: t.scan().to_arrow(),
    "upsert": lambda t: t.upsert(ROWS),
    "delete": lambda t: t.delete(ROWS.slice(0, 1)),
    "alter": lambda t: t.alter().add("z", "int64").commit(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("text", DAMAGED)
def test_numbers_that_are_none_of_the_tables_columns_are_told(tmp_path: Path, text: str, use: str) -> None:
    """Rows of an upsert lost their record keys: the meta fields had no numbers, and were taken for dropped ones."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="k", table_version=6)  # its commits are JSON
    table.upsert(ROWS)
    table.upsert(ROWS)
    commit = max((tmp_path / "t" / ".hoodie").glob("*.commit"))
    said = json.loads(commit.read_text(encoding="utf-8"))
    said["extraMetadata"]["latest_schema"] = DAMAGED[text]
    commit.write_text(json.dumps(said), encoding="utf-8")
    before = table.timeline()

    with pytest.raises(CorruptFile, match=r"latest_schema of .*commit"):
        USES[use](HudiTable.open(tmp_path / "t"))

    assert [one.requested for one in table.timeline() if one.completed] == [one.requested for one in before]
