"""Avro schema texts <-> Arrow schemas, with the types that Apache Hudi's Spark reader and writer use.

Spec: format/queries.md section 1.1, format/layout.md section 6, format/actions.md section 1.2.
"""

import json
import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.avro.defaults import default_column
from pyhudi.format.avro.schema_text import Json, field, optional, record, schema_text
from pyhudi.format.avro.types import DECIMAL_DIGITS_MAX, arrow_field, find_wide_union, parse_schema, record_schema
from pyhudi.format.schema.arrow_types import can_promote, canonical_arrow, refuse_names_alike, typed_nulls
from pyhudi.format.schema.named_types import with_definitions

__all__ = [
    "COMMIT_TIME",
    "FILE_NAME",
    "META_FIELDS",
    "PARTITION_PATH",
    "RECORD_KEY",
    "SEQUENCE_NUMBER",
    "arrow_from_avro",
    "avro_from_arrow",
    "can_promote",
    "canonical_arrow",
    "column_defaults",
    "leave_out_fields",
    "record_name",
    "refuse_names_alike",
    "select_fields",
    "typed_nulls",
    "with_meta_fields",
    "without_meta_fields",
]

META_FIELDS: tuple[str, ...] = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
COMMIT_TIME, SEQUENCE_NUMBER, RECORD_KEY, PARTITION_PATH, FILE_NAME = META_FIELDS

OWN_COLUMNS: Final = "__pyhudi_"
"""How the names begin of the columns that pyhudi puts beside a table's own while it reads and writes."""

META_FIELD_SCHEMAS: tuple[Json, ...] = tuple(optional(name, "string", doc="") for name in META_FIELDS)

_FIELDS = re.compile(r'"fields"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")


# Avro to Arrow.


@lru_cache(maxsize=64)
def arrow_from_avro(text: str) -> pa.Schema:
    """The columns that a scan returns for rows of this Avro record schema. All columns are nullable.

    Timestamps count in the unit that the schema names. Example: timestamp-millis is `timestamp[ms, UTC]`.
    Seen: Spark's Avro schema converters read time-millis and time-micros as plain int32 and int64, and any other
    logical type that Spark does not know as the type that stores it.
    Raises: Invalid for a text that is no Avro record schema; Unsupported for a type that Arrow columns
    of an answer cannot have, naming the field.
    """
    schema = parse_schema(text)
    if (wide := find_wide_union(schema, "")) is not None:
        path, union = wide
        raise Unsupported(
            f"field '{path}': a union of {len(union.branches)} types; expected one type, or null and one type"
        )
    return pa.schema([arrow_field(one.name, one.type, one.name).with_nullable(True) for one in schema.fields])


@lru_cache(maxsize=64)
def column_defaults(text: str) -> tuple[tuple[str, pa.Scalar], ...]:
    """The columns of an Avro record schema whose default is not null, each with its default.

    Raises: as `arrow_from_avro`; Invalid for a default that is no value of its column's type.
    """
    kinds = arrow_from_avro(text)
    ones = [
        (one.name, default_column(one, kinds.field(one.name).type, one.name, 1)[0]) for one in parse_schema(text).fields
    ]
    return tuple((name, default) for name, default in ones if default.is_valid)


# Arrow to Avro.


def record_name(table: str) -> str:
    """The full name of the record that holds a table's rows: `hoodie.<table>.<table>_record`.

    Seen: a character that an Avro name may not have becomes `__` (`HoodieAvroUtils.sanitizeName`).
    """
    assert table
    first = re.sub("^[^A-Za-z_]", "__", table, count=1)
    name = re.sub("[^A-Za-z0-9_]", "__", first)
    return f"hoodie.{name}.{name}_record"


def avro_from_arrow(schema: pa.Schema, *, record_name: str) -> str:
    """The Avro schema that Apache Hudi's Spark writer states in a commit for these columns.

    `record_name`: the full name, as `record_name()` gives it. A nullable column is a union with null, null by
    default. Seen: a struct is a record in the namespace of the record around it, named after its column; lists
    and maps in between do not count. A decimal is a `fixed` in a namespace that ends in the column's name.
    Raises: Invalid for types that Avro cannot hold (`canonical_arrow`) and for unfit column names.
    """
    namespace, _, name = record_name.rpartition(".")
    columns = [avro_field(column, record_name, column.name) for column in canonical_arrow(schema)]
    return schema_text(record(name, *columns, namespace=namespace))


_AVRO_TYPES: dict[pa.DataType, Json] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "local-timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.timestamp("ms", "UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
}


def is_field_name(name: str) -> bool:
    """Whether a column, or the field of a struct, can have the name."""
    is_begun = name[:1].isalpha() or name[:1] == "_"
    return is_begun and all(c.isalpha() or c.isdecimal() or c == "_" for c in name)


def avro_field(column: pa.Field, namespace: str, path: str) -> Json:
    name = column.name
    if not is_field_name(name):
        raise Invalid(f"column '{path}': expected a name of letters, digits and _, no digit first; rename it")
    if name == path and name.lower().startswith(OWN_COLUMNS):
        raise Invalid(
            f"column '{path}': names that begin with {OWN_COLUMNS} are those of pyhudi's own columns; rename it"
        )
    kind = avro_type(column.type, name, namespace, path)
    return optional(name, kind) if column.nullable else field(name, kind)


def avro_type(kind: pa.DataType, name: str, namespace: str, path: str) -> Json:
    if kind in _AVRO_TYPES:
        return _AVRO_TYPES[kind]
    if pa.types.is_list(kind):
        return {"type": "array", "items": _avro_item(kind.value_field, name, namespace, path)}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _avro_item(kind.item_field, name, namespace, path)}
    if pa.types.is_struct(kind):
        inside = f"{namespace}.{name}"
        members = [avro_field(member, inside, f"{path}.{member.name}") for member in kind]
        return record(name, *members, namespace=namespace)

    assert pa.types.is_decimal128(kind), kind
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": f"{namespace}.{name}",
        "size": decimal_size(kind.precision),
        "logicalType": "decimal",
        "precision": kind.precision,
        "scale": kind.scale,
    }


def _avro_item(item: pa.Field, name: str, namespace: str, path: str) -> Json:
    kind = avro_type(item.type, name, namespace, path)
    return ["null", kind] if item.nullable else kind


def decimal_size(precision: int) -> int:
    """The fewest bytes that hold every number of `precision` digits in two's complement."""
    assert 1 <= precision <= DECIMAL_DIGITS_MAX
    largest: int = 10**precision - 1
    return largest.bit_length() // 8 + 1


# Meta fields.


def with_meta_fields(avro_text: str) -> str:
    """The schema of rows as they are stored: the five meta fields first, the rest of the text untouched.

    Seen: equal to `parquet.avro.schema` in the footers of base files (0.15.0, 1.0.2, 1.2.0).
    """
    head, fields, tail = _split_fields(without_meta_fields(avro_text))
    return head + ",".join([*(schema_text(one) for one in META_FIELD_SCHEMAS), *(text for _, text in fields)]) + tail


def without_meta_fields(avro_text: str) -> str:
    """The schema of rows without the meta fields. The meta fields may be in a commit's schema.

    Seen: commits after an ALTER TABLE of 1.2.0, with schema evolution on read, state them
    (format/actions.md section 1.2).
    """
    return _without_meta_fields(avro_text)


@lru_cache(maxsize=64)
def _without_meta_fields(avro_text: str) -> str:
    return _with_fields(avro_text, lambda name: name not in META_FIELDS)


def select_fields(avro_text: str, names: Collection[str]) -> str:
    """The schema with only the named fields, in the schema's order."""
    return _with_fields(avro_text, lambda name: name in names)


def leave_out_fields(avro_text: str, names: Collection[str]) -> str:
    """The schema without the named fields, as far as it has them."""
    return _with_fields(avro_text, lambda name: name not in names) if names else avro_text


def _with_fields(avro_text: str, is_wanted: Callable[[str], bool]) -> str:
    """The schema with some of its fields, the text otherwise untouched.

    Where a field that goes defines a type that another one names, the definition moves there.
    """
    head, fields, tail = _split_fields(avro_text)
    wanted = [text for name, text in fields if is_wanted(name)]
    cut = head + ",".join(wanted) + tail
    return cut if len(wanted) == len(fields) else with_definitions(cut, avro_text)


def _split_fields(text: str) -> tuple[str, list[tuple[str, str]], str]:
    """The text before a record's first field, each field's name and text, and the text after the last."""
    record_schema(text)
    start = _FIELDS.search(text)
    if start is None:
        raise Invalid(f"Avro schema: expected fields that follow the record's name, found {text:.60}")
    decoder = json.JSONDecoder()
    fields: list[tuple[str, str]] = []
    at = _skip(text, start.end())
    while text[at] != "]":
        member, end = decoder.raw_decode(text, at)
        fields.append((str(member.get("name")), text[at:end]))
        at = _skip(text, end)
    return text[: start.end()], fields, text[at:]


def _skip(text: str, at: int) -> int:
    matched = _BETWEEN.match(text, at)
    assert matched is not None
    return matched.end()


def required_columns(schema_text: str) -> tuple[str, ...]:
    """The columns of an Avro record schema that may not be null."""
    return tuple(
        field["name"]
        for field in json.loads(schema_text)["fields"]
        if field["type"] != "null" and not (isinstance(field["type"], list) and "null" in field["type"])
    )
