"""Writing the rows of a base file as an HFile: sorted by record key, each key once."""

from collections.abc import Mapping
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.avro.encode import row_encoder
from pyhudi.format.footer import BLOOM_FILTER
from pyhudi.format.hfile.rows import KEY
from pyhudi.format.hfile.writer import KEY_SIZE_MAX, encode_hfile_table
from pyhudi.format.log.writer import row_values
from pyhudi.format.schema.conversion import RECORD_KEY, arrow_from_avro
from pyhudi.table.slices.base_files.hfile import BLOOM_BLOCK, INFO_NAMES

_BATCH_ROWS: Final = 65_536
_NO_CELLS: Final = pa.array([], pa.large_binary())


class HFileSink:
    """Rows are held as encoded bytes until the file ends, because they are stored in the order of their keys.

    Memory: the encoded rows of the file, twice at its end.
    Seen: 0.15.0 and 1.2.0 store a column `key` empty and fill it with the record key. Tables where it is another value
    are refused (`input/file_limits.py`). Spec: format/hfile.md sections 5 and 7.
    """

    schema_entry = "schema"

    def __init__(self, sink: BinaryIO, avro_schema: str, *, path: str) -> None:
        self._sink, self._path = sink, path
        self._avro_schema, self._schema = avro_schema, arrow_from_avro(avro_schema)
        self._encoder = row_encoder(avro_schema)
        self._keys: list[pa.Array] = []
        self._values: list[pa.Array] = []
        self.held_bytes = 0

    def write(self, rows: pa.Table, rows_max: int) -> None:
        plain = rows.cast(self._schema)
        self._keys += [chunk.cast(pa.large_binary()) for chunk in plain.column(RECORD_KEY).chunks]
        if KEY in self._schema.names and pa.types.is_string(self._schema.field(KEY).type):
            at = self._schema.get_field_index(KEY)
            plain = plain.set_column(at, self._schema.field(KEY), pa.array([""] * len(plain), pa.string()))
        for batch in plain.to_batches(max_chunksize=_BATCH_ROWS):
            values = row_values(self._encoder.encode(batch))
            self._values.append(values)
            self.held_bytes += values.nbytes

    def finish(self, entries: Mapping[str, str]) -> None:
        """Raises: Invalid for a key that comes twice, or is too long for the format."""
        keys, values = pa.chunked_array([_NO_CELLS, *self._keys]), pa.chunked_array([_NO_CELLS, *self._values])
        order = pc.sort_indices(keys)
        cells = pa.table({"key": keys.take(order), "value": values.take(order)}).combine_chunks()
        self._refuse_unfit(cells.column("key"))
        info = {own: entries[name].encode() for name, own in INFO_NAMES.items() if name in entries}
        if BLOOM_FILTER in entries:
            info.setdefault(INFO_NAMES["hoodie_bloom_filter_type_code"], b"SIMPLE")
        meta = {BLOOM_BLOCK: entries[BLOOM_FILTER].encode()} if BLOOM_FILTER in entries else {}
        self._sink.write(encode_hfile_table(cells, schema_text=self._avro_schema, file_info=info, meta=meta))

    def abandon(self) -> None:
        self._keys, self._values = [], []

    def _refuse_unfit(self, keys: pa.ChunkedArray) -> None:
        twice = pc.equal(keys.slice(1), keys.slice(0, max(0, len(keys) - 1)))
        if pc.any(twice, min_count=0).as_py():
            found = keys.slice(1).filter(twice)[0].as_py().decode()
            raise Invalid(
                f"{self._path}: the record key '{found}' comes twice: expected each key once, for an HFile stores rows "
                "under their keys; combine the rows of a key (hoodie.combine.before.insert), or upsert them"
            )
        longest = pc.max(pc.binary_length(keys)).as_py() or 0
        if longest > KEY_SIZE_MAX:
            raise Invalid(
                f"{self._path}: a record key of {longest:,} bytes: expected at most {KEY_SIZE_MAX:,} in an HFile"
            )
