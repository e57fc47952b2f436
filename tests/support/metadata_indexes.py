"""What the metadata table's indexes say, beside what the data files hold."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi import HudiTable
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.metadata.groups import COLUMN_STATS, PARTITION_STATS, RECORD_INDEX, SECONDARY_INDEX_PREFIX
from pyhudi.format.metadata.key_records import decode_bloom_filters, decode_locations
from pyhudi.format.metadata.keys import KeyHashing, column_stats_keys, partition_stats_keys, split_secondary_keys
from pyhudi.format.metadata.stats import decode_column_stats
from pyhudi.format.metadata.stats_values import bounds_of
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.metadata.derive.stats import StatsFacts, files_of
from pyhudi.metadata.kinds.column_stats import known_facts
from pyhudi.metadata.kinds.expression_index import is_expression_index
from pyhudi.metadata.kinds.record_index import is_partitioned
from pyhudi.metadata.kinds.registry import get_kind, kept_indexes
from pyhudi.metadata.kinds.settings import ChosenColumns
from pyhudi.metadata.kinds.views import IndexedTable
from pyhudi.metadata.store.current_cells import read_current_cells
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.groups import list_groups, rows_by_group
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.slice_log import DATA_TYPES, slice_blocks
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from tests.support.expression_indexes import expression_problems

KEY, PARTITION, FILE = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"


def index_cells(snapshot: Snapshot, partition: str) -> dict[str, bytes]:
    """Key -> record of a partition of the metadata table, each found in the group that its key belongs to."""
    table = open_metadata_table(snapshot.storage, snapshot.zone)
    definitions = read_definitions(snapshot.storage)
    indexed = IndexedTable(table, snapshot.config.metadata_partitions, definitions, snapshot.schema, ChosenColumns())
    hashings = {index.partition: index.hashing for index in kept_indexes(indexed)}
    hashing = hashings.get(partition, KeyHashing.WHOLE)
    is_split = partition == RECORD_INDEX and is_partitioned(indexed)
    found: dict[str, bytes] = {}
    for piece in table.slices(partition):
        cells = read_current_cells(table, piece, snapshot.timeline, stats_type=get_kind(partition).stats_type)
        keys = cells.column("key").combine_chunks()
        if not is_split:
            groups = list_groups(table, partition)
            assert len(rows_by_group(keys, len(groups), hashing)[groups.index(piece.file_id)]) == len(keys)
        found.update(zip((key.decode() for key in keys.to_pylist()), cells["value"].to_pylist(), strict=True))
    return found


def index_problems(storage: Storage) -> list[str]:
    """Where an index of the metadata table says other than the data files; none when all is well."""
    snapshot = read_snapshot(storage, UTC, open_listing)
    schema = open_metadata_table(storage, UTC).record_schema
    definitions = read_definitions(storage)
    problems = []
    for partition in snapshot.config.metadata_partitions:
        if partition == RECORD_INDEX:
            cells = index_cells(snapshot, partition)
            found = decode_locations(pa.array(cells.values(), pa.binary()), schema).to_pylist()
            places = {key: (of["partition"], of["file_id"]) for key, of in zip(cells, found, strict=True)}
            problems += _differences(partition, places, stored_locations(storage))
        elif partition in (COLUMN_STATS, PARTITION_STATS):
            cells = index_cells(snapshot, partition)
            said = _told_stats(cells, schema, snapshot.schema_with_meta)
            wanted = stored_stats(snapshot)
            if partition == PARTITION_STATS:
                wanted = partition_stats(snapshot, wanted)
            named = _stats_keys(wanted, partition)
            if snapshot.config.version.number < 8:  # nothing says which columns another writer chose
                said, named = ({key: of[key] for key in said.keys() & named.keys()} for of in (said, named))
                problems += [] if said else [f"{partition}: says nothing of any file"]
            problems += _differences(partition, said, named)
        elif partition == "bloom_filters":
            cells = index_cells(snapshot, partition)
            found = decode_bloom_filters(pa.array(cells.values(), pa.binary()), schema).to_pylist()
            texts = sorted(of["bloom_filter"] for of in found if not of["is_deleted"])
            blooms = sorted(stored_blooms(snapshot))
            problems += [] if texts == blooms else [f"{len(texts)} Bloom filters, files have {len(blooms)}"]
        elif partition.startswith(SECONDARY_INDEX_PREFIX):
            column = definitions[partition].source_fields[0]
            with_nulls = definitions[partition].is_second_version
            values, keys = split_secondary_keys(pa.array(list(index_cells(snapshot, partition)), pa.string()))
            pairs = dict.fromkeys(zip(values.to_pylist(), keys.to_pylist(), strict=True), "")
            problems += _differences(partition, pairs, stored_pairs(storage, column, with_nulls=with_nulls))
        elif is_expression_index(partition):
            cells = index_cells(snapshot, partition)
            problems += expression_problems(snapshot, definitions[partition], cells, schema)
    return problems


Stats = dict[tuple[str, str, str], tuple[Any, Any, int, int]]
"""Partition, file and column -> least, greatest, nulls, rows."""


def stored_stats(snapshot: Snapshot) -> Stats:
    """Of every file of a completed write, by the values in it: of base files read by pyarrow alone."""
    found: Stats = {}
    columns = _facts(snapshot).columns(snapshot.schema_with_meta)
    for partition in snapshot.listing.partitions():
        for file in snapshot.listing.files(partition):
            base, log = BaseFileName.parse(file.name), LogFileName.parse(file.name)
            instant = base.requested if base else log.instant if log else ""
            if not snapshot.timeline.is_committed(instant):
                continue
            if base:
                rows = pq.read_table(pa.BufferReader(snapshot.storage.get(join(partition, file.name))))
                for column in columns:
                    values = rows[column.name]
                    ends = pc.min_max(values)
                    counts = values.null_count, len(values)
                    found[partition, file.name, column.name] = (ends["min"].as_py(), ends["max"].as_py(), *counts)
            else:
                path = join(partition, file.name)
                content = snapshot.storage.get(path)
                blocks = slice_blocks([(path, MemoryLog(content), len(content))], snapshot.timeline.is_committed)
                rows = [b for block in blocks if block.type in DATA_TYPES for b in read_batches(block)]
                for column in columns:
                    values = [value for batch in rows for value in batch.column(column.name).to_pylist()]
                    known = [value for value in values if value is not None]
                    counts = len(values) - len(known), len(values)
                    least, most = min(known, default=None), max(known, default=None)
                    found[partition, file.name, column.name] = (least, most, *counts)
    return found


def partition_stats(snapshot: Snapshot, files: Stats) -> Stats:
    """Of whole partitions, by the files of their newest slices."""
    found: Stats = {}
    for partition in snapshot.listing.partitions():
        names = {name for piece in snapshot.slices(partition) for _, name, _ in files_of([piece])}
        for column in {column for _, _, column in files}:
            of = [told for (p, file, c), told in files.items() if (p, c) == (partition, column) and file in names]
            lows, highs = [t[0] for t in of if t[0] is not None], [t[1] for t in of if t[1] is not None]
            if of:
                counts = sum(t[2] for t in of), sum(t[3] for t in of)
                found[partition, "", column] = (min(lows, default=None), max(highs, default=None), *counts)
    return found


def _facts(snapshot: Snapshot) -> StatsFacts:
    table, definitions = open_metadata_table(snapshot.storage, snapshot.zone), read_definitions(snapshot.storage)
    partitions = snapshot.config.metadata_partitions
    return known_facts(IndexedTable(table, partitions, definitions, snapshot.schema_with_meta, ChosenColumns()))


def _stats_keys(stats: Stats, of: str) -> dict[object, object]:
    if of == PARTITION_STATS:
        return {partition_stats_keys(c, p)[0].as_py(): told for (p, _, c), told in stats.items()}
    return {column_stats_keys(c, p, f)[0].as_py(): told for (p, f, c), told in stats.items()}


def _told_stats(cells: dict[str, bytes], schema_text: str, schema: pa.Schema) -> dict[object, object]:
    keys = pa.array(list(cells), pa.string())
    stats = decode_column_stats(pa.array(cells.values(), pa.binary()), schema_text)
    is_live = pc.invert(stats["is_deleted"]).combine_chunks()
    stats, keys = stats.filter(is_live), keys.filter(is_live)
    found: dict[object, object] = {}
    for name in set(stats["column_name"].to_pylist()):
        mask = pc.equal(stats["column_name"], name)
        mine, bounds = stats.filter(mask), bounds_of(schema.field(name).type, stats.filter(mask))
        counts = mine["null_count"].to_pylist(), mine["value_count"].to_pylist()
        rows = zip(
            keys.filter(mask.combine_chunks()).to_pylist(),
            bounds.min.to_pylist(),
            bounds.max.to_pylist(),
            *counts,
            strict=True,
        )
        found.update({key: tuple(told) for key, *told in rows})
    return found


def stored_locations(storage: Storage) -> dict[str, tuple[str, str]]:
    rows = _table(storage).scan(columns=[KEY, PARTITION, FILE]).to_arrow()
    found = {}
    for key, partition, file in zip(*(rows[name].to_pylist() for name in (KEY, PARTITION, FILE)), strict=True):
        base = BaseFileName.parse(file)
        found[key] = (partition, base.file_id if base else file)
    return found


def stored_pairs(storage: Storage, column: str, *, with_nulls: bool) -> dict[tuple[str | None, str], str]:
    rows = _table(storage).scan(columns=[column, KEY]).to_arrow()
    texts = rows[column].cast(pa.string()).to_pylist()
    return {
        (text, key): ""
        for text, key in zip(texts, rows[KEY].to_pylist(), strict=True)
        if with_nulls or text is not None
    }


def stored_blooms(snapshot: Snapshot) -> list[bytes]:
    """The filters of every base file of a completed write."""
    found = []
    for partition in snapshot.listing.partitions():
        for file in snapshot.listing.files(partition):
            name = BaseFileName.parse(file.name)
            if name is not None and snapshot.timeline.is_committed(name.requested):
                content = snapshot.storage.get(join(partition, file.name))
                text = (pq.read_metadata(pa.BufferReader(content)).metadata or {}).get(b"org.apache.hudi.bloomfilter")
                found += [] if text is None else [text]
    return found


def _table(storage: Storage) -> HudiTable:
    return HudiTable.open("", storage=storage)


def _differences(partition: str, said: Mapping[Any, object], stored: Mapping[Any, object]) -> list[str]:
    return [
        *(f"{partition}: {key!r} is stored, and not indexed" for key in stored.keys() - said.keys()),
        *(f"{partition}: {key!r} is indexed, and not stored" for key in said.keys() - stored.keys()),
        *(
            f"{partition}: {key!r} at {said[key]}, stored at {stored[key]}"
            for key in said.keys() & stored.keys()
            if said[key] != stored[key]
        ),
    ]
