"""A small write could ask the store more and more as its table grows. The counts are exact: a change of them is a
decision, made here."""

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.testing.counting import CountingStorage
from tests.support.model import Handles, Row, StepClock, arrow, seeded_uuids

FILE_GROUPS = 50

FIXED = {"get": 17, "list": 13, "put": 2, "delete": 1, "delete_prefix": 1}
"""What a commit asks for, whatever it writes: properties, both timelines and the metadata table's files, some of
them several times, since a write has two turns at the table; heartbeat and markers."""


BY_RECORD_INDEX = (31, 20, 11)
"""Gets, lists and heads of such an upsert: those of a commit, and of the files of the metadata table."""


def a_table(storage: CountingStorage) -> HudiTable:
    """50 file groups of two rows, five in each of ten partitions."""
    handles = Handles(storage, StepClock(), seeded_uuids(1), SerialExecutor())
    options = {
        "hoodie.parquet.max.file.size": "200", "hoodie.copyonwrite.record.size.estimate": "50",
        "hoodie.parquet.small.file.limit": "0",
    }  # fmt: skip
    table = handles.create(properties=options, schema=arrow([]).schema)
    table.bulk_insert(arrow(Row(f"k{n:03}", f"p{n % 10}", 1, n) for n in range(2 * FILE_GROUPS)))
    assert len(table.scan().files()) == FILE_GROUPS
    storage.reset()
    return table


def test_an_upsert_of_ten_keys_into_one_partition() -> None:
    """Its five file groups are looked through, rewritten where they change; the other 45 cost nothing."""
    storage = CountingStorage(MemoryStorage())
    table = a_table(storage)

    table.upsert(arrow(Row(f"k{n:03}", "p0", 2, n) for n in range(0, 100, 10)))

    assert storage.counts == {
        **FIXED,
        "open_input": 5 + 5,  # keys to find, rows to rewrite
        "put_stream": 5,
        "put_new": 6 + 5,  # and a marker a file
        "head": 5 * 5 + 1,  # heartbeat and marker, before and after a file is shown; its weight; our instant
    }


def test_an_upsert_of_ten_keys_into_ten_partitions() -> None:
    storage = CountingStorage(MemoryStorage())
    table = a_table(storage)

    result = table.upsert(arrow(Row(f"k{n:03}", f"p{n}", 2, n) for n in range(10)))

    assert result.files == 10
    assert storage.counts == {
        **FIXED,
        "open_input": 50 + 10,
        "put_stream": 10,
        "put_new": 6 + 10,
        "head": 5 * 10 + 1,
    }


def test_an_upsert_by_a_bloom_index_opens_a_footer_a_file_and_reads_keys_where_they_may_be() -> None:
    """Ten keys of one partition, in whose five files they are; then keys that no filter knows."""
    storage = CountingStorage(MemoryStorage())
    table = a_table(storage)
    by_bloom = {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}

    table.upsert(arrow(Row(f"k{n:03}", "p0", 2, n) for n in range(0, 100, 10)), options=by_bloom)
    assert storage.counts["open_input"] == 5 + 5
    storage.reset()
    assert table.upsert(arrow([Row("k000?", "p0", 2, 1)]), options=by_bloom).inserted == 1
    assert storage.counts["open_input"] == 5


def test_a_move_reads_the_file_that_it_leaves_once_more() -> None:
    """Footers of all files; the ordering values of the one that holds the key; and that file is rewritten."""
    storage = CountingStorage(MemoryStorage())
    table = a_table(storage)
    by_bloom = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.parquet.small.file.limit": "0"}

    result = table.upsert(arrow([Row("k000", "p1", 2, 1)]), options=by_bloom)

    assert (result.inserted, result.deleted, result.files) == (1, 1, 2)
    assert storage.counts["open_input"] == 50 + 1 + 1


def test_a_scan_of_one_partition() -> None:
    storage = CountingStorage(MemoryStorage())
    table = a_table(storage)

    assert table.scan(where="city = 'p3'").to_arrow().num_rows == 10
    assert storage.counts == {"get": 6, "list": 3, "open_input": 5}


@pytest.mark.parametrize("partitions", [20, 40])
def test_an_upsert_by_record_index_asks_nothing_of_the_files_that_it_does_not_change(partitions: int) -> None:
    """Two keys of as many partitions: their files are opened once, to be rewritten, whatever else the table holds."""
    storage = CountingStorage(MemoryStorage())
    handles = Handles(storage, StepClock(), seeded_uuids(1), SerialExecutor())
    options = {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
    table = handles.create(properties=options, schema=arrow([]).schema)
    table.bulk_insert(arrow(Row(f"k{n:03}", f"p{n}", 1, n) for n in range(partitions)))
    storage.reset()

    result = table.upsert(arrow(Row(f"k{n:03}", f"p{n}", 2, n) for n in range(2)))

    assert result.updated == 2
    assert (storage.counts["open_input"], storage.counts["put_stream"]) == (2, 2)
    assert (storage.counts["get"], storage.counts["list"], storage.counts["head"]) == BY_RECORD_INDEX
