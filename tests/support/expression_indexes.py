"""What indexes on expressions say, beside what the data files hold: computed row by row, without the package's own
evaluation.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.format.keys.bloom import BloomFilter, BloomKind
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.metadata.key_records import decode_bloom_filters
from pyhudi.format.metadata.keys import bloom_filter_keys, column_stats_keys, expression_partition_stats_keys
from pyhudi.format.metadata.stats import decode_column_stats
from pyhudi.format.metadata.stats_values import bounds_of
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.metadata.derive.stats import files_of
from pyhudi.table.slices.slice_log import DATA_TYPES, slice_blocks
from pyhudi.table.view.snapshot import Snapshot

Computed = Callable[[Any, Mapping[str, str]], Any]
_STRFTIME = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def from_unixtime(seconds: int, options: Mapping[str, str]) -> str:
    pattern = options.get("format", "yyyy-MM-dd HH:mm:ss")
    for letters, directive in _STRFTIME.items():
        pattern = pattern.replace(letters, directive)
    return datetime.fromtimestamp(seconds, UTC).strftime(pattern)


def substring(text: str, options: Mapping[str, str]) -> str:
    start = int(options["pos"]) - 1
    assert start >= 0
    return text[start : start + int(options["len"])]


FUNCTIONS: dict[str, Computed] = {
    "from_unixtime": from_unixtime,
    "lower": lambda text, _: text.lower(),
    "upper": lambda text, _: text.upper(),
    "substring": substring,
    "regexp_replace": lambda text, options: re.sub(options["pattern"], options["replacement"], text),
    "identity": lambda value, _: value,
}

Files = dict[tuple[str, str], list[Any]]


def file_values(snapshot: Snapshot, column: str) -> Files:
    """The values of a column in each file of a completed write; of logs those of their data blocks."""
    found: Files = {}
    for partition in snapshot.listing.partitions():
        for file in snapshot.listing.files(partition):
            base, log = BaseFileName.parse(file.name), LogFileName.parse(file.name)
            instant = base.requested if base else log.instant if log else ""
            if not snapshot.timeline.is_committed(instant):
                continue
            path = join(partition, file.name)
            content = snapshot.storage.get(path)
            if base:
                found[partition, file.name] = pq.read_table(pa.BufferReader(content))[column].to_pylist()
            else:
                blocks = slice_blocks([(path, MemoryLog(content), len(content))], lambda _: True)
                rows = [batch for block in blocks if block.type in DATA_TYPES for batch in read_batches(block)]
                found[partition, file.name] = [value for batch in rows for value in batch.column(column).to_pylist()]
    return found


def expression_problems(
    snapshot: Snapshot, definition: IndexDefinition, cells: Mapping[str, bytes], schema_text: str
) -> list[str]:
    """Where an index says other than the files. Files of older slices may be without entries, others may not."""
    (column,), compute = definition.source_fields, FUNCTIONS[definition.function]
    values = {
        file: [None if one is None else compute(one, definition.options) for one in of]
        for file, of in file_values(snapshot, column).items()
    }
    newest = {
        (partition, name)
        for partition in snapshot.listing.partitions()
        for partition, name, _ in files_of(snapshot.slices(partition))
    }
    if definition.type.lower() == "bloom_filters":
        said, expected, needed = _filters(definition, cells, schema_text, values, newest)
    else:
        said, expected, needed = _statistics(column, cells, schema_text, values, newest)
    name = definition.name
    return [
        *(f"{name}: {key} is not indexed" for key in needed - said.keys()),
        *(f"{name}: {key} is indexed, and not stored" for key in said.keys() - expected.keys()),
        *(
            f"{name}: {key} says {said[key]!s:.200}, stored is {expected[key]!s:.200}"
            for key in said.keys() & expected.keys()
            if said[key] != expected[key]
        ),
    ]


Answer = tuple[dict[str, Any], dict[str, Any], set[str]]


def _statistics(
    column: str, cells: Mapping[str, bytes], schema_text: str, values: Files, newest: set[tuple[str, str]]
) -> Answer:
    known = [one for of in values.values() for one in of if one is not None]
    kind = pa.string() if known and isinstance(known[0], str) else pa.int64()
    stats = decode_column_stats(pa.array(cells.values(), pa.binary()), schema_text)
    bounds = bounds_of(kind, stats)
    counts = (stats["null_count"].to_pylist(), stats["value_count"].to_pylist())
    rows = zip(bounds.min.to_pylist(), bounds.max.to_pylist(), *counts, strict=True)
    expected = {column_stats_keys(column, p, name)[0].as_py(): _stated(of) for (p, name), of in values.items()}
    for partition in {partition for partition, _ in newest}:
        of_all = [one for file in newest if file[0] == partition for one in values[file]]
        expected[expression_partition_stats_keys(column, partition)[0].as_py()] = _stated(of_all)
    needed = {column_stats_keys(column, *file)[0].as_py() for file in newest if values[file]}
    needed |= {expression_partition_stats_keys(column, partition)[0].as_py() for partition, _ in newest}
    return dict(zip(cells, rows, strict=True)), expected, needed


def _stated(values: list[Any]) -> tuple[Any, Any, int, int]:
    known = [one for one in values if one is not None]
    return min(known, default=None), max(known, default=None), len(values) - len(known), len(known)


def _filters(
    definition: IndexDefinition,
    cells: Mapping[str, bytes],
    schema_text: str,
    values: Files,
    newest: set[tuple[str, str]],
) -> Answer:
    found = decode_bloom_filters(pa.array(cells.values(), pa.binary()), schema_text)["bloom_filter"].to_pylist()
    expected = {bloom_filter_keys(*file)[0].as_py(): _filter(definition.options, of) for file, of in values.items()}
    needed = {bloom_filter_keys(*file)[0].as_py() for file in newest if values[file]}
    return dict(zip(cells, found, strict=True)), expected, needed


def _filter(options: Mapping[str, str], values: list[Any]) -> bytes:
    bloom = BloomFilter.create(
        cast(BloomKind, options.get("filtertype", "DYNAMIC_V0")), entries=int(options.get("numentries", 60_000)),
        false_positive_rate=float(options.get("fpp", 1e-9)), entries_max=int(options.get("maxentries", 100_000)),
    )  # fmt: skip
    bloom.add(pa.array([str(one) for one in values if one not in (None, "")], pa.string()))
    return bloom.encode().encode()
