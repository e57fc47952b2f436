"""Writing the rows of a base file as a Lance file, by the package `pylance`. Only `base_file_writer.py` imports this
module, and only for such a file.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, Final

import pyarrow as pa
from lance.file import LanceFileWriter

FLAT_VERSION: Final = "2.0"
"""Seen: 1.2.0 writes format 2.0, which stores no struct that is null."""
NESTED_VERSION: Final = "2.1"
"""For columns with structs. Seen: 1.2.0 reads it."""


class LanceSink:
    """The package writes files by name: the file is made in the system's folder for temporary files, and copied to the
    store at its end. What concerns keys goes to the metadata of the schema, and no Avro schema is noted.

    Spec: format/base-files.md.
    """

    schema_entry = "avro.schema"

    def __init__(self, sink: BinaryIO, schema: pa.Schema) -> None:
        """`schema`: the stored columns, without dictionaries."""
        self._sink, self._schema = sink, schema
        has_structs = any(_has_struct(field.type) for field in schema)
        self._folder = tempfile.TemporaryDirectory(prefix="pyhudi-")
        self._file = Path(self._folder.name) / "base.lance"
        version = NESTED_VERSION if has_structs else FLAT_VERSION
        self._writer = LanceFileWriter(str(self._file), schema, version=version)
        self.held_bytes = 0

    def write(self, rows: pa.Table, rows_max: int) -> None:
        for batch in rows.cast(self._schema).combine_chunks().to_batches(max_chunksize=rows_max):
            self._writer.write_batch(batch)
        self.held_bytes += rows.nbytes

    def finish(self, entries: Mapping[str, str]) -> None:
        for name, text in entries.items():
            if name != self.schema_entry:
                self._writer.add_schema_metadata(name, text)
        self._writer.close()
        with self._folder, self._file.open("rb") as made:
            copyfileobj(made, self._sink)

    def abandon(self) -> None:
        self._folder.cleanup()


def _has_struct(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_struct(kind.field(at).type) for at in range(kind.num_fields))
