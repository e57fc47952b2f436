"""Bounds that hold in the order in which queries compare, whoever wrote them.

Queries compare texts and bytes as unsigned bytes, as Spark does. Apache Hudi compares texts as Java does, by UTF-16
units, and bytes as signed ones.
Example: U+FF0C is less than U+1F600, but in UTF-16 `FF0C` is greater than `D83D DE00`. Of the texts "a", "b\\uff0c" and
"b\\U0001f600" Java's greatest is "b\\uff0c".
Seen: 0.15.0, 1.0.2, 1.2.0 merge the bounds of row groups and of partitions by `String.compareTo` and
`ByteBuffer.compareTo`, and make those of bytes in logs by the latter.
"""

import dataclasses
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.metadata.stats_values import TypedBounds

_FIRST: Final = "\ue000"
"""From this character on, the two orders of texts differ: U+E000 to U+FFFF, and what UTF-16 writes as two units."""

_FIRST_BYTE: Final = _FIRST.encode()[0]


def in_every_order(bounds: TypedBounds) -> TypedBounds:
    """Bounds as wide as needed to hold in either order. Bounds that none of them allows are not known."""
    kind = bounds.min.type
    if is_bytes(kind):
        return dataclasses.replace(bounds, is_known=pa.array(np.zeros(len(bounds.min), np.bool_)))

    low, high, is_known = bounds.min, bounds.max, bounds.is_known
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        low, high = _cut(low, is_min=True), _cut(high, is_min=False)
        is_known = pc.and_(is_known, pc.is_valid(high))
    if pa.types.is_floating(kind) or isinstance(kind, pa.BaseExtensionType):  # Arrow orders neither NaN nor extensions
        return TypedBounds(low, high, is_known)
    return TypedBounds(low, high, pc.and_(is_known, pc.fill_null(pc.less_equal(low, high), False)))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether bounds of the type are never known, as they may be those of either order."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _cut(texts: pa.Array, *, is_min: bool) -> pa.Array:
    """The texts, without what stands behind the characters on which both orders agree. A maximum is rounded up."""
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    if not (data >= _FIRST_BYTE).any():
        return texts
    return pa.array(
        [None if text is None else _cut_text(text, is_min=is_min) for text in texts.to_pylist()], texts.type
    )


def _cut_text(text: str, *, is_min: bool) -> str | None:
    """Example: "ab\\uff0cx" becomes "ab" as a minimum, and "ac" as a maximum. None if no text is great enough."""
    agreed = next((at for at, one in enumerate(text) if one >= _FIRST), None)
    if agreed is None:
        return text
    kept = text[:agreed]
    if is_min:
        return kept
    while kept and not _next(kept[-1]):
        kept = kept[:-1]
    return kept[:-1] + _next(kept[-1]) if kept else None


def _next(one: str) -> str:
    """The character behind one; empty behind the last on which both orders agree, U+D7FF."""
    return chr(ord(one) + 1) if ord(one) < 0xD7FF else ""
