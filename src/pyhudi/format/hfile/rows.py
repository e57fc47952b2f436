"""Rows of a table in an HFile: each value is a row of Avro, under its record key."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.avro.decode import row_decoder
from pyhudi.format.hfile.reader import HFileReader

KEY: Final = "key"
"""The field that the values of an HFile store empty, because the cell's key holds its text."""

BATCH_ROWS: Final = 65_536


def row_batches(
    reader: HFileReader, schema_text: str, columns: tuple[str, ...], *, path: str
) -> Iterator[pa.RecordBatch]:
    """These columns of the rows, in the order of the record keys. `schema_text`: the Avro schema of the values.

    Memory: a few megabytes of cells, and their rows.
    Seen: a field `key`, where the schema has one, is stored empty; the cell's key is its value.
    Spec: format/hfile.md section 7. Raises: CorruptFile for a value that is no row of the schema.
    """
    decoder = row_decoder(schema_text, None, columns)
    keyed = next((index for index, name in enumerate(columns) if name == KEY), None)

    for part in reader.batches():
        for start in range(0, len(part), BATCH_ROWS):
            cells = part.slice(start, BATCH_ROWS)
            batch = decoder.decode_values(cells.column(1), path=path)
            if keyed is not None and pa.types.is_string(batch.schema.field(keyed).type):
                keys = cells.column(0).cast(pa.string())
                column = batch.column(keyed)
                filled = pc.if_else(pc.fill_null(pc.equal(column, ""), False), keys, column)
                batch = batch.set_column(keyed, batch.schema.field(keyed), filled)
            yield batch
