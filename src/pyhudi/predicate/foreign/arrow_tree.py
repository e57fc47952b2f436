"""An Arrow expression taken apart: fields, literals and calls. PyArrow has no call for it; the pickled form tells."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Field:
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    scalar: pa.Scalar


@dataclass(frozen=True, slots=True)
class Called:
    """A function of Arrow. `options`: by name, as Arrow stores them."""

    function: str
    arguments: tuple[Tree, ...]
    options: dict[str, Any]


Tree: TypeAlias = Field | Value | Called


class _Schema(ctypes.Structure):
    """The beginning of an `ArrowSchema` of Arrow's C data interface."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def tree_of(expression: pc.Expression) -> Tree | None:
    """The expression as a tree. None for a form that is not known here.

    Layout: an IPC file of one row. Its schema's metadata lists the tree in prefix order: `call` and the function's
    name, the arguments, `options` and a column, `end`; `field_ref` and a name; `literal` and a column. Struct fields
    are `nested_field_ref` and the number of names, followed by them.
    Seen: PyArrow 24 to 26 (`Serialize(Expression)` in Arrow's C++ sources, the same since release 2).
    """
    try:
        _, (content,) = expression.__reduce__()
        row = pa.ipc.open_file(pa.py_buffer(content)).get_batch(0)
        steps = iter(_metadata_of(row.schema))
        tree = _next(steps, *next(steps), row)
    except (ValueError, TypeError, KeyError, IndexError, StopIteration, pa.ArrowException):
        return None
    return tree if next(steps, None) is None else None


def _next(steps: Iterator[tuple[str, str]], kind: str, text: str, row: pa.RecordBatch) -> Tree:
    match kind:
        case "field_ref":
            return Field((text,))
        case "nested_field_ref":
            return Field(tuple(_name(*next(steps)) for _ in range(int(text))))
        case "literal":
            return Value(row.column(int(text))[0])
        case "call":
            arguments, options = list[Tree](), dict[str, Any]()
            while (step := next(steps))[0] != "end":
                if step[0] == "options":
                    options = dict(row.column(int(step[1]))[0].items())
                else:
                    arguments.append(_next(steps, *step, row))
            return Called(text, tuple(arguments), options)
        case _:
            raise ValueError(kind)


def _name(kind: str, text: str) -> str:
    if kind != "field_ref":
        raise ValueError(kind)
    return text


def _metadata_of(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Keys and values in their order, with repeats. `schema.metadata` would keep one value a key.

    Layout (of the machine's byte order): count i32; for each pair: length i32, key, length i32, value.
    """
    capsule = schema.__arrow_c_schema__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    place = _Schema.from_address(pointer_of(capsule, b"arrow_schema") or 0).metadata

    def text() -> str:
        nonlocal place
        length = number()
        content = ctypes.string_at(place, length)
        place = place + length
        return content.decode()

    def number() -> int:
        nonlocal place
        (value,) = struct.unpack("=i", ctypes.string_at(place, 4))
        place = place + 4
        return int(value)

    pairs = [(text(), text()) for _ in range(number())] if place else []
    del capsule
    return iter(pairs)
