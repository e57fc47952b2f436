"""Record keys and partition paths as native expressions, spelled as `format/keys.py` spells them."""

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f

from pyhudi.errors import Invalid
from pyhudi.format.keys import (
    DEFAULT_PARTITION,
    EMPTY_COMPONENT,
    ESCAPED_CHARACTERS,
    NULL_COMPONENT,
    KeySpec,
)


def record_key(spec: KeySpec, schema: pa.Schema) -> Column:
    """The record key; null where it is null or empty as a whole."""
    texts = [value_text(name, schema) for name in spec.record_key]
    if not spec.is_composite:
        return f.when(texts[0] != "", texts[0])
    is_there = texts[0].isNotNull() & (texts[0] != "")
    for text in texts[1:]:
        is_there = is_there | (text.isNotNull() & (text != ""))
    parts: list[Column] = []
    for name, text in zip(spec.record_key, texts, strict=True):
        component = f.when(text.isNull(), NULL_COMPONENT).when(text == "", EMPTY_COMPONENT).otherwise(text)
        parts += [f.lit(f"{',' if parts else ''}{name}:"), component]
    return f.when(is_there, f.concat(*parts))


def partition_path(spec: KeySpec, schema: pa.Schema) -> Column:
    """The partition path; the empty text for an unpartitioned table."""
    if not spec.partition_by:
        return f.lit("")
    levels: list[Column] = []
    for name in spec.partition_by:
        text = value_text(name, schema)
        level = f.when(text.isNull() | (text == ""), DEFAULT_PARTITION).otherwise(
            _url_encoded(text) if spec.is_url_encoded else text
        )
        if levels:
            levels.append(f.lit("/"))
        levels.append(f.concat(f.lit(f"{name}="), level) if spec.is_hive_style else level)
    return levels[0] if len(levels) == 1 else f.concat(*levels)


def value_text(name: str, schema: pa.Schema) -> Column:
    """The text of a column's value. Raises: Invalid for a type that cannot be part of a key."""
    column, kind = f.col(quoted(name)), schema.field(name).type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            return f.unix_micros(column).cast("string")
        epoch = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', "
        return f.expr(f"{epoch}{quoted(name)})").cast("string")
    if (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_floating(kind)
    ):
        return column.cast("string")
    raise Invalid(
        f"column '{name}' of type {kind}: expected text, a number, a boolean, a date or a timestamp, for it is part of "
        "the record key or the partition path"
    )


def quoted(name: str) -> str:
    """A column name that Spark takes as it is, dots included."""
    return f"`{name.replace('`', '``')}`"


def _url_encoded(text: Column) -> Column:
    """Percent first, so that the escapes themselves stay."""
    encoded = text
    for char in "%" + ESCAPED_CHARACTERS.replace("%", ""):
        encoded = f.replace(encoded, f.lit(char), f.lit(f"%{ord(char):02X}"))
    return encoded
