"""A look-up could miss a row, give one that is gone, or read far more than the index leaves.

On tables that Apache Hudi wrote, every key is looked up by whatever index the table has: the answer is the scan's. What
the record index says of each key is where the scan finds its row.
"""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.keys.record_keys import record_keys
from pyhudi.format.names import BaseFileName
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.index.base_files import BaseFileIndex
from pyhudi.index.bloom import BloomSearch
from pyhudi.index.bloom_metadata import key_statistics
from pyhudi.index.record_index import RecordIndex, record_index_missing
from pyhudi.index.simple import SimpleSearch
from pyhudi.metadata.store.indexes import MetadataIndexes, open_indexes
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.testing.counting import CountingStorage
from tests.support.golden_tables import GoldenTables, golden_names

RECORDED = tuple(name for name in golden_names() if any(part in name for part in ("mdt_all", "rli", "record_index")))
OTHERS = (
    "cow_part_v6_h0150", "cow_tsgen_v9_h120", "cow_complex_v9_h120", "cow_nonpart_v9_h120", "mor_avro_v8_h102",
    "mor_bucket_v6_h0150", "mor_bucket_v8_h102", "mor_bucket_v9_h120", "mor_consistent_bucket_v9_h120",
)  # fmt: skip
ABSENT = ["no such key", "zzz", "k"]


def indexes_of(snapshot: Snapshot) -> MetadataIndexes:
    found = open_indexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone)
    assert found is not None
    return found


def all_slices(snapshot: Snapshot) -> list[FileSlice]:
    return [piece for partition in snapshot.listing.partitions() for piece in snapshot.slices(partition)]


def every_key_everywhere(rows: pa.Table) -> dict[str, pa.Array]:
    """Every key of the table, and some that it lacks, to be looked for in each partition."""
    keys = pa.concat_arrays([*rows.column(RECORD_KEY).chunks, pa.array(ABSENT)])
    return dict.fromkeys(rows.column(PARTITION_PATH).unique().to_pylist(), keys)


def lies_at(rows: pa.Table, slices: list[FileSlice]) -> dict[tuple[str, str], str]:
    """Partition and key -> the file group whose file the row names as its own."""
    by_log = {log.name.format(): piece.file_id for piece in slices for log in piece.log_files}
    found = {}
    for row in rows.select([PARTITION_PATH, RECORD_KEY, "_hoodie_file_name"]).to_pylist():
        name = row["_hoodie_file_name"]
        base = BaseFileName.parse(name)
        found[row[PARTITION_PATH], row[RECORD_KEY]] = base.file_id if base else by_log.get(name, name)
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_the_record_index_finds_each_key_where_its_row_lies(golden: GoldenTables, name: str) -> None:
    table = HudiTable.open(golden.get(name).path)
    snapshot, rows = table._access.snapshot(), table.scan().to_arrow()
    indexes, slices = indexes_of(snapshot), all_slices(snapshot)
    is_global = not record_index_missing(indexes, is_global=True)
    assert bool(record_index_missing(indexes, is_global=False)) == is_global

    texts, places = every_key_everywhere(rows), lies_at(rows, slices)
    found = RecordIndex(indexes, is_global).locate(snapshot.storage, texts, slices, SerialExecutor())
    for path, keys in texts.items():
        hits = found[path]
        told = {
            (slices[group].partition, keys[row].as_py()): slices[group].file_id
            for row, group in zip(hits.rows.tolist(), hits.groups.tolist(), strict=True)
        }
        assert told == {at: group for at, group in places.items() if is_global or at[0] == path}
        assert hits.rows.tolist() == sorted(hits.rows.tolist())


@pytest.mark.parametrize("name", [name for name in RECORDED if "mdt_all" in name])
@pytest.mark.parametrize("prunes", [True, False])
def test_bloom_filters_of_the_metadata_table_find_what_the_files_hold(
    golden: GoldenTables, name: str, prunes: bool
) -> None:
    table = HudiTable.open(golden.get(name).path)
    snapshot, rows = table._access.snapshot(), table.scan().to_arrow()
    files = CountingStorage(snapshot.storage)
    slices, texts = all_slices(snapshot), every_key_everywhere(rows)
    index = BaseFileIndex(BloomSearch(prunes, key_statistics(indexes_of(snapshot))), is_global=False)
    simple = BaseFileIndex(SimpleSearch(), is_global=False)
    found = index.locate(files, texts, slices, SerialExecutor())
    expected = simple.locate(snapshot.storage, texts, slices, SerialExecutor())
    for path in texts:
        for got, want in zip(vars(found[path]).values(), vars(expected[path]).values(), strict=True):
            assert got.tolist() == want.tolist()

    files.reset()
    absent = dict.fromkeys(texts, pa.array(ABSENT))
    assert not any(len(hits.rows) for hits in index.locate(files, absent, slices, SerialExecutor()).values())
    assert files.counts["open_input"] == 0, "the metadata table rules every file out"


@pytest.mark.parametrize("name", [*RECORDED, *OTHERS])
@pytest.mark.parametrize("options", [{}, {"hoodie.metadata.enable": "false"}], ids=["by metadata", "by files"])
def test_a_lookup_gives_the_rows_of_a_scan(golden: GoldenTables, name: str, options: dict[str, str]) -> None:
    table = HudiTable.open(golden.get(name).path, options=options, executor=SerialExecutor())
    rows = table.scan().to_arrow()
    keys = rows.column(RECORD_KEY).to_pylist()
    few_keys: list[list[str]] = [keys[:1], keys[3:9], keys, []]
    for some in few_keys:
        found = table.lookup([*some, *ABSENT])
        assert found.schema.equals(rows.schema)
        assert in_order(found) == in_order(chosen(rows, some))
    few = rows.slice(2, 3)
    assert in_order(table.lookup(few.select(table.record_key))) == in_order(chosen(rows, keys[2:5]))
    partitions = [name for name in table.partition_by if name in rows.column_names]
    asked = table.lookup(few.select([*table.record_key, *partitions]))
    assert [row for row in in_order(few) if row not in in_order(asked)] == []


@pytest.mark.parametrize("name", ["cow_no_meta_v6_h0150", "cow_no_meta_v9_h120"])
def test_keys_that_are_not_stored_are_spelled_from_their_columns(golden: GoldenTables, name: str) -> None:
    table = HudiTable.open(golden.get(name).path)
    rows = table.scan().to_arrow()
    keys = record_keys(rows, table._access.snapshot().key_spec)
    assert table.lookup([keys[1].as_py(), "no such key"]).to_pylist() == rows.slice(1, 1).to_pylist()


def test_a_lookup_by_the_record_index_opens_the_one_file_that_has_the_key(golden: GoldenTables) -> None:
    path = golden.get("cow_mdt_all_v9_h120").path
    counted = CountingStorage(open_storage(parse_location(path, None)))
    table = HudiTable.open(path, storage=counted, executor=SerialExecutor())
    key = table.scan().to_arrow().column(RECORD_KEY)[0].as_py()
    for keys, files in (([key], 1), (["no such key"], 0)):
        counted.reset()
        assert table.lookup(keys).num_rows == files
        assert counted.counts["open_input"] == files
        assert sum(counted.counts.values()) <= 40, counted.counts


def test_a_key_with_its_partition_is_looked_for_there_alone(golden: GoldenTables) -> None:
    table = HudiTable.open(golden.get("mor_partitioned_rli_v9_h120").path)
    rows = table.scan().to_arrow()
    one = rows.slice(0, 1).select([*table.record_key, *table.partition_by])
    paths = set(rows.column(PARTITION_PATH).to_pylist())
    assert len(paths) > 1
    found = table.lookup(one).to_pylist()
    assert [row[PARTITION_PATH] for row in found] == [rows.column(PARTITION_PATH)[0].as_py()]
    texts = chosen(rows, [rows.column(RECORD_KEY)[0].as_py()])
    assert in_order(table.lookup(one.select(table.record_key))) == in_order(texts)


def chosen(rows: pa.Table, keys: list[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=pa.array(keys, pa.string())))


def in_order(rows: pa.Table) -> list[dict[str, object]]:
    return sorted(rows.to_pylist(), key=lambda row: str((row[PARTITION_PATH], row[RECORD_KEY], row)))
