"""The rows of source files, as they are written whole to a table."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.services.bootstrap.layout import path_texts
from pyhudi.services.bootstrap.plan import PlacedSource
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.table.slices.base_files.stitched import filled
from pyhudi.table.slices.conform import conform_array


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Source files to read, and the columns to read them as. Picklable.

    `keys`: tell which columns are read from partition paths, where files lack them.
    """

    location: StorageLocation
    files: tuple[PlacedSource, ...]
    schema: pa.Schema
    keys: KeySpec

    def batches(self, files: Sequence[PlacedSource] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of the files, or of some of them, in order. Memory: a row group. Raises: CorruptFile."""
        storage = open_storage(self.location)
        names = self.schema.names
        for one in self.files if files is None else files:
            told = path_texts(one.partition, self.keys)
            with closing(open_base_file(storage, one.file.path)) as opened:
                stored = [name for name in names if name in opened.schema.names]
                lacking = {name: text for name, text in told.items() if name not in stored}
                for batch in opened.batches(stored):
                    rows = filled(batch, names, lacking)
                    columns = [
                        conform_array(rows.column(field.name), field.type, path=one.file.path, name=field.name)
                        for field in self.schema
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
