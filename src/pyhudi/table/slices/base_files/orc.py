"""ORC base files."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import BinaryIO

import pyarrow as pa
import pyarrow.orc as orc

from pyhudi.errors import Unsupported
from pyhudi.format.orc.tail import OrcTail, decode_tail, decode_writer_zone
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS, telling_corrupt, without_columns
from pyhudi.table.slices.base_files.zones import (
    NANOSECOND_MILLIS,
    UTC_NAMES,
    as_instants,
    has_timestamp,
    instants_of,
)

_named = partial(telling_corrupt, kind="a whole ORC file", broken=(pa.ArrowException, OSError, UnicodeDecodeError))

_HELD_FACTOR = 4
"""How many times its stored size a file may take in memory, as a rule of thumb."""


class OrcBaseFile:
    """An open ORC file. Its stripes are the row groups. PyArrow tells no statistics of them.

    Seen: timestamps have no zone. They are readings of the clock in the zone that the writer ran in, which each stripe
    names (0.15.0, 1.2.0: UTC). PyArrow gives the readings, in nanoseconds; here they are instants in microseconds.
    """

    def __init__(self, source: BinaryIO, path: str) -> None:
        """Raises: CorruptFile when it is no whole ORC file."""
        self.path = path
        self._source = source
        with _named(path):
            self._file = orc.ORCFile(source)
            self.schema = pa.schema([field.with_type(instants_of(field.type)) for field in self._file.schema])

    @cached_property
    def _tail(self) -> OrcTail:
        return decode_tail(self._file.reader.serialized_file_tail(), path=self.path)

    @property
    def group_rows(self) -> Sequence[int]:
        return self._tail.stripe_rows

    @property
    def row_count(self) -> int:
        return int(self._file.nrows)

    @cached_property
    def entries(self) -> Mapping[bytes, bytes]:
        return dict(self._file.metadata or {})

    @property
    def held_bytes(self) -> int:
        return _HELD_FACTOR * int(self._file.content_length)

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
        wanted = pa.schema([self.schema.field(name) for name in columns])
        for number in range(len(self.group_rows)) if groups is None else groups:
            rows = self._stripe(number, wanted)
            for start in range(0, len(rows), batch_rows):
                yield rows.slice(start, batch_rows)

    def read(
        self, columns: Sequence[str], *, groups: Sequence[int] | None = None, use_threads: bool = False
    ) -> pa.Table:
        wanted = pa.schema([self.schema.field(name) for name in columns])
        numbers = range(len(self.group_rows)) if groups is None else groups
        return pa.Table.from_batches([self._stripe(number, wanted) for number in numbers], wanted)

    def _stripe(self, number: int, wanted: pa.Schema) -> pa.RecordBatch:
        if not len(wanted):
            return without_columns(self.group_rows[number])
        zone = self._zone(number) if any(has_timestamp(field.type) for field in wanted) else None
        with _named(self.path):
            # The file gives columns in its own order, whatever the order of their names here.
            rows = self._file.read_stripe(number, columns=wanted.names)
            columns = [rows.column(rows.schema.get_field_index(field.name)) for field in wanted]
        found = [as_instants(column, field.type, zone) for column, field in zip(columns, wanted, strict=True)]
        return pa.RecordBatch.from_arrays(found, schema=wanted)

    def _zone(self, number: int) -> str | None:
        """The zone of a stripe's clock readings; None: UTC.

        Raises: Unsupported for readings that PyArrow cannot hold.
        """
        for least, greatest in self._tail.timestamp_bounds_ms.values():
            if least <= -NANOSECOND_MILLIS or greatest >= NANOSECOND_MILLIS:
                raise Unsupported(
                    f"{self.path}: a timestamp before 1677 or after 2262 in an ORC file, which PyArrow does not read: "
                    "leave out the file's timestamp columns, or rewrite the table with Parquet files"
                )
        stripe = self._tail.stripes[number]
        with _named(self.path):
            self._source.seek(stripe.footer_start)
            content = self._source.read(stripe.footer_size)
        zone = decode_writer_zone(self._tail.compression.decode(content, path=self.path), path=self.path)
        return None if zone is None or zone in UTC_NAMES else zone

    def close(self) -> None:
        self._source.close()
