"""Columns that conditions may compare with literals before Spark does."""

import pyarrow as pa

from pyhudi.sql.plain_conditions import Plain


def plain_types(schema: pa.Schema) -> dict[str, Plain]:
    """The columns that any engine compares alike, by their names in small letters."""
    found: dict[str, Plain] = {}
    for field in schema:
        if pa.types.is_string(field.type):
            found[field.name.lower()] = "text"
        elif pa.types.is_integer(field.type):
            found[field.name.lower()] = "integer"
    return found
