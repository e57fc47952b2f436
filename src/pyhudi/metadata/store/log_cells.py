"""The log of a file group of the metadata table, merged by itself, without the base file below it.

The merged log, merged into the base file, gives what the log's blocks give when they are merged one by one.
Spec: format/metadata-table.md section 9.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import LogBlock
from pyhudi.format.metadata.files import FILES_COLUMNS, decode_files, merge_new_files
from pyhudi.format.metadata.record import PARTITIONS_KEY
from pyhudi.format.metadata.stats import decode_column_stats
from pyhudi.metadata.derive.changes_files import files_cells
from pyhudi.metadata.store.current_cells import current_cells
from pyhudi.metadata.store.slice_records import SliceReader
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.metadata.store.versions import RecordVersions


@dataclass(frozen=True, slots=True)
class LogCells:
    """A merged log. `cells`: as `CELLS`, ascending by key, each key once. `deletes`: keys, large binary, each once.
    They come before the cells: a key in both was deleted and put again. `blocks`: the log blocks that were merged.
    """

    cells: pa.Table
    deletes: pa.Array
    blocks: tuple[LogBlock, ...]


def merge_log(table: MetadataTable, reader: SliceReader, *, stats_type: int | None = None) -> LogCells:
    """The log of a file group, merged. `stats_type`: as in `current_cells`.

    `reader`: of the group; its base file is not read. Memory: the log's cells, twice.
    """
    log = reader.read_log()
    live, deleted = log.live(), _deleted(log)
    cells = current_cells(table, live, stats_type=stats_type)
    cells = cells.take(pc.sort_indices(cells.column("key")))

    if stats_type is None:
        deletes = deleted.filter(pc.invert(pc.is_in(deleted, value_set=one_array(cells.column("key")))))
    else:
        deletes = pa.concat_arrays([deleted, *_replacing(live, cells)])

    return LogCells(cells, pc.unique(deletes), reader.blocks)


def merge_files_log(table: MetadataTable, reader: SliceReader) -> LogCells | None:
    """The log of the listing, merged; None where one record a key cannot say what the log says.

    Arguments, memory: as in `merge_log`.
    """
    log = reader.read_log()
    cells = _files_cells(table, log.live())
    return None if cells is None else LogCells(cells, pc.unique(_deleted(log)), reader.blocks)


def _deleted(log: RecordVersions) -> pa.Array:
    return _keys(log.filter(log.values.is_null().to_numpy(zero_copy_only=False)))


def _keys(records: RecordVersions) -> pa.Array:
    return pc.unique(records.keys.cast(pa.large_binary()))


def _files_cells(table: MetadataTable, live: RecordVersions) -> pa.Table | None:
    """The merged records. Tombstones stay, because the base file may hold what they delete.

    None if a file came back after its tombstone: one record would keep the larger of all of its sizes, also of the one
    in the base file. A partition may come back, because partitions have no size.
    """
    keys = one_array(pc.unique(live.keys.cast(pa.large_binary())))  # ascending, as the records are
    record = np.cumsum(live.starts) - 1

    parts = [FILES_COLUMNS.empty_table()]
    for text, positions, values in live.by_schema():
        entries = decode_files(values, text, path=live.path)
        at = positions[one_array(entries.column("record")).to_numpy()]
        parts.append(entries.set_column(0, FILES_COLUMNS.field("record"), pa.array(at.astype(np.int32))))

    entries = pa.concat_tables(parts)
    entries = entries.take(pc.sort_indices(entries.column("record")))  # stable: oldest record first
    of_key = record[one_array(entries.column("record")).to_numpy()]
    entries = entries.drop_columns(["record"]).add_column(0, "key", pa.array(of_key.astype(np.int32)))
    merged = merge_new_files(entries)

    is_list = pc.equal(keys, PARTITIONS_KEY.encode()).to_numpy(zero_copy_only=False)
    is_back = one_array(merged.column("is_back")).to_numpy(zero_copy_only=False)
    if (is_back & ~is_list[one_array(merged.column("key")).to_numpy()]).any():
        return None

    entries = merged.drop_columns(["is_back"]).rename_columns(FILES_COLUMNS.names)
    return files_cells(keys, entries, table_version=table.config.version)


def _replacing(live: RecordVersions, cells: pa.Table) -> list[pa.Array]:
    """The keys whose merged record must be preceded by a delete.

    One of the records that were merged replaces all that is older, but the merged record does not say so by itself.
    """
    starts = live.starts
    if starts.all():
        return []

    said = live.decode(lambda values, text: decode_column_stats(values, text, path=live.path))
    assert said is not None
    replaces = pc.or_(said["is_deleted"], said["is_tight_bound"]).to_numpy()

    is_last = np.append(starts[1:], True)
    group = np.cumsum(starts) - 1
    is_meant = np.bincount(group[replaces], minlength=int(group[-1]) + 1) > 0
    is_said = replaces[is_last]

    keys = one_array(cells.column("key"))
    return [keys.filter(pa.array(is_meant & ~is_said))]
