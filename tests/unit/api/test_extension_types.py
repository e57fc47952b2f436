"""A column of an Arrow extension type could be stored as the values beneath it, which mean something else or nothing.

Example: a pandas Period of January 2020 is the number 600 with its unit beside it; the number alone is no month. Such
types are refused by name. Those whose values beneath mean the same are stored as these.
"""

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage

UUID = bytes(range(16))


def a_table(**arguments: Any) -> HudiTable:
    storage = MemoryStorage()
    given = {"name": "t", "record_key": "k", "storage": storage, "executor": SerialExecutor(), **arguments}
    return HudiTable.create(storage.location.uri, **given)


def of(kind: pa.DataType, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storage)


class Money(pa.ExtensionType):  # type: ignore[misc]
    """A type of a user's own: cents."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "test.money")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> "Money":
        return cls()


def period() -> pa.Array:
    pd = pytest.importorskip("pandas")
    return pa.array(pd.PeriodIndex(["2020-01"], freq="M"))


def interval() -> pa.Array:
    pd = pytest.importorskip("pandas")
    return pa.array(pd.arrays.IntervalArray.from_breaks([0, 1]))


def tensor() -> pa.Array:
    return of(pa.fixed_shape_tensor(pa.float32(), [2, 2]), pa.array([[1.0, 2.0, 3.0, 4.0]], pa.list_(pa.float32(), 4)))


REFUSED = {
    "a pandas Period": (period, "cast it to text or a timestamp"),
    "a pandas Interval": (interval, "cast it to struct<left: int64, right: int64>"),
    "a tensor": (tensor, r"cast it to fixed_size_list<item: float>\[4\]"),
    "an opaque type": (lambda: of(pa.opaque(pa.int64(), "point", "db"), pa.array([1])), "cast it to int64"),
    "a type of the user's own": (lambda: of(Money(), pa.array([1])), "cast it to int64"),
}


@pytest.mark.parametrize("given", REFUSED)
@pytest.mark.parametrize("nested", [False, True])
def test_a_type_whose_meaning_a_table_cannot_keep_is_refused(given: str, nested: bool) -> None:
    make, told = REFUSED[given]
    column = make()
    column = pa.StructArray.from_arrays([column], ["x"]) if nested else column
    table = a_table()

    with pytest.raises(
        Invalid, match=f"column 'c{'.x' if nested else ''}' of type .*: no such type in a table; {told}"
    ):
        table.upsert(pa.table({"k": ["a"], "c": column}))
    with pytest.raises(Invalid, match="no such type in a table"):
        a_table(schema=pa.schema([("k", pa.string()), ("c", column.type)]))
    assert table.timeline() == ()


def test_a_period_is_neither_key_nor_partition() -> None:
    rows = pa.table({"k": ["a"], "c": period()})
    for arguments in ({"record_key": "c"}, {"partition_by": "c"}):
        with pytest.raises(Invalid, match="cast it to text or a timestamp"):
            a_table(**arguments).upsert(rows)


def test_rows_of_a_merge_and_keys_of_a_delete_have_no_such_type() -> None:
    table = a_table()
    table.upsert(pa.table({"k": ["a"], "c": [1]}))
    rows = pa.table({"k": ["a"], "c": period()})

    with pytest.raises(Invalid, match="cast it to text or a timestamp"):
        table.merge(rows, when_matched_update=True)
    with pytest.raises(Invalid, match="cast it to text or a timestamp"):
        table.lookup(rows.select(["c"]).rename_columns(["k"]))
    with pytest.raises(Invalid, match="cast it to text or a timestamp"):
        table.delete(rows.select(["c"]).rename_columns(["k"]))


def test_an_alteration_adds_no_such_column() -> None:
    table = a_table()
    table.upsert(pa.table({"k": ["a"]}))
    with pytest.raises(Invalid, match="'c' of type"):
        table.alter().add("c", Money()).commit()


KEPT: dict[str, tuple[pa.Array, pa.DataType, list[Any]]] = {
    "booleans of eight bits": (
        of(pa.bool8(), pa.array([1, 0, None, -7], pa.int8())), pa.bool_(), [True, False, None, True]
    ),
    "a dictionary of them": (
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), of(pa.bool8(), pa.array([0, 1], pa.int8()))),
        pa.bool_(), [True, False, None, True],
    ),
    "JSON in large texts": (
        of(pa.json_(pa.large_string()), pa.array(["{}"] * 4, pa.large_string())), pa.string(), ["{}"] * 4
    ),
    "JSON": (of(pa.json_(), pa.array(["{}", "[]", None, "1"])), pa.string(), ["{}", "[]", None, "1"]),
    "UUIDs": (of(pa.uuid(), pa.array([UUID, None, UUID, UUID], pa.binary(16))), pa.binary(), [UUID, None, UUID, UUID]),
}  # fmt: skip


@pytest.mark.parametrize("given", KEPT)
@pytest.mark.parametrize("nested", [False, True])
def test_a_type_whose_values_beneath_mean_the_same_is_stored_as_these(given: str, nested: bool) -> None:
    column, kind, expected = KEPT[given]
    table = a_table()
    shown = [{"x": one} for one in expected] if nested else expected

    table.upsert(pa.table({"k": list("abcd"), "c": pa.StructArray.from_arrays([column], ["x"]) if nested else column}))

    rows = table.scan(["k", "c"]).to_arrow().sort_by("k")
    assert rows["c"].type == (pa.struct([("x", kind)]) if nested else kind)
    assert rows["c"].to_pylist() == shown
