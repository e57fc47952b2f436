"""Writing base files as Apache Hudi writes them, with the entries beside their rows, as a stream."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.footer import BLOOM_FILTER, BLOOM_KIND, MAX_KEY, MIN_KEY
from pyhudi.format.hidden_nulls import without_hidden_nulls
from pyhudi.format.leaf_bounds import leaves, leaves_with_bounds
from pyhudi.format.schema.conversion import (
    FILE_NAME,
    META_FIELDS,
    RECORD_KEY,
    SEQUENCE_NUMBER,
    arrow_from_avro,
    leave_out_fields,
)
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.write.handles.file_sinks import FileSink, OrcSink, ParquetSink
from pyhudi.write.handles.hfile_sink import HFileSink
from pyhudi.write.handles.key_filter import FilterSettings, KeyFilter
from pyhudi.write.orc_settings import OrcSettings

ROW_GROUP_ROWS_MAX = 1_048_576
_SAMPLE_ROWS = 4_096
_SAMPLE_PIECES = 16
_MOSTLY_NEW = 0.8
_NEVER_FILLED = frozenset(META_FIELDS) - {FILE_NAME}


@dataclass(frozen=True, slots=True)
class BaseFileSettings:
    """How base files are written. Units: bytes.

    `row_group_size_bytes` counts Arrow bytes in memory, before encoding. `bloom`: None: files have no Bloom filter.
    `fills_meta`: if off, the meta fields are null but for the file's name. `extension`: of the files' names; it tells
    their format. `orc`: how ORC files are written. `left_out`: columns of rows that files do not hold.
    """

    compression: str
    file_size_max_bytes: int
    row_group_size_bytes: int
    page_size_bytes: int
    bloom: FilterSettings | None
    fills_meta: bool = True
    extension: str = ".parquet"
    orc: OrcSettings = field(default_factory=OrcSettings)
    left_out: tuple[str, ...] = ()

    def of_table(self, config: TableConfig) -> Self:
        """As a table has its base files: their format, whether their meta fields are filled, and what they leave out.

        Spec: format/layout.md sections 6 and 7.2; format/base-files.md.
        """
        own = replace(self, extension=f".{config.base_format.lower()}", left_out=config.left_out)
        return own if config.has_meta_fields else replace(own, bloom=None, fills_meta=False)

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
        schema = without(schema, settings.left_out)
        self._settings, self._avro_schema = settings, leave_out_fields(avro_schema, settings.left_out)
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
        self._path = path
        self._writer: FileSink | None = None

    def write(self, batch: pa.RecordBatch, *, new_keys: pa.Array | None) -> None:
        """Append rows. `new_keys`: record keys that the Bloom filter and the key range do not know yet."""
        if len(batch) == 0:
            return
        if self._settings.left_out:
            batch = batch.select(self.given.names)
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
        """Bytes that have left for the storage so far, and those that a format holds back to sort them."""
        return self._sink.tell() + (0 if self._writer is None else self._writer.held_bytes)

    def _note_keys(self, keys: pa.Array) -> None:
        if self._bloom is not None:
            self._bloom.add(keys)
        seen = pc.min_max(keys).as_py()
        low, high = self._range if self._range is not None else (seen["min"], seen["max"])
        self._range = min(low, seen["min"]), max(high, seen["max"])

    def _flush(self, *, is_last: bool) -> None:
        if self._pending:
            given = without_hidden_nulls(pa.Table.from_batches(self._pending, self.given))
            codes = pa.array(np.zeros(len(given), dtype=np.int32))
            columns = [
                pa.DictionaryArray.from_arrays(codes, pa.array([self._constants[name]], pa.string()))
                if name in self._constants
                else given.column(name)
                for name in self._schema.names
            ]
            if not self._settings.fills_meta:
                columns = [
                    pa.nulls(len(given), field.type) if field.name in _NEVER_FILLED else column
                    for field, column in zip(self._schema, columns, strict=True)
                ]
            rows = pa.Table.from_arrays(columns, schema=self._schema)
            self._opened(rows, is_whole=is_last).write(rows, ROW_GROUP_ROWS_MAX)
            self._pending, self._pending_bytes, self._pending_rows = [], 0, 0

    def _opened(self, rows: pa.Table, *, is_whole: bool) -> FileSink:
        """The writer of the file's format. The first rows decide which columns of a Parquet file get dictionaries, and
        bounds.

        `is_whole`: they are all rows of the file.
        """
        settings = self._settings
        if self._writer is None and settings.extension == ".orc":
            self._writer = OrcSink(
                self._sink, self._schema, compression=settings.orc.codec,
                stripe_size_bytes=settings.orc.stripe_size_bytes, path=self._path,
            )  # fmt: skip
        elif self._writer is None and settings.extension == ".hfile":
            self._writer = HFileSink(self._sink, self._avro_schema, path=self._path)
        elif self._writer is None and settings.extension == ".lance":
            self._writer = _lance_sink(self._sink, arrow_from_avro(self._avro_schema))
        elif self._writer is None:
            assert settings.extension == ".parquet", "a table of another format is refused"
            self._writer = ParquetSink(
                self._sink, self._schema, compression=settings.compression, dictionary=dictionary_columns(rows),
                bounds=leaves_with_bounds(rows, is_whole=is_whole), page_size_bytes=settings.page_size_bytes,
            )  # fmt: skip
        return self._writer

    def _footer(self, schema_entry: str) -> dict[str, str]:
        footer = {schema_entry: self._avro_schema}
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
                writer.finish(self._footer(writer.schema_entry))
                self._before_visible()
        else:
            try:
                if self._writer is not None:
                    self._writer.abandon()
            finally:
                self._stack.__exit__(kind, error, trace)


def _lance_sink(sink: BinaryIO, schema: pa.Schema) -> FileSink:
    """A table of Lance files is refused before a write where the package is missing."""
    from pyhudi.write.handles.lance_sink import LanceSink

    return LanceSink(sink, schema)


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
    for column in rows.schema:
        if column.name in (RECORD_KEY, SEQUENCE_NUMBER):
            continue
        if not (pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type)) and len(sample):
            distinct = pc.count_distinct(sample.column(column.name), mode="all").as_py()
            if distinct > _MOSTLY_NEW * len(sample):
                continue
        names += leaves(column.name, column.type)
    return names
