"""Records of the metadata table could be read otherwise than Apache Hudi means them, or written with other bytes.

Every record of every partition of real metadata tables is decoded and encoded again: the same bytes, but for the name
of the base file that some releases put into each. The keys, made anew of what the records say, are those stored, and
lead to the file groups that they were found in. Bounds are those of the data files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.metadata import keys
from pyhudi.format.metadata.files import decode_files, encode_files
from pyhudi.format.metadata.groups import MetadataGroupId
from pyhudi.format.metadata.index_definitions import decode_index_definitions, encode_index_definitions
from pyhudi.format.metadata.key_records import (
    decode_bloom_filters,
    decode_locations,
    decode_secondary_entries,
    encode_bloom_filters,
    encode_locations,
    encode_secondary_entries,
)
from pyhudi.format.metadata.record import PARTITIONS_KEY
from pyhudi.format.metadata.stats import decode_column_stats, encode_column_stats
from pyhudi.format.metadata.stats_values import StatsVersion, bounds_of, stored_bounds, value_type_of
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.table.slices.slice_log import slice_blocks
from tests.support.golden_tables import GoldenTables, golden_names

VERSIONS = {metadata_record_schema(version): version for version in (5, 6, 8, 9)}
PARTITIONED_KEY_SIZE = 36
TABLES = tuple(
    name
    for name in golden_names()
    if any(part in name for part in ("mdt_all", "secondary_index", "expr_index", "rli", "record_index", "part_v5"))
)


@dataclass(frozen=True, slots=True)
class Cells:
    """The records of an HFile of a metadata table, or of a block of its log."""

    partition: str
    file: str
    group: MetadataGroupId
    is_base: bool
    keys: list[str]
    values: pa.BinaryArray
    schema_text: str

    @property
    def version(self) -> int:
        return VERSIONS[self.schema_text]

    def encoded(self, base_file_name: str | None) -> pa.Array:
        """What the records say, written anew."""
        values, schema, version = self.values, self.schema_text, self.version
        kind = kind_of(self.partition)
        if kind == "files":
            types = np.array([1 if key == PARTITIONS_KEY else 2 for key in self.keys])
            entries = decode_files(values, schema)
            return encode_files(types, entries, len(values), table_version=version, base_file_name=base_file_name)
        if kind == "stats":
            is_whole = self.partition == "partition_stats"
            types = np.array([6 if is_whole or len(key) == PARTITIONED_KEY_SIZE else 3 for key in self.keys])
            stats = decode_column_stats(values, schema)
            return encode_column_stats(stats, table_version=version, base_file_name=base_file_name, record_type=types)
        if kind == "bloom":
            filters = decode_bloom_filters(values, schema)
            return encode_bloom_filters(filters, table_version=version, base_file_name=base_file_name)
        if kind == "locations":
            locations = decode_locations(values, schema)
            return encode_locations(locations, table_version=version, base_file_name=base_file_name)
        flags = decode_secondary_entries(values, schema)
        return encode_secondary_entries(flags, table_version=version, base_file_name=base_file_name)


def kind_of(partition: str) -> str:
    if partition in ("column_stats", "partition_stats", "expr_index_idx_day"):
        return "stats"
    if partition in ("bloom_filters", "expr_index_idx_lower"):
        return "bloom"
    return {"files": "files", "record_index": "locations"}.get(partition, "secondary")


def hfiles(table: Path) -> Iterator[tuple[Path, bool, HFileReader]]:
    for path in sorted((table / ".hoodie" / "metadata").glob("[!.]*/*")):
        if path.suffix == ".hfile":
            yield path, True, HFileReader(path.read_bytes(), path=path.name)
        elif LogFileName.parse(path.name):
            content = path.read_bytes()
            for block in slice_blocks([(path.name, MemoryLog(content), len(content))], lambda instant: True):
                if block.type is BlockType.HFILE_DATA:
                    yield path, False, HFileReader(block.read_content(), path=path.name)


def cells_of(table: Path) -> Iterator[Cells]:
    for path, is_base, reader in hfiles(table):
        found = list(reader.scan())
        name = BaseFileName.parse(path.name) if is_base else LogFileName.parse(path.name)
        assert name is not None
        assert reader.schema_text is not None
        group = MetadataGroupId.parse(name.file_id, partition=path.parent.name)
        assert group is not None
        assert group.format() == name.file_id
        row_keys = [key.decode() for key, _ in found]
        values = pa.array([value for _, value in found], pa.binary())
        yield Cells(path.parent.name, path.name, group, is_base, row_keys, values, reader.schema_text)


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, golden: GoldenTables) -> Path:
    return golden.get(str(request.param)).path


def test_every_record_is_encoded_to_the_bytes_it_was_decoded_from(table: Path) -> None:
    count = 0
    for cells in cells_of(table):
        candidates = [cells.encoded(None), cells.encoded(cells.file)] if cells.is_base else [cells.encoded(None)]
        assert cells.values in candidates, f"{cells.partition}/{cells.file}"
        if cells.is_base and cells.version < 9:
            assert cells.values == candidates[1]
        count += len(cells.keys)
    assert count


def group_count(table: Path, group: MetadataGroupId) -> int:
    names = [path.name for path in (table / ".hoodie" / "metadata" / group.partition).iterdir()]
    parsed = [BaseFileName.parse(name) or LogFileName.parse(name) for name in names]
    groups = [MetadataGroupId.parse(one.file_id, partition=group.partition) for one in parsed if one is not None]
    return len({one.index for one in groups if one is not None and one.data_partition == group.data_partition})


def test_every_key_leads_to_the_file_group_that_holds_it(table: Path) -> None:
    for cells in cells_of(table):
        is_by_value = kind_of(cells.partition) == "secondary" and cells.version == 9
        hashing = keys.KeyHashing.SECONDARY_PREFIX if is_by_value else keys.KeyHashing.WHOLE
        found = keys.file_groups(pa.array(cells.keys), group_count(table, cells.group), hashing=hashing)
        assert set(found.tolist()) == {cells.group.index}


def test_every_key_follows_from_what_its_record_says(table: Path) -> None:
    partitions = {"": "", **{path.name: path.name for path in table.iterdir() if not path.name.startswith(".")}}
    places = {path.name: path.parent.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file()}
    for cells in cells_of(table):
        if kind_of(cells.partition) == "stats":
            stats = decode_column_stats(cells.values, cells.schema_text)
            files, columns = stats["file_name"].combine_chunks(), stats["column_name"].combine_chunks()
            if cells.partition == "partition_stats":
                made = keys.partition_stats_keys(columns, files).to_pylist()
                assert made == cells.keys
                continue
            for key, file, column in zip(cells.keys, files.to_pylist(), columns.to_pylist(), strict=True):
                if len(key) == PARTITIONED_KEY_SIZE:
                    assert keys.expression_partition_stats_keys(column, file).to_pylist() == [key]
                else:  # files that were cleaned are in any of the partitions
                    known = [places[file]] if file in places else list(partitions)
                    made = [one for place in known for one in keys.column_stats_keys(column, place, file).to_pylist()]
                    assert key in made
        elif kind_of(cells.partition) == "secondary":
            values, record_keys = keys.split_secondary_keys(pa.array(cells.keys))
            assert keys.secondary_keys(values, record_keys).to_pylist() == cells.keys


@pytest.mark.parametrize("name", [name for name in TABLES if "mdt_all" in name])
def test_bounds_are_those_of_the_data_files(name: str, golden: GoldenTables) -> None:
    table = golden.get(name).path
    files = {path.name: path for path in table.rglob("*.parquet")}
    count = 0
    for cells in cells_of(table):
        if cells.partition != "column_stats":
            continue
        stats = decode_column_stats(cells.values, cells.schema_text)
        names, columns = (stats[one].to_pylist() for one in ("file_name", "column_name"))
        for row, (file, column) in enumerate(zip(names, columns, strict=True)):
            if file not in files or stats["is_deleted"][row].as_py():
                continue
            values = pq.read_table(files[file], columns=[column], partitioning=None).column(0)
            bounds = bounds_of(values.type, stats.slice(row, 1))
            assert bounds.is_known.to_pylist() == [values.null_count < len(values)]
            extremes = pc.min_max(values)
            assert (bounds.min[0], bounds.max[0]) == (extremes["min"], extremes["max"]), (file, column)
            assert stats["null_count"][row].as_py() == values.null_count
            version = StatsVersion.V2 if cells.version == 9 else StatsVersion.V1
            check_stored_again(stats.slice(row, 1), bounds.min, version, values.type)
            count += 1
    assert count


def check_stored_again(stats: pa.Table, low: pa.Array, version: StatsVersion, kind: pa.DataType) -> None:
    stored = stored_bounds(low, version)
    assert stored.data.to_pylist() == stats["min_bytes"].to_pylist()
    if not pa.types.is_decimal(kind):  # 0.15 changes their wrapper at compactions
        assert stored.kinds.tolist() == stats["min_kind"].to_pylist()
    assert stored.bits.tolist() == stats["min_bits"].to_pylist()
    if version is StatsVersion.V2:
        assert value_type_of(kind) == (stats["value_type"][0].as_py(), stats["value_type_info"][0].as_py())


def test_index_definitions_survive(golden: GoldenTables) -> None:
    count = 0
    for name in TABLES:
        path = golden.get(name).path / ".hoodie" / ".index_defs" / "index.json"
        if path.exists():
            content = path.read_bytes()
            assert encode_index_definitions(decode_index_definitions(content, path=path.name)) == content
            count += 1
    assert count >= 8
