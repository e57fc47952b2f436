"""What differs between two schemas, in words: for messages."""

import pyarrow as pa

from pyhudi.format.schema.conversion import META_FIELDS, arrow_from_avro

_SHOWN_MAX = 5


def describe_changes(before: str | None, after: str | None) -> str:
    """What the schema `after` has otherwise than `before`, both as Avro texts; empty if no column differs.

    Example: "new column 'fare' (double), 'id' int32 is int64, no column 'note'". Order: by place in `after`, then in
    `before`. At most five differences are named. None: no schema yet.
    """
    if before == after:
        return ""
    old, new = _columns(before), _columns(after)
    found = [_change(name, old.get(name), type_) for name, type_ in new.items() if old.get(name) != type_]
    found += [f"no column '{name}'" for name in old if name not in new]
    more = f" and {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
    return ", ".join(found[:_SHOWN_MAX]) + more


def _change(name: str, old: pa.DataType | None, new: pa.DataType) -> str:
    return f"new column '{name}' ({new})" if old is None else f"'{name}' {old} is {new}"


def _columns(text: str | None) -> dict[str, pa.DataType]:
    schema = arrow_from_avro(text) if text is not None else pa.schema([])
    return {field.name: field.type for field in schema if field.name not in META_FIELDS}
