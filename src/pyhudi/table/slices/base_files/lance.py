"""Lance base files, read by the package `pylance`. Only `opening.py` imports this module, and only for such a file."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO

import pyarrow as pa
from lance.file import LanceFileReader

from pyhudi.errors import HudiError
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS, telling_corrupt, without_columns
from pyhudi.table.slices.base_files.zones import as_instants, instants_of

_named = partial(
    telling_corrupt, kind="a whole Lance file", broken=(pa.ArrowException, OSError, ValueError, RuntimeError)
)

_HELD_FACTOR = 4
"""How many times its stored size a file may take in memory, as a rule of thumb."""


class LanceBaseFile:
    """An open Lance file, which is one row group. The package opens files by name, so that it gets a copy of its own,
    in the system's folder for temporary files, until the file is closed.

    Seen: 1.2.0 writes format 2.0, and notes what concerns keys in the metadata of the schema.
    Spec: format/base-files.md.
    """

    def __init__(self, source: BinaryIO, path: str) -> None:
        """Raises: CorruptFile when it is no whole Lance file."""
        self.path = path
        with tempfile.NamedTemporaryFile(prefix="pyhudi-", suffix=".lance", delete=False) as copy:
            self._copy = Path(copy.name)
            copyfileobj(source, copy)
        source.close()
        try:
            with _named(path):
                self._metadata = LanceFileReader(copy.name).metadata()
                stored = self._metadata.schema
                self.schema = pa.schema([field.with_type(instants_of(field.type)) for field in stored])
        except HudiError:
            self.close()
            raise
        self.entries: Mapping[bytes, bytes] = dict(stored.metadata or {})
        self.row_count = int(self._metadata.num_rows)

    @property
    def group_rows(self) -> Sequence[int]:
        return (self.row_count,) if self.row_count else ()

    @property
    def held_bytes(self) -> int:
        return _HELD_FACTOR * int(self._metadata.num_data_bytes)

    def chunk(self, group: int, leaf: str) -> None:
        return None

    def batches(
        self,
        columns: Sequence[str],
        *,
        groups: Sequence[int] | None = None,
        use_threads: bool = False,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        if not self.row_count or (groups is not None and not len(groups)):
            return
        if not columns:
            yield without_columns(self.row_count)
            return
        wanted = pa.schema([self.schema.field(name) for name in columns])
        with _named(self.path):
            reader = LanceFileReader(str(self._copy), columns=list(columns))
            for batch in reader.read_all(batch_size=batch_rows).to_batches():
                found = [as_instants(batch.column(batch.schema.get_field_index(f.name)), f.type) for f in wanted]
                yield pa.RecordBatch.from_arrays(found, schema=wanted)

    def read(
        self, columns: Sequence[str], *, groups: Sequence[int] | None = None, use_threads: bool = False
    ) -> pa.Table:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns, groups=groups), schema)

    def close(self) -> None:
        self._copy.unlink(missing_ok=True)
