"""The Arrow types of a table's columns, what other types become, and which type may replace which without a rewrite."""

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.avro.types import NESTING_MAX as AVRO_NESTING_MAX

NESTING_MAX = AVRO_NESTING_MAX // 2 - 1
"""The most levels of types within a column's type. A nullable type takes two levels in Avro."""

_TEXT_KEY = "text as keys of a map: Avro maps have no other; cast it to a list of structs"

# A test of a type, and the type that replaces it. The first test that holds is taken.
_REPLACED = (
    (pa.types.is_int8, pa.int32()),
    (pa.types.is_int16, pa.int32()),
    (pa.types.is_uint8, pa.int32()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_date64, pa.date32()),
)
_KEPT = frozenset(
    (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32())
)
_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)
_REFUSED = (
    (pa.types.is_uint64, "int64 or decimal128(20, 0)"),
    (pa.types.is_float16, "float32"),
    (pa.types.is_time, "int64 or string"),
    (pa.types.is_duration, "int64"),
    (pa.types.is_null, "the type that its values will have"),
)

_CASTS_BENEATH = {"pandas.period": "text or a timestamp"}
"""Name of an extension type -> what to cast it to, where that is not the type beneath."""

# Avro's promotions. Spec: Apache Avro 1.11, "Schema Resolution".
_PROMOTIONS = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
    pa.string(): (pa.binary(),),
    pa.binary(): (pa.string(),),
}


def canonical_arrow(schema: pa.Schema) -> pa.Schema:
    """The schema with the types in which a table keeps such columns. Nullability stays, metadata is dropped.

    Small integers widen. Large and view types become plain. Dictionaries become their values. Timestamps become
    microseconds, in UTC whatever their zone was. UUIDs become their 16 bytes, JSON its text.
    Raises: Invalid for a type that a table cannot have, with the cast to make; Invalid for two columns of one name.
    """
    refuse_deep_types(schema)
    return pa.schema(_fields(list(schema), ""))


def refuse_deep_types(schema: pa.Schema) -> None:
    """Refuse types that nest deeper than a table allows. Raises: Invalid, naming the column."""
    for field in schema:
        level, depth = [field.type], 0
        while level:
            level = [inner for kind in level for inner in _inner_types(kind)]
            depth += 1
            if depth > NESTING_MAX:
                raise Invalid(
                    f"column '{field.name}': expected types nested {NESTING_MAX} deep at most, found deeper ones; give "
                    "it as text, such as JSON"
                )


def _inner_types(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return [kind.value_type]
    return [kind.field(number).type for number in range(kind.num_fields)]


def typed_nulls(schema: pa.Schema, table: pa.Schema) -> pa.Schema:
    """The schema, with the table's type for each column, field or item of type null (nothing but nulls)."""
    return pa.schema(_typed_nulls(list(schema), list(table)))


def _typed_nulls(fields: list[pa.Field], stored: list[pa.Field]) -> list[pa.Field]:
    known = {one.name: one.type for one in stored}
    return [one.with_type(_typed(one.type, known[one.name])) if one.name in known else one for one in fields]


def _typed(kind: pa.DataType, stored: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kind):
        return stored
    if pa.types.is_struct(kind) and pa.types.is_struct(stored):
        return pa.struct(_typed_nulls(list(kind), list(stored)))
    if any(is_kind(kind) for is_kind in _LISTS) and pa.types.is_list(stored):
        item = kind.value_field
        return pa.list_(item.with_type(_typed(item.type, stored.value_type)))
    if pa.types.is_map(kind) and pa.types.is_map(stored):
        item = kind.item_field
        return pa.map_(kind.key_type, item.with_type(_typed(item.type, stored.item_type)))
    return kind


def refuse_names_alike(schema: pa.Schema, path: str = "") -> None:
    """Refuse columns, or fields of a struct, whose names differ only by capital letters. `path`: where the struct is.

    Spark and SQL do not tell such names apart, and could not read the table. Raises: Invalid.
    """
    _refuse_alike(list(schema), path)


def _refuse_alike(fields: list[pa.Field], path: str) -> None:
    folded: dict[str, str] = {}
    for field in fields:
        alike = folded.setdefault(field.name.lower(), field.name)
        if alike != field.name:
            raise Invalid(
                f"column '{path}{field.name}' differs from column '{path}{alike}' by capital letters only: Spark could "
                "not read the table; rename one of them"
            )
        kind = field.type
        while any(is_kind(kind) for is_kind in _LISTS) or pa.types.is_map(kind):
            kind = kind.item_type if pa.types.is_map(kind) else kind.value_type
        if pa.types.is_struct(kind):
            _refuse_alike(list(kind), f"{path}{field.name}.")


def _fields(fields: list[pa.Field], path: str) -> list[pa.Field]:
    names = [one.name for one in fields]
    for name in names:
        if names.count(name) > 1:
            raise Invalid(f"column '{path}{name}': expected each name once, found {names.count(name)}; rename them")
    return [pa.field(one.name, _canonical(one.type, path + one.name), one.nullable) for one in fields]


def _canonical(kind: pa.DataType, path: str) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):  # it may have no hash
        return _beneath(kind, path)
    if kind in _KEPT:
        return kind
    for is_kind, replacement in _REPLACED:
        if is_kind(kind):
            return replacement
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz is not None else None)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _canonical(kind.value_type, path)
    if pa.types.is_decimal(kind):
        return _decimal(kind, path)
    return _nested(kind, path)


def _beneath(kind: pa.DataType, path: str) -> pa.DataType:
    """The type for an extension type, where its values beneath mean the same without it. Raises: Invalid otherwise."""
    if kind.extension_name == "arrow.bool8":
        return pa.bool_()
    if kind.extension_name in ("arrow.uuid", "arrow.json"):
        return _canonical(kind.storage_type, path)
    cast = _CASTS_BENEATH.get(kind.extension_name, kind.storage_type)
    raise Invalid(f"column '{path}' of type {kind}: no such type in a table; cast it to {cast}")


def _decimal(kind: pa.DataType, path: str) -> pa.DataType:
    if kind.precision > 38 or not 0 <= kind.scale <= kind.precision:
        raise Invalid(f"column '{path}' of type {kind}: expected at most 38 digits, none beyond them; cast it")
    return pa.decimal128(kind.precision, kind.scale)


def _nested(kind: pa.DataType, path: str) -> pa.DataType:
    if any(is_kind(kind) for is_kind in _LISTS):
        item = kind.value_field
        return pa.list_(pa.field("element", _canonical(item.type, f"{path}.element"), item.nullable))

    if pa.types.is_map(kind):
        if _canonical(kind.key_type, f"{path}.key") != pa.string():
            raise Invalid(f"column '{path}' of type {kind}: expected {_TEXT_KEY}")
        item = kind.item_field
        return pa.map_(pa.string(), pa.field("value", _canonical(item.type, f"{path}.value"), item.nullable))

    if pa.types.is_struct(kind):
        if kind.num_fields == 0:
            raise Invalid(f"column '{path}': a struct without fields cannot be stored; leave it out")
        return pa.struct(_fields(list(kind), f"{path}."))

    for is_kind, cast in _REFUSED:
        if is_kind(kind):
            raise Invalid(f"column '{path}' of type {kind}: no such type in a table; cast it to {cast}")
    raise Invalid(f"column '{path}' of type {kind}: no such type in a table; cast it to another")


def can_promote(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values stored as `source` can be read as `target` without a rewrite, by Avro's rules.

    Nested types follow the same rules. A struct may gain nullable fields, and may lose fields.
    """
    if source == target or target in _PROMOTIONS.get(source, ()):
        return True
    if pa.types.is_list(source) and pa.types.is_list(target):
        return _can_follow(source.value_field, target.value_field)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return bool(source.key_type == target.key_type) and _can_follow(source.item_field, target.item_field)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        before = {one.name: one for one in source}
        return all(_can_follow(before[one.name], one) if one.name in before else one.nullable for one in target)
    return False


def _can_follow(source: pa.Field, target: pa.Field) -> bool:
    return (target.nullable or not source.nullable) and can_promote(source.type, target.type)
