"""Which Arrow types a table's columns have, what other types become, and which may follow which."""

import pyarrow as pa

from pyhudi.errors import Invalid

_TEXT_KEY = "text as keys of a map: Avro maps have no other; cast it to a list of structs"

# What becomes what, where one test tells; the first that holds counts.
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

# Avro's promotions. Spec: Apache Avro 1.11, "Schema Resolution".
_PROMOTIONS = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
    pa.string(): (pa.binary(),),
    pa.binary(): (pa.string(),),
}


def canonical_arrow(schema: pa.Schema) -> pa.Schema:
    """The schema with the types in which a table keeps such columns; nullability stays, metadata goes.

    Small integers widen, large and view types become plain, dictionaries their values, timestamps
    microseconds (of whatever zone: UTC).
    Raises: Invalid for a type with no place in a table or for two columns of one name, with the cast to make.
    """
    return pa.schema(_fields(list(schema), ""))


def _fields(fields: list[pa.Field], path: str) -> list[pa.Field]:
    names = [one.name for one in fields]
    for name in names:
        if names.count(name) > 1:
            raise Invalid(f"column '{path}{name}': expected each name once, found {names.count(name)}; rename them")
    return [pa.field(one.name, _canonical(one.type, path + one.name), one.nullable) for one in fields]


def _canonical(kind: pa.DataType, path: str) -> pa.DataType:
    if kind in _KEPT:
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return _canonical(kind.storage_type, path)
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
    """Can values stored as `source` be read as `target` without a rewrite? By Avro's rules, nested types too.

    A struct may gain fields that may be null, and lose fields.
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
