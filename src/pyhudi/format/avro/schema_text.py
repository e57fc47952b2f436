"""Avro schemas as JSON text, spelled as Java's Avro library prints the schemas of Apache Hudi's records.

A schema is built of plain JSON values. Their keys are in the order in which Java prints them: `type`, `name`,
`namespace`, `doc`, `fields` for a record; `name`, `type`, `doc`, `default` for a field; other properties last.
The text has no spaces, and characters beyond ASCII stay as they are.
"""

import json
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

NO_DEFAULT = object()


def schema_text(schema: Json) -> str:
    """The schema's JSON text, as Java's `Schema.toString` prints it."""
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def record(name: str, *fields: Json, doc: str | None = None, namespace: str | None = None) -> Json:
    """A record type. Only the outermost record has a `namespace`."""
    head: dict[str, Json] = {"type": "record", "name": name}
    if namespace is not None:
        head["namespace"] = namespace
    if doc is not None:
        head["doc"] = doc
    head["fields"] = list(fields)
    return head


def field(name: str, kind: Json, *, doc: str | None = None, default: object = NO_DEFAULT) -> Json:
    """A field of a record."""
    made: dict[str, Json] = {"name": name, "type": kind}
    if doc is not None:
        made["doc"] = doc
    if default is not NO_DEFAULT:
        made["default"] = default  # type: ignore[assignment]
    return made


def optional(name: str, kind: Json, *, doc: str | None = None) -> Json:
    """A field that may be null and is null by default."""
    return field(name, ["null", kind], doc=doc, default=None)
