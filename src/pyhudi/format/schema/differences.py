"""What differs between two schemas: in words, for messages, and by the names of columns."""

from collections.abc import Sequence
from typing import assert_never

import pyarrow as pa

from pyhudi.format.schema.alterations import (
    Add,
    Alteration,
    ChangeType,
    Comment,
    Drop,
    MakeNullable,
    Move,
    Place,
    Rename,
)
from pyhudi.format.schema.conversion import META_FIELDS, arrow_from_avro
from pyhudi.options.told_names import listed

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
    return listed(found, most=_SHOWN_MAX)


def describe_alterations(changes: Sequence[Alteration]) -> str:
    """What each change makes of the columns, in words and in the order of the changes.

    Example: "'name' is now called 'label', no column 'n', 'id' stands first".
    """
    return listed([_outcome(change) for change in changes])


def _outcome(change: Alteration) -> str:
    match change:
        case Add():
            place = f", which stands {_place(change.place)}" if change.place != Place() else ""
            return f"new column '{change.path}' ({change.type}){place}"
        case Rename():
            return f"'{change.path}' is now called '{change.name}'"
        case Drop():
            return f"no column '{change.path}'"
        case Move():
            return f"'{change.path}' stands {_place(change.place)}"
        case ChangeType():
            return f"'{change.path}' is {change.type}"
        case MakeNullable():
            return f"'{change.path}' may be null"
        case Comment():
            return f"'{change.path}' has {'no comment' if change.doc is None else f'the comment {change.doc!r}'}"
    assert_never(change)


def _place(place: Place) -> str:
    if place.is_first:
        return "first"
    return f"behind '{place.after}'" if place.after is not None else f"before '{place.before}'"


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
