"""Columns that conditions may compare with literals before Spark does."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from pyhudi.sql.plain_conditions import Plain


def plain_types(schema: pa.Schema) -> dict[str, Plain]:
    """The columns that any engine compares alike, by their names. Those that differ by their case only are left out."""
    found: dict[str, Plain] = {}
    for name in one_spelling(schema.names).values():
        kind = schema.field(name).type
        if pa.types.is_string(kind):
            found[name] = "text"
        elif pa.types.is_integer(kind):
            found[name] = "integer"
    return found


def one_spelling(names: Iterable[str]) -> dict[str, str]:
    """Names by themselves in small letters, without those that differ by their case only."""
    known = list(names)
    times = Counter(map(str.lower, known))
    return {name.lower(): name for name in known if times[name.lower()] == 1}
