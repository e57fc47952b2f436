"""A row in a bucket that is not its own is never found again, and a second file group of a bucket hides the first.

What a table says of its buckets, or shows by its file ids and keys, is held against the rule before a row is placed.
"""

import io
import pickle
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.names import BaseFileName
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.bucket import (
    FixedBuckets,
    check_stored_keys,
    fixed_buckets,
    live_buckets,
    looks_bucketed,
    refuse_unsaid_buckets,
    unbucketed_uuid,
)
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.facts.bucket_facts import BucketFacts
from pyhudi.table.slices.base_files.rows import TODAY
from pyhudi.table.view.file_system_view import BaseFile, FileSlice
from tests.support.model import StepClock

UUID = "ab12cd34-48b9-4b5f-a45b-765c8e56aa00"
RULE = FixedBuckets(8, ("id",))


def piece(file_id: str, partition: str = "p", *, size: int = 100, has_base: bool = True) -> FileSlice:
    name = BaseFileName(file_id, "0-0-0", "20261121112930417", ".parquet")
    return FileSlice(partition, file_id, name.requested, BaseFile(name, size) if has_base else None)


def bucket_id(bucket: int) -> str:
    return RULE.file_id_of(bucket, lambda: UUID)


def test_a_file_group_is_named_after_its_bucket() -> None:
    assert bucket_id(5) == "00000005-48b9-4b5f-a45b-765c8e56aa00-0"
    assert [RULE.bucket_of_file(bucket_id(bucket)) for bucket in range(8)] == list(range(8))
    assert RULE.bucket_of_file("00000003-0000-0000-0000-000000000000-0") == 3
    assert RULE.bucket_of_file(f"{UUID}-0") is None
    assert RULE.bucket_of_file("٠٠٠٠٠٠٠١-48b9") is None
    assert RULE.bucket_of_file("0000001") is None


def test_a_rule_travels() -> None:
    assert pickle.loads(pickle.dumps(RULE)) == RULE


def test_the_bucket_of_a_key_is_that_of_its_hash() -> None:
    assert RULE.bucket_of(pa.array(["id:7", "7"])).tolist() == [7, 6]


def test_live_buckets_are_found_by_file_id() -> None:
    slices = [piece(bucket_id(3)), piece(bucket_id(5), has_base=False)]

    assert live_buckets(RULE, "p", slices) == {3: slices[0], 5: slices[1]}


@pytest.mark.parametrize(
    "file_ids, error, message",
    [
        ([f"{UUID}-0"], Invalid, f"partition 'p': expected file groups of the bucket index, found '{UUID}-0'"),
        (["00000008-48b9-4b5f-a45b-765c8e56aa00-0"], Invalid, "'hoodie.bucket.index.num.buckets'='8': .* has bucket 8"),
        (
            ["00000003-48b9-4b5f-a45b-765c8e56aa00-0", "00000003-0000-0000-0000-000000000000-0"],
            CorruptFile,
            "expected one file group of bucket 3 in partition 'p', found also '00000003-48b9",
        ),
    ],
)
def test_file_groups_that_contradict_the_rule_are_refused(
    file_ids: Sequence[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        live_buckets(RULE, "p", [piece(file_id) for file_id in file_ids])


@pytest.mark.parametrize(
    "slices, expected",
    [
        ([], False),
        ([piece(bucket_id(0)), piece(bucket_id(7)), piece(bucket_id(7), "q")], True),
        ([piece(bucket_id(0)), piece(f"{UUID}-0")], False),
        ([piece("12345678-48b9-4b5f-a45b-765c8e56aa00-0")], False),
        ([piece(bucket_id(0)), piece("00000000-0000-0000-0000-000000000000-0")], False),
    ],
)
def test_a_table_shows_its_buckets_by_its_file_ids(slices: Sequence[FileSlice], expected: bool) -> None:
    assert looks_bucketed(slices) is expected
    if expected:
        with pytest.raises(Invalid, match=r"table 't': .* expected options 'hoodie.index.type'='BUCKET'"):
            refuse_unsaid_buckets("t", slices)
    else:
        refuse_unsaid_buckets("t", slices)


@pytest.mark.parametrize(
    "drawn, expected",
    [
        ("00001234-48b9-4b5f-a45b-765c8e56aa00", "f0001234-48b9-4b5f-a45b-765c8e56aa00"),
        ("00012345-48b9-4b5f-a45b-765c8e56aa00", "00012345-48b9-4b5f-a45b-765c8e56aa00"),
        ("000012a4-48b9-4b5f-a45b-765c8e56aa00", "000012a4-48b9-4b5f-a45b-765c8e56aa00"),
    ],
)
def test_no_file_group_of_another_index_begins_like_a_bucket(drawn: str, expected: str) -> None:
    uuid = unbucketed_uuid(lambda: drawn)

    assert uuid == expected
    assert not looks_bucketed([piece(f"{uuid}-0")])


def test_a_table_whose_random_ids_begin_like_buckets_is_written_again() -> None:
    table = HudiTable.create(
        "", name="t", record_key="id", storage=MemoryStorage(), clock=StepClock(),
        random=lambda: "00001234-48b9-4b5f-a45b-765c8e56aa00", executor=SerialExecutor(),
    )  # fmt: skip
    table.insert(pa.table({"id": ["a"]}))

    table.upsert(pa.table({"id": ["a", "b"]}))

    assert table.scan().to_arrow().num_rows == 2


def test_the_count_is_never_guessed_where_rows_are_placed() -> None:
    unsaid = BucketFacts("SIMPLE", None, ("id",))

    assert fixed_buckets(unsaid, table="t", is_empty=True).bucket_count == 256
    assert fixed_buckets(BucketFacts("SIMPLE", 9, ("id",)), table="t", is_empty=False) == FixedBuckets(9, ("id",))
    with pytest.raises(Invalid, match=r"expected options .*'hoodie.bucket.index.num.buckets' with the count"):
        fixed_buckets(unsaid, table="t", is_empty=False)


def stored(keys: Sequence[str], bucket: int) -> tuple[MemoryStorage, dict[int, FileSlice]]:
    sink = io.BytesIO()
    pq.write_table(pa.table({RECORD_KEY: pa.array(keys, pa.string())}), sink)
    live = {bucket: piece(bucket_id(bucket), size=len(sink.getvalue())), 1: piece(bucket_id(1), size=1)}
    base = live[bucket].base_file
    assert base is not None
    storage = MemoryStorage()
    storage.put_new(f"p/{base.name.format()}", sink.getvalue())
    return storage, live


def test_a_rule_that_nobody_stored_is_held_against_stored_keys() -> None:
    keys = [f"k{n}" for n in range(400)]
    placed = RULE.bucket_of(pa.array(keys)).tolist()
    storage, live = stored([key for key, bucket in zip(keys, placed, strict=True) if bucket == 6], 6)

    assert check_stored_keys(storage, RULE, live, TODAY, partition="p") == placed.count(6)
    with pytest.raises(Invalid, match=r"p/00000006-.*parquet row \d+: expected keys of bucket 6, found 'k\d+', which"):
        check_stored_keys(storage, FixedBuckets(16, ("id",)), live, TODAY, partition="p")


def test_without_base_files_there_is_nothing_to_hold_a_rule_against() -> None:
    live = {1: piece(bucket_id(1), has_base=False)}

    assert check_stored_keys(MemoryStorage(), RULE, live, TODAY, partition="p") is None
