"""A compaction could lose what several records of a key say together: statistics that are not tight add up."""

from datetime import UTC

import numpy as np
import pyarrow as pa

from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.metadata.groups import COLUMN_STATS_TYPE
from pyhudi.format.metadata.stats import decode_column_stats, encode_column_stats
from pyhudi.format.metadata.stats_values import StatsVersion
from pyhudi.metadata.derive.column_bounds import ColumnBounds, FileBounds, IndexedColumn
from pyhudi.metadata.derive.stats_changes import column_stats_change
from pyhudi.metadata.kinds.registry import get_kind
from pyhudi.metadata.store.current_cells import current_cells
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.metadata.store.versions import RecordVersions
from pyhudi.storage.memory import MemoryStorage
from pyhudi.versions import VERSIONS
from tests.support.model import Handles, Row, StepClock, arrow, seeded_uuids

SCHEMA = metadata_record_schema(9)
COLUMN = IndexedColumn("v", pa.int64())


def record(low: int | None, high: int | None, *, tight: bool) -> bytes:
    bounds = ColumnBounds(4, 1, pa.scalar(low, pa.int64()), pa.scalar(high, pa.int64()))
    change = column_stats_change(
        [FileBounds("p", "f", {"v": bounds})],
        [COLUMN],
        StatsVersion.V2,
        table_version=VERSIONS[9],
        index="column_stats",
    )
    stats = decode_column_stats(change.cells["value"].combine_chunks().cast(pa.binary()), SCHEMA)
    at = stats.schema.get_field_index("is_tight_bound")
    stats = stats.set_column(at, stats.schema.field(at), pa.array([tight]))
    return encode_column_stats(stats, table_version=9, record_type=COLUMN_STATS_TYPE)[0].as_py()


def test_statistics_that_are_not_tight_add_up_and_tight_ones_replace() -> None:
    storage = MemoryStorage()
    Handles(storage, StepClock(), seeded_uuids(1)).create(table_version=9).upsert(arrow([Row("k", "oslo", 1, 1)]))
    table = open_metadata_table(storage, UTC)
    several = {
        b"a": [record(3, 5, tight=False), record(1, 4, tight=False)],
        b"b": [record(3, 5, tight=False), record(4, 4, tight=True)],
        b"c": [record(7, 8, tight=True)],
        b"d": [record(3, 5, tight=True), record(None, None, tight=False)],
    }
    rows = [(key, value) for key, values in several.items() for value in values]
    keys, values = (pa.array(column, pa.binary()) for column in zip(*rows, strict=True))
    versions = RecordVersions(keys, values, np.arange(len(rows), dtype=np.int32), (SCHEMA,) * len(rows), "f")
    cells = current_cells(table, versions, stats_type=get_kind("column_stats").stats_type)
    stats = decode_column_stats(cells["value"].combine_chunks().cast(pa.binary()), SCHEMA)
    found = zip(*(stats[name].to_pylist() for name in ("min_bits", "max_bits", "value_count")), strict=True)
    assert dict(zip(cells["key"].to_pylist(), found, strict=True)) == {
        b"a": (1, 5, 8),
        b"b": (4, 4, 4),
        b"c": (7, 8, 4),
        b"d": (0, 0, 8),
    }
    newest = current_cells(table, versions, stats_type=get_kind("record_index").stats_type)
    assert newest["value"].to_pylist() == [values[-1] for values in several.values()]
