"""Messages in Thrift's compact protocol, as trees of their field numbers.

A tree keeps every field in its place, known or not: what is decoded and encoded again has the same bytes, as long as
its writer wrote numbers and field headers in their shortest form.
"""

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from pyhudi.errors import CorruptFile

Value: TypeAlias = "bool | int | bytes | Items | Message"

_DEPTH_MAX: Final = 32
_SHORT_LIST: Final = 15


class Kind(IntEnum):
    """The types of the protocol. A field that is true or false has its value in its type."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    STRUCT = 12


_INTEGERS: Final = frozenset({Kind.I16, Kind.I32, Kind.I64})
_LISTS: Final = frozenset({Kind.LIST, Kind.SET})


@dataclass(slots=True)
class Items:
    """The elements of a list or a set, all of one kind."""

    kind: Kind
    values: list[Value]


@dataclass(slots=True)
class Message:
    """Field number -> kind and value. A double is its eight bytes."""

    fields: dict[int, tuple[Kind, Value]] = field(default_factory=dict)

    def number(self, key: int) -> int | None:
        """The number in a field; None if it is not set, or is no number."""
        value = self.fields.get(key, (None, None))[1]
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def content(self, key: int) -> bytes | None:
        value = self.fields.get(key, (None, None))[1]
        return value if isinstance(value, bytes) else None

    def message(self, key: int) -> "Message | None":
        value = self.fields.get(key, (None, None))[1]
        return value if isinstance(value, Message) else None

    def messages(self, key: int) -> list["Message"]:
        """The messages of a list; none if it is not set."""
        value = self.fields.get(key, (None, None))[1]
        values = value.values if isinstance(value, Items) else []
        return [one for one in values if isinstance(one, Message)]

    def numbers(self, key: int) -> list[int]:
        value = self.fields.get(key, (None, None))[1]
        values = value.values if isinstance(value, Items) else []
        return [one for one in values if isinstance(one, int)]

    def with_fields(self, **fields: tuple[Kind, Value] | None) -> "Message":
        """A copy with other values of some fields, named `f1`, `f2` and so on. None: the field is not set."""
        changed = {int(name[1:]): one for name, one in fields.items()}
        kept = {key: one for key, one in self.fields.items() if key not in changed}
        return Message({**kept, **{key: one for key, one in changed.items() if one is not None}})


def decode_message(data: bytes, *, path: str, start: int = 0) -> tuple[Message, int]:
    """The message that begins at `start`, and where it ends.

    Spec: Thrift compact protocol. `path` names the bytes in errors. Raises: CorruptFile for bytes that are no message.
    """
    reader = _Reader(data, start, path)
    return reader.message(0), reader.at


def encode_message(message: Message) -> bytes:
    out = bytearray()
    _put_message(out, message)
    return bytes(out)


class _Reader:
    """Reads values one after another. `at`: where the next one begins."""

    __slots__ = ("_data", "_path", "at")

    def __init__(self, data: bytes, start: int, path: str) -> None:
        self._data, self.at, self._path = data, start, path

    def message(self, depth: int) -> Message:
        if depth > _DEPTH_MAX:
            raise self._corrupt(f"at most {_DEPTH_MAX} messages within each other", "more")
        fields: dict[int, tuple[Kind, Value]] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else _signed(self._varint())
            kind = self._kind(head & 0x0F)
            fields[number] = (kind, kind is Kind.TRUE if kind <= Kind.FALSE else self._value(kind, depth))
        return Message(fields)

    def _value(self, kind: Kind, depth: int) -> Value:
        if kind in _INTEGERS:
            return _signed(self._varint())
        if kind is Kind.BINARY:
            return self._take(self._varint())
        if kind is Kind.STRUCT:
            return self.message(depth + 1)
        if kind in _LISTS:
            return self._items(depth + 1)
        if kind is Kind.DOUBLE:
            return self._take(8)
        return self._byte()

    def _items(self, depth: int) -> Items:
        head = self._byte()
        count = head >> 4 if head >> 4 < _SHORT_LIST else self._varint()
        kind = self._kind(head & 0x0F)
        if count > len(self._data) - self.at:  # each element takes a byte at least
            raise self._corrupt(f"{count:,} elements", "the end")
        if kind <= Kind.FALSE:
            return Items(kind, [self._byte() == Kind.TRUE for _ in range(count)])
        return Items(kind, [self._value(kind, depth) for _ in range(count)])

    def _kind(self, code: int) -> Kind:
        try:
            return Kind(code)
        except ValueError:
            raise self._corrupt("a type of the protocol", f"{code}") from None

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise self._corrupt("a number of at most 64 bits", "a longer one")

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise self._corrupt("more of a message", "the end")
        self.at += 1
        return self._data[self.at - 1]

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self.at:
            raise self._corrupt(f"{size:,} bytes", "the end")
        self.at += size
        return self._data[self.at - size : self.at]

    def _corrupt(self, expected: str, found: str) -> CorruptFile:
        return CorruptFile(self._path, self.at, expected=expected, found=found)


def _put_message(out: bytearray, message: Message) -> None:
    last = 0
    for number in sorted(message.fields):
        kind, value = message.fields[number]
        code = (Kind.TRUE if value else Kind.FALSE) if kind <= Kind.FALSE else kind
        if 0 < number - last <= 15:
            out.append((number - last) << 4 | code)
        else:
            out.append(code)
            _put_varint(out, _unsigned(number))
        last = number
        if kind > Kind.FALSE:
            _put_value(out, kind, value)
    out.append(0)


def _put_value(out: bytearray, kind: Kind, value: Value) -> None:
    if isinstance(value, Message):
        _put_message(out, value)
    elif isinstance(value, Items):
        _put_items(out, value)
    elif isinstance(value, bytes):
        if kind is Kind.BINARY:
            _put_varint(out, len(value))
        out += value
    elif kind in _INTEGERS:
        _put_varint(out, _unsigned(value))
    else:
        out += struct.pack("B", value)


def _put_items(out: bytearray, items: Items) -> None:
    count = len(items.values)
    out.append(min(count, _SHORT_LIST) << 4 | items.kind)
    if count >= _SHORT_LIST:
        _put_varint(out, count)
    for value in items.values:
        if items.kind <= Kind.FALSE:
            out.append(Kind.TRUE if value else Kind.FALSE)
        else:
            _put_value(out, items.kind, value)


def _put_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _unsigned(value: int) -> int:
    return (value << 1) ^ (value >> 63)
