"""Changes in the columns of Apache Hudi's change data: texts, with the rows before and after as JSON."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from pyhudi.format.json_rows import json_texts

TEXT_SCHEMA: Final = pa.schema([pa.field(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""`ts_ms` is the requested time of the write, in spite of its name. Spec: format/queries.md section 3."""


def as_texts(changes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of a plan's changes as batches of `TEXT_SCHEMA`. A row that is not there is null."""
    for batch in changes:
        images = [json_texts(batch.column(name)) for name in ("before", "after")]
        yield pa.RecordBatch.from_arrays([batch.column("op"), batch.column("requested"), *images], schema=TEXT_SCHEMA)
