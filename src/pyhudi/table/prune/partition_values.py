"""What a partition's path says of the rows below it, before any of them is read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.format.keys.record_keys import KeySpec, partition_values
from pyhudi.format.schema.conversion import PARTITION_PATH
from pyhudi.table.read.shown_columns import ShownColumns, unknown_to_paths


@dataclass(frozen=True, slots=True)
class PathValues:
    """Columns of which partition paths tell the values, and how the paths are spelled."""

    keys: KeySpec
    kinds: Mapping[str, pa.DataType]

    @classmethod
    def as_shown(cls, keys: KeySpec, schema: pa.Schema, shown: ShownColumns) -> "PathValues":
        """Of rows as a query shows them. `schema`: columns of the answer."""
        return cls._of(keys, schema, unknown_to_paths(keys, shown))

    @classmethod
    def as_stored(cls, keys: KeySpec, schema: pa.Schema) -> "PathValues":
        """Of rows as files hold them. The path of a time-based column tells no stored value."""
        return cls._of(keys, schema, keys.time_based)

    @classmethod
    def _of(cls, keys: KeySpec, schema: pa.Schema, unknown: Iterable[str]) -> "PathValues":
        told = {*keys.partition_by, PARTITION_PATH}.difference(unknown) if keys.partition_by else set()
        if keys.own_generator:
            told &= {PARTITION_PATH}
        return cls(keys, {field.name: field.type for field in schema if field.name in told})

    def among(self, schema: pa.Schema) -> "PathValues":
        """Of these columns only, and of one that has another type here nothing."""
        kinds = {name: kind for name, kind in self.kinds.items() if name in schema.names}
        return PathValues(self.keys, {name: kind for name, kind in kinds.items() if schema.field(name).type == kind})

    def of(self, partition: str) -> dict[str, object]:
        """The values that all rows of a partition have. A column of which the path is not sure is left out."""
        values = known_values(partition, self.keys, self.kinds)
        if PARTITION_PATH in self.kinds:
            values[PARTITION_PATH] = partition
        return values


def known_values(partition: str, spec: KeySpec, kinds: Mapping[str, pa.DataType]) -> dict[str, object]:
    """The values of partition columns that a path tells."""
    values: dict[str, object] = {}
    for name, text in partition_values(partition, spec).items():
        if name in kinds:
            known, value = _typed(text, kinds[name])
            if known:
                values[name] = value
    return values


def _typed(text: str | None, kind: pa.DataType) -> tuple[bool, object]:
    """The value that a partition's text stands for, and whether it can be told at all.

    An empty text and a null share a folder, so a text column's default partition is not known.
    """
    if text is None:
        return not pa.types.is_string(kind), None
    if pa.types.is_string(kind):
        return True, text
    if pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_boolean(kind):
        try:
            return True, pa.scalar(text).cast(kind).as_py()
        except pa.ArrowInvalid:
            return False, None
    return False, None
