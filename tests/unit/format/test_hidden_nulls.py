"""A null struct with a never-null field could end a write with an error of Parquet's, or come back as another value."""

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.format.hidden_nulls import without_hidden_nulls
from pyhudi.storage.memory import MemoryStorage

LOOSE = pa.struct([("x", pa.int64()), ("s", pa.struct([("t", pa.string())])), ("l", pa.list_(pa.int32()))])
NEVER_NULL = pa.struct(
    [
        pa.field("x", pa.int64(), nullable=False),
        pa.field("s", pa.struct([pa.field("t", pa.string(), nullable=False)]), nullable=False),
        pa.field("l", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
    ]
)
VALUES = [{"x": 1, "s": {"t": "a"}, "l": [1]}, None, {"x": 2, "s": {"t": "b"}, "l": []}, None]


def structs(kind: pa.StructType) -> pa.Array:
    """As DuckDB, Polars and casts give them: the fields of a null struct are null."""
    mask = pa.array([one is None for one in VALUES])
    numbers, texts, lists = pa.array(VALUES, LOOSE).flatten()
    inner = pa.StructArray.from_arrays(texts.flatten(), fields=list(kind.field("s").type), mask=mask)
    lists = pa.ListArray.from_arrays(lists.offsets, lists.values, type=kind.field("l").type, mask=mask)
    return pa.StructArray.from_arrays([numbers, inner, lists], fields=list(kind), mask=mask)


def in_lists(rows: pa.Array) -> pa.Array:
    kind, mask = pa.list_(pa.field("element", rows.type)), pa.array([False, False, False, True])
    return pa.ListArray.from_arrays(pa.array([0, 2, 2, 3, 4], pa.int32()), rows, type=kind, mask=mask)


def in_maps(rows: pa.Array) -> pa.Array:
    kind, mask = pa.map_(pa.string(), rows.type), pa.array([False, False, True, False])
    return pa.MapArray.from_arrays(pa.array([0, 1, 1, 3, 4], pa.int32()), pa.array(list("abcd")), rows, kind, mask=mask)


def in_structs(rows: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([rows], names=["of"], mask=pa.array([False, False, True, False]))


SHAPES: dict[str, Callable[[pa.Array], pa.Array]] = {
    "struct": lambda rows: rows,
    "list": in_lists,
    "map": in_maps,
    "within a struct": in_structs,
}


@pytest.mark.parametrize("part", [slice(None), slice(1, None), slice(1, 3), slice(0, 0)], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_the_same_and_parquet_takes_them(shape: str, part: slice) -> None:
    rows = pa.table({"c": SHAPES[shape](structs(NEVER_NULL))[part]})

    shown = without_hidden_nulls(rows)

    shown.validate(full=True)
    assert shown.schema == rows.schema
    assert shown.to_pylist() == rows.to_pylist()
    file = io.BytesIO()
    pq.write_table(shown, file)
    assert pq.read_table(file).to_pylist() == rows.to_pylist()


def test_a_null_that_is_read_stays() -> None:
    broken = pa.StructArray.from_arrays([pa.array([1, None])], fields=[pa.field("x", pa.int64(), nullable=False)])
    assert without_hidden_nulls(pa.table({"c": broken}))["c"].to_pylist() == [{"x": 1}, {"x": None}]


def test_columns_without_never_null_fields_are_not_copied() -> None:
    rows = pa.table({"c": structs(LOOSE), "m": pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int32()))})
    assert without_hidden_nulls(rows) is rows


@pytest.mark.parametrize("base_file", ["PARQUET", "ORC"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_way_to_write_takes_them(shape: str, table_type: str, base_file: str) -> None:
    around = SHAPES[shape]
    kind = around(structs(NEVER_NULL)).type
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("c", kind)])
    table = HudiTable.create(
        "", name="t", record_key="id", schema=schema, table_type=table_type, storage=MemoryStorage(),
        properties={"hoodie.table.base.file.format": base_file},
    )  # fmt: skip
    rows = pa.table({"id": list("pqrs"), "c": around(structs(LOOSE))})
    expected = dict(zip(rows["id"].to_pylist(), rows["c"].to_pylist(), strict=True))

    def stored() -> dict[str, object]:
        return {row["id"]: row["c"] for row in table.scan(["id", "c"]).to_arrow().to_pylist()}

    table.bulk_insert(rows)
    assert stored() == expected
    table.upsert(rows)
    assert stored() == expected
    table.update({"c": None}, where="id = 'p'")
    assert stored() == {**expected, "p": None}
    table.merge(rows, when_matched_update=True)
    assert stored() == expected
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert stored() == expected
