"""Columns for a field that stored rows do not have: the field's default in every row, or null.

Spec: Apache Avro 1.11, "Complex Types" (the JSON encoding of defaults).
"""

import decimal

import numpy as np
import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.avro.types import NO_DEFAULT, NULL, Array, AvroType, Field, Map, Record, Scalar, Union

_EXACT = decimal.Context(prec=80)


def default_column(field: Field, kind: pa.DataType, path: str, count: int) -> pa.Array:
    """The default of a field, `count` times. Raises: Invalid for a default that is no value of the type."""
    if field.default is NO_DEFAULT or field.default is None:
        return pa.nulls(count, kind)
    try:
        one = pa.array([_value(field.default, field.type)], kind)
    except (pa.ArrowException, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise Invalid(f"field '{path}': expected a default of type {kind}, found {field.default!r:.60}") from error
    return one.take(pa.array(np.zeros(count, np.int32)))


def _value(default: object, kind: AvroType) -> object:
    """The Python value that Arrow takes, from a default as it stands in JSON."""
    match kind:
        case Scalar():
            return _scalar(default, kind)
        case Array() if isinstance(default, list):
            return [_value(item, kind.items) for item in default]
        case Map() if isinstance(default, dict):
            return [(key, _value(item, kind.values)) for key, item in default.items()]
        case Record() if isinstance(default, dict):
            return {one.name: _value(default.get(one.name, one.default), one.type) for one in kind.fields}
        case Union():
            if default is None and NULL in kind.branches:
                return None
            if len(kind.values) == 1:
                return _value(default, kind.values[0])
            return {"member0": _value(default, kind.values[0])}  # Avro: a union's default is of its first type
        case _:
            raise ValueError("a value of another type")


def _scalar(default: object, kind: Scalar) -> object:
    # Avro states bytes as text, a character a byte: "\u00ff" is the byte FF.
    if kind.kind in ("bytes", "fixed"):
        if not isinstance(default, str):
            raise ValueError("expected text, a character a byte")
        stored = default.encode("latin-1")
        if kind.logical != "decimal":
            return stored
        assert isinstance(kind.scale, int)
        return decimal.Decimal(int.from_bytes(stored, "big", signed=True)).scaleb(-kind.scale, _EXACT)

    expected: dict[str, type | tuple[type, ...]] = {
        "boolean": bool,
        "int": int,
        "long": int,
        "float": (int, float),
        "double": (int, float),
    }

    if not isinstance(default, expected.get(kind.kind, str)) or (isinstance(default, bool) and kind.kind != "boolean"):
        raise ValueError("a value of another type")
    return default
