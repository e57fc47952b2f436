"""Partition columns that a table leaves out of its files: rows have their partition path's text in them.

Spec: format/layout.md section 7.2.
"""

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.table.view.snapshot import Snapshot


def with_path_texts(incoming: pa.Schema, snapshot: Snapshot) -> pa.Schema:
    """The input's columns, with text for what the partition path spells without loss: numbers, booleans and dates.

    Columns that an older file states with another type keep it. Raises: Invalid for a column of any other type: its
    values could not be told from the path.
    """
    fields = list(incoming)
    for at, field in enumerate(fields):
        if field.name not in snapshot.config.left_out or _is_text(field.type):
            continue
        stored = snapshot.schema.field(field.name).type if field.name in snapshot.schema.names else pa.string()
        if not pa.types.is_string(stored):
            continue
        if not _is_spelled(field.type):
            raise Invalid(
                f"table '{snapshot.config.name}': partition column '{field.name}' of type {field.type}: expected text, "
                "whole numbers, booleans or dates, for hoodie.datasource.write.drop.partition.columns='true' leaves it "
                "out of the files and the partition path stands for it; cast it to text"
            )
        fields[at] = field.with_type(pa.string())
    return pa.schema(fields)


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


def _is_spelled(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_null(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind)
    )
