"""Record keys and partition paths as native expressions. Their values are those of `format/keys/record_keys.py`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from pyhudi.engine.local.input_columns import refuse_broken_text
from pyhudi.engine.spark.batches import map_in_arrow
from pyhudi.engine.spark.session import session_of, use_running_interpreter
from pyhudi.engine.spark.write.timestamp_paths import partition_text as time_partition_text
from pyhudi.engine.spark.write.timestamp_paths import print_wall
from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.date_patterns import output_pattern
from pyhudi.format.keys.java_numbers import java_double, java_float
from pyhudi.format.keys.java_timestamps import FIRST_GREGORIAN_MS
from pyhudi.format.keys.record_keys import (
    DEFAULT_PARTITION,
    EMPTY_COMPONENT,
    ESCAPED_CHARACTERS,
    NULL_COMPONENT,
    UNTOLD_TEXTS,
    KeySpec,
    missing_keys,
    partition_paths,
    record_keys,
    untold_message,
    untold_parts,
)
from pyhudi.format.keys.record_keys import value_text as spelled_values
from pyhudi.format.keys.timestamp_paths import bad_time_message
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.table.slices.conform import conform_input


def with_keys(rows: DataFrame, spec: KeySpec, schema: pa.Schema) -> DataFrame:
    """The rows with the columns `RECORD_KEY` and `PARTITION_PATH`; null where a row has none.

    `schema`: the columns that keys and paths are made of, as the table types them. By native expressions; a key
    generator of the user's runs in Python, where every row passes through.
    """
    if not spec.own_generator:
        return rows.withColumns({RECORD_KEY: record_key(spec, schema), PARTITION_PATH: partition_path(spec, schema)})
    use_running_interpreter(session_of(rows))
    made = StructType([*rows.schema, *(StructField(name, StringType()) for name in (RECORD_KEY, PARTITION_PATH))])
    columns = pa.schema([schema.field(name) for name in (*spec.columns, *filter(None, [spec.path_column]))])
    return map_in_arrow(rows, _generating(spec, columns), made)


def _generating(spec: KeySpec, columns: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input and output are rows."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            typed = conform_input(batch.select(columns.names), columns)
            refuse_broken_text(typed)
            rows = pa.Table.from_batches([typed])
            missing = one_array(missing_keys(rows, spec))
            keys = pa.nulls(len(rows), pa.string()) if pc.any(missing).as_py() else one_array(record_keys(rows, spec))
            paths = one_array(partition_paths(rows, spec)).cast(pa.string())
            yield batch.append_column(RECORD_KEY, keys).append_column(PARTITION_PATH, paths)

    return run


def record_key(spec: KeySpec, schema: pa.Schema) -> Column:
    """The record key; null if the key as a whole is null or empty.

    A generated key is made of the number of the input's Spark partition and the row's number in it. The input must
    therefore give the same rows in the same partitions whenever it is read.
    """
    if spec.makes_keys:
        row = f.monotonically_increasing_id()  # the Spark partition's number, then 33 bits for the row's number
        return f.concat(f.shiftright(row, 33).cast("string"), f.lit("_"), row.bitwiseAND((1 << 33) - 1).cast("string"))

    texts = [key_text(name, schema, spec) for name in spec.record_key]
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
    """The partition path; empty for an unpartitioned table; null for a value that `refuse_bad_values` names."""
    if not spec.partition_by:
        return f.lit("")
    if spec.path_column:
        return f.coalesce(f.col(spec.path_column), partition_path(replace(spec, path_column=""), schema))

    levels: list[Column] = []
    for name in spec.partition_by:
        text = partition_text(name, schema, spec)
        level = _url_encoded(text) if spec.is_url_encoded or name in spec.sql_times else text
        if spec.has_slashed_dates:
            level = f.translate(f.regexp_replace(level, "/", "//"), "-", "/")
        if name not in spec.time_based:
            level = f.when(text.isNull() | (text == ""), DEFAULT_PARTITION).otherwise(level)
        if spec.is_left_out:
            level = f.when(~_is_untold(text, spec), level)
        if levels:
            levels.append(f.lit("/"))
        levels.append(f.concat(f.lit(f"{name}="), level) if spec.is_hive_style else level)
    return levels[0] if len(levels) == 1 else f.concat(*levels)


def partition_text(name: str, schema: pa.Schema, spec: KeySpec) -> Column:
    """A column's text for the partition path, before it is encoded; null if a time-based value is no time."""
    if name in spec.sql_times:
        return print_wall(_millis_of(name, schema), _SQL_TIMESTAMP)
    if name not in spec.time_based:
        return key_text(name, schema, spec)
    assert spec.times is not None  # a spec made for writing has it
    kind = schema.field(name).type
    stored = stored_number(name, schema) if pa.types.is_timestamp(kind) else None
    return time_partition_text(f.col(quoted(name)), stored, kind, name, spec.times)


def _is_untold(text: Column, spec: KeySpec) -> Column:
    """Whether a path does not tell a text, in a table whose files do not hold the column."""
    found = text.isin(*UNTOLD_TEXTS)
    for part in untold_parts(spec):
        found = found | text.contains(part)
    return f.coalesce(found, f.lit(False))


def refuse_bad_values(rows: DataFrame, schema: pa.Schema, spec: KeySpec) -> None:
    """Raise for the first value found that has no path: one that is no time, or one that a path would not tell.

    `rows`: with `PARTITION_PATH`. One short job per column. Raises: Invalid, naming the column and the value.
    """
    for name in spec.partition_by if spec.is_left_out else ():
        text = partition_text(name, schema, spec)
        bad = rows.where(f.col(PARTITION_PATH).isNull() & _is_untold(text, spec)).select(text).limit(1).collect()
        if bad:
            raise Invalid(untold_message(name, bad[0][0]))
    for name in spec.time_based:
        assert spec.times is not None
        found = rows.where(partition_text(name, schema, spec).isNull()).select(quoted(name)).limit(1).collect()
        if found:
            raise Invalid(bad_time_message(name, found[0][0], spec.times))


def key_text(name: str, schema: pa.Schema, spec: KeySpec) -> Column:
    """The text of a column's value as part of a key or path.

    With `has_logical_timestamps` a timestamp with a zone is spelled as a date and a time instead of a number.
    """
    kind = schema.field(name).type
    if not (spec.has_logical_timestamps and pa.types.is_timestamp(kind) and kind.tz is not None):
        return value_text(name, schema)

    return f.regexp_replace(print_wall(_millis_of(name, schema), _LOGICAL_TIMESTAMP), r"(\.[0-9]+?)0*$", "$1")


def _millis_of(name: str, schema: pa.Schema) -> Column:
    """Milliseconds since 1970. Fails for times whose text not every writer agrees on."""
    micros = micros_of(name, schema)
    millis = f.round((micros - micros % 1_000) / 1_000).cast("long")
    too_old = f.lit(f"column '{name}': timestamps before 15 October 1582 cannot be text in a key")
    return f.when(millis < FIRST_GREGORIAN_MS, f.raise_error(too_old).cast("long")).otherwise(millis)


_SQL_TIMESTAMP = output_pattern("yyyy-MM-dd HH:mm:ss", option="")
_LOGICAL_TIMESTAMP = output_pattern("yyyy-MM-dd HH:mm:ss.SSS", option="")


def micros_of(name: str, schema: pa.Schema) -> Column:
    """Microseconds since 1970 of a column of timestamps."""
    column = f.col(quoted(name))
    return _local_micros(column) if schema.field(name).type.tz is None else f.unix_micros(column)


def stored_number(name: str, schema: pa.Schema) -> Column:
    """The number that a column of timestamps stores, in its unit. Fails for times that the unit cannot hold."""
    micros = micros_of(name, schema)
    if schema.field(name).type.unit != "ms":
        return micros
    finer = f.lit(f"column '{name}': expected whole milliseconds, as the table stores, found parts of them; round it")
    whole = f.round((micros - f.pmod(micros, f.lit(1_000))) / 1_000).cast("long")
    return f.when(f.pmod(micros, f.lit(1_000)) != 0, f.raise_error(finer).cast("long")).otherwise(whole)


def value_text(name: str, schema: pa.Schema) -> Column:
    """The text of a column's value. Raises: Invalid for a type that cannot be part of a key."""
    column, kind = f.col(quoted(name)), schema.field(name).type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_timestamp(kind):
        return stored_number(name, schema).cast("string")
    if pa.types.is_decimal(kind):
        return _decimal_text(name, kind.scale)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return column.cast("string")
    if pa.types.is_floating(kind):
        return _float_text(column, kind)
    raise Invalid(
        f"column '{name}' of type {kind}: expected text, a number, a boolean, a date or a timestamp, for it is part of "
        "the record key or the partition path"
    )


def _float_text(column: Column, kind: pa.DataType) -> Column:
    """Floats as `java_numbers` spells them. Spark's own cast spells them as the Java that it runs on does."""
    if hasattr(f, "arrow_udf"):
        return f.arrow_udf(_spelled_floats, "string")(column)
    spell = java_float if pa.types.is_float32(kind) else java_double
    return f.udf(lambda value: None if value is None else spell(value), "string")(column)


def _spelled_floats(values: pa.Array) -> pa.Array:
    return one_array(spelled_values(pa.chunked_array([values]), "value"))


def _local_micros(column: Column) -> Column:
    """Microseconds since 1970-01-01 00:00 of a timestamp without zone.

    Computed from the date, the hour, the minute and the second. Spark's `timestampdiff` goes through the session's time
    zone, where an hour is missing each spring.
    """
    minutes = f.unix_date(column.cast("date")).cast("long") * 1_440 + f.hour(column) * 60 + f.minute(column)
    seconds = f.date_part(f.lit("SECOND"), column)  # decimal(8, 6)
    return minutes * 60_000_000 + (seconds * 1_000_000).cast("long")


def _decimal_text(name: str, scale: int) -> Column:
    """A decimal as Java's `BigDecimal.toString` prints it. Example: 0.0000001 is `1E-7`.

    Values below 1E-6 are printed by digits and an exponent. Whether Spark's plain cast does so depends on the session's
    ANSI mode. `try_cast` never does so, therefore the exponent is made here.
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
    """A column name in backticks, so that Spark takes dots in it as part of the name."""
    return f"`{name.replace('`', '``')}`"


def url_decoded(text: Column) -> Column:
    """The text without escapes. The percent sign is decoded last: a decoded one must not begin another escape."""
    decoded = text
    for char in ESCAPED_CHARACTERS.replace("%", "") + "%":
        decoded = f.replace(decoded, f.lit(f"%{ord(char):02X}"), f.lit(char))
    return decoded


def _url_encoded(text: Column) -> Column:
    """The text with escapes. The percent sign is encoded first: that of an escape must not be encoded again.

    As a loop of one expression: Spark Connect takes no expressions within as many others as there are characters.
    """
    chars = "%" + ESCAPED_CHARACTERS.replace("%", "")
    escapes = f.array(*(f.struct(f.lit(c).alias("char"), f.lit(f"%{ord(c):02X}").alias("escape")) for c in chars))
    encoded = f.aggregate(escapes, text, lambda so_far, one: f.replace(so_far, one["char"], one["escape"]))
    has_some = text.rlike("[" + "".join(f"\\x{ord(c):02x}" for c in chars) + "]")
    return f.when(has_some, encoded).otherwise(text)
