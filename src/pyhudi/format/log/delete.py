"""The content of a delete block: keys, partition paths and ordering values."""

import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from enum import IntEnum
from typing import Final, TypeAlias, TypeVar, assert_never

from pyhudi.errors import CorruptFile, Invalid, Unsupported

CONTENT_VERSION: Final = 3

_HEAD = struct.Struct(">ii")
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
_FLOAT_MAX = (2 - 2**-23) * 2.0**127
_DECIMAL_SCALE = 15
_DECIMAL_DIGITS = 30
_EXACT = Context(prec=2 * _DECIMAL_DIGITS)


class OrderingKind(IntEnum):
    """The wrapper an ordering value is stored in, by its place in the stored union.

    ARRAY and LOCAL_DATE exist from Hudi 1.1 on, LOCAL_DATE inside an ARRAY only.
    """

    NULL = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    DATE = 8
    DECIMAL = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    ARRAY = 12
    LOCAL_DATE = 13


_Item = TypeVar("_Item")

_LOCAL_DATE_IN_ARRAY = 12
"""Inside an ARRAY, the place after TIMESTAMP_MICROS holds LOCAL_DATE."""

OrderingPlain: TypeAlias = "bool | int | float | bytes | str | Decimal | tuple[OrderingValue, ...] | None"


@dataclass(frozen=True, slots=True)
class OrderingValue:
    """An ordering value as stored. Dates are days since 1970, times and timestamps microseconds."""

    kind: OrderingKind
    value: OrderingPlain


COMMIT_TIME_DELETE: Final = OrderingValue(OrderingKind.INT, 0)
"""What a delete without ordering value carries: it wins over whatever came before it."""


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """One deleted key. `partition_path` is empty in a table without partitions."""

    record_key: str | None
    partition_path: str | None
    ordering: OrderingValue = COMMIT_TIME_DELETE


def encode_delete_content(records: Iterable[DeleteRecord]) -> bytes:
    """The content of a delete block, version 3.

    Layout (big endian): i32 3; i32 size of the rest; an Avro array of records of record key, partition path
    and ordering value: its count and the records, if any, then 0.

    Spec: format/log-format.md section 2.4. Raises: Invalid for an ordering value its wrapper cannot hold.
    """
    encoded = [_encode_record(record) for record in records]
    data = b"".join((_encode_long(len(encoded)), *encoded, b"\0")) if encoded else b"\0"
    return _HEAD.pack(CONTENT_VERSION, len(data)) + data


def _encode_record(record: DeleteRecord) -> bytes:
    texts = (record.record_key, record.partition_path)
    keys = b"".join(b"\0" if text is None else b"\x02" + _encode_bytes(text.encode()) for text in texts)
    return keys + _encode_ordering(record.ordering, is_inner=False)


def _encode_ordering(ordering: OrderingValue, *, is_inner: bool) -> bytes:
    kind = ordering.kind
    if kind is (OrderingKind.ARRAY if is_inner else OrderingKind.LOCAL_DATE):
        where = "inside" if is_inner else "outside"
        raise Invalid(f"delete record: an ordering value of kind {kind.name} has no place {where} an array")
    branch = _LOCAL_DATE_IN_ARRAY if kind is OrderingKind.LOCAL_DATE else int(kind)
    return _encode_long(branch) + _encode_value(ordering)


def _encode_value(ordering: OrderingValue) -> bytes:
    match ordering.kind, ordering.value:
        case OrderingKind.NULL, None:
            return b""
        case OrderingKind.BOOLEAN, bool(flag):
            return bytes((flag,))
        case OrderingKind.INT | OrderingKind.DATE | OrderingKind.LOCAL_DATE, int(number) if (
            -(1 << 31) <= number < 1 << 31
        ):
            return _encode_long(number)
        case (
            OrderingKind.LONG | OrderingKind.TIME_MICROS | OrderingKind.TIMESTAMP_MICROS,
            int(number),
        ) if -(1 << 63) <= number < 1 << 63:
            return _encode_long(number)
        case OrderingKind.FLOAT, float(real) if abs(real) <= _FLOAT_MAX or not math.isfinite(real):
            return _FLOAT.pack(real)
        case OrderingKind.DOUBLE, float(real):
            return _DOUBLE.pack(real)
        case OrderingKind.BYTES, bytes(content):
            return _encode_bytes(content)
        case OrderingKind.STRING, str(text):
            return _encode_bytes(text.encode())
        case OrderingKind.DECIMAL, Decimal() as decimal:
            return _encode_bytes(_encode_decimal(decimal))
        case OrderingKind.ARRAY, None:
            return b"\0"
        case OrderingKind.ARRAY, tuple(inner):
            items = b"".join(_encode_ordering(one, is_inner=True) for one in inner)
            return b"\x02" + (_encode_long(len(inner)) + items if inner else b"") + b"\0"
    raise Invalid(f"delete record: expected a {ordering.kind.name} ordering value, found {ordering.value!r}")


def _encode_decimal(value: Decimal) -> bytes:
    """The unscaled number at scale 15, in the fewest bytes of two's complement."""
    try:
        scaled = value.scaleb(_DECIMAL_SCALE, _EXACT)
        unscaled = int(scaled)
    except (InvalidOperation, OverflowError, ValueError) as error:
        raise Invalid(f"delete record: expected a finite decimal, found {value}") from error
    if unscaled != scaled or abs(unscaled) >= 10**_DECIMAL_DIGITS:
        raise Invalid(f"delete record: expected a decimal({_DECIMAL_DIGITS}, {_DECIMAL_SCALE}), found {value}")
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _encode_long(number: int) -> bytes:
    """An Avro int or long: zig-zag, 7 bits a byte, low ones first."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _encode_bytes(content: bytes) -> bytes:
    return _encode_long(len(content)) + content


def decode_delete_content(content: bytes | memoryview, *, path: str, offset: int = 0) -> list[DeleteRecord]:
    """The records of a delete block's content, which starts at `offset` of the file.

    Raises: CorruptFile; Unsupported for the Kryo forms that releases before 0.14 wrote.
    """
    data = bytes(content)
    if len(data) < _HEAD.size:
        raise CorruptFile(path, offset, expected="a delete block's version and size", found=f"{len(data)} bytes")
    version, size = _HEAD.unpack_from(data)
    if version in (1, 2):
        raise Unsupported(
            f"{path} at byte {offset:,}: a delete block of version {version}, in Kryo form, which releases "
            "before 0.14 wrote; compact the table with Hudi first"
        )
    if version != CONTENT_VERSION or size != len(data) - _HEAD.size:
        found = f"version {version} and {size:,} bytes"
        expected = f"version {CONTENT_VERSION} and {len(data) - _HEAD.size:,} bytes"
        raise CorruptFile(path, offset, expected=expected, found=found)
    cursor = _Cursor(data, _HEAD.size, path, offset)
    records = cursor.array(cursor.record)
    if cursor.at != len(data):
        raise cursor.corrupt("the end of the delete records", f"{len(data) - cursor.at:,} further bytes")
    return records


class _Cursor:
    """A place in Avro data that moves as values are taken."""

    def __init__(self, data: bytes, at: int, path: str, offset: int) -> None:
        self.data, self.at, self._path, self._offset = data, at, path, offset

    def corrupt(self, expected: str, found: str) -> CorruptFile:
        return CorruptFile(self._path, self._offset + self.at, expected=expected, found=found)

    def take(self, size: int, what: str) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise self.corrupt(f"{size:,} bytes of {what}", f"{len(self.data) - self.at:,}")
        self.at += size
        return self.data[self.at - size : self.at]

    def long(self, what: str) -> int:
        rest = shift = 0
        while True:
            byte = self.take(1, what)[0]
            rest |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise self.corrupt(f"{what} of at most 10 bytes", "a longer number")
        number = rest >> 1 ^ -(rest & 1)
        if not -(1 << 63) <= number < 1 << 63:
            raise self.corrupt(f"{what} in 64 bits", str(number))
        return number

    def integer(self, what: str) -> int:
        number = self.long(what)
        if not -(1 << 31) <= number < 1 << 31:
            raise self.corrupt(f"{what} in 32 bits", str(number))
        return number

    def text(self, what: str) -> str:
        content = self.take(self.long(f"the size of {what}"), what)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.corrupt(f"{what} in UTF-8", str(error)) from error

    def array(self, item: Callable[[], _Item]) -> list[_Item]:
        """The items of an Avro array. An item takes at least a byte, so the data bound their number."""
        items: list[_Item] = []
        while count := self.long("an array count"):
            if count < 0:
                count = -count
                self.long("an array block's size")
            if count > len(self.data) - self.at:
                raise self.corrupt("an array that fits the data", f"{count:,} items")
            items.extend(item() for _ in range(count))
        return items

    def branch(self, count: int, what: str) -> int:
        branch = self.long(f"the union branch of {what}")
        if not 0 <= branch < count:
            raise self.corrupt(f"a union branch of {what} below {count}", str(branch))
        return branch

    def record(self) -> DeleteRecord:
        key = self.text("a record key") if self.branch(2, "a record key") else None
        partition = self.text("a partition path") if self.branch(2, "a partition path") else None
        return DeleteRecord(key, partition, self.ordering(is_inner=False))

    def inner_ordering(self) -> OrderingValue:
        return self.ordering(is_inner=True)

    def ordering(self, *, is_inner: bool) -> OrderingValue:
        branch = self.branch(_LOCAL_DATE_IN_ARRAY + 1, "an ordering value")
        kind = OrderingKind.LOCAL_DATE if is_inner and branch == _LOCAL_DATE_IN_ARRAY else OrderingKind(branch)
        return OrderingValue(kind, self.value(kind))

    def value(self, kind: OrderingKind) -> OrderingPlain:
        match kind:
            case OrderingKind.NULL:
                return None
            case OrderingKind.BOOLEAN:
                return self.take(1, "a boolean") != b"\0"
            case OrderingKind.INT | OrderingKind.DATE | OrderingKind.LOCAL_DATE:
                return self.integer("an int")
            case OrderingKind.LONG | OrderingKind.TIME_MICROS | OrderingKind.TIMESTAMP_MICROS:
                return self.long("a long")
            case OrderingKind.FLOAT:
                return float(_FLOAT.unpack(self.take(4, "a float"))[0])
            case OrderingKind.DOUBLE:
                return float(_DOUBLE.unpack(self.take(8, "a double"))[0])
            case OrderingKind.BYTES:
                return self.take(self.long("the size of bytes"), "bytes")
            case OrderingKind.STRING:
                return self.text("a string")
            case OrderingKind.DECIMAL:
                unscaled = int.from_bytes(
                    self.take(self.long("the size of a decimal"), "a decimal"), "big", signed=True
                )
                return Decimal(unscaled).scaleb(-_DECIMAL_SCALE, Context(prec=len(self.data) * 3 + 1))
            case OrderingKind.ARRAY:
                return tuple(self.array(self.inner_ordering)) if self.branch(2, "an array") else None
            case _:
                assert_never(kind)
