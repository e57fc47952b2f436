"""A write that cannot succeed could begin all the same, or fail with a text that helps nobody.

Each error names what is wrong; the storage is then, byte for byte, as it was.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, WriteResult
from pyhudi.api.commit_callback import OnCommit
from pyhudi.errors import HudiError, Invalid, Unsupported
from pyhudi.format.names import PROPERTIES
from pyhudi.format.properties import decode_table_properties, encode_table_properties
from pyhudi.metrics import subscribe
from pyhudi.metrics.events import WriteDone, WriteFailed
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import SCHEMA, Handles, Row, arrow, dump, read_rows
from tests.support.odd_errors import ODD_ERRORS

ROW = Row("k", "oslo", 1, 1, "a")


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def table(storage: MemoryStorage) -> HudiTable:
    table = Handles(storage).create()
    table.upsert(arrow([ROW]))
    return table


OPERATION = "hoodie.datasource.write.operation"
TO_DELETE = "hoodie.datasource.write.partitions.to.delete"

CALLS: dict[str, Callable[[HudiTable, Mapping[str, object]], object]] = {
    "upsert": lambda t, options: t.upsert(arrow([ROW]), options=options),
    "insert": lambda t, options: t.insert(arrow([ROW]), options=options),
    "bulk_insert": lambda t, options: t.bulk_insert(arrow([ROW]), options=options),
    "insert_overwrite": lambda t, options: t.insert_overwrite(arrow([ROW]), options=options),
    "insert_overwrite_table": lambda t, options: t.insert_overwrite_table(arrow([ROW]), options=options),
    "delete": lambda t, options: t.delete(arrow([ROW]), options=options),
    "delete ": lambda t, options: t.delete(where="id = 'k'", options=options),
    "delete_partition": lambda t, options: t.delete_partitions(["oslo"], options=options),
    "upsert ": lambda t, options: t.update({"v": "v + 1"}, options=options),
    "upsert  ": lambda t, options: t.merge(arrow([ROW]), when_matched_update=True, options=options),
}


@pytest.mark.parametrize("call", CALLS)
def test_options_of_a_call_that_name_another_operation_are_refused(
    storage: MemoryStorage, table: HudiTable, call: str
) -> None:
    """`table.upsert(rows, options={"….operation": "delete"})` upserted."""
    operation = call.strip()
    other = "insert" if operation == "delete" else "delete"
    upgrades = {"hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": "9"}
    before = dump(storage)
    for options, said in (
        (
            {OPERATION: other, **upgrades},
            f"option '{OPERATION}'='{other}': this call is of the operation '{operation}'",
        ),
        ({TO_DELETE: "oslo"}, f"option '{TO_DELETE}'='oslo': HudiTable.delete_partitions takes the partitions"),
    ):
        with pytest.raises(Invalid) as error:
            CALLS[call](table, options)
        assert said in str(error.value)
        assert dump(storage) == before

    CALLS[call](table, {OPERATION: f" {operation.upper()} ", TO_DELETE: " "})
    assert dump(storage) != before


def test_an_operation_that_a_handle_or_a_table_states_is_no_call_s(storage: MemoryStorage) -> None:
    table = Handles(storage).create(properties={OPERATION: "bulk_insert"})
    table.upsert(arrow([ROW]))
    opened = HudiTable.open(table.path, storage=storage, options={OPERATION: "insert"})
    opened.upsert(arrow([ROW]), options={"hoodie.partition.ttl.inline": "true", OPERATION: "upsert"})
    opened.expire_partitions(options={OPERATION: "upsert"})
    opened.delete(arrow([ROW]))
    assert opened.scan().count() == 0


def changed(column: str, values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    """Two good rows, but for one column."""
    rows = arrow([ROW, Row("l", "oslo", 2, 2)])
    at = rows.column_names.index(column)
    return rows.set_column(at, column, pa.array(values, kind or SCHEMA.field(column).type))


def refused(storage: MemoryStorage, write: Callable[[], object], kind: type[HudiError], *texts: str) -> None:
    before = dump(storage)
    with pytest.raises(kind) as caught:
        write()
    for text in texts:
        assert text in str(caught.value)
    assert dump(storage) == before


BAD_DATA = {
    "a null key": (changed("id", ["k", None]), ["record key (id)", "found 1 null or empty", "row 1 has"]),
    "an empty key": (changed("id", ["", ""]), ["record key (id)", "found 2 null or empty", "row 0 has"]),
    "a null ordering value": (changed("ts", [1, None]), ["ts", "1 null"]),
    "a wrong type": (changed("v", ["1", "2"], pa.string()), ["column 'v': expected int64, found string"]),
    "a type that would spell keys anew": (
        changed("city", [b"1", b"2"], pa.binary()),
        ["column 'city': expected string, found binary, which would change how rows are keyed or ordered"],
    ),
    "an ordering that may lose digits": (
        changed("ts", [1.0, 2.0], pa.float64()),
        ["column 'ts': expected int64, found double, which would change how rows are keyed or ordered"],
    ),
    "a missing column": (arrow([ROW]).drop_columns(["v"]), ["column 'v' (int64) is missing"]),
    "a column of another name": (
        arrow([ROW]).rename_columns(["id", "city", "ts", "v", "notes"]),
        ["column 'note' (string) is missing (found 'notes')", "column 'notes' (string) is not in the table"],
    ),
    "a new column that is never null": (
        arrow([ROW]).append_column(pa.field("extra", pa.int64(), nullable=False), pa.array([1])),
        ["column 'extra' (int64, never null) is not in the table"],
    ),
    "a new column like one that is there": (
        arrow([ROW]).append_column("CITY", pa.array(["oslo"])),
        ["column 'CITY' (string) differs from column 'city' by capital letters only"],
    ),
    "no partition column": (arrow([ROW]).drop_columns(["city"]), ["column 'city' (string) is missing"]),
    "no key column": (arrow([ROW]).drop_columns(["id"]), ["column 'id' (string) is missing"]),
    "no ordering column": (arrow([ROW]).drop_columns(["ts"]), ["column 'ts' (int64) is missing"]),
    "a partition outside of the table": (changed("city", ["oslo", ".."]), ["partition path '..'"]),
    "a partition in the table's own folder": (changed("city", ["oslo", ".hoodie"]), ["'.hoodie'"]),
    "a column twice": (
        arrow([ROW]).append_column("v", pa.array([1])),
        ["found 'v' twice"],
    ),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_is_refused_before_the_first_byte(storage: MemoryStorage, table: HudiTable, name: str) -> None:
    data, texts = BAD_DATA[name]
    refused(storage, lambda: table.upsert(data), Invalid, *texts)


@pytest.mark.parametrize(
    "name", ["a null key", "an empty key", "a wrong type", "a new column that is never null", "a column twice"]
)
@pytest.mark.parametrize("method", ["insert", "bulk_insert"])
def test_inserts_look_at_their_data_too(storage: MemoryStorage, table: HudiTable, name: str, method: str) -> None:
    data, texts = BAD_DATA[name]
    refused(storage, lambda: getattr(table, method)(data), Invalid, *texts)


def test_an_insert_may_lack_ordering_values(table: HudiTable) -> None:
    """Nothing is compared then; a later upsert wins over such a row."""
    table.insert(changed("ts", [5, None]).slice(1))
    assert table.upsert(arrow([Row("l", "oslo", -9, 7)])).updated == 1
    assert read_rows(table.scan().to_arrow())["oslo", "l"].row.v == 7


DELETES = {
    "without the partition column": (arrow([ROW], ["id"]), ["expected the key and partition columns (id, city)"]),
    "without the key": (arrow([ROW], ["city", "ts"]), ["found no 'id' among city, ts"]),
    "of a null key": (changed("id", [None, "k"]).select(["id", "city"]), ["record key (id)"]),
    "of another type of key": (
        pa.table({"id": pa.array([1]), "city": ["oslo"]}),
        ["column 'id': expected string, found int64"],
    ),
    "with a null ordering value": (changed("ts", [1, None]).select(["id", "city", "ts"]), ["ts", "1 null"]),
    "with the key twice": (
        arrow([ROW], ["id", "city"]).append_column("id", pa.array(["k"])),
        ["found 'id' twice"],
    ),
}


@pytest.mark.parametrize("name", DELETES)
def test_a_delete_needs_keys_and_partitions(storage: MemoryStorage, table: HudiTable, name: str) -> None:
    data, texts = DELETES[name]
    refused(storage, lambda: table.delete(data), Invalid, *texts)


def test_a_delete_from_a_table_without_schema_is_refused(storage: MemoryStorage) -> None:
    empty = Handles(storage).create()
    refused(storage, lambda: empty.delete(arrow([ROW])), Invalid, "without a schema")


def test_the_first_write_must_bring_every_column_of_the_facts(storage: MemoryStorage) -> None:
    empty = Handles(storage).create()
    for column, what in (("id", "record key"), ("city", "partition"), ("ts", "ordering")):
        refused(
            storage,
            lambda name=column: empty.upsert(arrow([ROW]).drop_columns([name])),  # type: ignore[misc]
            Invalid,
            f"{what} column '{column}' is missing",
        )
    refused(storage, lambda: empty.upsert(BAD_DATA["a column twice"][0]), Invalid, "'v' twice")
    refused(storage, lambda: empty.upsert(pa.table({})), Invalid, "expected columns, found none")


def test_nulls_in_a_column_that_may_not_be_null_are_refused(storage: MemoryStorage) -> None:
    schema = pa.schema([f.with_nullable(f.name != "v") for f in SCHEMA])
    strict = Handles(storage).create(schema=schema)
    strict.upsert(arrow([ROW]))
    for write in (strict.upsert, strict.insert, strict.bulk_insert):
        refused(storage, lambda w=write: w(changed("v", [1, None])), Invalid, "'v'", "null")  # type: ignore[misc]


PARTS = {
    "no ordering column": (["id", "city", "v"], "missing: ordering column 'ts'"),
    "no key": (["city", "ts", "v"], "missing: key or partition column 'id'"),
    "no partition and no ordering column": (["id", "v"], "ordering column 'ts', key or partition column 'city'"),
}


@pytest.mark.parametrize("name", PARTS)
def test_an_upsert_of_some_columns_is_told_which_it_needs(storage: MemoryStorage, name: str) -> None:
    columns, told = PARTS[name]
    table = Handles(storage).create(table_type="MERGE_ON_READ", table_version=9)
    table.upsert(arrow([ROW]))
    refused(
        storage, lambda: table.upsert(arrow([ROW], columns)), Invalid, "an upsert may have some of the columns", told
    )


@pytest.mark.parametrize("data", [[{"id": "k"}], None, "rows", {"id": ["k"]}])
def test_data_of_no_known_kind_is_refused(storage: MemoryStorage, table: HudiTable, data: object) -> None:
    refused(storage, lambda: table.upsert(data), Invalid, type(data).__qualname__, "__arrow_c_stream__")


OPTIONS: dict[str, tuple[Mapping[str, object], type[HudiError], list[str]]] = {
    "an unknown name": (
        {"hoodie.parquet.max.file.sise": "1"}, Invalid,
        ["hoodie.parquet.max.file.sise", "hoodie.parquet.max.file.size"],
    ),
    "no number": ({"hoodie.parquet.max.file.size": "big"}, Invalid, ["hoodie.parquet.max.file.size", "'big'"]),
    "another key": (
        {"hoodie.datasource.write.recordkey.field": "v"}, Invalid,
        ["hoodie.datasource.write.recordkey.field", "'v'", "'id'"],
    ),
    "another partition": (
        {"hoodie.datasource.write.partitionpath.field": ""}, Invalid,
        ["hoodie.datasource.write.partitionpath.field", "'city'"],
    ),
    "another ordering": ({"hoodie.datasource.write.precombine.field": "v"}, Invalid, ["'v'", "'ts'"]),
    "another type": ({"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, Invalid, ["COPY_ON_WRITE"]),
    "another version": ({"hoodie.write.table.version": "6"}, Unsupported, ["version", "8"]),
    "another merge mode": (
        {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, Invalid, ["EVENT_TIME_ORDERING"],
    ),
    "an index of another engine": ({"hoodie.index.type": "FLINK_STATE"}, Unsupported, ["hoodie.index.type"]),
    "a lock provider": (
        {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.NoopLockProvider"},
        Unsupported, ["hoodie.write.lock.provider"],
    ),
    "a value of no kind": ({"hoodie.parquet.max.file.size": [1]}, Invalid, ["hoodie.parquet.max.file.size"]),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("at_open", [False, True])
def test_bad_options_are_refused(storage: MemoryStorage, table: HudiTable, name: str, at_open: bool) -> None:
    options, kind, texts = OPTIONS[name]

    def write() -> None:
        if at_open:
            Handles(storage).open(options).upsert(arrow([ROW]))
        else:
            table.upsert(arrow([ROW]), options=options)

    refused(storage, write, kind, *texts)


def test_entries_of_a_commit_are_text_and_leave_the_schema_alone(storage: MemoryStorage, table: HudiTable) -> None:
    refused(storage, lambda: table.upsert(arrow([ROW]), extra_metadata={"schema": "x"}), Invalid, "'schema'")
    wrong: Any = {"checkpoint": 5}
    refused(storage, lambda: table.upsert(arrow([ROW]), extra_metadata=wrong), Invalid, "'checkpoint', found 5")


FACTS: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "a payload class of version 6 that fills in": (
        {
            "hoodie.table.version": "6",
            "hoodie.timeline.layout.version": "1",
            "hoodie.record.merge.mode": "CUSTOM",
            "hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
        },
        ["PartialUpdateAvroPayload", "on a table of version 6"],
    ),
    "change logs without meta fields": (
        {"hoodie.populate.meta.fields": "false", "hoodie.table.cdc.enabled": "true"},
        ["hoodie.populate.meta.fields='false' with hoodie.table.cdc.enabled='true'"],
    ),
    "a merger that nobody registered": (
        {
            "hoodie.record.merge.mode": "CUSTOM",
            "hoodie.record.merge.strategy.id": "6c9a4a3c-a1e2",
        },
        ["hoodie.record.merge.strategy.id='6c9a4a3c-", "pyhudi.register_merger"],
    ),
    "a key generator of one's own": (
        {"hoodie.table.keygenerator.type": "USER_PROVIDED"},
        ["hoodie.table.keygenerator.type='USER_PROVIDED'"],
    ),
    "an index outside of the table": ({"hoodie.index.type": "HBASE"}, ["hoodie.index.type='HBASE'"]),
}


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("method", ["upsert", "insert", "bulk_insert", "delete"])
def test_tables_that_cannot_be_written_yet_are_refused(
    storage: MemoryStorage, table: HudiTable, name: str, method: str
) -> None:
    """The same facts in a table of ours stand for tables of other writers."""
    facts, texts = FACTS[name]
    properties = decode_table_properties(storage.get(PROPERTIES), path=PROPERTIES)
    content = encode_table_properties({**properties, **facts}, epoch_ms=0, is_update=True)
    storage.put(PROPERTIES, content)
    refused(storage, lambda: getattr(Handles(storage).open(), method)(arrow([ROW])), Unsupported, *texts)


def test_an_empty_commit_is_made_unless_it_is_not_wanted(storage: MemoryStorage, table: HudiTable) -> None:
    result = table.upsert(arrow([]))
    assert result.completed is not None

    before = dump(storage)
    result = table.upsert(arrow([]), options={"hoodie.allow.empty.commit": "false"})
    assert (result.requested, result.completed, result.operation) == (None, None, "upsert")
    assert dump(storage) == before


COMPACTS = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
TELLING: dict[str, Callable[[HudiTable, OnCommit], WriteResult]] = {
    "upsert": lambda t, tell: t.upsert(arrow([ROW]), options=COMPACTS, on_commit=tell),
    "update": lambda t, tell: t.update({"v": "v + 1"}, options=COMPACTS, on_commit=tell),
    "delete where": lambda t, tell: t.delete(where="city = 'oslo'", options=COMPACTS, on_commit=tell),
    "delete_partitions": lambda t, tell: t.delete_partitions(["oslo"], on_commit=tell),
}


@pytest.mark.parametrize("call", TELLING)
def test_an_error_in_the_callers_callback_is_a_line_in_the_log(call: str, caplog: pytest.LogCaptureFixture) -> None:
    """A write that has landed must not look like one that failed: whoever repeats an insert has its rows twice."""
    table = Handles(MemoryStorage()).create(table_type="MERGE_ON_READ")
    table.upsert(arrow([ROW]))
    told: list[object] = []

    def fail(result: WriteResult) -> None:
        raise RuntimeError(f"the caller's own, of {result.operation}")

    end = subscribe(told.append)
    try:
        result = TELLING[call](table, fail)
    finally:
        end()

    assert table.timeline()[-1 if call == "delete_partitions" else -2].requested == result.requested
    assert call == "delete_partitions" or table.timeline()[-1].action == "commit", "the compaction that was due ran"
    assert [type(one) for one in told if isinstance(one, WriteDone | WriteFailed)] == [WriteDone]
    (line,) = [record.getMessage() for record in caplog.records if "on_commit" in record.getMessage()]
    assert f"commit '{result.requested}' landed, but on_commit failed: RuntimeError: the caller's own" in line


@pytest.mark.parametrize("error", ODD_ERRORS.values(), ids=ODD_ERRORS)
def test_an_odd_error_in_the_callers_callback_is_a_line_in_the_log(
    table: HudiTable, caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    def fail(result: WriteResult) -> None:
        raise error

    table.upsert(arrow([Row("l", "oslo", 1, 1)]), on_commit=fail)
    (line,) = [line for line in caplog.messages if "on_commit failed" in line]
    assert error.__qualname__ in line


def test_an_interrupt_in_the_callers_callback_is_one(table: HudiTable) -> None:
    def interrupt(result: WriteResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.upsert(arrow([Row("l", "oslo", 1, 1)]), on_commit=interrupt)
    assert len(read_rows(table.scan().to_arrow())) == 2
