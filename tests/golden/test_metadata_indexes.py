"""What the indexes of Apache Hudi's metadata tables say could be read wrong: queries would then skip files that hold
their rows, and writes would take known keys for new ones. Here each is compared with the data files themselves.
"""

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.api.clock import process_zone
from pyhudi.format.footer import BLOOM_FILTER
from pyhudi.format.metadata.groups import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from pyhudi.format.metadata.keys import KeyHashing
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.metadata.kinds.bloom_filters import read_bloom_filters
from pyhudi.metadata.kinds.partition_stats import PartitionStatsPruner
from pyhudi.metadata.kinds.record_index import locate_records
from pyhudi.metadata.kinds.secondary import find_secondary
from pyhudi.metadata.kinds.stats_reading import read_column_stats, read_partition_stats
from pyhudi.metadata.store.files_partition import MetadataListing, open_listing
from pyhudi.metadata.store.indexes import MetadataIndexes, open_indexes
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from tests.support.golden_tables import GoldenTable, GoldenTables, golden_names

INDEXED = tuple(
    name
    for name in golden_names()
    if any(mark in name for mark in ("mdt_all", "secondary_index", "expr_index", "rli", "record_index"))
)
FILE_NAME = "_hoodie_file_name"


class Opened:
    def __init__(self, table: GoldenTable) -> None:
        self.table = table
        self.storage = LocalStorage(str(table.path))
        self.snapshot: Snapshot = read_snapshot(self.storage, process_zone(), open_listing)
        found = open_indexes(self.storage, self.snapshot.config, self.snapshot.timeline, self.snapshot.zone)
        assert found is not None
        self.indexes: MetadataIndexes = found
        assert isinstance(self.snapshot.listing, MetadataListing)
        self.listing = self.snapshot.listing
        self.rows = HudiTable.open(table.path).scan().to_arrow()

    def ready(self, prefix: str) -> list[str]:
        return [name for name in self.snapshot.config.metadata_partitions if name.startswith(prefix)]

    def base_files(self) -> list[tuple[str, str]]:
        listed = self.listing.all_files().to_pylist()
        return [(one["partition"], one["name"]) for one in listed if one["name"].endswith(".parquet")]


@pytest.fixture(scope="module")
def opened(golden: GoldenTables):
    return cache(lambda name: Opened(golden.get(name)))


@pytest.mark.parametrize("name", INDEXED)
def test_points_and_prefixes_find_what_a_scan_finds(opened, name: str) -> None:
    one = opened(name)
    checked = 0
    for partition in one.snapshot.config.metadata_partitions:
        found = one.indexes.find(partition)
        definition = one.indexes.index_definitions().get(partition)
        is_hashed_short = (
            partition.startswith(SECONDARY_INDEX_PREFIX) and definition is not None and definition.is_second_version
        )
        hashing = KeyHashing.SECONDARY_PREFIX if is_hashed_short else KeyHashing.WHOLE
        scanned = records(found.scan())
        keys = pa.array(sorted(scanned), pa.binary()).cast(pa.string())
        by_key: dict[bytes, bytes] = {}
        for data_partition in found.groups:
            by_key |= records(found.lookup(keys, data_partition=data_partition, hashing=hashing))
        assert by_key == scanned
        assert records(found.lookup_prefixes([""])) == scanned
        for prefix in {key[:12] for key in keys.to_pylist()[:5]}:
            begins = {key: value for key, value in scanned.items() if key.startswith(prefix.encode())}
            assert records(found.lookup_prefixes([prefix])) == begins
        absent = pa.array([key + "~" for key in keys.to_pylist()] + ["absent$"])
        assert all(not records(found.lookup(absent, data_partition=where, hashing=hashing)) for where in found.groups)
        checked += len(scanned)
    assert checked >= 3


def records(parts) -> dict[bytes, bytes]:
    newest = [part.newest() for part in parts]
    found = [pair for part in newest for pair in zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)]
    assert len({key for key, _ in found}) == len(found)
    return dict(found)


@pytest.mark.parametrize("name", [name for name in INDEXED if "mdt_all" in name])
def test_column_statistics_are_those_of_the_base_files(opened, name: str) -> None:
    one = opened(name)
    partitions = one.listing.partitions()
    files = {(p, f): pq.read_table(one.table.path / p / f, partitioning=None) for p, f in one.base_files()}
    checked = 0
    for column in one.snapshot.schema_with_meta:
        stats = read_column_stats(one.indexes, column, partitions=partitions, index=COLUMN_STATS)
        assert stats is not None
        if column.name == RECORD_KEY and one.snapshot.config.version.number >= 8:
            assert stats.num_rows >= len(files)
        wanted = pa.table({"partition": stats.column("partition"), "name": stats.column("file")})
        by_files = read_column_stats(one.indexes, column, partitions=partitions, index=COLUMN_STATS, files=wanted)
        assert by_files is not None
        order = [("partition", "ascending"), ("file", "ascending")]
        assert by_files.sort_by(order).equals(stats.sort_by(order))
        for row in stats.to_pylist():
            stored = files.get((row["partition"], row["file"]))
            if stored is None:
                continue
            values = stored.column(column.name).cast(column.type)
            bounds = pc.min_max(values).as_py()
            where = f"{row['file']} {column.name}"
            assert (row["null_count"], row["value_count"]) == (values.null_count, len(values)), where
            if row["is_known"]:
                assert (row["min"], row["max"]) == (bounds["min"], bounds["max"]), where
                checked += 1
            else:
                assert values.null_count == len(values) or pa.types.is_floating(column.type), where
    assert checked >= 20


@pytest.mark.parametrize("name", [name for name in INDEXED if "mdt_all" in name])
def test_rows_lie_within_the_statistics_of_their_partition(opened, name: str) -> None:
    one = opened(name)
    partitions, told = one.listing.partitions(), PartitionStatsPruner(one.indexes)
    if PARTITION_STATS not in one.snapshot.config.metadata_partitions:
        assert told.of_partitions(pa.field("i", pa.int32()), partitions) is None
        return
    checked = 0
    for column in one.snapshot.schema:
        stats = told.of_partitions(column, [*partitions, "absent"])
        assert stats is not None
        for row in stats.filter(stats.column("is_known")).to_pylist():
            rows = one.rows.filter(pc.equal(one.rows.column(PARTITION_PATH), row["partition"]))
            bounds = pc.min_max(rows.column(column.name).cast(column.type)).as_py()
            assert bounds["min"] is None or row["min"] <= bounds["min"] <= bounds["max"] <= row["max"], column
            checked += 1
    assert checked >= 8


@pytest.mark.parametrize("name", INDEXED)
def test_the_record_index_leads_to_every_row(opened, name: str) -> None:
    one = opened(name)
    keys = pa.chunked_array([*one.rows.column(RECORD_KEY).chunks, pa.array(["absent"])])
    located = locate_records(one.indexes, keys)
    if not one.ready(RECORD_INDEX):
        assert located is None
        return
    assert located is not None
    found = {(row["key"], row["partition"]): row for row in located.to_pylist()}
    assert len(found) == located.num_rows == one.rows.num_rows
    for row in one.rows.select([RECORD_KEY, PARTITION_PATH, FILE_NAME]).to_pylist():
        at = found[row[RECORD_KEY], row[PARTITION_PATH]]
        assert row[FILE_NAME].startswith(at["file_id"])
        assert len(at["instant"]) == 17
    for partition in one.listing.partitions():
        of_partition = locate_records(one.indexes, keys, partition=partition)
        assert of_partition is not None
        expected = {key for key, where in found if where == partition}
        assert set(of_partition.column("key").to_pylist()) == expected


@pytest.mark.parametrize("name", [name for name in INDEXED if "secondary" in name])
def test_a_secondary_index_leads_from_values_to_keys(opened, name: str) -> None:
    one = opened(name)
    (index,) = one.ready(SECONDARY_INDEX_PREFIX)
    column = one.indexes.index_definitions()[index].source_fields[0]
    short = index.removeprefix(SECONDARY_INDEX_PREFIX)
    values = one.rows.column(column)
    expected = set(zip(values.to_pylist(), one.rows.column(RECORD_KEY).to_pylist(), strict=True))
    is_second = one.indexes.index_definitions()[index].is_second_version
    asked = pa.chunked_array([*values.chunks, pa.array(["absent"])])
    if not is_second:
        assert values.null_count
        assert find_secondary(one.indexes, short, asked) is None
        asked, expected = asked.drop_null(), {pair for pair in expected if pair[0] is not None}
    found = find_secondary(one.indexes, short, asked)
    assert found is not None
    pairs = list(zip(found.column("value").to_pylist(), found.column("record_key").to_pylist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected
    assert find_secondary(one.indexes, "absent", asked) is None


@pytest.mark.parametrize("name", [name for name in INDEXED if "mdt_all" in name])
def test_bloom_filters_are_those_of_the_footers(opened, name: str) -> None:
    one = opened(name)
    checked = 0
    for partition in one.listing.partitions():
        files = [file for where, file in one.base_files() if where == partition]
        found = read_bloom_filters(one.indexes, partition, [*files, "absent.parquet"])
        assert found is not None
        by_file = dict(zip(found.column("file").to_pylist(), found.column("bloom_filter").to_pylist(), strict=True))
        assert set(by_file) == set(files)
        for file, stored in by_file.items():
            assert pq.read_metadata(one.table.path / partition / file).metadata[BLOOM_FILTER.encode()] == stored
            checked += 1
    assert checked >= 4


@pytest.mark.parametrize("name", [name for name in INDEXED if "expr_index" in name])
def test_an_expression_index_has_an_entry_of_every_file(opened, name: str) -> None:
    one = opened(name)
    indexes = one.ready(EXPRESSION_INDEX_PREFIX)
    assert indexes
    for index in indexes:
        definition = one.indexes.index_definitions()[index]
        if definition.type == BLOOM_FILTERS:
            for partition in one.listing.partitions():
                files = [file for where, file in one.base_files() if where == partition]
                found = read_bloom_filters(one.indexes, partition, files, index=index)
                assert found is not None
                assert sorted(found.column("file").to_pylist()) == sorted(files)
        else:
            assert definition.type == COLUMN_STATS
            check_expression_stats(one, index, definition.source_fields[0])


def check_expression_stats(one: Opened, index: str, source_field: str) -> None:
    column = pa.field(source_field, pa.string())
    partitions = one.listing.partitions()
    stats = read_column_stats(one.indexes, column, partitions=partitions, index=index)
    by_partition = read_partition_stats(one.indexes, column, partitions=partitions, index=index)
    assert stats is not None
    assert by_partition is not None
    assert set(zip(stats.column("partition").to_pylist(), stats.column("file").to_pylist(), strict=True)) == {
        (row["partition"], row["name"]) for row in one.listing.all_files().to_pylist()
    }
    assert sorted(by_partition.column("partition").to_pylist()) == partitions
    assert pc.any(stats.column("is_known")).as_py()
    for row in by_partition.to_pylist():
        of = stats.filter(pc.equal(stats.column("partition"), row["partition"]))
        assert (row["min"], row["max"]) == (pc.min(of.column("min")).as_py(), pc.max(of.column("max")).as_py())


@pytest.mark.parametrize("name", INDEXED)
def test_all_files_are_those_of_each_partition_and_of_the_disk(opened, name: str) -> None:
    one = opened(name)
    rows = one.listing.all_files().to_pylist()
    listed = {(row["partition"], row["name"], row["size"]) for row in rows}
    each = {(p, file.name, file.size_bytes) for p in one.listing.partitions() for file in one.listing.files(p)}
    assert listed == each
    assert len(rows) == len(listed) > 0
    for partition, file, size in listed:
        assert (one.table.path / partition / file).stat().st_size == size


def test_what_is_not_there_is_not_known(opened) -> None:
    one = opened("mor_partitioned_rli_v9_h120")
    assert read_column_stats(one.indexes, pa.field("i", pa.int32()), partitions=["p1"], index=COLUMN_STATS) is None
    assert read_bloom_filters(one.indexes, "p1", ["a"]) is None
    assert BLOOM_FILTERS not in one.snapshot.config.metadata_partitions
