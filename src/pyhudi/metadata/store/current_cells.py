"""What a file group of the metadata table holds now, as cells: its logs merged into its base file.

For indexes whose records replace one another, and for statistics that are not tight, which add up. The listing is
merged in another way. Spec: format/metadata-table.md section 9.
"""

import numpy as np
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.avro.container import BROKEN_BYTES, transcode_record
from pyhudi.format.metadata.stats import decode_column_stats, encode_column_stats
from pyhudi.format.metadata.stats_merge import merge_column_stats
from pyhudi.metadata.derive.changes import CELLS
from pyhudi.metadata.store.slice_records import open_slice
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.metadata.store.versions import RecordVersions
from pyhudi.metadata.store.visibility import block_filter
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.timeline.active import Timeline


def read_current_cells(
    table: MetadataTable, file_slice: FileSlice, data_timeline: Timeline, *, stats_type: int | None = None
) -> pa.Table:
    """The cells of a slice, as `CELLS` in the schema of the table's records, ascending by key, each key once.

    `stats_type`: as in `current_cells`. Memory: the slice's cells twice.
    """
    parts = open_slice(table.storage, file_slice, block_filter(table, data_timeline)).read()
    cells = (current_cells(table, part, stats_type=stats_type) for part in parts)
    return pa.concat_tables([CELLS.empty_table(), *cells])


def current_cells(table: MetadataTable, versions: RecordVersions, *, stats_type: int | None) -> pa.Table:
    """The merged versions of each key, as `CELLS` in the schema of the table's records. Order: any.

    `stats_type`: the type of records that are statistics, which add up; None: the newest version of a key counts.
    """
    starts = versions.starts
    if stats_type is None or starts.all():
        return _cells(versions.newest(), table.record_schema)

    # Only keys with several versions need merging.
    is_last = np.append(starts[1:], True)
    several = ~(starts & is_last)
    alone = _cells(versions.filter(~several), table.record_schema)

    many = versions.filter(several)

    decoded = many.decode(lambda values, text: decode_column_stats(values, text, path=versions.path))
    assert decoded is not None

    merged = merge_column_stats(decoded.add_column(0, "key", many.keys))
    values = encode_column_stats(
        merged.drop_columns(["key"]), table_version=table.config.version.metadata_schema, record_type=stats_type
    )
    return pa.concat_tables([alone, _table(one_array(merged.column("key")), values)])


def _cells(records: RecordVersions, schema_text: str) -> pa.Table:
    """Each record's key and value. A value of an older schema is transcoded."""
    if set(records.schemas) <= {schema_text, ""}:
        return _table(records.keys, records.values)

    values, order = [pa.array([], pa.large_binary())], [np.zeros(0, np.int64)]
    for text, positions, some in records.by_schema():
        values.append(some if text == schema_text else _transcoded(some, text, schema_text, records.path))
        order.append(positions)

    at = np.argsort(np.concatenate(order), kind="stable")
    every = pa.concat_arrays([part.cast(pa.large_binary()) for part in values])
    return _table(records.keys, every.take(pa.array(at)))


def _transcoded(values: pa.Array, written: str, schema_text: str, path: str) -> pa.Array:
    """Happens once to a record that another release wrote: a compaction leaves the whole group in one schema."""
    try:
        return pa.array([transcode_record(v.as_py(), written, schema_text) for v in values], pa.large_binary())
    except BROKEN_BYTES as error:
        raise CorruptFile(path, 0, expected="records of the schema in the file", found=str(error)[:200]) from error


def _table(keys: pa.Array, values: pa.Array) -> pa.Table:
    return pa.table([keys.cast(pa.large_binary()), values.cast(pa.large_binary())], schema=CELLS)
