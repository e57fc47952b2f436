"""Hudi's hashes of record keys for buckets: Java's `List.hashCode` over texts, and the 32-bit xxHash, compiled.

The hash is taken over a key's hash values. For a record key `f1:v1,f2:v2` these are the values of the hash fields; any
other key is its own single hash value. Example: with the hash field `b`, the key `a:1,b:x` has the hash value `x`.

All arithmetic is on 64-bit unsigned integers. They are cut to 32 bits wherever a higher bit could move down into them.

Cost: about 60 ns for a key of 17 bytes. Memory: a number a key, and one key.

Spec: format/indexes.md sections 4 and 5, the rule of Apache Hudi 1.0 and later.
Seen: in 1.2.0 a null among the hash values on a ring is the text `null`. 1.2.0 never comes to the end of a key whose
last value holds a `:` and belongs to no hash field, such as `a:1,b:x:y` with the hash field `a`. Here the value is
passed over.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import Bytes, Offsets, key_buffers
from pyhudi.format.keys.record_keys import EMPTY_COMPONENT, NULL_COMPONENT
from pyhudi.loops import inlined, loop

RING_MASK: Final = 0x7FFFFFFF
"""Hashes on a ring have 31 bits."""

_COLON, _COMMA = ord(":"), ord(",")
_NULL: Final = np.frombuffer(NULL_COMPONENT.encode(), np.uint8)
_EMPTY: Final = np.frombuffer(EMPTY_COMPONENT.encode(), np.uint8)
_NULL_ON_RING: Final = np.frombuffer(b"null", np.uint8)
"""A null as Java's `String.join` spells it."""

_LOW = np.uint64(0xFFFFFFFF)
_P1, _P2, _P3, _P4, _P5 = (np.uint64(prime) for prime in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))


def list_hashes(keys: pa.Array | pa.ChunkedArray, fields: Sequence[str]) -> npt.NDArray[np.int32]:
    """For each record key, Java's `List.hashCode` of its hash values. A null hash value counts as 0.

    `fields`: the hash fields. Shape: (n,) text -> (n,). Raises: Invalid for a null key, or text that is no UTF-8.
    """
    return _hashes(keys, fields, on_ring=False).view(np.int32)


def ring_hashes(keys: pa.Array | pa.ChunkedArray, fields: Sequence[str]) -> npt.NDArray[np.int32]:
    """For each record key, its hash on a ring, 0 to `RING_MASK`: the xxHash, seed 0, of its joined hash values.

    `fields`: the hash fields. Shape: (n,) text -> (n,). Raises: Invalid for a null key, or text that is no UTF-8.
    """
    return (_hashes(keys, fields, on_ring=True) & np.uint32(RING_MASK)).view(np.int32)


def bucket_numbers(keys: pa.Array | pa.ChunkedArray, fields: Sequence[str], bucket_count: int) -> npt.NDArray[np.int32]:
    """For each record key, the number of its bucket among the `bucket_count` of its partition. As `list_hashes`."""
    assert bucket_count >= 1
    return (list_hashes(keys, fields) & np.int32(RING_MASK)) % np.int32(bucket_count)


def text_hashes(texts: pa.Array | pa.ChunkedArray, *, what: str) -> npt.NDArray[np.int32]:
    """For each text, Java's `String.hashCode`. `what`: names the bytes in errors.

    Shape: (n,) text -> (n,). Raises: Invalid for a null, or text that is no UTF-8.
    """
    _check_text(texts, what)
    found = np.zeros(len(texts), np.uint32)
    start = 0
    for data, offsets, count in key_buffers(texts, what=what):
        _text_hash_each(data, offsets, found[start : start + count])
        start += count
    return found.view(np.int32)


def _check_text(keys: pa.Array | pa.ChunkedArray, what: str) -> None:
    """Raise Invalid for values that are no text. The loops trust the offsets, and the lengths that UTF-8 states."""
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
        raise Invalid(f"{what}: expected record keys as text, found {keys.type}")
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Invalid(f"{what}: expected record keys in UTF-8: {error}; correct the rows") from None


def _hashes(keys: pa.Array | pa.ChunkedArray, fields: Sequence[str], *, on_ring: bool) -> npt.NDArray[np.uint32]:
    assert fields
    _check_text(keys, "bucket index")
    names = [name.encode() for name in fields]
    name_bytes = np.frombuffer(b"".join(names), np.uint8)
    name_ends = np.cumsum([0, *map(len, names)])

    found = np.zeros(len(keys), np.uint32)
    start = 0
    for data, offsets, count in key_buffers(keys, what="bucket index"):
        part = found[start : start + count]
        if on_ring:
            _ring_hash_each(data, offsets, name_bytes, name_ends, part)
        else:
            _list_hash_each(data, offsets, name_bytes, name_ends, part)
        start += count
    assert start == len(keys)
    return found


@loop
def _list_hash_each(
    data: Bytes, offsets: Offsets, names: Bytes, name_ends: Offsets, found: npt.NDArray[np.uint32]
) -> None:
    for key in range(found.size):
        start, end = offsets[key], offsets[key + 1]
        h, is_selected = np.uint64(1), False

        at = start if _has_pairs(data, start, end) else end
        while at < end:
            colon, stop = _next_pair(data, at, end)
            if _is_named(data, at, colon, names, name_ends):
                is_selected = True
                h *= np.uint64(31)
                if not (_equals(data, colon + 1, stop, _NULL) or _equals(data, colon + 1, stop, _EMPTY)):
                    h += _text_hash(data, colon + 1, stop)
            at = stop + 1

        if not is_selected:
            h = np.uint64(31) + _text_hash(data, start, end)
        found[key] = np.uint32(h & _LOW)


@loop
def _text_hash_each(data: Bytes, offsets: Offsets, found: npt.NDArray[np.uint32]) -> None:
    for text in range(found.size):
        found[text] = np.uint32(_text_hash(data, offsets[text], offsets[text + 1]) & _LOW)


@loop
def _ring_hash_each(
    data: Bytes, offsets: Offsets, names: Bytes, name_ends: Offsets, found: npt.NDArray[np.uint32]
) -> None:
    longest = np.int64(0)
    for key in range(found.size):
        longest = max(longest, np.int64(offsets[key + 1] - offsets[key]))
    joined = np.zeros(longest, np.uint8)  # enough: the values fit into the key, and `null` is shorter than `__null__`

    for key in range(found.size):
        start, end = offsets[key], offsets[key + 1]
        size, is_selected = 0, False
        at = start if _has_pairs(data, start, end) else end
        while at < end:
            colon, stop = _next_pair(data, at, end)
            if _is_named(data, at, colon, names, name_ends):
                is_selected = True
                if _equals(data, colon + 1, stop, _NULL):
                    joined[size : size + _NULL_ON_RING.size] = _NULL_ON_RING
                    size += _NULL_ON_RING.size
                elif not _equals(data, colon + 1, stop, _EMPTY):
                    joined[size : size + stop - colon - 1] = data[colon + 1 : stop]
                    size += stop - colon - 1
            at = stop + 1

        found[key] = np.uint32(_xxhash32(joined, 0, size) if is_selected else _xxhash32(data, start, end))


@inlined
def _has_pairs(data: Bytes, start: int, end: int) -> bool:
    """Whether a key is parsed as pairs: it is if it has both separators, `:` and `,`."""
    has_colon, has_comma = False, False
    for at in range(start, end):
        has_colon |= data[at] == _COLON
        has_comma |= data[at] == _COMMA
    return has_colon and has_comma


@inlined
def _next_pair(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The colon that ends the field name at `at`, and the end of the field's value.

    A value may hold commas: it ends at the last comma before the next colon, or with the key. Example: in `a:1,2,b:x`
    the value of `a` is `1,2`. A colon stands at `at` or later, as `_has_pairs` or the pair before has found one.
    """
    colon = at
    while data[colon] != _COLON:
        colon += 1
    comma = colon
    for at in range(colon + 1, end):
        if data[at] == _COMMA:
            comma = at
        elif data[at] == _COLON and comma > colon:
            return colon, comma
    return colon, end


@inlined
def _is_named(data: Bytes, start: int, end: int, names: Bytes, name_ends: Offsets) -> bool:
    """Whether a field is one of the hash fields."""
    for name in range(name_ends.size - 1):
        if _equals(data, start, end, names[name_ends[name] : name_ends[name + 1]]):
            return True
    return False


@inlined
def _equals(data: Bytes, start: int, end: int, text: Bytes) -> bool:
    if end - start != text.size:
        return False
    for at in range(text.size):  # noqa: SIM110 - no generators in compiled code
        if data[start + at] != text[at]:
            return False
    return True


@loop
def _text_hash(data: Bytes, start: int, end: int) -> np.uint64:
    """Java's `String.hashCode` of a UTF-8 text, taken over its UTF-16 units. The low 32 bits are the hash."""
    h, at = np.uint64(0), start
    while at < end:
        first = np.uint64(data[at])
        if first < 0x80:
            h, at = h * np.uint64(31) + first, at + 1
        elif first < 0xE0:
            h, at = h * np.uint64(31) + ((first & np.uint64(0x1F)) << np.uint64(6) | _low_bits(data, at + 1)), at + 2
        elif first < 0xF0:
            high = (first & np.uint64(0x0F)) << np.uint64(12) | _low_bits(data, at + 1) << np.uint64(6)
            h, at = h * np.uint64(31) + (high | _low_bits(data, at + 2)), at + 3
        else:
            high = (first & np.uint64(0x07)) << np.uint64(18) | _low_bits(data, at + 1) << np.uint64(12)
            beyond = (high | _low_bits(data, at + 2) << np.uint64(6) | _low_bits(data, at + 3)) - np.uint64(0x10000)
            h = h * np.uint64(31) + (np.uint64(0xD800) | beyond >> np.uint64(10))
            h, at = h * np.uint64(31) + (np.uint64(0xDC00) | beyond & np.uint64(0x3FF)), at + 4
    return h


@inlined
def _low_bits(data: Bytes, at: int) -> np.uint64:
    """The 6 bits that a byte after the first adds to a character."""
    return np.uint64(data[at]) & np.uint64(0x3F)


@loop
def _xxhash32(data: Bytes, start: int, end: int) -> np.uint64:
    """The 32-bit xxHash, seed 0, of the bytes from `start` to `end`."""
    at, h = start, _P5
    if end - start >= 16:
        a, b, c, d = (_P1 + _P2) & _LOW, _P2, np.uint64(0), (np.uint64(0) - _P1) & _LOW
        while at <= end - 16:
            a, b = _round(a, data, at), _round(b, data, at + 4)
            c, d = _round(c, data, at + 8), _round(d, data, at + 12)
            at += 16
        h = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)

    h = (h + np.uint64(end - start)) & _LOW
    while at <= end - 4:
        h = _rotated((h + _word(data, at) * _P3) & _LOW, 17) * _P4
        at += 4
    while at < end:
        h = _rotated((h + np.uint64(data[at]) * _P5) & _LOW, 11) * _P1
        at += 1

    h &= _LOW
    h = ((h ^ (h >> np.uint64(15))) * _P2) & _LOW
    h = ((h ^ (h >> np.uint64(13))) * _P3) & _LOW
    return h ^ (h >> np.uint64(16))


@inlined
def _round(lane: np.uint64, data: Bytes, at: int) -> np.uint64:
    return (_rotated((lane + _word(data, at) * _P2) & _LOW, 13) * _P1) & _LOW


@inlined
def _rotated(value: np.uint64, bits: int) -> np.uint64:
    return (value << np.uint64(bits) | value >> np.uint64(32 - bits)) & _LOW


@inlined
def _word(data: Bytes, at: int) -> np.uint64:
    """Four bytes as a little-endian number."""
    low = np.uint64(data[at]) | np.uint64(data[at + 1]) << np.uint64(8)
    return low | np.uint64(data[at + 2]) << np.uint64(16) | np.uint64(data[at + 3]) << np.uint64(24)
