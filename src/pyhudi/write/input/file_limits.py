"""What tables of HFiles and of Lance files cannot hold."""

import pyarrow as pa

from pyhudi.errors import Unsupported
from pyhudi.format.hfile.rows import KEY
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.table.facts.config import BASE_FORMAT, TableConfig


def refuse_unfit_for_hfile(config: TableConfig, schema: pa.Schema, keys: KeySpec) -> None:
    """Refuse a text column `key` that is not the record key itself. `schema`: the columns of the write.

    Seen: readers of HFiles put the record key into a column of this name where it is empty, and writers empty it
    (0.15.0, 1.2.0). Another value would be lost. Spec: format/hfile.md section 7. Raises: Unsupported.
    """
    if config.base_format != "HFILE" or KEY not in schema.names or not pa.types.is_string(schema.field(KEY).type):
        return
    if keys.record_key != (KEY,) or keys.is_composite:
        raise Unsupported(
            f"table '{config.name}': {BASE_FORMAT}='HFILE' and a text column '{KEY}' that is not the record key: "
            "HFiles have the record key under this name; rename the column, or use Parquet or ORC files"
        )


def refuse_unfit_for_lance(config: TableConfig, schema: pa.Schema) -> None:
    """Refuse maps in a table of Lance files. `schema`: the columns of the write.

    Seen: pylance 14 writes no maps in the formats 2.0 and 2.1. Raises: Unsupported.
    """
    found = next((field for field in schema if _has_map(field.type)), None)
    if config.base_format == "LANCE" and found is not None:
        raise Unsupported(
            f"table '{config.name}': {BASE_FORMAT}='LANCE' and column '{found.name}' of type {found.type}: Lance files "
            "hold no maps; use a list of structs, or Parquet or ORC files"
        )


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_map(kind.field(at).type) for at in range(kind.num_fields))
