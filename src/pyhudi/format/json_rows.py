r"""Rows as JSON texts, as Apache Hudi's change data spell them: a text each, made column by column.

Seen (1.2.0, images of change logs: Avro's `GenericData.toString`): a space behind each colon and comma; every column,
null as `null`; timestamps and dates as the number of their microseconds or days; floats as Java prints them, those that
are no numbers in quotes; a decimal as the array of its signed bytes, big endian, as many as its type has; bytes as
`{"bytes": "..."}`, a character a byte.

Example: `{"id": "k1", "price": [0, -85, 55], "tags": ["a", null], "at": 1700000000000000}`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import value_text
from pyhudi.format.schema.conversion import decimal_size

_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b", "\f": r"\f"}
_CONTROLS = {chr(code): f"\\u{code:04X}" for code in range(0x20) if chr(code) not in _ESCAPES}
_TO_ESCAPE = r'[\\"\x00-\x1f]'


def json_texts(rows: pa.Array) -> pa.Array:
    """The JSON text of each value; null for a null. Shape: (n,) -> (n,) string.

    `rows`: structs, as a rule. Memory: the texts of one column beside the result.
    """
    return pc.if_else(rows.is_valid(), _texts(rows), pa.scalar(None, pa.string()))


def _texts(values: pa.Array) -> pa.Array:
    """As `json_texts`, with the text `null` for a null."""
    kind = values.type
    if pa.types.is_struct(kind):
        found = _structs(values)
    elif pa.types.is_map(kind):
        found = _maps(values)
    elif pa.types.is_list(kind):
        found = _lists(values, _texts(_inside(values, values.values)), "[", "]")
    elif pa.types.is_string(kind):
        found = _quoted(values)
    elif pa.types.is_binary(kind):
        found = _bytes(values)
    elif pa.types.is_decimal(kind):
        found = _decimals(values)
    elif pa.types.is_date32(kind):
        found = values.cast(pa.int32()).cast(pa.string())
    elif pa.types.is_floating(kind):
        spelled = one_array(value_text(pa.chunked_array([values]), "value"))
        found = pc.if_else(pc.is_finite(values), spelled, pc.binary_join_element_wise('"', spelled, '"', ""))
    else:  # booleans, whole numbers, timestamps
        found = one_array(value_text(pa.chunked_array([values]), "value"))
    return pc.fill_null(found, "null")


def _structs(values: pa.StructArray) -> pa.Array:
    parts: list[pa.Array | str] = []
    for number, (field, column) in enumerate(zip(values.type, values.flatten(), strict=True)):
        name = _quoted(pa.array([field.name]))[0].as_py()
        parts += [f"{', ' if number else '{'}{name}: ", _texts(column)]
    if not parts:
        return _masked(pa.repeat("{}", len(values)), values)
    return _masked(pc.binary_join_element_wise(*parts, "}", ""), values)


def _maps(values: pa.MapArray) -> pa.Array:
    keys, items = _inside(values, values.keys), _inside(values, values.items)
    entries = pc.binary_join_element_wise(_texts(keys), _texts(items), ": ")
    return _lists(values, entries, "{", "}")


def _inside(values: pa.ListArray | pa.MapArray, elements: pa.Array) -> pa.Array:
    """The elements of these lists alone: an array may be a slice of a larger one, or have elements below its nulls."""
    offsets = np.asarray(values.offsets)
    return elements.slice(int(offsets[0]), int(offsets[-1] - offsets[0])) if len(values) else elements.slice(0, 0)


def _lists(values: pa.ListArray | pa.MapArray, texts: pa.Array, opens: str, closes: str) -> pa.Array:
    """The texts of the elements, joined list by list."""
    if not len(values):
        return pa.array([], pa.string())
    offsets = np.asarray(values.offsets)
    lists = pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), texts)
    return _masked(pc.binary_join_element_wise(opens, pc.binary_join(lists, ", "), closes, ""), values)


def _masked(texts: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string())) if values.null_count else texts


def _quoted(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, _TO_ESCAPE)).as_py():
        for char, escaped in _ESCAPES.items():
            texts = pc.replace_substring(texts, char, escaped)
        if pc.any(pc.match_substring_regex(texts, r"[\x00-\x1f]")).as_py():
            for char, escaped in _CONTROLS.items():
                texts = pc.replace_substring(texts, char, escaped)
    return pc.binary_join_element_wise('"', texts, '"', "")


def _bytes(values: pa.Array) -> pa.Array:
    """Bytes as text of as many characters, U+0000 to U+00FF. Memory: twice the bytes."""
    plain = values.cast(pa.large_binary())
    offsets = np.frombuffer(plain.buffers()[1], "<i8", len(plain) + 1, plain.offset * 8)
    content = np.frombuffer(plain.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    is_wide = content >= 0x80
    # UTF-8 has two bytes for a character from U+0080 on: 110000ab and 10bbbbbb.
    starts = np.arange(len(content)) + np.cumsum(is_wide) - is_wide
    encoded = np.empty(len(content) + int(is_wide.sum()), np.uint8)
    encoded[starts] = np.where(is_wide, 0xC0 | (content >> 6), content)
    encoded[starts[is_wide] + 1] = 0x80 | (content[is_wide] & 0x3F)
    ends = np.append(starts, len(encoded))[offsets - offsets[0]].astype(np.int64)
    texts = pa.Array.from_buffers(pa.large_string(), len(plain), [None, pa.py_buffer(ends), pa.py_buffer(encoded)])
    spelled = pc.binary_join_element_wise('{"bytes": ', _quoted(texts.cast(pa.string())), "}", "")
    return _masked(spelled, values)


def _decimals(values: pa.Array) -> pa.Array:
    size = decimal_size(values.type.precision)
    plain = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    stored = np.frombuffer(plain.buffers()[1] or b"", np.uint8)[plain.offset * 16 : (plain.offset + len(plain)) * 16]
    signed = np.ascontiguousarray(stored.reshape(-1, 16)[:, size - 1 :: -1]).view(np.int8).reshape(-1)
    offsets = np.arange(len(plain) + 1, dtype=np.int32) * size
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(signed).cast(pa.string()))
    return _masked(pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", ""), values)
