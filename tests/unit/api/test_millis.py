"""Numbers of a column that counts milliseconds could be taken for microseconds: in delete blocks, statistics, record
keys and partition paths. Deleted rows would come back, rows that a query asks for would be pruned, and files would be
written whose footer contradicts their columns.

The tables are made of tables of whole numbers, or written here and looked at as they are stored.
"""

import io
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.json_rows import json_texts
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.reader import read_blocks
from pyhudi.storage.memory import MemoryStorage
from tests.support.millis_tables import KINDS, NOON, SECOND, create_in_millis, in_millis, moment, moments
from tests.support.model import dump

DAY = 86_400 * SECOND
LOGICAL = list(KINDS)
STATS = {"hoodie.metadata.index.column.stats.enable": "true"}
NO_METADATA = {"hoodie.metadata.enable": "false"}
"""The metadata table would know the old sizes of the logs that become others."""
MICROS = pa.timestamp("us", "UTC")
MOR: dict[str, Any] = {"table_type": "MERGE_ON_READ"}


def of_longs(storage: MemoryStorage, version: int, properties: Mapping[str, str], **facts: Any) -> HudiTable:
    return HudiTable.create(
        "", storage=storage, name="t", table_version=version, properties=dict(properties),
        **{"record_key": "id", **facts},
    )  # fmt: skip


def rows(*ats: int, first: int = 0) -> pa.Table:
    keys = [chr(ord("a") + first + at) for at in range(len(ats))]
    return pa.table({"id": keys, "at": pa.array(ats, pa.int64()), "p": [f"p{key}" for key in keys]})


def opened(storage: MemoryStorage, **options: str) -> HudiTable:
    return HudiTable.open("", storage=storage, options=options)


def ids(table: HudiTable, **query: Any) -> list[str]:
    return sorted(table.scan(columns=["id"], **query).to_arrow()["id"].to_pylist())


def numbers(table: HudiTable) -> dict[str, int]:
    found = table.scan(columns=["id", "at"]).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["at"].cast(pa.int64()).to_pylist(), strict=True))


def files(storage: MemoryStorage, ending: str) -> list[str]:
    found = [file.path for file in storage.list("", recursive=True) if ending in file.path]
    return sorted(path for path in found if not path.startswith(".hoodie"))


def differences(storage: MemoryStorage) -> list[object]:
    """What the metadata table says otherwise than files, but for the sizes of the files that became others."""
    found = opened(storage).metadata.validate().differences
    return [one for one in found if one.metadata_partition != "files"]


def blocks(storage: MemoryStorage) -> list[LogBlock]:
    return [block for path in files(storage, ".log.") for block in read_blocks(storage.get(path), path=path)]


def base_types(storage: MemoryStorage) -> set[pa.DataType]:
    return {pq.read_schema(io.BytesIO(storage.get(path))).field("at").type for path in files(storage, ".parquet")}


# Ordering values of deletes.


@pytest.mark.parametrize("logical", LOGICAL)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_delete_wins_by_its_milliseconds(version: int, logical: str) -> None:
    storage = MemoryStorage()
    table = of_longs(storage, version, NO_METADATA, ordering="at", **MOR)
    table.bulk_insert(rows(NOON, NOON, NOON))
    table.delete(rows(NOON + 500).select(["id", "at"]))
    table.delete(rows(NOON - 500, first=1).select(["id", "at"]))
    left = numbers(table)
    assert left == ({"c": NOON} if version == 6 else {"b": NOON, "c": NOON})  # the delete of b is older than b
    in_millis(storage, version=version, logical=logical)

    table = opened(storage)
    assert table.schema().field("at").type == KINDS[logical]
    assert numbers(table) == left

    table.compact()
    assert numbers(opened(storage)) == left
    assert base_types(storage) == {KINDS[logical]}


@pytest.mark.parametrize("logical", LOGICAL)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_delete_is_written_with_milliseconds(version: int, logical: str) -> None:
    storage = MemoryStorage()
    of_longs(storage, version, {}, ordering="at", **MOR).bulk_insert(rows(NOON, NOON))
    in_millis(storage, version=version, logical=logical)

    table = opened(storage)
    table.delete(pa.table({"id": ["a"], "at": moments(NOON + 500, logical=logical)}))
    (deletes,) = (read_deletes(block) for block in blocks(storage) if block.type is BlockType.DELETE)
    assert deletes.column("ordering").to_pylist()[0]["long"] == NOON + 500
    assert ids(opened(storage)) == ["b"]


# Writes, and services that write rows.


@pytest.mark.parametrize("logical", LOGICAL)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_writes_and_services_keep_milliseconds(version: int, logical: str) -> None:
    """A table of whole numbers, to which the same is done, has the same numbers afterwards."""
    twin, storage = MemoryStorage(), MemoryStorage()
    for one in (twin, storage):
        of_longs(one, version, STATS, ordering="at", **MOR).bulk_insert(rows(NOON, NOON + 1, NOON + 2, NOON + 3))
    in_millis(storage, version=version, logical=logical)

    def given(table: HudiTable, *ats: int, first: int = 0) -> pa.Table:
        longs = rows(*ats, first=first)
        return longs.set_column(1, "at", moments(*ats, logical=logical)) if table is tables[1] else longs

    tables = [opened(twin), opened(storage)]
    for table in tables:
        table.upsert(given(table, NOON + 10, NOON + 11))
        table.upsert(given(table, NOON - 10, first=2))  # loses
        table.upsert(given(table, NOON + 20, first=9))
        table.delete(given(table, NOON + 12, first=1).select(["id", "at"]))
    assert numbers(tables[0]) == numbers(tables[1])
    assert len(numbers(tables[1])) == 4

    for table in tables:
        table.compact()
        table.upsert(given(table, NOON + 30, first=3))
        table.compact()
        table.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "at"})
    assert numbers(tables[0]) == numbers(opened(storage))
    assert base_types(storage) == {KINDS[logical]}
    for path in files(storage, ".parquet"):
        text = pq.read_metadata(io.BytesIO(storage.get(path))).metadata[b"parquet.avro.schema"].decode()
        assert f'"{logical}"' in text
    assert differences(storage) == []


def test_fields_within_columns_count_milliseconds() -> None:
    micros = pa.timestamp("us", "UTC")
    inner = pa.struct([("at", micros), ("n", pa.int64())])
    kinds = {"s": inner, "l": pa.list_(micros), "m": pa.map_(pa.string(), micros), "deep": pa.list_(inner)}
    schema = pa.schema([("id", pa.string()), *kinds.items()])
    storage = MemoryStorage()
    table = create_in_millis(storage, schema, **MOR)
    assert table.schema().field("s").type.field("at").type == pa.timestamp("ms", "UTC")

    at = moment(NOON).as_py()
    row = {"id": "a", "s": {"at": at, "n": 1}, "l": [at, None], "m": [("k", at)], "deep": [{"at": at, "n": 2}]}
    table.upsert(pa.Table.from_pylist([row, {**row, "id": "b"}], schema))
    table.upsert(pa.Table.from_pylist([{**row, "id": "b", "s": None}], schema))
    want = [row, {**row, "id": "b", "s": None}]
    assert sorted(table.scan(columns=schema.names).to_arrow().to_pylist(), key=lambda one: one["id"]) == want
    table.compact()
    assert sorted(table.scan(columns=schema.names).to_arrow().to_pylist(), key=lambda one: one["id"]) == want

    # A field that a struct gains leaves the others as they are.
    wider = pa.struct([*inner, ("more", micros)])
    schema = schema.set(1, pa.field("s", wider))
    table.upsert(pa.Table.from_pylist([{**row, "id": "c", "s": {"at": at, "n": 3, "more": at}}], schema))
    kind = opened(storage).schema().field("s").type
    assert [kind.field(name).type.unit for name in ("at", "more")] == ["ms", "us"]


def test_what_milliseconds_cannot_hold_is_refused_before_a_write() -> None:
    storage = MemoryStorage()
    of_longs(storage, 9, {}, **MOR).bulk_insert(rows(NOON))
    in_millis(storage)
    finer = pa.array([1_000 * NOON + 1], pa.timestamp("us", "UTC"))
    before = dump(storage)
    with pytest.raises(Invalid, match=r"column 'at'.*timestamp\[ms.*pyarrow.timestamp\('ms'\)"):
        opened(storage).upsert(pa.table({"id": ["b"], "at": finer, "p": ["x"]}))
    assert dump(storage) == before

    # A column of microseconds beside it, which the write brings, is one.
    opened(storage).upsert(pa.table({"id": ["b"], "at": moments(NOON), "p": ["x"], "fine": finer}))
    assert opened(storage).schema().field("fine").type == pa.timestamp("us", "UTC")


def test_columns_of_such_a_table_cannot_be_altered_as_no_release_has_them_in_a_history() -> None:
    storage = MemoryStorage()
    of_longs(storage, 9, {}).bulk_insert(rows(NOON))
    in_millis(storage)
    before = dump(storage)
    with pytest.raises(Unsupported, match="column 'at': its type timestamp-millis has no place in a history"):
        opened(storage).alter().drop("p").commit()
    assert dump(storage) == before


@pytest.mark.parametrize("mode", ["data_before_after", "op_key_only"])
def test_change_data_tells_the_number_of_milliseconds(mode: str) -> None:
    storage = MemoryStorage()
    properties = {**NO_METADATA, "hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}
    of_longs(storage, 9, properties).upsert(rows(NOON))
    in_millis(storage)
    result = opened(storage).upsert(pa.table({"id": ["a"], "at": moments(NOON + 1), "p": ["pa"]}))
    found = opened(storage).cdc().to_arrow()
    assert result.updated == 1
    told = [json.loads(json_texts(one_array(found[image]))[-1].as_py()) for image in ("before", "after")]
    assert [one["at"] for one in told] == [NOON, NOON + 1]


# Statistics.


@pytest.mark.parametrize("logical", LOGICAL)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_statistics_of_milliseconds_prune_what_lies_outside_and_nothing_else(version: int, logical: str) -> None:
    storage = MemoryStorage()
    of_longs(storage, version, STATS, partition_by="p").bulk_insert(rows(NOON, NOON + DAY, NOON + 2 * DAY))
    in_millis(storage, version=version, logical=logical)

    table = opened(storage)
    word = "TIMESTAMP" if KINDS[logical].tz else "TIMESTAMP_NTZ"
    assert ids(table, where=f"at >= {word} '2026-01-01 12:00:00'") == ["a", "b", "c"]
    scan = table.scan(columns=["id"], where=f"at > {word} '2026-01-01 12:00:00' AND at < {word} '2026-01-03 12:00:00'")
    assert scan.to_arrow()["id"].to_pylist() == ["b"]
    assert scan.explain().files == 1

    # What a write adds to them.
    late = rows(NOON + 3 * DAY, first=7).set_column(1, "at", moments(NOON + 3 * DAY, logical=logical))
    table.upsert(late)
    assert ids(opened(storage), where=f"at > {word} '2026-01-04 00:00:00'") == ["h"]
    assert differences(storage) == []


# Keys and paths.


FAR = 9_223_372_036_854_776
"""The first milliseconds after 1970 whose microseconds do not fit 64 bits: in the year 294247."""


@pytest.mark.parametrize("depth", ["column", "struct", "list", "map"])
def test_times_that_no_reader_takes_are_not_written(depth: str) -> None:
    def kind(unit: str) -> pa.DataType:
        at = pa.timestamp(unit, "UTC")
        return {
            "column": at, "struct": pa.struct([("x", at)]), "list": pa.list_(at), "map": pa.map_(pa.string(), at),
        }[depth]  # fmt: skip

    def given(number: int, unit: str) -> pa.Table:
        value: Any = {"column": number, "struct": {"x": number}, "list": [number], "map": [("k", number)]}[depth]
        return pa.table({"id": ["b"], "at": pa.array([value], kind(unit))})

    storage = MemoryStorage()
    schema = pa.schema([("id", pa.string()), ("at", kind("us"))])
    table = create_in_millis(storage, schema, **MOR)
    table.upsert(given(FAR - 1, "ms"))
    before = dump(storage)
    for number, unit in ((FAR, "ms"), ((1 << 63) - 1, "ms"), (-FAR, "ms"), (FAR // 1_000 + 1, "s")):
        for write in (table.upsert, table.bulk_insert):
            with pytest.raises(Invalid, match="input: column 'at'"):
                write(given(number, unit))
    assert dump(storage) == before
    assert table.scan(columns=["id", "at"]).to_arrow()["at"].type == kind("ms")


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
        {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"},
    ],
)
def test_a_record_key_is_the_number_of_milliseconds(version: int, properties: dict[str, str]) -> None:
    storage = MemoryStorage()
    of_longs(storage, version, properties, record_key="at").upsert(rows(NOON, NOON + SECOND))
    in_millis(storage, version=version)

    table = opened(storage)
    assert table.lookup(pa.table({"at": moments(NOON)}))["id"].to_pylist() == ["a"]
    assert table.lookup([moment(NOON + SECOND).as_py()])["id"].to_pylist() == ["b"]
    with pytest.raises(Invalid, match="timestamp"):
        table.lookup(pa.table({"at": pa.array([1_000 * NOON + 1], pa.timestamp("us", "UTC"))}))
    assert ids(table, where="at = TIMESTAMP '2026-01-01 12:00:01'") == ["b"]

    result = table.upsert(pa.table({"id": ["new"], "at": moments(NOON), "p": ["x"]}))
    assert (result.inserted, result.updated) == (0, 1)
    table.delete(pa.table({"at": moments(NOON + SECOND)}))
    found = opened(storage).scan().to_arrow()
    assert found.select(["id", "_hoodie_record_key"]).to_pylist() == [{"id": "new", "_hoodie_record_key": str(NOON)}]


@pytest.mark.parametrize("has_micros", [False, True])
@pytest.mark.parametrize("version", [6, 9])
def test_keys_that_files_do_not_store_are_made_of_milliseconds(version: int, has_micros: bool) -> None:
    """`has_micros`: the base files hold microseconds, as Spark's writers and earlier compactions left them."""
    storage = MemoryStorage()
    table = of_longs(storage, version, {**NO_METADATA, "hoodie.populate.meta.fields": "false"}, record_key="at", **MOR)
    table.bulk_insert(rows(NOON, NOON + SECOND, NOON + 2 * SECOND))
    table.delete(pa.table({"at": [NOON]}))
    in_millis(storage, version=version)
    for path in files(storage, ".parquet") if has_micros else ():
        held = pq.read_table(io.BytesIO(storage.get(path)))
        sink = io.BytesIO()
        pq.write_table(held.set_column(held.schema.get_field_index("at"), "at", held["at"].cast(MICROS)), sink)
        storage.put(path, sink.getvalue())

    assert ids(opened(storage)) == ["b", "c"]
    opened(storage).delete(pa.table({"at": moments(NOON + SECOND)}))
    assert ids(opened(storage)) == ["c"]
    assert opened(storage).lookup(pa.table({"at": moments(NOON + 2 * SECOND)})).num_rows == 1


@pytest.mark.parametrize("version", [6, 9])
def test_a_partition_path_is_the_number_of_milliseconds(version: int) -> None:
    storage = MemoryStorage()
    of_longs(storage, version, {}, partition_by="at").bulk_insert(rows(NOON, NOON + SECOND))
    in_millis(storage, version=version)
    table = opened(storage)
    assert ids(table, where="at = TIMESTAMP '2026-01-01 12:00:01'") == ["b"]
    result = table.upsert(pa.table({"id": ["b", "c"], "at": moments(NOON + SECOND, NOON + SECOND), "p": ["x", "x"]}))
    assert (result.inserted, result.updated) == (1, 1)
    assert {path.partition("/")[0] for path in files(storage, ".parquet")} == {str(NOON), str(NOON + SECOND)}
