"""Reads files of a time when columns had other names: columns are matched by number, and get the names of the query.

What is read so has the stored types, and null columns of no type for parts that the file does not have. `conform.py`
turns them into the types of the query.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.format.arrow_arrays import list_offsets, null_mask
from pyhudi.format.names import BaseFileName
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.format.schema.history import NumberedColumn, NumberedSchema, SchemaHistory


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file that a query asks for, with their names in the query and in the file."""

    pairs: tuple[tuple[str, str, NumberedColumn | None, NumberedColumn | None], ...]

    @property
    def stored(self) -> list[str]:
        """Their names in the file, in the order of the query."""
        return [stored for _, stored, _, _ in self.pairs]

    @property
    def names(self) -> list[tuple[str, str]]:
        """Their names in the query, each with the one in the file."""
        return [(name, stored) for name, stored, _, _ in self.pairs]

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of a batch of the file, as far as it has them, under their names in the query."""
        names, columns = [], []
        for name, stored, wanted, found in self.pairs:
            at = batch.schema.get_field_index(stored)
            if at >= 0:
                names.append(name)
                columns.append(_named(batch.column(at), wanted, found))
        if not columns:
            return batch.select([])
        return pa.RecordBatch.from_arrays(columns, names=names)


@dataclass(frozen=True, slots=True)
class Evolution:
    """How files of earlier schemas are read. Picklable. `wanted`: the schema of the query."""

    history: SchemaHistory
    wanted: NumberedSchema

    @classmethod
    def of(cls, history: SchemaHistory, until: str | None = None) -> "Evolution | None":
        """How files are read for a query of a moment; None: of today. None where each name meant one column ever."""
        return None if history.renamed() is None else cls(history, history.of(until))

    def of_file(self, path: str, names: Sequence[str]) -> FileColumns | None:
        """As `of_instant`, for a base file. Its name tells the instant."""
        name = BaseFileName.parse(path.rpartition("/")[2])
        return None if name is None else self.of_instant(name.requested, names)

    def schema_of(self, instant: str) -> NumberedSchema:
        return self.history.of(instant)

    def path_in_file(self, path: str, name: str) -> str | None:
        """The full name in a base file of a column, or of a field of a struct: `home.city`. None if it has none."""
        first, *inner = name.split(".")
        then = self.of_file(path, [first])
        if then is None:
            return name
        for _, stored, wanted, found in then.pairs:
            parts = [stored]
            for part in inner:
                if wanted is None or found is None:
                    parts.append(part)
                    continue
                wanted = next((one for one in wanted.parts if one.name == part), None)
                found = None if wanted is None else found.part(wanted.number)
                if wanted is None or found is None:
                    return None
                parts.append(found.name)
            return ".".join(parts)
        return None

    def of_instant(self, instant: str, names: Sequence[str]) -> FileColumns | None:
        """The columns of what an instant wrote that a query asks for by `names`. None if they have the names of today.

        Meta fields, and columns that the history does not know, have one name for ever. A column that was not there yet
        is left out. Seen: with `hoodie.populate.meta.fields=false` Apache Hudi's history names no meta fields.
        """
        then = self.history.of(instant)
        if then is self.wanted or then == self.wanted:
            return None
        pairs: list[tuple[str, str, NumberedColumn | None, NumberedColumn | None]] = []
        for name in names:
            wanted = None if name in META_FIELDS else self.wanted.named(name)
            if wanted is None:
                pairs.append((name, name, None, None))
            elif (found := then.numbered(wanted.number)) is not None:
                pairs.append((name, found.name, wanted, found))
        return FileColumns(tuple(pairs))


def _named(array: pa.Array, wanted: NumberedColumn | None, found: NumberedColumn | None) -> pa.Array:
    """The array with the names of today in it. The same array if no part has another name."""
    if wanted is None or found is None or wanted.parts == found.parts or not wanted.parts:
        return array
    kind = array.type
    if pa.types.is_struct(kind):
        return _named_struct(array, wanted, found)
    if pa.types.is_list(kind):
        values = _named(array.values, wanted.parts[0], found.parts[0])
        kind = pa.list_(pa.field(kind.value_field.name, values.type))
        return pa.ListArray.from_arrays(list_offsets(array), values, type=kind, mask=null_mask(array))
    if pa.types.is_map(kind):
        items = _named(array.items, wanted.parts[1], found.parts[1])
        kind = pa.map_(kind.key_type, items.type)
        return pa.MapArray.from_arrays(list_offsets(array), array.keys, items, type=kind, mask=null_mask(array))
    return array


def _named_struct(array: pa.StructArray, wanted: NumberedColumn, found: NumberedColumn) -> pa.Array:
    fields, children = [], []
    for part in wanted.parts:
        stored = found.part(part.number)
        at = -1 if stored is None else array.type.get_field_index(stored.name)
        child = pa.nulls(len(array)) if at < 0 else _named(array.field(at), part, stored)
        fields.append(pa.field(part.name, child.type))
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=fields, mask=null_mask(array))
