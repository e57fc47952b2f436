"""Changes a table's Avro schema: adds and drops columns, widens types, makes fields optional. All else stays as it was.

Spec: format/actions.md section 1.2. The order of fields is Apache Hudi's: first the old fields in their old order, then
the new fields in the order given.
"""

import json
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.errors import Unsupported
from pyhudi.format.avro.schema_text import schema_text
from pyhudi.format.avro.types import full_name
from pyhudi.format.schema.conversion import arrow_from_avro, avro_field, avro_type
from pyhudi.format.schema.named_types import collapsed, expanded, references

JsonObject: TypeAlias = dict[str, Any]


def evolve_avro(text: str, wanted: pa.Schema, *, optional: frozenset[str] = frozenset()) -> str:
    """The schema text for columns of these types.

    `wanted`: the columns as `arrow_from_avro` gives them for `text`; some may have another type, or be left out, and
    new columns, or fields of structs, stand at the end. `optional`: dotted paths of fields that may be null from now
    on. If nothing changes, the same text comes back.
    Raises: Unsupported for a change within a record that the schema refers to by its name.
    """
    current = arrow_from_avro(text)
    if current == wanted and not optional:
        return text
    schema = json.loads(text)
    names = frozenset(references(schema))
    full = expanded(schema) if names else schema
    _Evolution(names, optional).members(full, list(current), list(wanted), around="", path="")
    return schema_text(collapsed(full) if names else full)


class _Evolution:
    """Walks along a schema, its present types and the wanted types together. Changes the JSON values themselves."""

    def __init__(self, references: frozenset[str], optional: frozenset[str]) -> None:
        self._references, self._optional = references, optional

    def members(
        self, record: JsonObject, current: list[pa.Field], wanted: list[pa.Field], around: str, path: str
    ) -> None:
        """Change the fields of a record to the wanted fields. `around`: the full name of the record around it."""
        full = full_name(record, around.rpartition(".")[0])
        changed = {field.name: field.type for field in wanted}
        now = {field.name: field.type for field in current}

        if any(name not in changed for name in now):
            self._refuse_shared(full, path or full)
            record["fields"] = [field for field in record["fields"] if field["name"] in changed]
        for field in record["fields"]:
            name = field["name"]
            where = f"{path}.{name}" if path else name
            if now[name] != changed[name] or self._reaches(where):
                self._refuse_shared(full, where)
                field["type"] = self._type(field["type"], now[name], changed[name], name, full, where)
            if where in self._optional and not _may_be_null(field["type"]):
                self._refuse_shared(full, where)
                field["type"] = ["null", field["type"]]
                field["default"] = None

        new = [field for field in wanted if field.name not in now]
        if new:
            self._refuse_shared(full, path or full)
        record["fields"] += [avro_field(field, full, f"{path}.{field.name}" if path else field.name) for field in new]

    def _type(self, schema: Any, now: pa.DataType, to: pa.DataType, name: str, around: str, path: str) -> Any:
        """The schema of a type that changes, or in which something changes. `name`: the field that has the type."""
        if now == to and not self._reaches(path):
            return schema
        if isinstance(schema, list):
            return [arm if arm == "null" else self._type(arm, now, to, name, around, path) for arm in schema]

        if isinstance(schema, dict):
            kind = schema["type"]
            if kind == "array":
                item = self._type(schema["items"], now.value_type, to.value_type, name, around, f"{path}.element")
                return {**schema, "items": item}
            if kind == "map":
                item = self._type(schema["values"], now.item_type, to.item_type, name, around, f"{path}.value")
                return {**schema, "values": item}
            if kind == "record":
                self.members(schema, list(now), list(to), around, path)
                return schema
            if isinstance(kind, dict | list):
                return self._type(kind, now, to, name, around, path)
        return avro_type(to, name, around, path)

    def _reaches(self, path: str) -> bool:
        """Whether a field within the field of this path becomes optional."""
        return any(one.startswith(f"{path}.") for one in self._optional)

    def _refuse_shared(self, full: str, path: str) -> None:
        if full in self._references or full.rpartition(".")[2] in self._references:
            raise Unsupported(
                f"column '{path}': it lies in the record '{full}', which the table's schema uses more than once; "
                "this release does not change such records"
            )


def _may_be_null(schema: Any) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)
