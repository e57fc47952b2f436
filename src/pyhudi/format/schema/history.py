"""The schemas that a table had, one after the other, with the number of each column: the history of schema-on-read.

A column keeps its number when it is renamed, moved or widened. A column that is added has a new number, even under the
name of one that was dropped. So columns of different times are matched by number.

Layout: `{"schemas": [{"version_id", "max_column_id", "type": "record", "fields": [...]}]}`, newest first; a field has
`id`, `name`, `optional` and `type`. Nested types carry the numbers of their parts: `element_id` of an array; `key_id`
and `value_id` of a map.
Spec: format/layout.md section 8.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

ELEMENT: Final = "element"
KEY: Final = "key"
VALUE: Final = "value"


@dataclass(frozen=True, slots=True)
class NumberedColumn:
    """A column, or a part of one. `parts`: fields of a struct, the element of a list, key and value of a map."""

    number: int
    name: str
    parts: tuple["NumberedColumn", ...] = ()

    def part(self, number: int) -> "NumberedColumn | None":
        return next((one for one in self.parts if one.number == number), None)


@dataclass(frozen=True, slots=True)
class NumberedSchema:
    """The columns since an instant. `since`: its requested time; `0` for the columns of the beginning."""

    since: str
    columns: tuple[NumberedColumn, ...]

    def named(self, name: str) -> NumberedColumn | None:
        return next((one for one in self.columns if one.name == name), None)

    def numbered(self, number: int) -> NumberedColumn | None:
        return next((one for one in self.columns if one.number == number), None)


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """The schemas of a table, newest first. There is at least one."""

    schemas: tuple[NumberedSchema, ...]

    def of(self, instant: str | None) -> NumberedSchema:
        """The schema that an instant wrote by. None: the newest."""
        if instant is None:
            return self.schemas[0]
        return next((one for one in self.schemas if one.since <= instant), self.schemas[-1])

    def renamed(self) -> str | None:
        """The full name of a column that had two names, or of which the name meant two columns. None if none had."""
        names: dict[int, str] = {}
        numbers: dict[str, int] = {}
        for schema in self.schemas:
            for name, number in _flat(schema.columns, ""):
                if names.setdefault(number, name) != name or numbers.setdefault(name, number) != number:
                    return name
        return None


def parse_history(content: bytes) -> SchemaHistory:
    """The history in a file. Raises: ValueError, KeyError, TypeError, AttributeError or RecursionError for another."""
    schemas = [
        NumberedSchema(str(int(schema["version_id"])), tuple(map(_field, schema["fields"])))
        for schema in json.loads(content)["schemas"]
    ]
    if not schemas:
        raise ValueError("no schema")
    return SchemaHistory(tuple(schemas))


def _field(field: Mapping[str, Any]) -> NumberedColumn:
    return _column(int(field["id"]), str(field["name"]), field["type"])


def _column(number: int, name: str, kind: Any) -> NumberedColumn:
    if not isinstance(kind, Mapping):
        return NumberedColumn(number, name)
    parts: tuple[NumberedColumn, ...] = ()
    if "fields" in kind:
        parts = tuple(map(_field, kind["fields"]))
    elif "element_id" in kind:
        parts = (_column(int(kind["element_id"]), ELEMENT, kind["element"]),)
    elif "value_id" in kind:
        parts = (
            _column(int(kind["key_id"]), KEY, kind["key"]),
            _column(int(kind["value_id"]), VALUE, kind["value"]),
        )
    return NumberedColumn(number, name, parts)


def _flat(columns: tuple[NumberedColumn, ...], prefix: str) -> Iterator[tuple[str, int]]:
    for column in columns:
        name = f"{prefix}{column.name}"
        yield name, column.number
        yield from _flat(column.parts, f"{name}.")
