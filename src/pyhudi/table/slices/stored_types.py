"""Groups files by the stored types of their columns, for readers that cannot convert every type themselves."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.names import BaseFileName
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.opening import open_base_file


@dataclass(frozen=True, slots=True)
class FilesOfTypes:
    """Files with equal types. `schema`: the wanted columns, with the types that these files have.

    `files`: path relative to the table, and bytes.
    """

    schema: pa.Schema
    files: tuple[tuple[str, int], ...]


def group_by_stored_types(
    storage: Storage, files: Sequence[tuple[str, int]], wanted: pa.Schema, executor: Executor
) -> list[FilesOfTypes]:
    """The files, grouped by equal types. The group with the wanted types is first. No group is empty.

    A column that a file lacks counts as having the wanted type: readers fill it with nulls.
    Requests: one footer for each instant that wrote one of the files, since all files of a write have one schema.
    """
    by_instant: dict[str, list[tuple[str, int]]] = {}
    for path, size_bytes in files:
        name = BaseFileName.parse(path.rpartition("/")[2])
        assert name is not None, path
        by_instant.setdefault(name.requested, []).append((path, size_bytes))

    def read(instant: str) -> pa.Schema:
        with closing(open_base_file(storage, by_instant[instant][0][0])) as opened:
            return stored_types(opened.schema, wanted)

    groups: dict[pa.Schema, list[tuple[str, int]]] = {wanted: []}
    for instant, schema in zip(by_instant, executor.run(read, list(by_instant)), strict=True):
        groups.setdefault(schema, []).extend(by_instant[instant])
    return [FilesOfTypes(schema, tuple(group_files)) for schema, group_files in groups.items() if group_files]


def stored_types(found: pa.Schema, wanted: pa.Schema) -> pa.Schema:
    """The wanted columns. A column that must be converted has the type that the file stores."""
    fields = []
    for field in wanted:
        at = found.get_field_index(field.name)
        fields.append(field if at < 0 else field.with_type(_stored_type(found.field(at).type, field.type)))
    return pa.schema(fields)


def _stored_type(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The stored type if values must be converted, else the wanted type.

    Differences in nullability, element names and time units need no conversion.
    """
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        present = [field for field in wanted if found.get_field_index(field.name) >= 0]
        types = [_stored_type(found.field(field.name).type, field.type) for field in present]
        is_same = len(present) == wanted.num_fields and types == [field.type for field in present]
        if is_same or not present:
            return wanted
        return pa.struct([field.with_type(kind) for field, kind in zip(present, types, strict=True)])
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        item = wanted.value_field
        return pa.list_(item.with_type(_stored_type(found.value_type, item.type)))
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        item = wanted.item_field
        return pa.map_(wanted.key_type, item.with_type(_stored_type(found.item_type, item.type)))
    return found if _is_converted(found) and found != wanted else wanted


def _is_converted(kind: pa.DataType) -> bool:
    """Whether a column stored in this type may have a wider type today, by evolution of the schema."""
    return (
        pa.types.is_int32(kind)
        or pa.types.is_int64(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_date32(kind)
    )
