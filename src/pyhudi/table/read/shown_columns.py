"""Columns that a query shows in another form than the stored one: the source columns of time-based partition paths.

Seen: on versions 8 and 9 the TIMESTAMP key generator makes Apache Hudi 1.0.2 and 1.2.0 show its partition column as
text, as Spark casts the stored value; the CUSTOM one changes nothing. On version 6 queries of base files alone
(0.15.0: snapshot and time travel of copy-on-write tables, read optimized) show the partition's text in such a
column, others the stored value. Spec: format/queries.md section 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import KeySpec, partition_values, value_text
from pyhudi.table.facts.config import KeyKind, TableConfig
from pyhudi.versions import ShownTimes


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """`texts`: columns shown as the text of their values. `from_path`: columns shown as the partition path's text.

    `keys`: how partition paths are formed. None if all columns are shown as stored.
    """

    texts: tuple[str, ...] = ()
    from_path: tuple[str, ...] = ()
    keys: KeySpec | None = None

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """The columns as they are shown."""
        changed = {*self.texts, *self.from_path}
        return pa.schema([pa.field(f.name, pa.string()) if f.name in changed else f for f in stored])

    def batch(self, stored: pa.RecordBatch, partition: str) -> pa.RecordBatch:
        """Rows of a partition as they are shown. Returns the same batch if nothing changes."""
        schema = self.schema(stored.schema)
        if schema.equals(stored.schema) and not any(name in schema.names for name in self.from_path):
            return stored
        told = partition_values(partition, self.keys) if self.keys is not None else {}

        columns = []
        for name, column in zip(stored.schema.names, stored.columns, strict=True):
            if name in self.from_path and name in told:
                columns.append(pa.repeat(pa.scalar(told[name], pa.string()), len(stored)))
            elif name in (*self.texts, *self.from_path):
                columns.append(cast_text(column, name))
            else:
                columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=schema)


AS_STORED = ShownColumns()


def shown_columns(config: TableConfig, keys: KeySpec, stored: pa.Schema, *, query: str) -> ShownColumns:
    """The columns that a query shows in another form than stored. `query`: snapshot, read_optimized or incremental."""
    names = [name for name in config.time_based if name in stored.names]
    if not names:
        return AS_STORED

    is_timestamp = config.key_kind is KeyKind.TIMESTAMP
    if config.version.shown_times is ShownTimes.TEXT:
        return ShownColumns(texts=tuple(names), keys=keys) if is_timestamp else AS_STORED
    if query == "incremental" or (query == "snapshot" and config.table_type == "MERGE_ON_READ"):
        return AS_STORED
    # Under a custom key generator a column keeps its type, so only a text column can show the path's text.
    return ShownColumns(from_path=tuple(n for n in names if is_timestamp or _is_text(stored, n)), keys=keys)


def unknown_to_paths(keys: KeySpec, shown: ShownColumns) -> Iterable[str]:
    """Partition columns whose shown values cannot be told from a path."""
    return (name for name in keys.time_based if name not in shown.from_path)


def cast_text(column: pa.Array, name: str) -> pa.Array:
    """Values as Spark's `CAST(… AS STRING)` in UTC spells them."""
    if not pa.types.is_timestamp(column.type):
        return one_array(value_text(pa.chunked_array([column]), name))
    local = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).cast(pa.timestamp("us"))
    return pc.replace_substring_regex(local.cast(pa.string()), r"\.?0*$", "")


def _is_text(schema: pa.Schema, name: str) -> bool:
    return bool(pa.types.is_string(schema.field(name).type))
