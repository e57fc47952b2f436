"""Incoming rows as a file group stores them, with their meta fields. Spec: format/layout.md section 6."""

from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.schema.conversion import COMMIT_TIME, FILE_NAME, META_FIELDS, PARTITION_PATH, SEQUENCE_NUMBER

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)

_NUMBERS_KEPT, _NUMBERS_WORTH_KEEPING = 1 << 18, 1 << 12


@dataclass(frozen=True, slots=True)
class RowStamp:
    """What the meta fields of rows name: their write, its task, the partition, and the file."""

    requested: str
    task: int
    partition: str
    file_name: str

    @property
    def constants(self) -> dict[str, str]:
        """The meta fields that are the same in every row of a file."""
        return {PARTITION_PATH: self.partition, FILE_NAME: self.file_name}


def stored_rows(stamp: RowStamp, rows: pa.RecordBatch, schema: pa.Schema, start: int) -> pa.RecordBatch:
    """The rows with the columns of `schema`, and with those meta fields that it has.

    `start`: how many rows of this task came before; it numbers the rows. Seen: the sequence number is
    `<instant>_<task>_<n>`.
    """
    count = len(rows)
    texts = {COMMIT_TIME: stamp.requested, **stamp.constants}
    columns = []
    for name in schema.names:
        if name == SEQUENCE_NUMBER:
            numbers = _number_texts(start, count)
            columns.append(pc.binary_join_element_wise(f"{stamp.requested}_{stamp.task}_", numbers, ""))
        elif name in texts:
            columns.append(pa.repeat(texts[name], count))
        else:
            columns.append(rows.column(name))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def with_all_columns(rows: Rows, schema: pa.Schema) -> Rows:
    """New rows that came with only some of the columns. The other columns get nulls."""
    for field in schema:
        if field.name not in META_FIELDS and field.name not in rows.schema.names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows


def _number_texts(start: int, count: int) -> pa.Array:
    """The numbers from `start` on, as texts.

    The first of them are kept once a task has many rows, because each task counts its rows from 0.
    """
    if count >= _NUMBERS_WORTH_KEEPING and start + count <= _NUMBERS_KEPT:
        return _first_number_texts().slice(start, count)
    return pa.array(np.arange(start, start + count)).cast(pa.string())


@cache
def _first_number_texts() -> pa.Array:
    return pa.array(np.arange(_NUMBERS_KEPT)).cast(pa.string())
