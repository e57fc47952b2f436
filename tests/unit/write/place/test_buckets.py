"""A row could go to another group than its bucket's, a bucket get two groups, or a table whose rows are placed by
bucket be written as if they were not."""

from collections.abc import Mapping, Sequence

import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.api.datasource import _new_table
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import CorruptFile
from pyhudi.format.keys.bucket_counts import CONFIGS
from pyhudi.format.keys.hashing_metadata import RINGS
from pyhudi.format.names import PROPERTIES, BaseFileName
from pyhudi.format.properties import decode_table_properties, encode_table_properties
from pyhudi.index.bucket import FixedBuckets
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.creation import new_table_properties
from pyhudi.table.view.file_system_view import BaseFile, FileSlice
from pyhudi.testing.counting import CountingStorage
from pyhudi.write.place.buckets import PartitionBuckets, plan_buckets
from pyhudi.write.place.plan import TaskKind
from tests.support.model import Handles, Row, StepClock, arrow, read_rows, seeded_uuids

RULE = FixedBuckets(4, ("id",))
BY_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
BY_RING = {**BY_BUCKET, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
ROWS = [Row(f"k{n:02}", ("oslo", "rome")[n % 2], 5, n) for n in range(40)]


def a_slice(bucket: int, partition: str = "p", *, has_base: bool = True) -> FileSlice:
    file_id = f"{bucket:08d}-1111-2222-3333-444444444444-0"
    base = BaseFile(BaseFileName(file_id, "0-0-0", "001", ".parquet"), 100) if has_base else None
    return FileSlice(partition, file_id, "001", base)


@pytest.mark.parametrize("appends, kind", [(True, TaskKind.APPEND), (False, TaskKind.REWRITE)])
def test_a_bucket_has_one_group_whatever_its_rows_are(appends: bool, kind: TaskKind) -> None:
    buckets = {"p": PartitionBuckets(RULE, {1: a_slice(1)}, False), "new": PartitionBuckets(RULE, {}, True)}
    counts = {("p", 3): 10_000_000, ("p", 1): 5, ("new", 0): 1}

    plan = plan_buckets(counts, buckets, appends=appends, adds_rows=True, searches=False, new_uuid=seeded_uuids(3))

    made, known, new = plan.tasks
    assert [task.number for task in plan.tasks] == [0, 1, 2]
    assert (made.partition, made.bucket_id, made.kind, made.inserts) == ("new", 0, TaskKind.CREATE, 1)
    assert made.is_new_partition
    assert (known.bucket_id, known.kind, known.file_id, known.updates) == (1, kind, a_slice(1).file_id, 5)
    assert (new.bucket_id, new.kind, new.inserts, new.is_new_partition) == (3, TaskKind.CREATE, 10_000_000, False)
    assert new.file_id.startswith("00000003-")


def test_a_delete_makes_no_group() -> None:
    buckets = {"p": PartitionBuckets(RULE, {1: a_slice(1, has_base=False)}, False)}

    plan = plan_buckets(
        {("p", 0): 2, ("p", 1): 3}, buckets, appends=True, adds_rows=False, searches=False, new_uuid=seeded_uuids(3)
    )

    (task,) = plan.tasks
    assert (task.bucket_id, task.base_file, task.base_instant, task.updates) == (1, None, "001", 3)


def create(
    properties: Mapping[str, str], *, table_type: str = "COPY_ON_WRITE", storage: Storage | None = None
) -> Handles:
    handles = Handles(storage or MemoryStorage(), StepClock(), seeded_uuids(1), SerialExecutor())
    handles.create(properties=properties, table_type=table_type)
    return handles


def forgetful(storage: Storage, names: Sequence[str]) -> None:
    """As tables of Apache Hudi are: nothing in the properties tells of the index."""
    properties = decode_table_properties(storage.get(PROPERTIES), path=PROPERTIES)
    for name in names:
        properties.pop(name)
    storage.put(PROPERTIES, encode_table_properties(properties, epoch_ms=1, is_update=True))


ALL = (
    "hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.index.bucket.engine",
    "hoodie.bucket.index.hash.field",
)  # fmt: skip


def groups(table: HudiTable) -> list[str]:
    return sorted({path.rpartition("/")[2].lstrip(".").partition("_")[0] for path in table.scan().files()})


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite_table"])
def test_a_new_bucket_never_rolls_over_to_a_second_group(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of its file."""
    monkeypatch.setattr("pyhudi.engine.local.partition_rows.BATCH_ROWS", 50)
    many = arrow([Row(f"{m}", "oslo", 1, m) for m in range(600)])
    limits = {"hoodie.parquet.max.file.size": "1", "hoodie.parquet.block.size": "1"}
    table = create({**BY_BUCKET, **limits}).open()

    getattr(table, operation)(many)

    assert [int(of[:8]) for of in groups(table)] == [0, 1, 2, 3]
    assert table.scan().to_arrow().num_rows == 600


def test_an_upsert_to_logs_opens_no_file_and_asks_of_the_index_one_list() -> None:
    storage = CountingStorage(MemoryStorage())
    table = create(BY_BUCKET, table_type="MERGE_ON_READ", storage=storage).open()
    table.upsert(arrow(ROWS))
    storage.reset()

    result = table.upsert(arrow(ROWS[:10]))

    assert (result.inserted, result.updated, result.files) == (0, 10, 4)
    assert storage.counts["open_input"] == 0
    assert storage.counts["list"] == 13 + 1  # whether partitions have counts of their own
    assert storage.counts["put_stream"] == 4


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_insert_of_stored_keys_adds_rows_to_files_and_replaces_them_by_logs(table_type: str) -> None:
    """As Apache Hudi's does: its bucket index tags inserts too; then a file is added to, a log is merged by key."""
    table = create(BY_BUCKET, table_type=table_type).open()
    table.insert(arrow(ROWS))

    table.insert(arrow([Row("k00", "oslo", 6, 99), Row("k00", "rome", 6, 98)]))

    found = sorted(table.scan(["id", "city", "v"], where="id = 'k00'").to_arrow().column("v").to_pylist())
    assert found == ([0, 98, 99] if table_type == "COPY_ON_WRITE" else [98, 99])


def test_a_table_says_how_its_rows_are_placed_and_is_not_contradicted() -> None:
    table = create({"hoodie.index.type": "bucket"}).open()
    assert {name: table.properties[name] for name in ALL} == {
        "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "256",
        "hoodie.index.bucket.engine": "SIMPLE", "hoodie.bucket.index.hash.field": "id",
    }  # fmt: skip
    for name, text in (("hoodie.index.type", "BLOOM"), ("hoodie.bucket.index.num.buckets", "8")):
        with pytest.raises(Invalid, match=f"option '{name}'='{text}': table 't' stores"):
            table.upsert(arrow(ROWS), options={name: text})


@pytest.mark.parametrize("by", [BY_BUCKET, BY_RING], ids=["fixed", "rings"])
def test_a_table_that_does_not_say_so_shows_its_buckets_to_every_other_index(by: Mapping[str, str]) -> None:
    handles = create(by, table_type="MERGE_ON_READ")
    handles.open().upsert(arrow(ROWS[:20]))
    forgetful(handles.storage, ALL)
    elsewhere = arrow([Row("new", "york", 1, 1)])

    with pytest.raises(Invalid, match=r"expected options 'hoodie\.index\.type'='BUCKET'"):
        handles.open().upsert(elsewhere)
    with pytest.raises(Invalid, match=r"expected options 'hoodie\.index\.type'='BUCKET'"):
        handles.open({"hoodie.index.type": "GLOBAL_SIMPLE"}).delete(arrow(ROWS[:1]))

    told = handles.open(by)
    told.upsert(arrow(ROWS))
    told.upsert(elsewhere)
    assert len(read_rows(told.scan().to_arrow())) == 41


@pytest.mark.parametrize("by", [BY_BUCKET, BY_RING], ids=["fixed", "rings"])
def test_a_table_of_another_index_is_not_written_by_bucket(by: Mapping[str, str]) -> None:
    """Nor does the attempt leave a ring, by which the table's own writes would be refused."""
    handles = create({}, table_type="MERGE_ON_READ")
    handles.open().upsert(arrow(ROWS))

    with pytest.raises(Invalid, match="expected file groups of the bucket index"):
        handles.open(by).upsert(arrow(ROWS))

    assert handles.open().upsert(arrow(ROWS)).updated == 40


def test_without_a_count_a_table_with_rows_is_not_written() -> None:
    handles = create(BY_BUCKET)
    handles.open().upsert(arrow(ROWS))
    forgetful(handles.storage, ALL)

    with pytest.raises(Invalid, match="do not store how many buckets a partition has"):
        handles.open({"hoodie.index.type": "BUCKET"}).upsert(arrow([Row("new", "york", 1, 1)]))


def test_rules_for_counts_that_are_none_are_told() -> None:
    handles = create(BY_BUCKET)
    handles.storage.put_new(f"{CONFIGS}/00000000000000.hashing_config", b"{}")

    with pytest.raises(CorruptFile, match="expected rules for bucket counts as JSON"):
        handles.open().upsert(arrow(ROWS))


def test_two_groups_of_one_bucket_are_an_error() -> None:
    handles = create(BY_BUCKET)
    handles.open().upsert(arrow(ROWS))
    forgetful(handles.storage, ALL)
    handles.open({"hoodie.metadata.enable": "false", **BY_BUCKET}).upsert(arrow([]))
    path = next(path for path in handles.open().scan().files() if path.startswith("oslo/00000001"))
    name = path.replace("oslo/00000001", "oslo/00000002")
    handles.storage.put_new(name, handles.storage.get(path))

    with pytest.raises(CorruptFile, match=r"expected one file group of bucket 2 in partition 'oslo', found also"):
        handles.open(BY_BUCKET).upsert(arrow(ROWS))


def test_an_insert_that_is_to_fail_for_stored_keys_is_refused() -> None:
    table = create(BY_BUCKET).open({"hoodie.datasource.insert.dup.policy": "fail"})

    with pytest.raises(Invalid, match="keys are looked up as they are written: use drop, or upsert"):
        table.insert(arrow(ROWS))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_insert_leaves_out_what_its_buckets_hold(table_type: str) -> None:
    """In base files and in logs; what a log deleted is taken."""
    table = create(BY_BUCKET, table_type=table_type).open({"hoodie.datasource.insert.dup.policy": "drop"})
    table.insert(arrow(ROWS[:20]))
    table.upsert(arrow(ROWS[10:25]))
    table.delete(arrow(ROWS[4:6], ["id", "city"]))
    stored = read_rows(table.scan().to_arrow())
    again = [Row(row.id, row.city, 9, -row.v, "again") for row in ROWS]

    result = table.insert(arrow(again))

    assert (result.inserted, result.updated) == (17, 0)
    found = {row.row.id: row.row for row in read_rows(table.scan().to_arrow()).values()}
    kept = {row.row.id: row.row for row in stored.values()}
    assert found == {**{row.id: row for row in again}, **kept}
    assert table.insert(arrow(again)).inserted == 0
    assert len(read_rows(table.scan().to_arrow())) == len(ROWS)


@pytest.mark.parametrize("logs", ["parquet", "avro", "hfile"])
@pytest.mark.parametrize("properties", [BY_BUCKET, BY_RING], ids=["fixed", "ring"])
def test_rows_with_some_columns_are_settled_as_by_an_index_that_looks_keys_up(
    properties: dict[str, str], logs: str
) -> None:
    """Stored rows keep their other columns; new ones, and those whose key was deleted, have null there."""
    by_key, by_bucket = (
        create({**of, "hoodie.logfile.data.block.format": logs}, table_type="MERGE_ON_READ").open()
        for of in ({}, properties)
    )
    part = [Row(row.id, row.city, row.ts + (n % 3) - 1, 100 + n) for n, row in enumerate(ROWS)]
    # By keys, new rows and the changes beside them are base files. By buckets they are logs, in which the rows of k21,
    # k24 and k27 are newer than those that come: these are left out, and count nowhere.
    for table, updated in ((by_key, 27), (by_bucket, 24)):
        table.upsert(arrow([Row(row.id, row.city, row.ts, row.v, f"note {row.v}") for row in ROWS[:25]]))
        table.upsert(arrow([Row(row.id, row.city, 5, row.v, "logged") for row in ROWS[20:30]]))
        table.delete(arrow(ROWS[2:5], ["id", "city"]))

        result = table.upsert(arrow(part, ["id", "city", "ts", "v"]))

        assert (result.inserted, result.updated) == (13, updated)
        table.upsert(arrow([Row("k01", "rome", 9, 5, "whole"), Row("k39", "rome", 9, 6, "whole")]))

    found, expected = (
        {of.row.id: of.row for of in read_rows(table.scan().to_arrow()).values()} for table in (by_bucket, by_key)
    )
    assert found == expected
    assert len(found) == len(ROWS)
    notes = {id: found[id].note for id in ("k02", "k06", "k21", "k35", "k39")}
    assert notes == {"k02": None, "k06": "note 6", "k21": "logged", "k35": None, "k39": "whole"}
    by_bucket.compact()
    assert {of.row.id: of.row for of in read_rows(by_bucket.scan().to_arrow()).values()} == found


def test_what_rings_name_is_not_replaced() -> None:
    table = create(BY_RING, table_type="MERGE_ON_READ").open()
    table.upsert(arrow(ROWS))

    for write in (table.insert_overwrite, table.insert_overwrite_table):
        with pytest.raises(Unsupported, match=r"its ring of buckets .* goes on naming them"):
            write(arrow(ROWS[:1]))
    with pytest.raises(Unsupported, match="its ring of buckets"):
        table.delete_partitions(["oslo"])

    assert len(table.timeline()) == 1
    assert table.insert_overwrite(arrow([Row("new", "york", 1, 1)])).inserted == 1  # there is nothing to replace yet


def test_a_delete_makes_no_rings() -> None:
    handles = create(BY_RING, table_type="MERGE_ON_READ")
    table = handles.open()
    table.upsert(arrow(ROWS[:2]))
    rings = [file.path for file in handles.storage.list(RINGS, recursive=True)]
    assert len(rings) == 2

    result = table.delete(arrow([ROWS[0], Row("k", "york", 1, 1)], ["id", "city"]))

    assert result.deleted == 1
    assert [file.path for file in handles.storage.list(RINGS, recursive=True)] == rings


def test_a_script_that_asks_for_buckets_makes_a_table_that_says_so() -> None:
    """`df.write.format("hudi").options(...)` stores little of what it is given."""
    options = {
        "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "7", "hoodie.parquet.max.file.size": "1000",
    }  # fmt: skip
    stored = new_table_properties(_new_table(options))
    assert {name: stored[name] for name in ALL} == {
        "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "7",
        "hoodie.index.bucket.engine": "SIMPLE", "hoodie.bucket.index.hash.field": "id",
    }  # fmt: skip
    assert not {*ALL, "hoodie.parquet.max.file.size"} & {
        *new_table_properties(_new_table({**options, "hoodie.index.type": "BLOOM"}))
    }
