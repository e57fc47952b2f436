"""The records of the metadata table as rows, in the columns that Apache Hudi's queries of it show.

Seen: 1.0.2 and 1.2.0, `hudi_metadata`: the fields of a record without meta fields. A value that may have one of several
types is a struct with a member for each type, of which one is not null.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.avro.decode import RowDecoder, row_decoder
from pyhudi.format.avro.types import parse_schema
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.metadata.kinds.registry import find_kind
from pyhudi.metadata.store.current_cells import read_current_cells
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.timeline.active import Timeline

_BATCH_BYTES = 8 << 20
"""Of encoded records. As rows they take some times as much: a column for each type that a bound may have."""

_KEY = "key"
_TOMBSTONE = "isDeleted"


@dataclass(frozen=True, slots=True)
class RecordSlice:
    """A file group of the metadata table, as its newest slice. `partition`: of the metadata table."""

    partition: str
    file_slice: FileSlice

    @property
    def size_bytes(self) -> int:
        return self.file_slice.base_bytes + self.file_slice.log_bytes


def record_slices(table: MetadataTable, partitions: Iterable[str]) -> list[RecordSlice]:
    """The slices of these partitions. One list request a partition."""
    return [RecordSlice(name, file_slice) for name in partitions for file_slice in table.slices(name)]


def record_columns(table: MetadataTable) -> pa.Schema:
    """The columns of `read_records`."""
    return _decoder(table).schema


def read_records(table: MetadataTable, data_timeline: Timeline, records: RecordSlice) -> Iterator[pa.RecordBatch]:
    """The records of a slice, merged, without tombstones. Memory: the slice's cells twice, and a batch of rows.

    Raises: CorruptFile, naming the file.
    """
    decoder, file_slice = _decoder(table), records.file_slice
    kind = find_kind(records.partition)
    path = join(records.partition, file_slice.file_id)
    cells = (
        read_current_cells(table, file_slice, data_timeline)
        if kind is None
        else kind.compacted_cells(table, file_slice, data_timeline, base_file=path)
    )
    keys, values = (one_array(cells.column(name)) for name in ("key", "value"))
    for start, end in pairwise(_bounds(values)):
        rows = decoder.decode_values(values[start:end].cast(pa.binary()), path=path)
        of_rows = keys[start:end].cast(pa.string())  # a value may leave out the key
        yield _without_tombstones(rows.set_column(0, rows.schema.field(_KEY), of_rows))


def _bounds(values: pa.Array) -> list[int]:
    """Where batches begin, and the end of the last one. A Bloom filter may take half a megabyte, a key 60 bytes."""
    ends = np.cumsum(pc.binary_length(values).to_numpy(zero_copy_only=False), dtype=np.int64)
    starts = np.flatnonzero(np.diff(ends // _BATCH_BYTES)) + 1
    return [0, *starts.tolist(), len(values)]


def _decoder(table: MetadataTable) -> RowDecoder:
    names = (one.name for one in parse_schema(table.record_schema).fields)
    return row_decoder(table.record_schema, None, tuple(name for name in names if name not in META_FIELDS))


def _without_tombstones(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows whose index says that they are deleted. Releases before 1.0 keep these as records."""
    for field in rows.schema:
        if pa.types.is_struct(field.type) and field.type.get_field_index(_TOMBSTONE) >= 0:
            is_deleted = pc.fill_null(pc.struct_field(rows.column(field.name), _TOMBSTONE), False)
            rows = rows.filter(pc.invert(is_deleted))
    return rows
