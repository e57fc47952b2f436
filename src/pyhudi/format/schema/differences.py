"""What differs between two schemas: in words, for messages, and by the names of columns."""

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.format.schema.conversion import META_FIELDS, arrow_from_avro

_SHOWN_MAX = 5
_NONE: Mapping[str, str] = {}


def describe_changes(before: str | None, after: str | None, renamed: Mapping[str, str] = _NONE) -> str:
    """What the schema `after` has otherwise than `before`, both as Avro texts; empty if no column differs.

    Example: "new column 'fare' (double), 'id' int32 is int64, no column 'note'". Order: by place in `after`, then in
    `before`. At most five differences are named. None: no schema yet. `renamed`: columns' names of before -> of after.
    """
    if before == after:
        return ""
    old, new = _columns(before), _columns(after)
    found = [f"'{name}' is now called '{renamed[name]}'" for name in old if name in renamed]
    old = {renamed.get(name, name): kind for name, kind in old.items()}
    found += [_change(name, old.get(name), type_) for name, type_ in new.items() if old.get(name) != type_]
    found += [f"no column '{name}'" for name in old if name not in new]
    more = f" and {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
    return ", ".join(found[:_SHOWN_MAX]) + more


def column_paths(text: str | None) -> set[str]:
    """The full names of all columns, fields and parts of an Avro schema without meta fields. None: no schema yet."""
    found: set[str] = set()
    level = [("", field) for field in (arrow_from_avro(text) if text is not None else ())]
    while level:
        inner = []
        for around, field in level:
            path = f"{around}{field.name}"
            found.add(path)
            inner += [(f"{path}.", field.type.field(n)) for n in range(field.type.num_fields)]
        level = inner
    return found


def undone_changes(before: str | None, now: str | None, after: str | None) -> list[str]:
    """The columns that one writer added or dropped, and another drops or adds again. Sorted.

    `before`: the schema that both began with. `now`: after the first writer. `after`: after the second.
    """
    old, theirs, mine = column_paths(before), column_paths(now), column_paths(after)
    return sorted(((old - theirs) & mine) | ((theirs - old) - mine))


def _change(name: str, old: pa.DataType | None, new: pa.DataType) -> str:
    return f"new column '{name}' ({new})" if old is None else f"'{name}' {old} is {new}"


def _columns(text: str | None) -> dict[str, pa.DataType]:
    schema = arrow_from_avro(text) if text is not None else pa.schema([])
    return {field.name: field.type for field in schema if field.name not in META_FIELDS}
