"""A layout, a key or a type could be spelled so that pyhudi alone understands it: for each, pyhudi writes a table, and
hudi-rs must find in it what pyhudi finds and what a model, a dict, says.

Where hudi-rs fails or answers otherwise, the test says exactly how; if it has learnt better, that test fails and is to
go.
"""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Instant, WriteResult
from tests.interop.cow_rows import META_BUT_TIME, key_range, row, rows
from tests.interop.cow_tables import SHAPES, Shape, Shared
from tests.interop.test_key_generators import GENERATORS, Generator, create
from tests.interop.test_key_generators import rows as rows_of_times
from tests.second_reader.watched import BEGINNING
from tests.support.compare import assert_same_rows
from tests.support.hudi_rs import (
    LOCAL_TIMESTAMP,
    NO_SCHEMA,
    SEVERAL_ORDERING_COLUMNS,
    VERSIONS,
    HudiRsError,
    kinds_of_partitions,
    read_hudi_rs,
    read_hudi_rs_by_storage,
)
from tests.support.promotions import KEYS, WRITABLE, Promotion
from tests.support.promotions import rows as rows_of_c

META = ("_hoodie_commit_time", *META_BUT_TIME)
HIVE = {"hoodie.datasource.write.hive_style_partitioning": True}
LAYOUTS = (
    *SHAPES,  # plain, hive style, none, several levels URL-encoded with a key of two columns, both styles at once
    Shape("levels", partition_by=("region", "city")),
    Shape("hive_levels", partition_by=("city", "region"), properties=HIVE),
    Shape("without_metadata_table", properties={"hoodie.metadata.enable": False}),
)


@VERSIONS
@pytest.mark.parametrize("shape", LAYOUTS, ids=lambda shape: shape.name)
def test_hudi_rs_reads_every_layout_with_every_column_type(tmp_path: Path, shape: Shape, version: int) -> None:
    shared = Shared(tmp_path / "rides", shape, version=version)
    commits = [
        shared.bulk_insert(rows(key_range(0, 70), turn=1, holes=True)),
        shared.upsert([row(key, turn=2, ts=n % 4, holes=True) for n, key in enumerate(key_range(40, 90))]),
        shared.delete(key_range(0, 60, 7)),
    ]

    ours = shared.check_ours()
    assert_same_rows(read_hudi_rs(shared.path), ours)
    assert_same_rows(read_hudi_rs_by_storage(shared.path), ours)
    for at, requested in enumerate(commits):
        then = shared.ours.scan(as_of=requested).to_arrow()
        assert_same_rows(then, shared.model.table(requested), ignore_columns=META_BUT_TIME)
        assert_same_rows(read_hudi_rs(shared.path, as_of=requested), then)
        start, end = shared.completed(commits[at - 1]) if at else BEGINNING, shared.completed(requested)
        changes = shared.ours.incremental(start, end).to_arrow()
        assert_same_rows(changes, shared.model.changed([requested]), ignore_columns=META_BUT_TIME)
        assert_same_rows(read_hudi_rs(shared.path, incremental=(start, end)), changes)


# Keys.


def answers(table: HudiTable) -> list[tuple[pa.Table, Callable[[], pa.Table]]]:
    """Our answer to each query of a table's life, and what asks hudi-rs for its own."""
    commits = [instant for instant in table.timeline() if instant.action == "commit"]
    found: list[tuple[pa.Table, Callable[[], pa.Table]]] = [
        (table.scan().to_arrow(), partial(read_hudi_rs, table.path))
    ]
    for at in (commit.requested for commit in commits):
        found.append((table.scan(as_of=at).to_arrow(), partial(read_hudi_rs, table.path, as_of=at)))
    for start in (BEGINNING, completed(commits[0])):
        span = (start, completed(commits[-1]))
        found.append((table.incremental(*span).to_arrow(), partial(read_hudi_rs, table.path, incremental=span)))
    return found


def completed(of: Instant | WriteResult) -> str:
    assert of.completed is not None
    return of.completed


def as_text(table: pa.Table, column: str) -> pa.Table:
    return table.set_column(table.schema.get_field_index(column), column, table[column].cast(pa.string()))


SHOWN_AS_TEXT = {"ms": "ms"}
"""Generator -> column that versions 8 and 9 show as text, as Apache Hudi does; hudi-rs shows it as it is stored."""
UNREADABLE: dict[str, HudiRsError] = {"custom": kinds_of_partitions(r"city\:SIMPLE")}


@VERSIONS
@pytest.mark.parametrize("of", GENERATORS, ids=lambda of: of.name)
def test_hudi_rs_reads_tables_of_every_key_generator(tmp_path: Path, of: Generator, version: int) -> None:
    table = create(tmp_path / "t", of, version)
    table.insert(rows_of_times(0, 12, said="before"))
    table.upsert(rows_of_times(4, 16, said="after"))
    model = pa.concat_tables([rows_of_times(0, 4, said="before"), rows_of_times(4, 16, said="after")])
    text = SHOWN_AS_TEXT.get(of.name)
    assert_same_rows(table.scan().to_arrow(), as_text(model, text) if text else model, ignore_columns=META)

    for ours, ask in answers(table):
        if of.name in UNREADABLE:
            with UNREADABLE[of.name].expected():
                ask()
            continue
        found = ask()
        if text:
            with pytest.raises(AssertionError, match="types differ"):
                assert_same_rows(found, ours)
            found = as_text(found, text)
        assert_same_rows(found, ours)


@VERSIONS
def test_the_kinds_of_partition_columns_are_all_that_keeps_hudi_rs_from_a_custom_key_generator(
    tmp_path: Path, version: int
) -> None:
    (of,) = (one for one in GENERATORS if one.name == "custom")
    table = create(tmp_path / "t", of, version)
    table.insert(rows_of_times(0, 12, said="before"))
    ours = table.scan().to_arrow()
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    assert r"city\:SIMPLE,day\:TIMESTAMP" in text

    properties.write_text(text.replace(r"city\:SIMPLE,day\:TIMESTAMP", "city,day"))

    assert_same_rows(read_hudi_rs(tmp_path / "t"), ours)


@VERSIONS
def test_hudi_rs_reads_keys_that_were_made_up(tmp_path: Path, version: int) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", partition_by="city", table_version=version)
    table.insert(rows_of_times(0, 20, said="once"))
    table.bulk_insert(rows_of_times(0, 20, said="again"))
    model = pa.concat_tables([rows_of_times(0, 20, said="once"), rows_of_times(0, 20, said="again")])
    assert_same_rows(table.scan().to_arrow(), model, ignore_columns=META)

    for ours, ask in answers(table):
        assert_same_rows(ask(), ours)


def test_hudi_rs_cannot_read_tables_of_several_ordering_columns(tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="city", ordering=("ts", "said"), table_version=9
    )
    table.insert(rows_of_times(0, 20, said="b"))
    table.upsert(rows_of_times(10, 30, said="a"))
    model = pa.concat_tables([rows_of_times(0, 20, said="b"), rows_of_times(20, 30, said="a")])
    assert_same_rows(table.scan().to_arrow(), model, ignore_columns=META)

    for _, ask in answers(table):
        with SEVERAL_ORDERING_COLUMNS.expected():
            ask()


# Types.

MOMENT = dt.datetime(1900, 1, 1, 23, 59, 59, 999_999)
TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "int8": (pa.int8(), -1),
    "uint32": (pa.uint32(), 2**32 - 1),
    "date64": (pa.date64(), MOMENT.date()),
    "instant_of_milliseconds": (pa.timestamp("ms", "Asia/Tokyo"), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)),
    "large_text": (pa.large_string(), "zwölf 中 \U0001f600"),
    "fixed_bytes": (pa.binary(3), b"\xff\x00\x12"),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), "x"),
    "decimal_of_9": (pa.decimal128(9, 2), Decimal("-9999999.99")),
    "decimal_of_18": (pa.decimal128(18, 0), Decimal(10**18 - 1)),
    "decimal_of_38": (pa.decimal128(38, 38), Decimal("-1e-38")),
    "list_of_lists": (pa.list_(pa.list_(pa.string())), [["a", None], [], None]),
    "map_of_structs": (pa.map_(pa.string(), pa.struct([("x", pa.int16())])), [("a", {"x": None}), ("b", None)]),
    "struct_of_structs": (
        pa.struct([("a", pa.struct([("b", pa.list_(pa.float64()))])), ("day", pa.date32())]),
        {"a": {"b": [0.5, None]}, "day": None},
    ),
}  # fmt: skip
"""Those that `cow_rows` has not."""


@VERSIONS
def test_hudi_rs_reads_every_type_that_an_input_may_have(tmp_path: Path, version: int) -> None:
    columns = {name: pa.array([value, None], kind) for name, (kind, value) in TYPES.items()}
    data = pa.table({"id": ["a", "b"], **columns, "never_null": pa.array([7, 8], pa.int32())})
    never_null = data.schema.field("never_null").with_nullable(False)
    data = data.cast(data.schema.set(data.schema.get_field_index("never_null"), never_null))
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", table_version=version)
    table.bulk_insert(data)
    ours = table.scan().to_arrow()
    assert ours.num_rows == 2

    assert_same_rows(read_hudi_rs(tmp_path / "t"), ours)


@VERSIONS
@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.list_(pa.timestamp("us"))], ids=["column", "element"])
def test_hudi_rs_cannot_read_timestamps_without_zone(tmp_path: Path, kind: pa.DataType, version: int) -> None:
    value = [MOMENT] if pa.types.is_list(kind) else MOMENT
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", table_version=version)
    table.bulk_insert(pa.table({"id": ["a"], "at": pa.array([value], kind)}))
    assert table.scan().to_arrow()["at"].to_pylist() == [value]

    with LOCAL_TIMESTAMP.expected():
        read_hudi_rs(tmp_path / "t")


@VERSIONS
def test_hudi_rs_reads_tables_without_rows_if_they_have_a_schema(tmp_path: Path, version: int) -> None:
    data = rows_of_times(0, 3, said="x")
    path = tmp_path / "with"
    table = HudiTable.create(path, name="t", record_key="id", schema=data.schema, table_version=version)
    assert_same_rows(read_hudi_rs(path), table.scan().to_arrow())
    table.insert(data)
    table.delete(data.select(["id"]))
    assert table.scan().to_arrow().num_rows == 0
    assert_same_rows(read_hudi_rs(path), table.scan().to_arrow())

    HudiTable.create(tmp_path / "without", name="t", record_key="id", table_version=version)
    with NO_SCHEMA.expected():
        read_hudi_rs(tmp_path / "without")


# Changes of the schema. hudi-rs shows the past in the schema of now; Apache Hudi and pyhudi in that of then.


@VERSIONS
@pytest.mark.parametrize("promotion", WRITABLE, ids=str)
def test_hudi_rs_reads_columns_that_were_widened(tmp_path: Path, promotion: Promotion, version: int) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", ordering="ts", table_version=version,
        properties={"hoodie.index.bloom.num_entries": "10"},
    )  # fmt: skip
    before = [
        table.bulk_insert(rows_of_c(promotion.before, promotion.stored, KEYS, city))
        for city in ("touched", "untouched")
    ]
    after = table.upsert(rows_of_c(promotion.after, promotion.new, ("k0", "new"), "touched"))

    ours = table.scan().to_arrow()
    assert ours.schema.field("c").type == promotion.after
    assert_same_rows(read_hudi_rs(path), ours)
    assert_same_rows(read_hudi_rs(path, as_of=after.requested), ours)
    for span in (
        (BEGINNING, completed(before[0])),
        (BEGINNING, completed(after)),
        (completed(before[1]), completed(after)),
    ):
        assert_same_rows(read_hudi_rs(path, incremental=span), table.incremental(*span).to_arrow())
    widened = dict(zip(KEYS, pa.array(list(promotion.read), promotion.after).to_pylist(), strict=True))
    for past in before:
        then = table.scan(as_of=past.requested).to_arrow()
        assert then.schema.field("c").type == promotion.before
        found = read_hudi_rs(path, as_of=past.requested)
        as_of_now = pa.array([widened[key] for key in then["id"].to_pylist()], promotion.after)
        assert_same_rows(found, then.set_column(then.schema.get_field_index("c"), "c", as_of_now))


@VERSIONS
def test_hudi_rs_reads_columns_that_were_added(tmp_path: Path, version: int) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(path, name="t", record_key="id", partition_by="city", ordering="ts", table_version=version)
    kind = pa.int32()
    before = table.insert(
        pa.concat_tables([rows_of_c(kind, (1, 2), ("a", "b"), city) for city in ("touched", "untouched")])
    )
    wider = rows_of_c(kind, (3, 4), ("b", "c"), "touched").append_column("new", pa.array(["x", None]))
    after = table.upsert(wider)

    ours = table.scan().to_arrow()
    assert sorted(ours["new"].to_pylist(), key=str) == [None] * 4 + ["x"]
    assert_same_rows(read_hudi_rs(path), ours)
    for span in ((BEGINNING, completed(before)), (completed(before), completed(after))):
        assert_same_rows(read_hudi_rs(path, incremental=span), table.incremental(*span).to_arrow())
    then = table.scan(as_of=before.requested).to_arrow()
    assert "new" not in then.column_names
    found = read_hudi_rs(path, as_of=before.requested)
    assert_same_rows(found, then.append_column("new", pa.nulls(len(then), pa.string())))
