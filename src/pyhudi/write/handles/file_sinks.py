"""Writing the rows of a base file in its format: tables in, bytes out, and what the writer notes beside the rows."""

from collections.abc import Callable, Mapping
from typing import BinaryIO, Final, Protocol

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from pyhudi.format.arrow_arrays import null_mask
from pyhudi.format.orc.tail import with_entries
from pyhudi.write.handles.orc_times import refuse_unreadable_times

_PAGE_ROWS_MAX: Final = 20_000
"""As in Apache Hudi. Readers that use a page index, such as Spark, decode only pages that may match."""

ORC_CHUNK_BYTES: Final = 262_144


class FileSink(Protocol):
    """A base file that is being written. `finish` or `abandon` ends it."""

    schema_entry: str
    """The name under which a file of this format notes the Avro schema of its rows."""
    held_bytes: int
    """Bytes of rows, roughly, that reach the store only when the file ends."""

    def write(self, rows: pa.Table, rows_max: int) -> None:
        """Append rows, in row groups of at most `rows_max`, where the format has such."""

    def finish(self, entries: Mapping[str, str]) -> None:
        """End the file, with these entries beside its rows."""

    def abandon(self) -> None:
        """Let go of a file that will not be seen. Otherwise it would write its end once it is collected."""


class ParquetSink:
    schema_entry = "parquet.avro.schema"
    held_bytes = 0

    def __init__(
        self,
        sink: BinaryIO,
        schema: pa.Schema,
        *,
        compression: str,
        dictionary: list[str],
        bounds: list[str],
        page_size_bytes: int,
    ) -> None:
        """`dictionary`, `bounds`: the columns, as Parquet names them, that get dictionaries, and least and greatest
        values.
        """
        self._writer = pq.ParquetWriter(
            sink,
            schema,
            compression=compression,
            use_dictionary=dictionary,
            write_statistics=bounds,
            data_page_size=page_size_bytes,
            max_rows_per_page=_PAGE_ROWS_MAX,
            write_page_index=True,
            store_schema=False,
            version="2.6",
        )

    def write(self, rows: pa.Table, rows_max: int) -> None:
        self._writer.write_table(rows, rows_max)

    def finish(self, entries: Mapping[str, str]) -> None:
        self._writer.add_key_value_metadata({**entries, "writer.model.name": "avro"})
        self._writer.close()

    def abandon(self) -> None:
        self._writer.close()


class OrcSink:
    """Timestamps are clock readings of UTC, without a zone, as in files of Apache Hudi (0.15.0, 1.2.0).

    PyArrow writes no entries beside the rows: the end of the file is held back, and gets them.
    """

    schema_entry = "orc.avro.schema"
    held_bytes = 0

    def __init__(
        self, sink: BinaryIO, schema: pa.Schema, *, compression: str, stripe_size_bytes: int, path: str
    ) -> None:
        self._held = _HeldEnd(sink)
        self._path = path
        self._schema = pa.schema([field.with_type(_clock_of(field.type)) for field in schema])
        self._writer = orc.ORCWriter(
            pa.PythonFile(self._held, mode="w"),
            compression=compression,
            compression_block_size=ORC_CHUNK_BYTES,
            stripe_size=stripe_size_bytes,
        )
        self._has_rows = False

    def write(self, rows: pa.Table, rows_max: int) -> None:
        refuse_unreadable_times(rows, path=self._path)
        cast = rows.cast(self._schema)
        self._writer.write(
            pa.Table.from_arrays([_with_nulls_below(column) for column in cast.columns], schema=self._schema)
        )
        self._has_rows = True

    def finish(self, entries: Mapping[str, str]) -> None:
        if not self._has_rows:  # the first rows tell the columns
            self._writer.write(self._schema.empty_table())
        self._held.holds = True
        self._writer.close()
        self._held.release(lambda ending: with_entries(ending, entries, path=self._path))

    def abandon(self) -> None:
        self._held.holds = True
        self._writer.close()


class _HeldEnd:
    """A file to write that can hold back what is written to it. The methods have the names that PyArrow calls."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink, self._parts = sink, list[bytes]()
        self._position = 0
        self.holds = self.closed = False

    def write(self, data: bytes) -> int:
        content = bytes(data)
        self._position += len(content)
        if self.holds:
            self._parts.append(content)
        else:
            self._sink.write(content)
        return len(content)

    def release(self, change: Callable[[bytes], bytes]) -> None:
        """Write what was held, changed."""
        self._sink.write(change(b"".join(self._parts)))
        self._parts = []

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _with_nulls_below(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A copy in which the fields of a null struct are null, and whose arrays begin where their buffers begin.

    Seen: PyArrow 26 leaves out the rows of null structs, and not what their fields hold: the values of later rows move
    up. It minds only structs that lie in nothing but structs of which some are null. Of a slice it takes the nulls of
    the array's first structs.
    """
    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([_masked(pa.concat_arrays([chunk])) for chunk in column.chunks], column.type)


def _masked(array: pa.Array) -> pa.Array:
    """The array with the nulls of each struct in its fields, too."""
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [_masked(field) for field in array.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=null_mask(array)) if fields else array
    if not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return array

    buffers, below = array.buffers()[:2], array.values
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=[_masked(below)])


def _clock_of(kind: pa.DataType) -> pa.DataType:
    """The type as ORC files have it: without dictionaries, and without zones."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_clock_of(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_clock_of(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_clock_of(kind.key_type), kind.item_field.with_type(_clock_of(kind.item_type)))
    return kind
