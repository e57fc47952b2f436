"""A stream could be taken for what it is not: batches of other columns than it declares, or an error for its end.

Streams that break their word, or fail, are handed to every call that takes one; the table must stay as it was.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import CorruptFile, Invalid

DECLARED = pa.schema([("id", pa.string()), ("name", pa.string()), ("number", pa.int64())])
GOOD = pa.record_batch([["a"], ["b"], [1]], schema=DECLARED)


def stream(*parts: pa.RecordBatch | BaseException) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            if isinstance(part, BaseException):
                raise part
            yield part

    return pa.RecordBatchReader.from_batches(DECLARED, batches())


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    made.bulk_insert(pa.Table.from_batches([GOOD]))
    return made


@pytest.mark.parametrize(
    "other, shown",
    [
        (pa.record_batch({"id": ["c"], "name": ["d"], "number": [2.5]}), "number: double"),
        (pa.record_batch({"name": ["NAME"], "id": ["ID"], "number": [3]}), r"\(name: string, id: string"),
        (pa.record_batch({"id": ["x"], "else": ["y"], "number": [3]}), "else: string"),
        (pa.record_batch({"id": ["x"], "number": [3]}), r"\(id: string, number: int64\)"),
        (pa.record_batch({"id": ["x"], "name": pa.nulls(1), "number": [3]}), "name: null"),
    ],
    ids=["type", "order", "name", "count", "null"],
)
@pytest.mark.parametrize("operation", ["bulk_insert", "upsert", "delete", "insert_overwrite"])
def test_a_batch_of_other_columns_than_declared_is_refused(
    table: HudiTable, other: pa.RecordBatch, shown: str, operation: str
) -> None:
    with pytest.raises(Invalid, match=rf"batch 2: expected the columns .*id: string, name: string.* found .*{shown}"):
        getattr(table, operation)(stream(GOOD, other))

    assert len(table.timeline()) == 1


def test_a_batch_that_a_table_keeps_in_the_same_types_is_taken_for_what_it_says(table: HudiTable) -> None:
    large = pa.record_batch({"id": pa.array(["c"], pa.large_string()), "name": ["d"], "number": [2]})
    coded = pa.record_batch({"id": ["e"], "name": pa.array(["f"]).dictionary_encode(), "number": [3]})

    table.upsert(stream(GOOD, large, coded))

    rows = table.scan(["id", "name", "number"]).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [("a", "b", 1), ("c", "d", 2), ("e", "f", 3)]


@pytest.mark.parametrize("error", [KeyError("k"), OSError(5, "gone"), MemoryError(), pa.ArrowInvalid("broken")])
def test_the_error_of_a_stream_is_the_cause(table: HudiTable, error: Exception) -> None:
    with pytest.raises(Invalid, match=rf"could not be read to its end, .*: {type(error).__name__}: ") as raised:
        table.upsert(stream(GOOD, error))

    assert raised.value.__cause__ is error
    assert len(table.timeline()) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), CorruptFile("f", 4, expected="x", found="y")])
def test_an_interrupt_and_an_error_of_another_table_pass_as_they_are(table: HudiTable, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        table.upsert(stream(GOOD, error))

    assert raised.value is error
    assert len(table.timeline()) == 1


def test_keys_to_look_up_come_from_streams_under_the_same_rules(table: HudiTable) -> None:
    other = pa.record_batch({"name": ["a"], "id": ["b"], "number": [1]})
    with pytest.raises(Invalid, match="batch 2: expected the columns"):
        table.lookup(stream(GOOD, other))
    with pytest.raises(Invalid, match="could not be read to its end"):
        table.lookup(stream(GOOD, ValueError("gone")))
