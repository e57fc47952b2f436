"""Avro schemas as data, and the Arrow type for the values of each schema.

Spec: Apache Avro 1.11, "Schema Declaration"; format/queries.md section 1.1.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, cast

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported

DECIMAL_DIGITS_MAX: Final = 38
NESTING_MAX: Final = 100

NODES_MAX: Final = 100_000
"""The most types in a schema, each counted at every use: a dozen records may use each other a billion times."""

IDLE_NODES_MAX: Final = 16
"""The most parts of an array's item, or of a map's value, that take no bytes. Each such part still takes memory, and a
file may repeat the item as often as it has bytes."""

NO_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without types inside. `name` is for fixed and enum, `size` for fixed, `symbols` for enum."""

    kind: str
    logical: str = ""
    precision: object = None
    scale: object = 0
    name: str = ""
    size: int = 0
    symbols: tuple[str, ...] = ()
    default_symbol: str | None = None


@dataclass(frozen=True, slots=True)
class Array:
    items: "AvroType"


@dataclass(frozen=True, slots=True)
class Map:
    values: "AvroType"


@dataclass(frozen=True, slots=True)
class Union:
    """One of several types. A nullable field is a union of two: null, and the field's type."""

    branches: tuple["AvroType", ...]

    @property
    def values(self) -> tuple["AvroType", ...]:
        """The branches that hold values: all but null."""
        return tuple(branch for branch in self.branches if branch != NULL)

    @property
    def null_branch(self) -> int:
        """The index of null, or -1."""
        return self.branches.index(NULL) if NULL in self.branches else -1


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record. `default`: a JSON value, or `NO_DEFAULT`."""

    name: str
    type: "AvroType"
    default: object = NO_DEFAULT
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    fields: tuple[Field, ...]


AvroType: TypeAlias = Scalar | Array | Map | Union | Record

NULL: Final = Scalar("null")
STRING: Final = Scalar("string")

_ARROW: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_ARROW_OF_LOGICAL: Final[dict[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_NAMED = ("record", "enum", "fixed")


# Text to types.


@lru_cache(maxsize=64)
def parse_schema(text: str) -> Record:
    """The record type of a schema text.

    Raises: Invalid for a text that is no Avro record schema; Unsupported for a record that holds itself.
    """
    schema = record_schema(text)
    parsed = _Parser().type(schema, namespace="", path="", depth=0)
    assert isinstance(parsed, Record)
    return parsed


def record_schema(text: str) -> dict[str, object]:
    """The JSON object of a record's schema text."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"Avro schema: expected JSON text, found {text:.60} ({error})") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise Invalid(f"Avro schema: expected a record, found {text:.60}")
    _members(schema, "")
    return cast("dict[str, object]", schema)


class _Parser:
    """Parses types. Keeps each named type by its full name, and the names that are still open, to refuse recursion."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[AvroType, int]] = {}
        self._open: set[str] = set()
        self._nodes = 0
        self._shapes: dict[int, tuple[AvroType, int, int]] = {}

    def type(self, schema: object, namespace: str, path: str, depth: int) -> AvroType:
        if depth > NESTING_MAX:
            raise Unsupported(f"field '{path}': types nested deeper than {NESTING_MAX}")
        self._count(1, path)

        if isinstance(schema, str):
            return self._reference(schema, namespace, path)
        if isinstance(schema, list):
            branches = tuple(self.type(branch, namespace, path, depth + 1) for branch in schema)
            if any(isinstance(branch, Union) for branch in branches) or branches.count(NULL) > 1:
                raise Invalid(f"field '{path}': expected a union of different types, no unions, found {schema!r:.60}")
            return Union(branches)

        if not isinstance(schema, dict):
            raise Invalid(f"field '{path}': expected an Avro type, found {schema!r:.60}")

        kind = schema.get("type")
        if kind == "array":
            items = self.type(schema.get("items"), namespace, f"{path}.element", depth + 1)
            if self._refuse_idle(items, path) == 0:  # a file could claim any number of them without a byte
                raise Unsupported(f"field '{path}': an array of values that take no bytes, such as type null")
            return Array(items)
        if kind == "map":
            values = self.type(schema.get("values"), namespace, f"{path}.value", depth + 1)
            self._refuse_idle(values, path)
            return Map(values)

        if kind in _NAMED:
            return self._define(schema, namespace, path, depth)
        if isinstance(kind, str) and (kind in _ARROW or kind == "null"):
            return _scalar(schema, kind)
        return self.type(kind, namespace, path, depth + 1)

    def _define(self, schema: Mapping[str, object], namespace: str, path: str, depth: int) -> AvroType:
        full, before = full_name(schema, namespace), self._nodes
        made: AvroType
        if schema["type"] == "record":
            self._open.add(full)
            made = Record(full, self._fields(schema, full.rpartition(".")[0], path, depth))
            self._open.discard(full)
        elif schema["type"] == "enum":
            made = _enum(schema, full, path)
        else:
            size = schema.get("size")
            if not isinstance(size, int) or not 0 <= size < 1 << 31:
                raise Invalid(f"field '{path}': expected the size of a fixed type, found {size!r:.60}")
            made = _scalar(schema, "fixed", name=full, size=size)

        self._named[full] = made, self._nodes - before
        return made

    def _fields(self, schema: Mapping[str, object], namespace: str, path: str, depth: int) -> tuple[Field, ...]:
        made: dict[str, Field] = {}
        for member in _members(schema, path):
            name = str(member["name"])
            inner = f"{path}.{name}" if path else name
            if name in made:
                raise Invalid(f"field '{inner}': expected each name once in a record")
            aliases = member.get("aliases")
            kind = self.type(member.get("type"), namespace, inner, depth + 1)
            default = member.get("default", NO_DEFAULT)
            made[name] = Field(name, kind, default, tuple(aliases) if isinstance(aliases, list) else ())
        return tuple(made.values())

    def _reference(self, name: str, namespace: str, path: str) -> AvroType:
        if name in _ARROW and name not in _NAMED:
            return Scalar(name)
        if name == "null":
            return NULL
        for full in full_names(name, namespace):
            if full in self._open:
                raise Unsupported(f"field '{path}': the record '{full}' holds itself; Arrow has no recursive types")
            if full in self._named:
                known, nodes = self._named[full]
                self._count(nodes, path)
                return known
        raise Invalid(f"field '{path}': expected an Avro type, found the unknown name '{name}'")

    def _count(self, nodes: int, path: str) -> None:
        self._nodes += nodes
        if self._nodes > NODES_MAX:
            raise Unsupported(f"field '{path}': a schema of more than {NODES_MAX:,} types")

    def _refuse_idle(self, kind: AvroType, path: str) -> int:
        """The fewest bytes of an array's item, or of a map's value. Raises: Unsupported if too many parts take none."""
        size_bytes, idle = self._shape(kind)
        if size_bytes and idle > IDLE_NODES_MAX:
            raise Unsupported(
                f"field '{path}': values repeated of which {idle:,} parts take no bytes, such as type null"
            )
        return size_bytes

    def _shape(self, kind: AvroType) -> tuple[int, int]:
        """The fewest bytes of a value (`size_min`), and how many of its parts take none. Each type is seen once."""
        if id(kind) in self._shapes:
            return self._shapes[id(kind)][1:]
        idle = 0
        match kind:
            case Record():
                shapes = [self._shape(one.type) for one in kind.fields]
                size_bytes, idle = sum(size for size, _ in shapes), sum(count for _, count in shapes)
            case Union():
                paid = 1  # the branch number takes a byte, which pays for one part that takes none
                size_bytes, idle = 1, max(0, *(self._shape(branch)[1] - paid for branch in kind.branches))
            case _:
                size_bytes = size_min(kind)

        idle += size_bytes == 0
        self._shapes[id(kind)] = kind, size_bytes, idle  # the type is kept: else its id could be reused
        return size_bytes, idle


def _scalar(schema: Mapping[str, object], kind: str, *, name: str = "", size: int = 0) -> Scalar:
    logical = str(schema.get("logicalType", ""))
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return Scalar(kind, logical, schema.get("precision"), schema.get("scale", 0), name, size)
    return Scalar(kind, logical if kind != "null" else "", name=name, size=size)


def _enum(schema: Mapping[str, object], full: str, path: str) -> Scalar:
    symbols, default = schema.get("symbols"), schema.get("default")
    if not isinstance(symbols, list) or not symbols or not all(isinstance(symbol, str) for symbol in symbols):
        raise Invalid(f"field '{path}': expected the symbols of an enum, found {symbols!r:.60}")
    fallback = default if isinstance(default, str) and default in symbols else None
    return Scalar("enum", name=full, symbols=tuple(symbols), default_symbol=fallback)


def full_names(name: str, namespace: str) -> tuple[str, ...]:
    """The full names that a type's name can stand for within a namespace, the first one that is known counts.

    Spec: Avro 1.11, "Names": a name without a dot is of the namespace around it. Seen: Avro for Java then looks for the
    name without a namespace.
    """
    return (name,) if "." in name or not namespace else (f"{namespace}.{name}", name)


def full_name(schema: Mapping[str, object], namespace: str) -> str:
    """The full name of the type that a schema defines within a namespace."""
    own = schema.get("namespace")
    return full_names(str(schema.get("name", "")), namespace if own is None else str(own))[0]


def _members(schema: Mapping[str, object], path: str) -> list[dict[str, object]]:
    members = schema.get("fields")
    if not isinstance(members, list) or not all(isinstance(m, dict) and "name" in m for m in members):
        raise Invalid(f"Avro schema: expected a list of named fields in record '{path}', found {members!r:.60}")
    return members


def size_min(kind: AvroType) -> int:
    """The fewest bytes of a value. For float, double, fixed and null: the exact size."""
    match kind:
        case Record():
            return sum(size_min(one.type) for one in kind.fields)
        case Scalar():
            return {"null": 0, "float": 4, "double": 8, "fixed": kind.size}.get(kind.kind, 1)
        case _:
            return 1


# Types to Arrow.


def arrow_type(kind: AvroType, path: str) -> pa.DataType:
    """The type of the column that holds values of this Avro type.

    A union of several types with values becomes a struct with a member for each, `member0`, `member1` and so
    on; in a row at most one member is not null. Seen: Spark's Avro reader uses these names.
    Raises: Unsupported or Invalid for a type without columns, naming the field.
    """
    match kind:
        case Scalar():
            return _arrow_scalar(kind, path)
        case Array():
            return pa.list_(arrow_field("element", kind.items, f"{path}.element"))
        case Map():
            return pa.map_(pa.string(), arrow_field("value", kind.values, f"{path}.value"))
        case Record():
            return pa.struct([arrow_field(one.name, one.type, f"{path}.{one.name}") for one in kind.fields])
        case Union():
            values = kind.values
            if len(values) == 1:
                return arrow_type(values[0], path)
            if not values:
                raise Unsupported(f"field '{path}': a union without a type that holds values")
            members = [arrow_type(value, f"{path}.member{index}") for index, value in enumerate(values)]
            return pa.struct([pa.field(f"member{index}", member) for index, member in enumerate(members)])


def arrow_field(name: str, kind: AvroType, path: str) -> pa.Field:
    """The Arrow field for a record's field or a list's items; nullable if the Avro type is a union with null."""
    return pa.field(name, arrow_type(kind, path), isinstance(kind, Union) and NULL in kind.branches)


def find_wide_union(kind: AvroType, path: str) -> tuple[str, Union] | None:
    """The first union inside a type that has not exactly one type with values, and its path; None without one.

    Example: `["null", "int"]` has one, `int`; `["int", "string"]` has two, and is found.
    """
    inner: list[tuple[str, AvroType]] = []
    match kind:
        case Union():
            if len(kind.values) != 1:
                return path, kind
            inner = [(path, kind.values[0])]
        case Record():
            inner = [(f"{path}.{one.name}" if path else one.name, one.type) for one in kind.fields]
        case Array():
            inner = [(f"{path}.element", kind.items)]
        case Map():
            inner = [(f"{path}.value", kind.values)]
        case Scalar():
            pass

    return next((found for where, one in inner if (found := find_wide_union(one, where))), None)


def _arrow_scalar(kind: Scalar, path: str) -> pa.DataType:
    if kind == NULL:
        raise Unsupported(f"field '{path}': type null; expected a type that holds values")
    if kind.logical == "decimal" and kind.kind in ("bytes", "fixed"):
        precision, scale = kind.precision, kind.scale
        if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision and precision):
            raise Invalid(
                f"field '{path}': expected a decimal's precision and scale, found {precision!r} and {scale!r}"
            )
        if precision > DECIMAL_DIGITS_MAX:
            raise Unsupported(f"field '{path}': a decimal of {precision} digits; at most {DECIMAL_DIGITS_MAX} are read")
        return pa.decimal128(precision, scale)
    return _ARROW_OF_LOGICAL.get((kind.kind, kind.logical), _ARROW[kind.kind])
