"""Named types of Avro schemas that are used more than once: defined at the first use, named at each later one.

A schema text cannot lose or move a field without care: the field may hold the definition of a type that a later field
only names. So a schema is changed in a form where each use has its definition, and spelled in Avro's form afterwards.
"""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from pyhudi.errors import Unsupported
from pyhudi.format.avro.schema_text import schema_text
from pyhudi.format.avro.types import full_name, full_names

_PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_NAMED: Final = frozenset(("record", "enum", "fixed"))
_OWN: Final = _PRIMITIVES | _NAMED | {"array", "map"}


def references(schema: Any) -> Iterator[str]:
    """The names of types that a schema refers to by name."""
    if isinstance(schema, str):
        if schema not in _PRIMITIVES:
            yield schema
    elif isinstance(schema, list):
        for arm in schema:
            yield from references(arm)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if kind == "record":
            for field in schema["fields"]:
                yield from references(field["type"])
        elif kind == "array":
            yield from references(schema["items"])
        elif kind == "map":
            yield from references(schema["values"])
        elif _is_wrapped(kind):
            yield from references(kind)


def expanded(schema: Any) -> Any:
    """The schema with each type's definition at every use: the uses share one object.

    A name that is not known, or of the record around it, stays. Each definition states its namespace. A type within an
    object that is none of its own, such as a name in `{"type": "x.E"}`, is the type itself.
    """
    return _expanded(schema, "", {})


def collapsed(schema: Any) -> Any:
    """The schema in Avro's form: a type is defined at its first use, and named at later ones.

    Raises: Unsupported for a type without a namespace that no name can reach from where it is used.
    """
    return _collapsed(schema, "", {})


@lru_cache(maxsize=64)
def with_definitions(cut: str, whole: str) -> str:
    """The schema text `cut`, which has some of the fields of the record `whole`, with the definitions of their types.

    The same text comes back where each of its names has the meaning that it has in `whole`.
    """
    schema = json.loads(whole)
    if next(references(schema), None) is None:
        return cut
    kept = json.loads(cut)
    names = {field["name"] for field in kept["fields"]}
    full = expanded(schema)
    wanted = collapsed({**full, "fields": [field for field in full["fields"] if field["name"] in names]})
    return cut if collapsed(expanded(kept)) == wanted else schema_text(wanted)


def _is_wrapped(kind: Any) -> bool:
    """Whether an object with this `type` only holds another type."""
    return not isinstance(kind, str) or kind not in _OWN


def _expanded(schema: Any, namespace: str, known: dict[str, Any]) -> Any:
    if isinstance(schema, str):
        found = next((full for full in full_names(schema, namespace) if full in known), None)
        return schema if schema in _PRIMITIVES or found is None else known[found]
    if isinstance(schema, dict) and _is_wrapped(schema["type"]):
        return _expanded(schema["type"], namespace, known)
    if isinstance(schema, dict) and schema["type"] in _NAMED:
        full = full_name(schema, namespace)
        own = full.rpartition(".")[0]
        made = _with_inner(schema, lambda inner: _expanded(inner, own, known))
        known[full] = made if "." in schema["name"] else _stating(made, own)
        return known[full]
    return _with_inner(schema, lambda inner: _expanded(inner, namespace, known))


def _collapsed(schema: Any, namespace: str, defined: dict[str, Any]) -> Any:
    if not isinstance(schema, dict) or schema.get("type") not in _NAMED:
        return _with_inner(schema, lambda inner: _collapsed(inner, namespace, defined))

    full = full_name(schema, namespace)
    own, _, short = full.rpartition(".")
    if defined.get(full) == schema:
        if not own and f"{namespace}.{short}" in defined:
            raise Unsupported(
                f"Avro schema: the type '{short}' has no namespace and is used where '{namespace}' has one"
            )
        return short if own == namespace else full
    defined[full] = schema
    made = _with_inner(schema, lambda inner: _collapsed(inner, own, defined))
    if "." not in schema["name"] and own == namespace:
        made.pop("namespace", None)
    return made


def _with_inner(schema: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a schema whose inner types went through a change, in the order in which they stand."""
    if isinstance(schema, list):
        return [change(arm) for arm in schema]
    if not isinstance(schema, dict):
        return schema
    match schema.get("type"):
        case "record":
            return {**schema, "fields": [{**one, "type": change(one["type"])} for one in schema["fields"]]}
        case "array":
            return {**schema, "items": change(schema["items"])}
        case "map":
            return {**schema, "values": change(schema["values"])}
        case _:
            return dict(schema)


def _stating(schema: dict[str, Any], namespace: str) -> dict[str, Any]:
    """A definition that states its namespace, behind its name as Avro for Java prints it."""
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key != "namespace":
            made[key] = value
        if key == "name":
            made["namespace"] = namespace
    return made
