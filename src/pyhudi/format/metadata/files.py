"""Records of the partition `files` as columns, a row an entry, for tables of millions of files.

Cost: about 100 ns an entry. Memory: the rows.
Spec: format/metadata-table.md sections 6 and 9.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.assembly import write_records
from pyhudi.format.metadata.columns import Entries, read_records

_WHERE: Final = "metadata table, files"

FILES_COLUMNS: Final = pa.schema(
    [
        pa.field("record", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("is_deleted", pa.bool_(), nullable=False),
    ]
)
"""`record`: the index of the record that holds the entry. `name`: the file, or the partition, as it is stored."""


def decode_files(values: pa.Array | pa.ChunkedArray, schema_text: str, *, path: str = _WHERE) -> pa.Table:
    """The entries of records of files and partitions, tombstones included, in stored order, as `FILES_COLUMNS`.

    `schema_text`: the schema that the HFile or log block states. Raises: CorruptFile for bytes that break it.
    """
    batches, first = [], 0
    for columns, is_present in read_records(values, schema_text, "filesystemMetadata", path=path):
        entries = columns["entries"]
        assert isinstance(entries, Entries)
        records = np.repeat(np.arange(first, first + len(is_present), dtype=np.int32), entries.counts)
        flags = pa.array(entries.is_deleted.view(np.bool_))
        batches.append(
            pa.RecordBatch.from_arrays(
                [pa.array(records), entries.names, pa.array(entries.sizes), flags], schema=FILES_COLUMNS
            )
        )
        first += len(is_present)
    return pa.Table.from_batches(batches, FILES_COLUMNS)


def encode_files(
    types: npt.NDArray[np.int64] | int,
    entries: pa.Table | pa.RecordBatch,
    record_count: int,
    *,
    table_version: int,
    base_file_name: str | None = None,
) -> pa.Array:
    """Records from their entries, as binary. `types`: the type of all records, or the type of each.

    Order: `entries` ascend by record; the entries of one record keep their order. Shape: (entries,) -> (records,).
    """
    records = one_array(entries.column("record")).to_numpy()
    assert not len(records) or (int(records[0]) >= 0 and int(records[-1]) < record_count)
    assert (records[1:] >= records[:-1]).all()

    counts = np.bincount(records, minlength=record_count).astype(np.int64)
    flags = one_array(entries.column("is_deleted")).to_numpy(zero_copy_only=False).astype(np.uint8)
    sizes = one_array(entries.column("size")).to_numpy().copy()
    columns = {"entries": Entries(counts, one_array(entries.column("name")), sizes, flags)}

    return write_records(
        "filesystemMetadata",
        types,
        columns,
        record_count,
        table_version=table_version,
        base_file_name=base_file_name,
    )


def merge_files(entries: pa.Table) -> pa.Table:
    """The entries that are left when the records of each key are merged: `key`, `name`, `size`, `is_deleted`.

    `entries`: has these columns, with the oldest record's rows first. The rule is that of `merge_files_records`: two
    live entries of a name become one with the larger size, unless a tombstone stands between them. A tombstone removes
    an earlier live entry; without one, the tombstone stays. Order: by key, then name.
    """
    merged = _merged(entries)
    return merged.filter(pc.invert(merged["is_removed"])).drop_columns(["is_removed", "is_back"])


def merge_new_files(entries: pa.Table) -> pa.Table:
    """Merge entries as `merge_files` does, for records that are yet to be merged with older records.

    Every tombstone stays, as it must remove what the older records hold. The column `is_back` is added: the entry is
    live, but followed a tombstone. Older entries of its name do not count, which the merged entry cannot tell.
    """
    return _merged(entries).drop_columns(["is_removed"])


def _merged(entries: pa.Table) -> pa.Table:
    """One entry for each key and name, with two more columns.

    `is_removed`: the entry is a tombstone that has removed a live entry. `is_back`: as in `merge_new_files`.
    """
    rows = entries.append_column("row", pa.array(np.arange(len(entries))))
    order = pc.sort_indices(rows, sort_keys=[("key", "ascending"), ("name", "ascending"), ("row", "ascending")])
    rows = rows.take(order).drop_columns(["row"])
    count = len(rows)
    if not count:
        nothing = pa.array([], pa.bool_())
        return rows.append_column("is_removed", nothing).append_column("is_back", nothing)

    is_first = np.ones(count, np.bool_)
    keys, names = one_array(rows.column("key")), one_array(rows.column("name"))
    same = pc.and_(pc.equal(keys[1:], keys[:-1]), pc.equal(names[1:], names[:-1]))
    is_first[1:] = ~same.to_numpy(zero_copy_only=False)

    deleted = one_array(rows.column("is_deleted")).to_numpy(zero_copy_only=False)
    sizes = one_array(rows.column("size")).to_numpy()

    # Sizes are compared only since the last tombstone: each name's rows are cut into runs, one behind each tombstone.
    starts_anew = is_first | np.concatenate([[True], deleted[:-1]])
    runs = np.flatnonzero(starts_anew)
    largest = np.maximum.reduceat(np.where(deleted, np.int64(0), sizes), runs)

    last = np.append(np.flatnonzero(is_first)[1:] - 1, count - 1)
    run_of_last = np.searchsorted(runs, last, "right") - 1
    finds_live = _finds_live(is_first, deleted)
    size = np.where(deleted[last], sizes[last], largest[run_of_last])

    merged = rows.take(pa.array(last))
    merged = merged.set_column(merged.schema.get_field_index("size"), "size", pa.array(size))
    is_removed = pa.array(deleted[last] & finds_live[last])
    is_back = pa.array(~deleted[last] & ~is_first[runs[run_of_last]])
    return merged.append_column("is_removed", is_removed).append_column("is_back", is_back)


def _finds_live(is_first: npt.NDArray[np.bool_], deleted: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Flags of the rows that follow a live entry: the row before is live and of the same key and name."""
    before_is_live = np.concatenate([[False], ~deleted[:-1]])
    return ~is_first & before_is_live
