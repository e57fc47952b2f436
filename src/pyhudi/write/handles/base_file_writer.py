"""Writing base files as Apache Hudi writes them: Parquet with its footer entries, as a stream."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.format.footer import BLOOM_FILTER, BLOOM_KIND, MAX_KEY, MIN_KEY
from pyhudi.format.schema.conversion import RECORD_KEY, SEQUENCE_NUMBER
from pyhudi.storage.protocol import Storage
from pyhudi.write.handles.key_filter import FilterSettings, KeyFilter
from pyhudi.write.handles.leaf_bounds import leaves, leaves_with_bounds

AVRO_SCHEMA = "parquet.avro.schema"
WRITER_MODEL = "writer.model.name"

ROW_GROUP_ROWS_MAX = 1_048_576
_PAGE_ROWS_MAX = 20_000
"""As in Apache Hudi. Readers that use a page index, such as Spark, decode only pages that may match."""
_SAMPLE_ROWS = 4_096
_SAMPLE_PIECES = 16
_MOSTLY_NEW = 0.8


@dataclass(frozen=True, slots=True)
class BaseFileSettings:
    """How base files are written. Units: bytes.

    `row_group_size_bytes` counts Arrow bytes in memory, before encoding. `bloom`: None: files have no Bloom filter.
    """

    compression: str
    file_size_max_bytes: int
    row_group_size_bytes: int
    page_size_bytes: int
    bloom: FilterSettings | None

    def new_bloom(self) -> KeyFilter | None:
        return None if self.bloom is None else KeyFilter(self.bloom)


class BaseFileWriter:
    """Writes one base file. It becomes visible, and whole, once `with` ends without an exception.

    `constants`: text columns with one value in all rows. Batches come without them; `given` is the batches' schema.
    `before_visible`: called last, before the file becomes visible. If it raises, the file is never seen.

    Memory: the rows of one row group. Spec: format/layout.md section 7.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        avro_schema: str,
        settings: BaseFileSettings,
        *,
        constants: Mapping[str, str],
        bloom: KeyFilter | None,
        key_range: tuple[str, str] | None = None,
        before_visible: Callable[[], None] = lambda: None,
    ) -> None:
        self._before_visible = before_visible
        self._settings, self._avro_schema = settings, avro_schema
        self._schema, self._constants, self.given = (
            _as_written(schema, constants),
            constants,
            without(schema, constants),
        )

        self._bloom, self._range = bloom, key_range
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._pending_rows = 0
        self.rows = 0

        self._stack = ExitStack()
        self._sink = self._stack.enter_context(storage.put_stream(path))
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch, *, new_keys: pa.Array | None) -> None:
        """Append rows. `new_keys`: record keys that the Bloom filter and the key range do not know yet."""
        if len(batch) == 0:
            return
        if new_keys is not None and len(new_keys):
            self._note_keys(new_keys)

        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        self._pending_rows += len(batch)
        self.rows += len(batch)

        if self._pending_bytes >= self._settings.row_group_size_bytes or self._pending_rows >= ROW_GROUP_ROWS_MAX:
            self._flush(is_last=False)

    @property
    def size_bytes(self) -> int:
        """Bytes that have left for the storage so far."""
        return self._sink.tell()

    def _note_keys(self, keys: pa.Array) -> None:
        if self._bloom is not None:
            self._bloom.add(keys)
        seen = pc.min_max(keys).as_py()
        low, high = self._range if self._range is not None else (seen["min"], seen["max"])
        self._range = min(low, seen["min"]), max(high, seen["max"])

    def _flush(self, *, is_last: bool) -> None:
        if self._pending:
            given = pa.Table.from_batches(self._pending, self.given)
            codes = pa.array(np.zeros(len(given), dtype=np.int32))
            columns = [
                pa.DictionaryArray.from_arrays(codes, pa.array([self._constants[name]], pa.string()))
                if name in self._constants
                else given.column(name)
                for name in self._schema.names
            ]
            rows = pa.Table.from_arrays(columns, schema=self._schema)
            self._opened(rows, is_whole=is_last).write_table(rows, ROW_GROUP_ROWS_MAX)
            self._pending, self._pending_bytes, self._pending_rows = [], 0, 0

    def _opened(self, rows: pa.Table, *, is_whole: bool) -> pq.ParquetWriter:
        """The Parquet writer. Its first rows decide which columns get dictionaries, and bounds.

        `is_whole`: they are all rows of the file.
        """
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                compression=self._settings.compression,
                use_dictionary=dictionary_columns(rows),
                write_statistics=leaves_with_bounds(rows, is_whole=is_whole),
                data_page_size=self._settings.page_size_bytes,
                max_rows_per_page=_PAGE_ROWS_MAX,
                write_page_index=True,
                store_schema=False,
                version="2.6",
            )
        return self._writer

    def _footer(self) -> dict[str, str]:
        footer = {AVRO_SCHEMA: self._avro_schema, WRITER_MODEL: "avro"}
        if self._bloom is not None:
            found = self._bloom.finish()
            footer[BLOOM_FILTER] = found.encode()
            if found.kind != "SIMPLE":
                footer[BLOOM_KIND] = found.kind
            if self._range is not None:
                footer[MIN_KEY], footer[MAX_KEY] = self._range
        return footer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            with self._stack:
                self._flush(is_last=True)
                writer = self._opened(self._schema.empty_table(), is_whole=True)
                writer.add_key_value_metadata(self._footer())
                writer.close()
                self._before_visible()
        else:
            # Closing writes a footer into a file that is then thrown away. A writer that is left open would write it
            # when it is collected.
            try:
                if self._writer is not None:
                    self._writer.close()
            finally:
                self._stack.__exit__(kind, error, trace)


def without(schema: pa.Schema, constants: Iterable[str]) -> pa.Schema:
    """The schema of rows that come without these columns."""
    gone = set(constants)
    return pa.schema([field for field in schema if field.name not in gone])


def _as_written(schema: pa.Schema, constants: Mapping[str, str]) -> pa.Schema:
    """Give constants to Parquet's writer as codes of a dictionary, so that it hashes no text. The file is the same."""
    coded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(coded) if field.name in constants else field for field in schema])


def dictionary_columns(rows: pa.Table) -> list[str]:
    """The leaves, as Parquet names them, for which a dictionary pays: those whose values repeat.

    A sample decides. Where nearly every value is new, trying a dictionary costs several times the plain encoding and
    makes the file larger.
    """
    starts = np.linspace(0, len(rows), _SAMPLE_PIECES, endpoint=False, dtype=np.int64)
    sample = pa.concat_tables(
        [rows.slice(start, _SAMPLE_ROWS // _SAMPLE_PIECES) for start in np.unique(starts).tolist()]
    )

    names: list[str] = []
    for field in rows.schema:
        if field.name in (RECORD_KEY, SEQUENCE_NUMBER):
            continue
        if not (pa.types.is_nested(field.type) or pa.types.is_dictionary(field.type)) and len(sample):
            distinct = pc.count_distinct(sample.column(field.name), mode="all").as_py()
            if distinct > _MOSTLY_NEW * len(sample):
                continue
        names += leaves(field.name, field.type)
    return names
