"""Which keys a file group holds, found while its rows are written. A bucket index looks up no keys before."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.metadata.derive.keys import RowReading
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.write.handles.target import WriteTarget


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The keys of a slice's merged rows. Keys that its log deleted do not count."""

    keys: pa.Array

    def holds(self, keys: pa.Array | pa.ChunkedArray) -> pa.Array:
        """For each of these keys, whether it is stored."""
        return one_array(pc.is_in(keys, value_set=self.keys))


def search_keys(storage: Storage, target: WriteTarget, file_slice: FileSlice) -> StoredKeys:
    """Read the keys of a slice. Requests: the key column of its base file, and its log. Memory: the keys."""
    rows = RowReading(storage, target.schema, target.reading, target.as_written).rows(file_slice, [RECORD_KEY])
    return StoredKeys(one_array(rows.column(RECORD_KEY)))
