"""What an unknown name of a column was probably meant to be."""

from collections.abc import Sequence

import pyarrow as pa

from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.options.told_names import listed, nearest_name


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
        return f"there {'is' if len(within) == 1 else 'are'} {' and '.join(within)}"
    if (near := nearest_name(name, [field.name for field in fields])) is not None:
        return f"the nearest is {near!r}"
    names = [repr(field.name) for field in fields if field.name not in META_FIELDS]
    return f"there are {listed(names)}" if names else "there are no columns"
