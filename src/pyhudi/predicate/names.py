"""What an unknown name of a column was probably meant to be."""

import difflib
from collections.abc import Sequence

import pyarrow as pa

from pyhudi.format.schema.conversion import META_FIELDS

_NAMES_TOLD_MAX = 20


def known_names(name: str, fields: Sequence[pa.Field]) -> str:
    """The name that was probably meant or, where none is like it, those that there are.

    A field of a struct that has the very name comes first: of a merge, `target.id` and `source.id`.
    """
    within = [
        f"'{field.name}.{below.name}'"
        for field in fields
        if pa.types.is_struct(field.type)
        for below in field.type
        if below.name.lower() == name.lower()
    ]
    if within:
        return f"there {'is' if len(within) == 1 else 'are'} {' and '.join(within[:_NAMES_TOLD_MAX])}"
    near = difflib.get_close_matches(name.lower(), [field.name.lower() for field in fields], 1)
    for field in fields:
        if [field.name.lower()] == near:
            return f"the nearest is {field.name!r}"
    names = [repr(field.name) for field in fields if field.name not in META_FIELDS]
    more = f" and {len(names) - _NAMES_TOLD_MAX} more" if len(names) > _NAMES_TOLD_MAX else ""
    if not names:
        return "there are no columns"
    return f"there are {', '.join(names[:_NAMES_TOLD_MAX])}{more}"
