"""Our merge rules could differ from those of the release that wrote a table, for its payload class or merge mode.

File slices that Apache Hudi wrote, merged here, must give the rows that the same release read back. The slicing is
the least that these tables need: none was compacted, clustered or rolled back.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import is_partial, positions_base_instant, record_positions
from pyhudi.format.log.ordering import is_commit_time, unwrap_ordering
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.properties import parse_properties
from pyhudi.merge.base import BaseMerge
from pyhudi.merge.fold import LogFold
from pyhudi.merge.payloads import merge_rules
from pyhudi.table.slices.conform import conform_batch
from pyhudi.versions import table_version
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTable, GoldenTables, golden_names

KINDS = ["event_time", "commit_time", "delete_field", "is_deleted", "avro", "partial_payload", "nondefaults"]
KINDS += ["partial_update", "parquet_log", "hfile_log", "logonly", "bucket", "nbcc"]
NAMES = [f"mor_{kind}_v{v}_h{h}" for kind in KINDS for v in "689" for h in ("0150", "102", "120")]
NAMES = [name for name in NAMES if name in golden_names()]


def file_groups(table: GoldenTable) -> Iterator[tuple[Path | None, list[Path]]]:
    """The newest base file of each file group, and its logs in the order of reading."""
    groups: dict[Any, tuple[list[Path], list[Path]]] = defaultdict(lambda: ([], []))
    for path in sorted(table.path.rglob("*")):
        inside = path.relative_to(table.path)
        if inside.parts[0] == ".hoodie" or not path.is_file():
            continue
        if (base := BaseFileName.parse(path.name)) is not None:
            groups[inside.parent, base.file_id][0].append(path)
        elif (log := LogFileName.parse(path.name)) is not None and not log.is_cdc:
            groups[inside.parent, log.file_id][1].append(path)
    for bases, logs in groups.values():
        assert len(bases) <= 1
        yield (bases[0] if bases else None), sorted(logs, key=order)


def order(path: Path) -> tuple[str, int, str, str]:
    name = LogFileName.parse(path.name)
    assert name is not None
    return name.order


def blocks(path: Path) -> Iterator[LogBlock]:
    data = path.read_bytes()
    for block in scan_log(MemoryLog(data), len(data), path=path.name):
        assert block.type in (BlockType.DELETE, BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA)
        yield block


def merged(table: GoldenTable, schema: pa.Schema, *, by_positions: bool) -> tuple[pa.Table, int]:
    """The rows of the table, and how many records were found by their position."""
    text = (table.path / ".hoodie" / "hoodie.properties").read_bytes()
    properties = parse_properties(text)
    rules = merge_rules(properties, version=table_version(properties, path=table.name), path=table.name)
    batches: list[pa.RecordBatch] = []
    placed = 0
    for base, logs in file_groups(table):
        fold = LogFold(rules, schema, path=str(base), reduce_rows=5)
        name = BaseFileName.parse(base.name) if base is not None else None
        for block in (block for log in logs for block in blocks(log)):
            uses = by_positions and name is not None and positions_base_instant(block) == name.requested
            placed += add(fold, block, schema, uses_positions=uses)
        merging = BaseMerge(fold.finish())
        start = 0
        for batch in pq.ParquetFile(base).iter_batches(7) if base is not None else ():
            batches.append(merging.merge(conform_batch(batch, schema, path=str(base)), start))
            start += len(batch)
        batches.extend(merging.remaining())
    return pa.Table.from_batches(batches, schema), placed


def add(fold: LogFold, block: LogBlock, schema: pa.Schema, *, uses_positions: bool) -> int:
    if block.type is BlockType.DELETE:
        deletes = read_deletes(block)
        kinds, values = deletes.column("ordering_kind"), deletes.column("ordering")
        lacking = np.asarray(is_commit_time(kinds, values, len(fold.ordering_types)))
        ordering = unwrap_ordering(kinds, values, fold.ordering_types)
        positions = record_positions(block, len(deletes)) if uses_positions else None
        keys = deletes.column("record_key")
        fold.add_deletes(keys, ordering, is_commit_time=lacking, positions=as_numbers(positions))
        return 0 if positions is None else len(deletes)
    rows = pa.Table.from_batches(read_batches(block)).combine_chunks().to_batches()[0]
    positions = record_positions(block, len(rows)) if uses_positions else None
    own = schema
    if is_partial(block):
        own = pa.schema([field for field in schema if field.name in rows.schema.names])
    rows = conform_batch(rows, own, path=block.path)
    fold.add_rows(rows, is_partial=is_partial(block), positions=as_numbers(positions))
    return 0 if positions is None else len(rows)


def as_numbers(positions: Any) -> np.ndarray | None:
    return None if positions is None else np.asarray(positions)


@pytest.mark.parametrize("name", NAMES)
def test_slices_give_the_rows_that_apache_hudi_read(name: str, tmp_path: Path) -> None:
    table = GoldenTables(tmp_path).get(name)
    expected = pq.read_table(table.path.with_name(f"{name}.expected") / "snapshot.parquet")
    schema = expected.schema.remove_metadata()

    by_keys, _ = merged(table, schema, by_positions=False)
    by_positions, placed = merged(table, schema, by_positions=True)

    # Rows of logs name no file until they are compacted.
    assert_same_rows(by_keys, expected, ignore_columns=["_hoodie_file_name"])
    assert_same_rows(by_positions, expected, ignore_columns=["_hoodie_file_name"])
    may_have_positions = "_v6_" not in name and not any(kind in name for kind in ("logonly", "bucket", "nbcc", "hfile"))
    assert bool(placed) == may_have_positions
