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
from dataclasses import dataclass, field
from typing import Any, Final

ELEMENT: Final = "element"
KEY: Final = "key"
VALUE: Final = "value"


RECORD: Final = "record"
ARRAY: Final = "array"
MAP: Final = "map"


@dataclass(frozen=True, slots=True)
class NumberedColumn:
    """A column, or a part of one. `parts`: fields of a struct, the element of a list, key and value of a map.

    `kind`: the type as the history spells it, such as `long` or `decimal(10, 2)`; `record`, `array` or `map` for one
    with parts. Two columns are equal where numbers and names are: files are matched by these.
    """

    number: int
    name: str
    parts: tuple["NumberedColumn", ...] = ()
    kind: str = field(default="", compare=False)
    is_optional: bool = field(default=True, compare=False)
    doc: str | None = field(default=None, compare=False)

    def part(self, number: int) -> "NumberedColumn | None":
        return next((one for one in self.parts if one.number == number), None)


@dataclass(frozen=True, slots=True)
class NumberedSchema:
    """The columns since an instant. `since`: its requested time; `0` for the columns of the beginning.

    `number_max`: the greatest number that a column had up to then, dropped ones included.
    """

    since: str
    columns: tuple[NumberedColumn, ...]
    number_max: int = field(default=0, compare=False)

    def named(self, name: str) -> NumberedColumn | None:
        return next((one for one in self.columns if one.name == name), None)

    def named_kinds(self) -> dict[str, tuple[int, str]]:
        """The full name of each column and part -> its number and type."""
        return {name: (column.number, column.kind) for name, column in _flat(self.columns, "")}

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

    def with_newest(self, schema: NumberedSchema) -> "SchemaHistory":
        return SchemaHistory((schema, *self.schemas))

    def renamed(self) -> str | None:
        """The full name of a column that had two names, or of which the name meant two columns. None if none had."""
        names: dict[int, str] = {}
        numbers: dict[str, int] = {}
        for schema in self.schemas:
            for name, column in _flat(schema.columns, ""):
                number = column.number
                if names.setdefault(number, name) != name or numbers.setdefault(name, number) != number:
                    return name
        return None


def parse_history(content: bytes) -> SchemaHistory:
    """The history in a file. Raises: ValueError, KeyError, TypeError, AttributeError or RecursionError for another."""
    schemas = tuple(map(_schema, json.loads(content)["schemas"]))
    if not schemas:
        raise ValueError("no schema")
    return SchemaHistory(schemas)


def parse_schema_text(text: str) -> NumberedSchema:
    """One schema, as a commit states it. Raises: as `parse_history`."""
    return _schema(json.loads(text))


def numbers_of(columns: tuple[NumberedColumn, ...]) -> Iterator[int]:
    """The numbers of columns and of their parts."""
    return (column.number for _, column in _flat(columns, ""))


def _schema(schema: Mapping[str, Any]) -> NumberedSchema:
    columns = tuple(map(_field, schema["fields"]))
    number_max = max(int(schema.get("max_column_id", -1)), *numbers_of(columns), -1)
    return NumberedSchema(str(int(schema["version_id"])), columns, number_max)


def _field(field: Mapping[str, Any]) -> NumberedColumn:
    is_optional, doc = bool(field.get("optional", True)), field.get("doc")
    return _column(int(field["id"]), str(field["name"]), field["type"], is_optional, doc if doc is None else str(doc))


def _column(
    number: int, name: str, kind: Any, is_optional: bool = True, doc: str | None = None
) -> NumberedColumn:  # fmt: skip
    if not isinstance(kind, Mapping):
        return NumberedColumn(number, name, (), str(kind), is_optional, doc)
    parts: tuple[NumberedColumn, ...] = ()
    if "fields" in kind:
        parts, spelled = tuple(map(_field, kind["fields"])), RECORD
    elif "element_id" in kind:
        item = _column(int(kind["element_id"]), ELEMENT, kind["element"], bool(kind.get("element_optional", True)))
        parts, spelled = (item,), ARRAY
    elif "value_id" in kind:
        parts, spelled = (
            (
                _column(int(kind["key_id"]), KEY, kind["key"], is_optional=False),
                _column(int(kind["value_id"]), VALUE, kind["value"], bool(kind.get("value_optional", True))),
            ),
            MAP,
        )
    else:
        raise ValueError(f"column '{name}': a type that is none: {kind!r:.80}")
    return NumberedColumn(number, name, parts, spelled, is_optional, doc)


def _flat(columns: tuple[NumberedColumn, ...], prefix: str) -> Iterator[tuple[str, NumberedColumn]]:
    for column in columns:
        name = f"{prefix}{column.name}"
        yield name, column
        yield from _flat(column.parts, f"{name}.")
