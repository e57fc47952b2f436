"""Avro schemas <-> schemas whose columns have numbers, as the history of a table's schema keeps them.

Spec: format/layout.md section 8. Types are spelled as 0.15.0 and later releases read them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final

from pyhudi.errors import Unsupported
from pyhudi.format.avro.schema_text import Json, record, schema_text
from pyhudi.format.avro.schema_text import field as avro_field
from pyhudi.format.avro.schema_text import optional as optional_field
from pyhudi.format.schema.conversion import decimal_size, with_meta_fields
from pyhudi.format.schema.history import (
    ARRAY,
    ELEMENT,
    KEY,
    MAP,
    RECORD,
    VALUE,
    NumberedColumn,
    NumberedSchema,
    SchemaHistory,
)
from pyhudi.format.schema.history_text import schema_json
from pyhudi.format.schema.named_types import expanded

_SAME: Final = frozenset(("boolean", "int", "long", "float", "double", "string"))
_LOGICAL: Final[Mapping[str, tuple[str, Json]]] = {
    "date": ("date", {"type": "int", "logicalType": "date"}),
    "time-micros": ("time", {"type": "long", "logicalType": "time-micros"}),
    "timestamp-micros": ("timestamp", {"type": "long", "logicalType": "timestamp-micros"}),
    "uuid": ("uuid", {"type": "string", "logicalType": "uuid"}),
}
"""Avro's logical type -> its name in a history, and its Avro schema."""
_BY_NAME: Final[Mapping[str, Json]] = {
    **{name: name for name in _SAME},
    "binary": "bytes",
    **dict(_LOGICAL.values()),
}
_DECIMAL: Final = re.compile(r"decimal(?:_bytes|_fixed)?\((\d+),\s*(\d+)\)(?:\[(\d+)\])?")
_FIXED: Final = re.compile(r"fixed\[(\d+)\]")


def first_numbers(avro_text: str) -> NumberedSchema:
    """The schema of a table's beginning: columns numbered level by level, meta fields first.

    Seen: all columns of a level, then the parts of each, column by column (0.15.0, 1.0.2, 1.2.0).
    Raises: Unsupported for a type that no release reads in a history, naming the column.
    """
    fields = _fields(avro_text)
    numbers = count()
    columns = tuple(_new_columns(fields, "", numbers))
    return NumberedSchema("0", columns, next(numbers) - 1)


def reconciled(schema: NumberedSchema, avro_text: str, since: str) -> NumberedSchema:
    """The schema with the columns of an Avro schema: known ones keep their numbers, new ones get new numbers.

    `since`: the requested time of the write that brings them. The same schema comes back where nothing differs.
    Raises: as `first_numbers`.
    """
    numbers = count(schema.number_max + 1)
    fields = _fields(avro_text)
    columns = tuple(_known_columns(fields, schema.columns, "", numbers))
    changed = NumberedSchema(schema.since, columns, next(numbers) - 1)
    return schema if schema_json(changed) == schema_json(schema) else replace(changed, since=since)


def grown(history: SchemaHistory, avro_text: str, since: str) -> SchemaHistory:
    """The history after a write that brings these columns. Otherwise as `reconciled`."""
    newest = reconciled(history.schemas[0], avro_text, since)
    return history if newest is history.schemas[0] else history.with_newest(newest)


def avro_of(schema: NumberedSchema, record_name: str) -> str:
    """The Avro schema, with the meta fields. `record_name`: the full name.

    Seen: as Apache Hudi derives it from a history (`AvroInternalSchemaConverter`, 0.15.0 to 1.2.0).
    """
    namespace, _, name = record_name.rpartition(".")
    return schema_text(record(name, *(_avro(one, record_name) for one in schema.columns), namespace=namespace))


def new_column(field: Mapping[str, Any], path: str, number_max: int) -> tuple[NumberedColumn, int]:
    """A column of an Avro field, with the next numbers, and the greatest number then. `path`: its full name."""
    numbers = count(number_max + 1)
    parent = path.rpartition(".")[0]
    (made,) = _new_columns([field], f"{parent}." if parent else "", numbers)
    return made, next(numbers) - 1


def _fields(avro_text: str) -> list[Mapping[str, Any]]:
    """The fields of an Avro schema, meta fields first, with each type's definition where the type is used."""
    fields: list[Mapping[str, Any]] = expanded(json.loads(with_meta_fields(avro_text)))["fields"]
    return fields


def decimal_digits(kind: str) -> tuple[int, int] | None:
    """The digits of a decimal type, and those of them behind the point. None for another type."""
    found = _DECIMAL.fullmatch(kind)
    return None if found is None else (int(found[1]), int(found[2]))


def _new_columns(fields: list[Mapping[str, Any]], around: str, numbers: "count[int]") -> Iterator[NumberedColumn]:
    own = [next(numbers) for _ in fields]
    for number, field in zip(own, fields, strict=True):
        yield _new(number, field["name"], field["type"], around + field["name"], numbers, field.get("doc"))


def _new(
    number: int, name: str, avro: Any, path: str, numbers: "count[int]", doc: str | None = None
) -> NumberedColumn:  # fmt: skip
    kind, is_optional = _plain(avro)
    parts: tuple[NumberedColumn, ...] = ()
    match _spelled(kind, path):
        case "record":
            parts = tuple(_new_columns(kind["fields"], f"{path}.", numbers))
        case "array":
            item = next(numbers)
            parts = (_new(item, ELEMENT, kind["items"], f"{path}.{ELEMENT}", numbers),)
        case "map":
            key, value = next(numbers), next(numbers)
            parts = (_key(key), _new(value, VALUE, kind["values"], f"{path}.{VALUE}", numbers))
    return NumberedColumn(number, name, parts, _spelled(kind, path), is_optional, doc)


def _known_columns(
    fields: list[Mapping[str, Any]], stored: tuple[NumberedColumn, ...], around: str, numbers: "count[int]"
) -> Iterator[NumberedColumn]:
    known = {column.name: column for column in stored}
    own = [known[field["name"]].number if field["name"] in known else next(numbers) for field in fields]
    for number, field in zip(own, fields, strict=True):
        name, path, doc = field["name"], around + field["name"], field.get("doc")
        if name in known:
            yield _known(known[name], field["type"], path, numbers, doc)
        else:
            yield _new(number, name, field["type"], path, numbers, doc)


def _known(
    stored: NumberedColumn, avro: Any, path: str, numbers: "count[int]", doc: str | None = None
) -> NumberedColumn:  # fmt: skip
    """A column under its number, with the type of an Avro schema. Parts of another kind of type are new."""
    kind, is_optional = _plain(avro)
    spelled = _spelled(kind, path)
    if spelled != stored.kind and (stored.parts or spelled in (RECORD, ARRAY, MAP)):
        return _new(stored.number, stored.name, avro, path, numbers, doc)
    parts: tuple[NumberedColumn, ...] = ()
    match spelled:
        case "record":
            parts = tuple(_known_columns(kind["fields"], stored.parts, f"{path}.", numbers))
        case "array":
            parts = (_known(stored.parts[0], kind["items"], f"{path}.{ELEMENT}", numbers),)
        case "map":
            value = _known(stored.parts[1], kind["values"], f"{path}.{VALUE}", numbers)
            parts = (stored.parts[0], value)
    if _is_same_type(spelled, stored.kind):
        spelled = stored.kind
    return NumberedColumn(stored.number, stored.name, parts, spelled, is_optional, doc)


def _is_same_type(kind: str, other: str) -> bool:
    """Whether two spellings mean one type. Seen: 1.2.0 spells some decimals `decimal_fixed(10, 2)[5]`."""
    digits = decimal_digits(kind)
    return digits is not None and digits == decimal_digits(other)


def _key(number: int) -> NumberedColumn:
    return NumberedColumn(number, KEY, (), "string", is_optional=False)


def _plain(avro: Any) -> tuple[Any, bool]:
    """A type without its null, and whether it may be null."""
    if isinstance(avro, list):
        arms = [arm for arm in avro if arm != "null"]
        return _plain(arms[0])[0] if arms else "null", "null" in avro
    if isinstance(avro, dict) and isinstance(avro["type"], dict | list):
        return _plain(avro["type"])
    return avro, False


def _spelled(avro: Any, path: str) -> str:
    """A type's name in a history."""
    kind = avro["type"] if isinstance(avro, dict) else avro
    logical = str(avro["logicalType"]) if isinstance(avro, dict) and "logicalType" in avro else None
    if kind in (RECORD, ARRAY, MAP):
        return str(kind)
    if logical == "decimal" and kind in ("fixed", "bytes"):
        return f"decimal({avro['precision']}, {avro.get('scale', 0)})"
    if logical is not None and logical in _LOGICAL:
        return _LOGICAL[logical][0]
    if logical is not None:
        raise Unsupported(
            f"column '{path}': its type {logical} has no place in a history of columns that Apache Hudi reads (0.15.0 "
            "and 1.0.2 make a plain number of it, 1.2.0 does not read what it wrote); such a table has no history: "
            "give the column as a timestamp in UTC, or do without ALTER"
        )
    if kind == "fixed":
        return f"fixed[{avro['size']}]"
    if kind in _SAME:
        return str(kind)
    match kind:
        case "bytes":
            return "binary"
        case "enum":
            return "string"
    raise Unsupported(f"column '{path}': its type {kind!r:.60} has no place in a history of columns")


def _avro(column: NumberedColumn, around: str) -> Json:
    kind = _avro_type(column, f"{around}.{column.name}")
    return optional_field(column.name, kind, doc=column.doc) if column.is_optional else avro_field(
        column.name, kind, doc=column.doc
    )  # fmt: skip


def _avro_type(column: NumberedColumn, full: str) -> Json:
    match column.kind:
        case "record":
            namespace, _, name = full.rpartition(".")
            return record(name, *(_avro(part, full) for part in column.parts), namespace=namespace)
        case "array":
            return {"type": "array", "items": _item(column.parts[0], full)}
        case "map":
            return {"type": "map", "values": _item(column.parts[1], full)}
    if (decimal := _DECIMAL.fullmatch(column.kind)) is not None:
        precision, scale = int(decimal[1]), int(decimal[2])
        if column.kind.startswith("decimal_bytes"):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        size = int(decimal[3]) if decimal[3] else decimal_size(precision)
        return {
            "type": "fixed", "name": "fixed", "namespace": full, "size": size, "logicalType": "decimal",
            "precision": precision, "scale": scale,
        }  # fmt: skip
    if (fixed := _FIXED.fullmatch(column.kind)) is not None:
        return {"type": "fixed", "name": "fixed", "namespace": full, "size": int(fixed[1])}
    if column.kind in _BY_NAME:
        return _BY_NAME[column.kind]
    raise Unsupported(f"column '{column.name}': a history of columns has the type '{column.kind}', which is not known")


def _item(part: NumberedColumn, full: str) -> Json:
    kind = _avro_type(part, full)
    return ["null", kind] if part.is_optional else kind
