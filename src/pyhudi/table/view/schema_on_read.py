"""Tables whose columns were renamed, or dropped and added again, by schema-on-read evolution.

Their older files hold columns under the names of that time. Only the history of the schema tells which column is which.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.names import HOODIE, join
from pyhudi.storage.protocol import Storage

LATEST_SCHEMA = "latest_schema"
"""The key under which a write to a table with such a history states its schema."""

_FOLDER = join(HOODIE, ".schema")
_SUFFIX = ".schemacommit"


def refuse_renamed_columns(storage: Storage) -> None:
    """Refuse a table in which a column had two names, or a name meant two columns. One list request and one get.

    Raises: Unsupported, naming the column; CorruptFile for a history that does not read.
    """
    files = [file.path for file in storage.list(_FOLDER) if file.path.endswith(_SUFFIX)]
    if not files:
        return

    path = max(files)
    names: dict[int, str] = {}
    columns: dict[str, int] = {}

    try:
        for schema in json.loads(storage.get(path))["schemas"]:
            for number, name in _columns(schema["fields"], ""):
                if names.setdefault(number, name) != name or columns.setdefault(name, number) != number:
                    raise Unsupported(
                        f"{storage.location.uri}/{path}: column '{name}' was renamed, or dropped and added again, by "
                        "schema-on-read evolution; expected columns that keep their names: their values in older files "
                        "would not be found. Rewrite the table with Apache Hudi"
                    )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFile(path, 0, expected="a history of schemas as JSON", found=repr(error)) from error


def _columns(fields: Sequence[Mapping[str, Any]], prefix: str) -> list[tuple[int, str]]:
    """Number and full name of each column, fields of structs included."""
    found = []
    for field in fields:
        name = f"{prefix}{field['name']}"
        found.append((int(field["id"]), name))
        if isinstance(field["type"], Mapping) and "fields" in field["type"]:
            found += _columns(field["type"]["fields"], f"{name}.")
    return found
