"""Bounds of columns (minimum, maximum) as the metadata table stores them, and back to values of the column's type.

Version 1 (table versions 5 to 8) keeps a value in the wrapper of its Java type, with decimals rescaled. Version 2
(table version 9) keeps a value in the wrapper of a plain type, beside the ordinal of the column's type.
Example: a date is in a DateWrapper in version 1, and in an IntWrapper with the ordinal 12 in version 2.

Cost: a few vector operations for each kind of wrapper that occurs.
Spec: format/metadata-table.md section 6, "Value encodings".
Seen: 0.15.0 turns decimals into plain bytes when it compacts the metadata table; both forms are read.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Unsupported
from pyhudi.format.arrow_arrays import Bytes, one_array
from pyhudi.format.avro.copying import widen_decimals
from pyhudi.format.avro.encoding import put_decimal
from pyhudi.format.metadata.columns import WRAPPERS, Bounds
from pyhudi.format.metadata.key_records import format_file_ids
from pyhudi.loops import loop

Numbers = npt.NDArray[np.int64]

NONE, BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, STRING, DATE, DECIMAL, TIME, TIMESTAMP, LOCAL_DATE, LIST = range(14)
assert len(WRAPPERS) == LIST + 1

DECIMAL_SCALE: Final = 15
_DECIMAL_DIGITS_MAX: Final = 30
_DECIMAL_SIZE_MAX: Final = 20


class StatsVersion(IntEnum):
    """How bounds are stored: the version of the index's definition."""

    V1 = 1
    V2 = 2


class ValueType(IntEnum):
    """The ordinal of a column's type, which version 2 stores beside the column's bounds."""

    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


@dataclass(frozen=True, slots=True)
class _Kind:
    """How values of an Arrow type are stored: the wrapper in version 1, the wrapper and the ordinal in version 2."""

    v1: int
    v2: int
    value_type: ValueType


_PLAIN: Final = {
    pa.bool_(): _Kind(BOOLEAN, BOOLEAN, ValueType.BOOLEAN),
    pa.int8(): _Kind(INT, INT, ValueType.INT),
    pa.int16(): _Kind(INT, INT, ValueType.INT),
    pa.int32(): _Kind(INT, INT, ValueType.INT),
    pa.int64(): _Kind(LONG, LONG, ValueType.LONG),
    pa.float32(): _Kind(FLOAT, FLOAT, ValueType.FLOAT),
    pa.float64(): _Kind(DOUBLE, DOUBLE, ValueType.DOUBLE),
    pa.string(): _Kind(STRING, STRING, ValueType.STRING),
    pa.large_string(): _Kind(STRING, STRING, ValueType.STRING),
    pa.binary(): _Kind(BYTES, BYTES, ValueType.BYTES),
    pa.large_binary(): _Kind(BYTES, BYTES, ValueType.BYTES),
    pa.date32(): _Kind(DATE, INT, ValueType.DATE),
    pa.time32("ms"): _Kind(INT, INT, ValueType.TIME_MILLIS),
    pa.time64("us"): _Kind(LONG, LONG, ValueType.TIME_MICROS),
}
_UNITS: Final = {"ms": 0, "us": 1, "ns": 2}


def is_indexable(kind: pa.DataType, version: StatsVersion, *, has_bytes: bool = True) -> bool:
    """Whether columns of a type have statistics. `has_bytes`: Spark's records of 1.0 skip bytes and decimals."""
    found = _find_kind(kind)
    if found is None:
        return False
    if version is StatsVersion.V1 and found.v1 in (BYTES, DECIMAL) and not has_bytes:
        return False
    if version is StatsVersion.V1 and pa.types.is_decimal(kind):
        return bool(kind.scale <= DECIMAL_SCALE and kind.precision + DECIMAL_SCALE - kind.scale <= _DECIMAL_DIGITS_MAX)
    return True


def value_type_of(kind: pa.DataType) -> tuple[ValueType, str | None]:
    """What version 2 stores about a column's type: the ordinal and, for a decimal, the precision and scale.

    Raises: Unsupported for a type without statistics.
    """
    found = _get_kind(kind, StatsVersion.V2)
    info = f"{kind.precision},{kind.scale}" if pa.types.is_decimal(kind) else None
    return found.value_type, info


def stored_bounds(values: pa.Array | pa.ChunkedArray, version: StatsVersion) -> Bounds:
    """Values of a column, such as the minimum of each file, as the metadata table stores them. A null is no value.

    Timestamps are stored in their own unit. Raises: Unsupported for a type without statistics.
    """
    array = one_array(values)
    found = _get_kind(array.type, version)
    wrapper = found.v1 if version is StatsVersion.V1 else found.v2
    kinds = np.where(array.is_valid().to_numpy(zero_copy_only=False), np.int8(wrapper), np.int8(NONE)).astype(np.int8)

    bits, data = np.zeros(len(array), np.int64), _no_bytes(len(array))
    if pa.types.is_decimal(array.type):
        if version is StatsVersion.V1:
            array = array.cast(pa.decimal128(38, DECIMAL_SCALE))
        data = _decimal_bytes(array)
    elif isinstance(array.type, pa.UuidType):
        halves = np.frombuffer(b"".join(array.storage.fill_null(bytes(16)).to_pylist()), ">i8").reshape(-1, 2)
        high, low = (np.ascontiguousarray(half, np.int64) for half in halves.T)
        texts = format_file_ids(high, low, np.full(len(array), -1, np.int64))
        data = pc.if_else(array.is_valid(), texts.cast(pa.binary()), b"")
    elif wrapper in (STRING, BYTES):
        data = array.cast(pa.binary()).fill_null(b"")
    else:
        bits = _bits_of(array)

    return Bounds(kinds, bits, data)


@dataclass(frozen=True, slots=True, eq=False)
class TypedBounds:
    """Bounds in a column's type, a row a file. `is_known`: whether both bounds of a row hold.

    A row that is not known tells nothing about the column's values. Both bounds are null if all values were null; the
    column's counts tell this case apart.
    """

    min: pa.Array
    max: pa.Array
    is_known: pa.BooleanArray


def bounds_of(column_type: pa.DataType, stats: pa.Table | pa.RecordBatch, *, keeps_nan: bool = False) -> TypedBounds:
    """The bounds in rows of `STATS_COLUMNS`, in the type that the column has now.

    If the column's type was promoted since, the bounds are at least as wide as its values. A timestamp of version 1
    counts in the unit of `column_type`. A bound is not known if none is stored, if it is NaN or a list, if it may stand
    for NaN, or if its type cannot be promoted to the column's type with the order kept. `keeps_nan`: NaN, the greatest
    value, is one.
    """
    low, has_low = _typed(column_type, stats, "min", keeps_nan=keeps_nan)
    high, has_high = _typed(column_type, stats, "max", keeps_nan=keeps_nan)
    is_told, none = pa.array(~_may_be_beside_nan(stats)), pa.scalar(None, column_type)
    is_known = pc.and_(is_told, pa.array(has_low & has_high))
    return TypedBounds(pc.if_else(is_told, low, none), pc.if_else(is_told, high, none), is_known)


def _may_be_beside_nan(stats: pa.Table | pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Where both bounds are 0.0, as Apache Hudi states them of a base file with NaN, whatever else it has.

    Seen: 1.0.2, 1.2.0: Parquet's reader for Java does so if one is NaN. Of zeros alone it takes the lower for -0.0.
    """
    found = np.ones(len(stats), np.bool_)
    for side in ("min", "max"):
        kinds, bits = (one_array(stats.column(f"{side}_{part}")).to_numpy() for part in ("kind", "bits"))
        found &= np.isin(kinds, (FLOAT, DOUBLE)) & (bits == 0)
    return found


def comparable_values(stats: pa.Table | pa.RecordBatch, side: str) -> pa.Array | None:
    """Bounds of one kind and value type, as values that compare as the column's values do; None for lists."""
    first = stats.slice(0, 1).to_pylist()[0]
    kind = _stored_type(first[f"{side}_kind"], first["value_type"] or 0, first["value_type_info"], pa.null())
    if kind is None:
        return None
    bits, data = (one_array(stats.column(f"{side}_{part}")) for part in ("bits", "bytes"))
    return _plain_array(kind, bits.to_numpy(), data)


def _typed(
    column_type: pa.DataType, stats: pa.Table | pa.RecordBatch, side: str, *, keeps_nan: bool
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    names = (f"{side}_kind", f"{side}_bits", f"{side}_bytes", "value_type", "value_type_info")
    kinds, bits, data, types, infos = (one_array(stats.column(name)) for name in names)
    kind_of, type_of = kinds.to_numpy(), types.fill_null(0).to_numpy()
    encoded = infos.dictionary_encode()
    info_of = encoded.indices.fill_null(-1).to_numpy()
    texts = encoded.dictionary.to_pylist()

    # Rows that are stored alike are converted together.
    classes = (kind_of.astype(np.int64) << 48) | (type_of.astype(np.int64) << 32) | (info_of + 1)
    parts, rows_by_part = [pa.nulls(0, column_type)], [np.zeros(0, np.int64)]
    for one in np.unique(classes):
        rows = np.flatnonzero(classes == one)
        first = int(rows[0])
        info = texts[info_of[first]] if info_of[first] >= 0 else None
        stored = _stored_type(int(kind_of[first]), int(type_of[first]), info, column_type)

        if stored is None:
            continue
        array = _plain_array(stored, bits.to_numpy()[rows], data.take(pa.array(rows)))
        converted = _promoted(array, column_type, is_min=side == "min", keeps_nan=keeps_nan)
        if converted is not None:
            parts.append(converted)
            rows_by_part.append(rows)

    order = np.full(len(kind_of), -1, np.int64)
    rows_in_order = np.concatenate(rows_by_part)
    order[rows_in_order] = np.arange(len(rows_in_order))
    found = pa.concat_arrays(parts).take(pa.array(order, mask=order < 0))
    return found, found.is_valid().to_numpy(zero_copy_only=False)


def _stored_type(kind: int, value_type: int, info: str | None, column_type: pa.DataType) -> pa.DataType | None:
    """The Arrow type of a stored value; None for no value, and for a list."""
    if kind in (NONE, LIST):
        return None
    if value_type:
        return _type_of_ordinal(value_type, info)

    wide = pa.decimal128(38, DECIMAL_SCALE)
    by_column = {
        INT: column_type if pa.types.is_date32(column_type) or pa.types.is_time32(column_type) else pa.int32(),
        LONG: column_type if pa.types.is_timestamp(column_type) or pa.types.is_time64(column_type) else pa.int64(),
        BYTES: wide if pa.types.is_decimal(column_type) else pa.binary(),
    }
    plain = {
        BOOLEAN: pa.bool_(), FLOAT: pa.float32(), DOUBLE: pa.float64(), STRING: pa.string(), DATE: pa.date32(),
        DECIMAL: wide, TIME: pa.time64("us"), LOCAL_DATE: pa.date32(), TIMESTAMP: pa.timestamp("us", "UTC"),
    }  # fmt: skip

    return by_column.get(kind) or plain[kind]


def _type_of_ordinal(value_type: int, info: str | None) -> pa.DataType | None:
    if value_type == ValueType.DECIMAL:
        digits = (info or "").split(",")
        if len(digits) != 2 or not all(digit.isdigit() for digit in digits) or not 1 <= int(digits[0]) <= 38:
            return None
        return pa.decimal128(int(digits[0]), int(digits[1]))

    if ValueType.TIMESTAMP_MILLIS <= value_type <= ValueType.LOCAL_TIMESTAMP_NANOS:
        unit = list(_UNITS)[(value_type - ValueType.TIMESTAMP_MILLIS) % 3]
        return pa.timestamp(unit, "UTC" if value_type <= ValueType.TIMESTAMP_NANOS else None)
    if value_type in (ValueType.FIXED, ValueType.BYTES):
        return pa.binary()
    if value_type == ValueType.UUID:
        return pa.string()

    wanted = (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.date32())
    more = (pa.time32("ms"), pa.time64("us"))
    return next((one for one in (*wanted, *more) if _PLAIN[one].value_type == value_type), None)


def _plain_array(kind: pa.DataType, bits: Numbers, data: pa.BinaryArray) -> pa.Array:
    """Stored values as an array of the type that they are stored as."""
    if pa.types.is_decimal(kind):
        return _decimals(data, kind)
    if kind == pa.binary():
        return data
    if kind == pa.string():
        return data.cast(pa.string())
    if kind == pa.bool_():
        return pa.array(bits != 0)
    width = np.int32 if kind.bit_width == 32 else np.int64
    return pa.array(bits.astype(width)).view(kind)


def _promoted(array: pa.Array, wanted: pa.DataType, *, is_min: bool, keeps_nan: bool) -> pa.Array | None:
    """Bounds in another type, wide enough to stay bounds. None for a type that does not keep the order.

    A value that cannot stay a bound becomes null. Example: a long of more than 53 bits, as a double.
    """
    kind = array.type
    if pa.types.is_floating(kind) and not keeps_nan:
        array = pc.if_else(pc.is_nan(array), None, array)
    if kind == wanted:
        return array

    if kind == pa.float32() and wanted == pa.float64():
        # Apache Hudi reads such a float by its decimal text, which gives a double within one step of the float.
        step = np.nextafter(array.to_numpy(zero_copy_only=False), np.float32("-inf" if is_min else "inf"))
        return pa.array(step.astype(np.float64), mask=array.is_null().to_numpy(zero_copy_only=False))

    if pa.types.is_integer(kind) and pa.types.is_floating(wanted):
        exact = (1 << 53) if wanted == pa.float64() else (1 << 24)
        is_exact = pc.and_(pc.less_equal(array, exact), pc.greater_equal(array, -exact))
        return pc.if_else(is_exact, array.cast(wanted, safe=False), None)

    is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    widens = (
        (pa.types.is_integer(kind) and (pa.types.is_integer(wanted) or pa.types.is_decimal(wanted)))
        or (pa.types.is_decimal(kind) and pa.types.is_decimal(wanted))
        or (pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted))
        or (any(is_one(kind) for is_one in is_text) and any(is_one(wanted) for is_one in is_text))
    )

    if not widens:
        return None

    try:
        return array.cast(wanted)
    except pa.ArrowInvalid:
        return None


def _find_kind(kind: pa.DataType) -> _Kind | None:
    if pa.types.is_decimal128(kind):
        return _Kind(DECIMAL, BYTES, ValueType.DECIMAL)
    if pa.types.is_timestamp(kind) and kind.unit in _UNITS:
        first = ValueType.TIMESTAMP_MILLIS if kind.tz is not None else ValueType.LOCAL_TIMESTAMP_MILLIS
        return _Kind(LONG, LONG, ValueType(first + _UNITS[kind.unit]))
    if isinstance(kind, pa.UuidType):
        return _Kind(STRING, STRING, ValueType.UUID)
    if pa.types.is_fixed_size_binary(kind):
        return _Kind(BYTES, BYTES, ValueType.FIXED)
    return _PLAIN.get(kind)


def _get_kind(kind: pa.DataType, version: StatsVersion) -> _Kind:
    found = _find_kind(kind)
    if found is None or not is_indexable(kind, version):
        raise Unsupported(f"column statistics of type {kind}: Apache Hudi has none (version {version.value})")
    return found


def _bits_of(array: pa.Array) -> Numbers:
    """Numbers as 64 bits each; zero for a null."""
    if pa.types.is_boolean(array.type):
        return array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    numbers = array.fill_null(0).to_numpy()
    if numbers.dtype == np.float32:
        return numbers.view(np.int32).astype(np.int64)
    return numbers.view(np.int64) if numbers.dtype == np.float64 else numbers.astype(np.int64)


def _no_bytes(count: int) -> pa.BinaryArray:
    return pa.BinaryArray.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(np.zeros(count + 1, np.int32)), pa.py_buffer(b"")]
    )


def _decimal_bytes(array: pa.Array) -> pa.BinaryArray:
    """Unscaled values, big endian, in as few bytes as Java's `toByteArray` takes; no bytes for a null."""
    words = np.frombuffer(array.buffers()[1], np.uint64, 2 * len(array), array.offset * 16).reshape(-1, 2)
    offsets = np.zeros(len(array) + 1, np.int32)
    out = np.empty(len(array) * _DECIMAL_SIZE_MAX, np.uint8)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    size = _put_decimals(words, valid, out, offsets)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(array), [None, pa.py_buffer(offsets), pa.py_buffer(out[:size].copy())]
    )


@loop
def _put_decimals(
    words: npt.NDArray[np.uint64], valid: npt.NDArray[np.bool_], out: Bytes, offsets: npt.NDArray[np.int32]
) -> int:
    held = np.empty(_DECIMAL_SIZE_MAX, np.uint8)
    to = 0
    for row in range(valid.size):
        if valid[row]:
            size = put_decimal(held, 0, words[row, 0], words[row, 1], 0)
            for index in range(1, size):  # byte 0 of `held` is the size
                out[to] = held[index]
                to += 1
        offsets[row + 1] = to
    return to


def _decimals(data: pa.BinaryArray, kind: pa.DataType) -> pa.Array:
    """Decimals from their unscaled values. If one of them has more than 128 bits, all are null."""
    offsets = np.frombuffer(data.buffers()[1], np.int32, len(data) + 1, data.offset * 4).astype(np.int64)
    content = np.frombuffer(data.buffers()[2] or b"\0", np.uint8)
    words = np.zeros((len(data), 2), np.uint64)
    spans = offsets[:-1] << 32 | np.diff(offsets)
    if len(data) and widen_decimals(content, spans, words) >= 0:
        return pa.nulls(len(data), kind)
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(words)])
