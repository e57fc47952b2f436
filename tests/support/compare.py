"""Compare answers: the same rows, whatever their order and that of the columns.

Every value becomes a number, the same number for equal values on both sides; a row is then the
numbers of its columns, and rows are counted. Nothing is compared cell by cell in Python.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]

ROWS_SHOWN = 3
CANDIDATES_MAX = 2_000
PAIRS_MAX = 200
VALUE_WIDTH = 120
NAMING_COLUMNS = ("_hoodie_record_key", "id", "key", "_row_key")


def assert_same_rows(
    actual: pa.Table,
    expected: pa.Table,
    *,
    ignore_columns: Collection[str] = (),
    same_types: bool = True,
) -> None:
    """Pass when both tables hold the same rows the same number of times.

    Not looked at: order of rows and columns, nullability, metadata, the unit of a timestamp, large
    or dictionary layouts. Looked at: names, types, values bit by bit. NaN equals NaN, null equals
    null, -0.0 differs from 0.0, maps are equal as dicts, timestamps with a zone as points in time.
    With `same_types=False` the actual columns are first cast, safely, to the expected types.

    Memory: about eight bytes a value of both tables, beside them.
    """
    __tracebackhide__ = True
    actual, expected = _without(actual, ignore_columns), _without(expected, ignore_columns)
    _assert_same_columns(actual, expected)
    names = expected.column_names
    if not same_types:
        actual = _cast_like(actual, expected)
    _assert_same_types(actual, expected)

    if not names:
        assert actual.num_rows == expected.num_rows, (
            f"{actual.num_rows:,} rows, expected {expected.num_rows:,}; there are no columns"
        )
        return
    if _are_same_by_key(actual, expected):
        return
    columns = {name: _number_column(actual[name], expected[name]) for name in names}
    rows = _number_rows(list(columns.values()))
    split = actual.num_rows
    only_actual, only_expected = _differing_rows(rows[:split], rows[split:])
    if len(only_actual) == 0 and len(only_expected) == 0:
        return
    raise AssertionError(_describe(actual, expected, columns, only_actual, only_expected))


def canonical_type(kind: pa.DataType) -> pa.DataType:
    """The type that stands for all that hold the same values in another layout or unit."""
    if pa.types.is_dictionary(kind):
        return canonical_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_map(kind):
        return pa.map_(canonical_type(kind.key_type), canonical_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", canonical_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, canonical_type(field.type)) for field in kind])
    return kind


# Columns and types.


def _without(table: pa.Table, ignored: Collection[str]) -> pa.Table:
    return table.drop_columns([name for name in table.column_names if name in ignored])


def _assert_same_columns(actual: pa.Table, expected: pa.Table) -> None:
    __tracebackhide__ = True
    problems = []
    for side, table in (("actual", actual), ("expected", expected)):
        twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
        if twice:
            problems.append(f"twice in {side}: {', '.join(twice)}")
    missing = [name for name in expected.column_names if name not in actual.column_names]
    surplus = [name for name in actual.column_names if name not in expected.column_names]
    if missing:
        problems.append(f"missing: {', '.join(missing)}")
    if surplus:
        problems.append(f"not expected: {', '.join(surplus)}")
    assert not problems, f"columns differ; {'; '.join(problems)} ({_count_rows(actual, expected)})"


def _assert_same_types(actual: pa.Table, expected: pa.Table) -> None:
    __tracebackhide__ = True
    differing = [
        f"  {name}: {actual.schema.field(name).type}, expected {expected.schema.field(name).type}"
        for name in expected.column_names
        if canonical_type(actual.schema.field(name).type) != canonical_type(expected.schema.field(name).type)
    ]
    lines = "\n".join(differing)
    assert not differing, f"types differ ({_count_rows(actual, expected)}):\n{lines}"


def _cast_like(actual: pa.Table, expected: pa.Table) -> pa.Table:
    """The actual columns in the expected types where a safe cast exists; others stay and are reported."""
    columns = []
    for name in expected.column_names:
        column, kind = actual[name], expected.schema.field(name).type
        try:
            columns.append(column if column.type == kind else column.cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            columns.append(column)
    return pa.table(columns, names=expected.column_names)


# The quick way: rows have a key, so they can be put side by side.


def _are_same_by_key(actual: pa.Table, expected: pa.Table) -> bool:
    """Whether the rows are the same; False also where the key is absent or not unique."""
    key = _naming_column(expected.column_names)
    if key is None or actual.num_rows != expected.num_rows:
        return False
    numbers = _number_column(actual[key], expected[key])
    here, there = numbers[: actual.num_rows], numbers[actual.num_rows :]
    position = np.full(int(numbers.max(initial=0)) + 1, -1)
    position[there] = np.arange(len(there))
    order = position[here]
    if (order < 0).any() or (np.bincount(order, minlength=len(there)) != 1).any():
        return False
    return all(_are_same_values(actual[name], expected[name], order) for name in expected.column_names if name != key)


def _are_same_values(actual: pa.ChunkedArray, expected: pa.ChunkedArray, order: Numbers) -> bool:
    kind = canonical_type(expected.type)
    if pa.types.is_nested(kind):  # `equals` knows neither maps without order nor NaN
        numbers = _number_column(actual, expected)
        return bool((numbers[: len(actual)] == numbers[len(actual) :][order]).all())
    left, right = (_canonical(column, kind) for column in (actual, expected))
    right = right.take(pa.array(order))
    if pa.types.is_floating(kind):
        left, right = _float_bits(left), _float_bits(right)
    return left.equals(right)


# Values to numbers: equal numbers if and only if equal values. Null is 0.


def _number_column(actual: pa.ChunkedArray, expected: pa.ChunkedArray) -> Numbers:
    """Numbers of the actual values, then of the expected ones."""
    kind = canonical_type(expected.type)
    return _number_values(pa.concat_arrays([_canonical(actual, kind), _canonical(expected, kind)]))


def _canonical(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The column as one array of this type."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.concat_arrays([chunk.cast(kind) for chunk in column.chunks] or [pa.array([], kind)])


def _number_values(values: pa.Array) -> Numbers:
    kind = values.type
    if pa.types.is_null(kind):
        return np.zeros(len(values), np.int64)
    if pa.types.is_map(kind):
        return _number_lists(values, is_map=True)
    if pa.types.is_list(kind):
        return _number_lists(values, is_map=False)
    if pa.types.is_struct(kind):
        fields = [_number_values(field) for field in values.flatten()]
        rows = _number_rows(fields) if fields else np.zeros(len(values), np.int64)
        return np.where(_valid(values), rows + 1, 0)
    if pa.types.is_floating(kind):
        values = _float_bits(values)
    return _dense(values)


def _number_lists(values: pa.Array, *, is_map: bool) -> Numbers:
    """A list is the bytes of its elements' numbers; a map first puts its entries in one order."""
    valid = _valid(values)
    start, end = (values.offsets[0].as_py(), values.offsets[-1].as_py()) if len(values) else (0, 0)
    bounds = values.offsets.to_numpy(zero_copy_only=False).astype(np.int64) - start
    if is_map:
        entries = [values.keys[start:end], values.items[start:end]]
        elements = _number_rows([_number_values(part) for part in entries])
        owner = np.repeat(np.arange(len(values)), np.diff(bounds))
        elements = elements[np.lexsort((elements, owner))]
    else:
        elements = _number_values(values.values[start:end])
    texts = pa.Array.from_buffers(
        pa.large_binary(),
        len(values),
        [None, pa.py_buffer(bounds * 8), pa.py_buffer(elements.astype(np.int64))],
    )
    return np.where(valid, _dense(texts), 0)


def _number_rows(columns: Sequence[Numbers]) -> Numbers:
    """One number a row: equal if and only if all columns are. Dense after each step, so nothing overflows."""
    rows = columns[0]
    for column in columns[1:]:
        span = int(column.max(initial=0)) + 1
        rows = _dense(pa.array(rows * span + column))
    return rows


def _dense(values: pa.Array) -> Numbers:
    """Numbers 1, 2, … in order of first appearance; null is 0."""
    indices = values.dictionary_encode().indices
    return pc.fill_null(pc.add(indices.cast(pa.int64()), 1), 0).to_numpy(zero_copy_only=False)


def _float_bits(values: pa.Array) -> pa.Array:
    """The bits as an integer, all NaN the same: exact where `==` is not."""
    floats = values.to_numpy(zero_copy_only=False)  # null is NaN here; the mask keeps it apart
    floats = np.where(np.isnan(floats), floats.dtype.type(np.nan), floats)
    return pa.array(floats.view(f"i{floats.dtype.itemsize}"), mask=~_valid(values))


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    return values.is_valid().to_numpy(zero_copy_only=False)


# Rows that differ, and what to say of them.


def _differing_rows(actual: Numbers, expected: Numbers) -> tuple[Numbers, Numbers]:
    """Positions of rows that one side has more often than the other, as often as it does."""
    span = max(int(actual.max(initial=0)), int(expected.max(initial=0))) + 1
    surplus = np.bincount(actual, minlength=span) - np.bincount(expected, minlength=span)
    return _take_surplus(actual, surplus), _take_surplus(expected, -surplus)


def _take_surplus(rows: Numbers, surplus: Numbers) -> Numbers:
    positions = np.flatnonzero(surplus[rows] > 0)
    if len(positions) == 0:
        return positions
    order = positions[np.argsort(rows[positions], kind="stable")]
    values = rows[order]
    first = np.concatenate(([0], np.flatnonzero(np.diff(values)) + 1))
    nth = np.arange(len(values)) - np.repeat(first, np.diff(np.concatenate((first, [len(values)]))))
    return np.sort(order[nth < surplus[values]])


def _describe(
    actual: pa.Table,
    expected: pa.Table,
    columns: dict[str, Numbers],
    only_actual: Numbers,
    only_expected: Numbers,
) -> str:
    """Counts, then the first differing rows; a row and its nearest on the other side are shown together."""
    names = list(columns)
    key = _naming_column(names)
    here, there = only_actual, only_expected
    if key is not None:  # rows of the same key first: those can be paired
        keys_here, keys_there = columns[key][here], columns[key][actual.num_rows + there]
        here = here[np.argsort(~np.isin(keys_here, keys_there), kind="stable")]
        both = np.isin(keys_there, columns[key][here[:CANDIDATES_MAX]])
        there = there[np.argsort(~both, kind="stable")]
    here, there = here[:CANDIDATES_MAX], there[:CANDIDATES_MAX]
    left = np.stack([columns[name][here] for name in names], axis=1)
    right = np.stack([columns[name][actual.num_rows + there] for name in names], axis=1)
    naming = None if key is None else names.index(key)
    pairs = _pair_rows(left, right, naming)

    lines = [
        f"rows differ: {_count_rows(actual, expected)}; "
        f"{len(only_actual):,} only in actual, {len(only_expected):,} only in expected"
    ]
    if pairs:
        counts = sum((left[i] != right[j]).astype(np.int64) for i, j in pairs.items())
        worst = [f"{name} in {count:,}" for name, count in zip(names, np.atleast_1d(counts), strict=True) if count]
        lines.append(f"{len(pairs):,} pairs of like rows looked at; they differ in {', '.join(worst)}")
    for i, j in list(pairs.items())[:ROWS_SHOWN]:
        name = "" if naming is None else f": {names[naming]} = {_value_text(expected[names[naming]][int(there[j])])}"
        lines.append(f"row {here[i]:,} of actual, row {there[j]:,} of expected{name}")
        lines += [
            f"  {name}: {_value_text(actual[name][int(here[i])])}, "
            f"expected {_value_text(expected[name][int(there[j])])}"
            for name, same in zip(names, left[i] == right[j], strict=True)
            if not same
        ]
    alone = [i for i in range(len(left)) if i not in pairs][:ROWS_SHOWN] if len(pairs) < PAIRS_MAX else []
    lines += [f"only in actual, row {here[i]:,}: {_row_text(actual, int(here[i]))}" for i in alone]
    paired = set(pairs.values())
    alone = [j for j in range(len(right)) if j not in paired][:ROWS_SHOWN] if len(pairs) < PAIRS_MAX else []
    lines += [f"only in expected, row {there[j]:,}: {_row_text(expected, int(there[j]))}" for j in alone]
    return "\n".join(lines)


def _naming_column(names: Sequence[str]) -> str | None:
    return next((name for name in NAMING_COLUMNS if name in names), None)


def _pair_rows(left: Numbers, right: Numbers, naming: int | None) -> dict[int, int]:
    """For the first rows of the left side, the free row of the right side that shares most columns.

    Partners have the same value in the naming column; without one, they share half of the columns.
    """
    pairs: dict[int, int] = {}
    free = np.ones(len(right), dtype=bool)
    for i, row in enumerate(left):
        if len(pairs) == PAIRS_MAX or not free.any():
            break
        same = right == row
        shared = np.where(free, same.sum(axis=1), -1)
        if naming is not None:
            shared = np.where(same[:, naming], shared, -1)
        best = int(shared.argmax())
        if shared[best] >= (1 if naming is not None else max(1, len(row) // 2)):
            pairs[i] = best
            free[best] = False
    return pairs


def _row_text(table: pa.Table, position: int) -> str:
    values = (f"{name}: {_value_text(table[name][position])}" for name in table.column_names)
    return "{" + ", ".join(values) + "}"


def _value_text(value: Any) -> str:
    text = repr(value.as_py())
    return text if len(text) <= VALUE_WIDTH else text[:VALUE_WIDTH] + "…"


def _count_rows(actual: pa.Table, expected: pa.Table) -> str:
    return f"{actual.num_rows:,} rows, expected {expected.num_rows:,}"
