"""Every Arrow type in every operation: the rows come back as they went in, or a `HudiError` says what to do."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable, Invalid
from pyhudi.storage.memory import MemoryStorage

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678_901)


def _runs(values: pa.Array, ends: list[int]) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), values)


def _typed(values: list[Any], *kinds: pa.DataType) -> dict[str, pa.Array]:
    return {str(kind): pa.array(values, kind) for kind in kinds}


TEXTS = ["b", "a", None]
WORDS = pa.array(["b", "a"], pa.string_view())

KEPT: dict[str, pa.Array] = {
    **_typed([2, 1, None], pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
    **_typed([2.5, 1.0, None], pa.float32(), pa.float64()),
    **_typed([True, False, None], pa.bool_()),
    **_typed(TEXTS, pa.string(), pa.large_string(), pa.string_view()),
    **_typed([b"b", b"a", None], pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)),
    **_typed([Decimal("2.50"), Decimal("1.00"), None], pa.decimal32(5, 2), pa.decimal64(9, 2)),
    **_typed([Decimal("2.50"), Decimal("1.00"), None], pa.decimal128(20, 2), pa.decimal256(30, 2)),
    **_typed([date(2026, 1, 2), date(1969, 1, 1), None], pa.date32(), pa.date64()),
    **_typed([WHEN, WHEN - timedelta(days=30_000), None], pa.timestamp("us"), pa.timestamp("ns")),
    **_typed([WHEN.replace(microsecond=0), datetime(1960, 1, 1), None], pa.timestamp("s"), pa.timestamp("ms")),
    "zoned": pa.array([WHEN.replace(tzinfo=UTC), None, WHEN.replace(tzinfo=UTC)], pa.timestamp("ns", "Europe/Oslo")),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.uint32()), pa.array(["b", "a"])),
    "dictionary of views": pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.uint32()), WORDS),
    "dictionary with a null": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), pa.array(["b", None])),
    "runs of text": _runs(pa.array(["b", None]), [1, 3]),
    "runs of views": _runs(WORDS, [2, 3]),
    "runs, cut": _runs(pa.array([7, 8, 9]), [2, 4, 6]).slice(1, 3),
    "lists": pa.array([[2, None], [], None], pa.list_(pa.int32())),
    "lists, cut": pa.array([[9], [2, 1], [], None], pa.list_(pa.int64())).slice(1),
    "large lists of views": pa.array([["b"], [], None], pa.large_list(pa.string_view())),
    "fixed lists": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int16(), 2)),
    "list views": pa.array([[1, 2], [], None], pa.list_view(pa.int64())),
    "lists of dictionaries": pa.ListArray.from_arrays([0, 2, 2, 3], pa.array(["b", "a", "b"]).dictionary_encode()),
    "structs": pa.array([{"x": 1, "y": "b"}, {}, None], pa.struct([("x", pa.int8()), ("y", pa.large_string())])),
    "structs of nanoseconds": pa.array([{"t": WHEN}, {"t": None}, None], pa.struct([("t", pa.timestamp("ns"))])),
    "maps": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    "maps of views": pa.array([[("k", "b")], [], None], pa.map_(pa.string_view(), pa.string_view())),
}  # fmt: skip

REFUSED: dict[str, pa.Array] = {
    **_typed([None, None, None], pa.null(), pa.list_(pa.null())),
    **_typed([2, 1, None], pa.uint64(), pa.duration("us")),
    **_typed([2.5, 1.0, None], pa.float16()),
    **_typed([time(1, 2, 3), time(0), None], pa.time32("s"), pa.time64("us")),
    "a nanosecond": pa.array([1, 2, None], pa.timestamp("ns")),
    "a nanosecond in lists": pa.array([[1], [], None], pa.list_(pa.timestamp("ns"))),
    "too far": pa.array([2**62, 1, None], pa.timestamp("s")),
    "too long": pa.array([Decimal(1), None, None], pa.decimal256(50, 2)),
    "keys of no text": pa.array([[(1, 1)], [], None], pa.map_(pa.int32(), pa.int32())),
    "nothing": pa.array([{}, {}, None], pa.struct([])),
    "union": pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])]),
    "names alike": pa.array([{"x": 1, "X": 2}, None, None], pa.struct([("x", pa.int8()), ("X", pa.int8())])),
}


def _rows(values: pa.Array, role: str) -> pa.Table:
    ids = pa.array(["k0", "k1", "k2"])
    return pa.table({"id": ids, "v": values}) if role == "value" else pa.table({"id": ids, "v": values}).slice(0, 2)


def _create(role: str, table_type: str, **more: Any) -> HudiTable:
    columns = {"key": {"record_key": "v"}, "partition": {"record_key": "id", "partition_by": "v"}}
    given = {"record_key": "id", **columns.get(role, {}), **more}
    if role == "ordering":
        given["ordering"] = "v"
    return HudiTable.create("memory://t", name="t", table_type=table_type, storage=MemoryStorage(), **given)


@pytest.mark.parametrize("unit, number, advice", [("ms", 1 << 62, "a nearer time"), ("ns", 1, "round them")])
def test_the_advice_for_times_that_do_not_fit_keeps_them_true(unit: str, number: int, advice: str) -> None:
    """A time that is too far for 64 bits of microseconds would become another one by a cast that is not safe."""
    with pytest.raises(Invalid, match=advice):
        _create("value", "MERGE_ON_READ").upsert(_rows(pa.array([number, None, None], pa.timestamp(unit)), "value"))


@pytest.mark.parametrize("kind", KEPT)
def test_every_type_comes_back(kind: str) -> None:
    rows = _rows(KEPT[kind], "value")
    table = _create("value", "MERGE_ON_READ")
    table.upsert(rows.slice(0, 2))  # to a base file

    table.upsert(rows)  # to its log
    table.insert(rows.slice(0, 0))
    found = table.scan().to_arrow().select(["id", "v"]).sort_by("id").to_pylist()

    assert found == _plain(rows).to_pylist()


def _plain(rows: pa.Table) -> pa.Table:
    """The rows as Python sees them, whole days and microseconds."""
    kind = rows.schema.field("v").type
    if pa.types.is_timestamp(kind):
        return rows.set_column(1, "v", rows.column("v").cast(pa.timestamp("us", kind.tz and "UTC")))
    if kind == pa.struct([("t", pa.timestamp("ns"))]):
        return rows.set_column(1, "v", rows.column("v").cast(pa.struct([("t", pa.timestamp("us"))])))
    return rows


CALLS: tuple[Callable[[HudiTable, pa.Table], object], ...] = (
    lambda table, rows: table.upsert(rows),
    lambda table, rows: table.upsert(rows),
    lambda table, rows: table.lookup(rows),
    lambda table, rows: table.delete(rows),
    lambda table, rows: table.scan().to_arrow(),
)


@pytest.mark.parametrize("role", ["key", "partition", "ordering"])
@pytest.mark.parametrize("kind", KEPT)
def test_each_role_takes_a_type_or_says_why_not(kind: str, role: str) -> None:
    table = _create(role, "MERGE_ON_READ" if role == "ordering" else "COPY_ON_WRITE")
    for call in CALLS:
        with suppress(HudiError):
            call(table, _rows(KEPT[kind], role))


@pytest.mark.parametrize("kind", REFUSED)
def test_a_type_without_a_place_is_refused_with_a_hint(kind: str) -> None:
    table = _create("value", "COPY_ON_WRITE")

    with pytest.raises(Invalid, match=r"cast|round|rename|leave it out"):
        table.upsert(_rows(REFUSED[kind], "value"))

    assert table.scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("kind", [pa.int64(), pa.list_(pa.string()), pa.struct([("x", pa.int8())])], ids=str)
def test_a_column_of_nulls_takes_the_type_of_the_table(kind: pa.DataType) -> None:
    table = _create("value", "COPY_ON_WRITE")
    table.upsert(pa.table({"id": ["k0"], "v": pa.array([None], kind)}))

    table.upsert(pa.table({"id": ["k1"], "v": pa.nulls(1)}))

    assert table.scan().to_arrow().column("v").null_count == 2


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.struct([("x", pa.int32())])], ids=str)
def test_an_ordering_column_that_does_not_compare_is_refused(kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.string()), ("v", kind)])

    with pytest.raises(Invalid, match="ordering column 'v'"):
        _create("ordering", "MERGE_ON_READ", schema=schema)
    with pytest.raises(Invalid, match="ordering column 'v'"):
        _create("ordering", "MERGE_ON_READ").upsert(schema.empty_table())


def test_names_that_differ_by_capital_letters_only_are_refused() -> None:
    rows = pa.table({"id": ["k0"], "a": [1], "A": [2]})
    table = _create("value", "COPY_ON_WRITE")

    with pytest.raises(Invalid, match="by capital letters only"):
        table.upsert(rows)
    with pytest.raises(Invalid, match="by capital letters only"):
        _create("value", "COPY_ON_WRITE", schema=rows.schema)
    table.upsert(rows.select(["id"]))
    with pytest.raises(Invalid, match="by capital letters only"):
        table.upsert(rows)


KEYS = {
    "int64": ([1, 3], [1]),
    "decimal": (pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(9, 2)), [Decimal("1.50")]),
    "date": ([date(2026, 1, 2), date(2026, 1, 3)], [date(2026, 1, 2)]),
    "boolean": ([True, False], [True]),
    "text": (["1", "2"], ["1"]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_lookup_takes_values_of_the_key_column(kind: str) -> None:
    stored, sought = KEYS[kind]
    table = _create("key", "COPY_ON_WRITE")
    table.upsert(pa.table({"v": stored}))

    assert table.lookup(sought).column("v").to_pylist() == sought
    for wrong in ([1.5], ["1", 2], [object()], [[1]]):
        with pytest.raises(Invalid, match="keys: expected texts"):
            table.lookup(wrong)


NO_TEXT = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe"))
"""Latin-1 that came in as UTF-8; Arrow does not look."""


BROKEN = {
    "key": pa.table({"k": NO_TEXT, "v": ["a"]}),
    "value": pa.table({"k": ["a"], "v": NO_TEXT}),
    "list": pa.table({"k": ["a"], "v": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), NO_TEXT)}),
    "dictionary": pa.table({"k": ["a"], "v": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), NO_TEXT)}),
}


ENDED = [(place, operation) for place in BROKEN for operation in ("upsert", "bulk_insert")]


@pytest.mark.parametrize("place,operation", [*ENDED, ("key", "delete")])
def test_bytes_that_are_no_text_are_refused(place: str, operation: str) -> None:
    storage, rows = MemoryStorage(), BROKEN[place]
    table = HudiTable.create(storage.location.uri, name="t", record_key="k", schema=rows.schema, storage=storage)

    with pytest.raises(Invalid, match=r"expected values that the type can have, found others: .*UTF8"):
        getattr(table, operation)(rows)

    assert not table.timeline()


@pytest.mark.parametrize("name", ["a b", "a.b", "a-b", "1x", ""])
def test_a_name_that_avro_has_not_is_refused_as_apache_hudi_refuses_it(name: str) -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    for column in (pa.array(["x"]), pa.array([{name: 1}])):
        with pytest.raises(Invalid, match="expected a name of letters, digits and _"):
            table.upsert(pa.table({"id": ["a"], name if pa.types.is_string(column.type) else "st": column}))
    assert table.timeline() == ()


def test_letters_of_any_script_make_a_name() -> None:
    table = HudiTable.create("unused", name="t", record_key="clé", storage=MemoryStorage())
    table.upsert(pa.table({"clé": ["a"], "名前": ["x"]}))
    assert table.scan(["名前"], where="clé = 'a'").to_arrow().to_pylist() == [{"名前": "x"}]


@pytest.mark.parametrize("file_format", ["PARQUET", "ORC", "HFILE"])
@pytest.mark.parametrize(
    "kind,good,bad,path",
    [
        (pa.struct([pa.field("a", pa.int64(), False)]), {"a": 1}, {"a": None}, "c.a"),
        (pa.list_(pa.field("element", pa.int64(), False)), [1], [None], "c.element"),
        (pa.map_(pa.string(), pa.field("value", pa.int64(), False)), [("k", 1)], [("k", None)], "c.value"),
        (pa.list_(pa.struct([pa.field("a", pa.int64(), False)])), [{"a": 1}, None], [{"a": None}], "c.element.a"),
    ],
    ids=str,
)
def test_a_null_in_a_field_that_is_never_null_is_refused(
    file_format: str, kind: pa.DataType, good: object, bad: object, path: str
) -> None:
    table = HudiTable.create(
        "unused", name="t", record_key="id", schema=pa.schema([("id", pa.string()), ("c", kind)]),
        properties={"hoodie.table.base.file.format": file_format}, storage=MemoryStorage(),
    )  # fmt: skip
    table.insert(pa.Table.from_pylist([{"id": "a", "c": good}, {"id": "b", "c": None}], table.schema()))
    loose = pa.map_(pa.string(), pa.int64()) if pa.types.is_map(kind) else pa.array([good]).type
    with pytest.raises(Invalid, match=rf"column '{path}': expected a value in each row, .* found 1 null"):
        table.upsert(pa.table({"id": ["c"], "c": pa.array([bad], loose)}))
    assert len(table.timeline()) == 1
