"""Columns that a query shows in another way than they are stored, natively. `ShownColumns` says which."""

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.spark.write.keys import micros_of, quoted, url_decoded
from pyhudi.engine.spark.write.timestamp_paths import print_wall
from pyhudi.format.keys.date_patterns import output_pattern
from pyhudi.format.keys.record_keys import DEFAULT_PARTITION, KeySpec
from pyhudi.format.schema.conversion import PARTITION_PATH
from pyhudi.table.read.shown_columns import ShownColumns

_SECONDS = output_pattern("yyyy-MM-dd HH:mm:ss", option="")


def as_shown(rows: DataFrame, stored: pa.Schema, shown: ShownColumns) -> DataFrame:
    """The rows as the query shows them. `stored`: has the partition path if a column is shown by it."""
    changed = {name: _text(name, stored) for name in shown.texts if name in stored.names}
    for name in shown.from_path:
        if name in stored.names:
            assert shown.keys is not None
            changed[name] = _from_path(name, stored, shown.keys)
    return rows.withColumns(changed) if changed else rows


def _text(name: str, stored: pa.Schema) -> Column:
    """A value as Spark casts it to text in UTC, whatever zone and mode the session has."""
    kind = stored.field(name).type
    if not pa.types.is_timestamp(kind):
        return f.col(quoted(name)).cast("string")
    micros = micros_of(name, stored)
    fraction = f.pmod(micros, f.lit(1_000_000))
    seconds = print_wall(f.round((micros - fraction) / 1_000).cast("long"), _SECONDS)
    digits = f.regexp_replace(f.lpad(fraction.cast("string"), 6, "0"), "0+$", "")
    return f.when(fraction == 0, seconds).otherwise(f.concat(seconds, f.lit("."), digits))


def _from_path(name: str, stored: pa.Schema, keys: KeySpec) -> Column:
    """The text of a column's level of the partition path. The stored text, if the path does not tell levels apart."""
    path, at, count = f.col(PARTITION_PATH), keys.partition_by.index(name), len(keys.partition_by)
    levels = f.split(path, "/")

    level = path if count == 1 else levels.getItem(at)
    if keys.is_hive_style:
        level = f.regexp_replace(level, "^" + "".join(f"[{c}]" if c not in "^\\" else f"\\{c}" for c in f"{name}="), "")
    if keys.is_url_encoded:
        level = url_decoded(level)

    level = f.when(level != DEFAULT_PARTITION, level)
    return level if count == 1 else f.when(f.size(levels) == count, level).otherwise(_text(name, stored))
