"""HFiles as base files of a data table."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from io import SEEK_END
from typing import BinaryIO, Final

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.footer import BLOOM_FILTER, BLOOM_KIND, MAX_KEY, MIN_KEY
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.hfile.rows import row_batches
from pyhudi.format.schema.conversion import arrow_from_avro
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS, corrupt_file, without_columns

BLOOM_BLOCK: Final = "bloomFilter"
"""The meta block with the Bloom filter, as the text that other formats keep in their footer."""

INFO_NAMES: Final = {BLOOM_KIND: "bloomFilterTypeCode", MIN_KEY: "minRecordKey", MAX_KEY: "maxRecordKey"}
"""How an HFile's file info names the entries of other formats' footers."""

_HELD_FACTOR = 8
"""How many times its stored size a file may take in memory, as a rule of thumb."""


class HFileBaseFile:
    """An open HFile. It is one row group, and tells no statistics. Its rows ascend by record key.

    Rows are stored one behind the other: reading one column decodes all rows.
    Seen: 0.15.0 (index BUCKET) and 1.2.0 (BUCKET, BLOOM). Spec: format/hfile.md sections 5 and 7.
    """

    def __init__(self, source: BinaryIO, path: str) -> None:
        """Raises: CorruptFile when it is no whole HFile of rows."""
        self.path = path
        self._source = source
        size_bytes = source.seek(0, SEEK_END)
        self._size_bytes = size_bytes
        self._reader = HFileReader.by_ranges(_Ranges(source), size_bytes, path=path)
        text = self._reader.schema_text
        try:
            if text is None:
                raise Invalid("no entry 'schema'")
            self.schema = arrow_from_avro(text)
        except Invalid as error:
            raise corrupt_file(path, "an HFile of rows, with their Avro schema", error) from error
        self._schema_text = text

    @property
    def group_rows(self) -> Sequence[int]:
        return (self.row_count,) if self.row_count else ()

    @property
    def row_count(self) -> int:
        return self._reader.entry_count

    @cached_property
    def entries(self) -> Mapping[bytes, bytes]:
        info = self._reader.file_info
        found = {name.encode(): info[own] for name, own in INFO_NAMES.items() if own in info}
        bloom = self._reader.meta(BLOOM_BLOCK)
        return found if bloom is None else {**found, BLOOM_FILTER.encode(): bytes(bloom)}

    @property
    def held_bytes(self) -> int:
        return _HELD_FACTOR * self._size_bytes

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
        if groups is not None and not len(groups):
            return
        if not columns:
            if self.row_count:
                yield without_columns(self.row_count)
            return
        wanted = pa.schema([self.schema.field(name) for name in columns])
        for batch in row_batches(self._reader, self._schema_text, tuple(columns), path=self.path):
            rows = pa.RecordBatch.from_arrays(batch.cast(wanted).columns, schema=wanted)
            for start in range(0, len(rows), batch_rows):
                yield rows.slice(start, batch_rows)

    def read(
        self, columns: Sequence[str], *, groups: Sequence[int] | None = None, use_threads: bool = False
    ) -> pa.Table:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns, groups=groups), schema)

    def close(self) -> None:
        self._source.close()


class _Ranges:
    """The ranges of an open file."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source

    def read_at(self, offset: int, size: int) -> bytes:
        self._source.seek(offset)
        return self._source.read(size)
