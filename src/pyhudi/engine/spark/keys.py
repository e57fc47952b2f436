"""Record keys and partition paths as native expressions, spelled as `format/keys.py` spells them."""

from decimal import Decimal

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
        return _local_micros(column).cast("string")
    if pa.types.is_decimal(kind):
        return _decimal_text(name, kind.scale)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind) or pa.types.is_floating(kind):
        return column.cast("string")
    raise Invalid(
        f"column '{name}' of type {kind}: expected text, a number, a boolean, a date or a timestamp, for it is part of "
        "the record key or the partition path"
    )


def _local_micros(column: Column) -> Column:
    """Microseconds since 1970-01-01 00:00 of a timestamp without zone.

    By parts, for Spark's `timestampdiff` goes through the session's zone, which lacks an hour each spring.
    """
    minutes = f.unix_date(column.cast("date")).cast("long") * 1_440 + f.hour(column) * 60 + f.minute(column)
    seconds = f.date_part(f.lit("SECOND"), column)  # decimal(8, 6)
    return minutes * 60_000_000 + (seconds * 1_000_000).cast("long")


def _decimal_text(name: str, scale: int) -> Column:
    """A decimal as Java's `BigDecimal.toString` prints it: below 1E-6 by its digits and an exponent.

    A plain cast does so, or not, as the session's ANSI mode says; `try_cast` never does.
    """
    plain = f.expr(f"try_cast({quoted(name)} AS STRING)")
    if scale <= 6:
        return plain
    digits = f.regexp_replace(plain, "^-?0[.]0*", "")
    count = f.length(digits)
    tiny = f.concat(
        f.when(f.col(quoted(name)) < 0, "-").otherwise(""),
        digits.substr(f.lit(1), f.lit(1)),
        f.when(count > 1, f.concat(f.lit("."), digits.substr(f.lit(2), count))).otherwise(""),
        f.lit("E-"),
        (f.lit(scale + 1) - count).cast("string"),
    )
    size = f.abs(f.col(quoted(name)))
    return f.when(size == 0, f"0E-{scale}").when(size < f.lit(Decimal("0.000001")), tiny).otherwise(plain)


def quoted(name: str) -> str:
    """A column name that Spark takes as it is, dots included."""
    return f"`{name.replace('`', '``')}`"


def _url_encoded(text: Column) -> Column:
    """Percent first, so that the escapes themselves stay."""
    encoded = text
    for char in "%" + ESCAPED_CHARACTERS.replace("%", ""):
        encoded = f.replace(encoded, f.lit(char), f.lit(f"%{ord(char):02X}"))
    return encoded
