"""Files of a table that stores no record keys: they are made of the key columns when they are asked for."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import KeySpec, record_keys
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS, OpenBaseFile
from pyhudi.table.slices.base_files.statistics import ChunkFacts
from pyhudi.table.slices.conform import conform_batch


class KeyedFile:
    """A file whose column of record keys is computed, whatever is stored in it.

    Seen: with `hoodie.populate.meta.fields=false` the stored column is null, or an empty text (0.15.0, 1.2.0). Spec:
    format/layout.md section 6.
    """

    def __init__(self, file: OpenBaseFile, keys: KeySpec, kinds: pa.Schema) -> None:
        """`kinds`: the table's columns, for keys are spelled of values of their types."""
        self._file, self._keys, self._kinds = file, keys, kinds
        others = [field for field in file.schema if field.name != RECORD_KEY]
        self.schema = pa.schema([*others, pa.field(RECORD_KEY, pa.string())])
        self.path, self.row_count = file.path, file.row_count
        self.entries: Mapping[bytes, bytes] = {}

    @property
    def group_rows(self) -> Sequence[int]:
        return self._file.group_rows

    @property
    def held_bytes(self) -> int:
        return self._file.held_bytes

    def chunk(self, group: int, leaf: str) -> ChunkFacts | None:
        return None if leaf == RECORD_KEY else self._file.chunk(group, leaf)

    def batches(
        self,
        columns: Sequence[str],
        *,
        groups: Sequence[int] | None = None,
        use_threads: bool = False,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        stored = columns
        if RECORD_KEY in columns:
            stored = list(dict.fromkeys([*(name for name in columns if name != RECORD_KEY), *self._keys.key_columns]))
        for batch in self._file.batches(stored, groups=groups, use_threads=use_threads, batch_rows=batch_rows):
            yield self._keyed(batch, columns)

    def read(
        self, columns: Sequence[str], *, groups: Sequence[int] | None = None, use_threads: bool = False
    ) -> pa.Table:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns, groups=groups, use_threads=use_threads), schema)

    def _keyed(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        if RECORD_KEY not in columns:
            return batch
        kinds = [
            self._kinds.field(field.name)
            if field.name in self._keys.key_columns and field.name in self._kinds.names
            else field
            for field in batch.schema
        ]
        typed = conform_batch(batch, pa.schema(kinds), path=self.path)
        spelled = one_array(record_keys(pa.Table.from_batches([typed]), self._keys))
        found = {**dict(zip(batch.schema.names, batch.columns, strict=True)), RECORD_KEY: spelled}
        return pa.RecordBatch.from_arrays([found[name] for name in columns], names=list(columns))

    def close(self) -> None:
        self._file.close()
