"""Partition columns that a table leaves out of its files: rows have their partition path's text in them.

Spec: format/layout.md section 7.2.
"""

from collections.abc import Collection

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.table.view.snapshot import Snapshot


def with_path_texts(incoming: pa.Schema, snapshot: Snapshot) -> pa.Schema:
    """The input's columns, as `as_path_texts`. Columns that an older commit states with another type keep it."""
    config = snapshot.config
    stored = snapshot.schema if config.left_out and snapshot.timeline.completed_writes else pa.schema([])
    typed = {field.name for field in stored if not pa.types.is_string(field.type)}
    return as_path_texts(incoming, [name for name in config.left_out if name not in typed], table_name=config.name)


def as_path_texts(columns: pa.Schema, left_out: Collection[str], *, table_name: str) -> pa.Schema:
    """The columns, with text for what the partition path spells without loss: whole numbers, booleans and dates.

    Raises: Invalid for a column of any other type: its values could not be told from the path.
    """
    fields = list(columns)
    for at, field in enumerate(fields):
        if field.name not in left_out or _is_text(field.type):
            continue
        if not _is_spelled(field.type):
            raise Invalid(
                f"table '{table_name}': partition column '{field.name}' of type {field.type}: expected text, "
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
