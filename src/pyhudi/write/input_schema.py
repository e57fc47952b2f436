"""The input's columns against the table's: checked before the first byte, both sides shown."""

from collections.abc import Sequence
from difflib import get_close_matches

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.schema import META_FIELDS, can_promote, canonical_arrow


def columns_for_write(incoming: pa.Schema, table: pa.Schema, *, table_name: str) -> pa.Schema:
    """The table's columns, if the input has each of them in a type that fits; meta fields in the input are passed over.

    Raises: Invalid for missing, unknown or differently typed columns, all of them named.
    """
    refuse_doubled(incoming)
    given = {field.name: field.type for field in canonical_arrow(without_meta(incoming))}
    problems = []
    for field in table:
        found = given.pop(field.name, None)
        if found is None:
            near = get_close_matches(field.name, incoming.names, 1)
            problems.append(
                f"column '{field.name}' ({field.type}) is missing" + (f" (found '{near[0]}')" if near else "")
            )
        elif not fits(found, field.type):
            problems.append(f"column '{field.name}': expected {field.type}, found {found}")
    problems += [f"column '{name}' ({kind}) is not in the table" for name, kind in given.items()]
    if problems:
        raise Invalid(f"input does not fit table '{table_name}': {'; '.join(problems)}; cast or select its columns")
    return table


def columns_for_delete(
    incoming: pa.Schema, table: pa.Schema, *, needed: Sequence[str], ordering: Sequence[str], table_name: str
) -> pa.Schema:
    """The key and partition columns, and the ordering columns where the input has all of them."""
    refuse_doubled(incoming)
    extra = [name for name in ordering if name not in needed]
    names = [*needed, *(extra if all(name in incoming.names for name in ordering) else ())]
    missing = [name for name in needed if name not in incoming.names]
    if missing:
        raise Invalid(
            f"delete from table '{table_name}': expected the key and partition columns ({', '.join(needed)}), "
            f"found no '{missing[0]}' among {', '.join(incoming.names)}"
        )
    wanted = pa.schema([table.field(name) for name in names])
    return columns_for_write(pa.schema([incoming.field(name) for name in names]), wanted, table_name=table_name)


def first_schema(incoming: pa.Schema) -> pa.Schema:
    """The columns that the first write of a table gives it."""
    refuse_doubled(incoming)
    schema = canonical_arrow(without_meta(incoming))
    if not schema.names:
        raise Invalid("input: expected columns, found none")
    return schema


def refuse_doubled(incoming: pa.Schema) -> None:
    doubled = sorted({name for name in incoming.names if incoming.names.count(name) > 1})
    if doubled:
        raise Invalid(f"input: expected distinct column names, found '{doubled[0]}' twice")


def without_meta(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in META_FIELDS])


def fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type are values of the other without loss."""
    if found == wanted:
        return True
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        given = {field.name: field.type for field in found}
        return set(given) == {f.name for f in wanted} and all(fits(given[f.name], f.type) for f in wanted)
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return fits(found.value_type, wanted.value_type)
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return fits(found.key_type, wanted.key_type) and fits(found.item_type, wanted.item_type)
    return not pa.types.is_nested(found) and can_promote(found, wanted)
