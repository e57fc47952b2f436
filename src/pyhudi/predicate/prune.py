"""Which partitions and files may hold a row that a predicate keeps. What is not ruled out for certain is kept."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs

from pyhudi.errors import Unsupported
from pyhudi.format.arrow_arrays import one_array
from pyhudi.predicate.casts import can_cast, canonical_array, cast_array
from pyhudi.predicate.evaluate import compare, evaluate, fold
from pyhudi.predicate.nodes import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Compare,
    InList,
    IsNull,
    Literal,
    Match,
    Node,
    Not,
    Or,
    columns_in,
    conjuncts_of,
)
from pyhudi.predicate.outcomes import TRUE, Bounds, outcomes_of
from pyhudi.predicate.parse import Predicate
from pyhudi.predicate.types import is_float

# What a caller holds: a Python value or a pyarrow.Scalar; `object` because pyarrow has no types.
Value: TypeAlias = object


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What is known about a column's values in a file or row group. None: not known.

    `min` and `max` bound the values that are neither NULL nor NaN. They may be wider than the values, since long texts
    are cut off; a caller passes a cut-off maximum only if it was rounded up. Unless `nan_count` is 0, a float column
    has no upper bound: Spark orders NaN after every number.
    """

    min: Value = None
    max: Value = None
    null_count: int | None = None
    row_count: int | None = None
    nan_count: int | None = None


def partition_can_match(predicate: Predicate, values: Mapping[str, Value]) -> bool:
    """False only if no row of a partition with these column values can be kept.

    Keys are column names, with dots for fields of structs; a column without a key can hold anything.
    """
    if predicate.condition is None:
        return True
    if isinstance(predicate.condition, pc.Expression):
        guarantees = [_equals(predicate.schema, name, value) for name, value in values.items()]
        return _expression_can_match(predicate, guarantees, values)
    constants = {
        column.path: scalar
        for column in columns_in(predicate.condition)
        if (scalar := _partition_scalar(column, values)) is not None
    }
    outcomes = outcomes_of(_substituted(predicate.condition, constants), {})
    return bool(outcomes & TRUE)


def partitions_in_doubt(predicate: Predicate, values: Sequence[Mapping[str, Value]]) -> list[bool]:
    """For each partition, False if a single condition rules it out. `partition_can_match` then need not be asked.

    Evaluates each condition for all partitions at once, over columns. A condition counts only if every partition states
    the value of each of its columns. Memory: a value for each partition and column.
    """
    keep = np.ones(len(values), np.bool_)
    if predicate.condition is None or isinstance(predicate.condition, pc.Expression) or not values:
        return keep.tolist()
    for condition in conjuncts_of(predicate.condition):
        columns = {column.path: column.type for column in columns_in(condition)}
        if not columns or any(len(path) > 1 or any(path[0] not in known for known in values) for path in columns):
            continue
        try:
            held = {path[0]: pa.array([known[path[0]] for known in values], kind) for path, kind in columns.items()}
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue  # a value has another type than its column: `partition_can_match` judges each partition
        is_true = evaluate(condition, pa.record_batch(held))
        keep &= pc.fill_null(is_true, False).to_numpy(zero_copy_only=False)
    return keep.tolist()


def statistics_can_match(predicate: Predicate, statistics: Mapping[str, ColumnRange]) -> bool:
    """False only if no row within these ranges can be kept. Keys as for `partition_can_match`."""
    if predicate.condition is None:
        return True
    if isinstance(predicate.condition, pc.Expression):
        guarantees = [_within(predicate.schema, name, known) for name, known in statistics.items()]
        return _expression_can_match(predicate, guarantees, statistics)
    bounds = {
        column.path: _bounds_of_range(column, statistics[name])
        for column in columns_in(predicate.condition)
        if (name := ".".join(column.path)) in statistics
    }
    return bool(outcomes_of(predicate.condition, bounds) & TRUE)


def which_can_match(predicate: Predicate, statistics: Mapping[str, pa.Table], count: int) -> npt.NDArray[np.bool_]:
    """For each of `count` files (or slices, partitions): False only if no row of it can be kept.

    `statistics`: for each column (named as for `partition_can_match`) a row for each file: `min` and `max` of the
    column's type (null: not known; the maximum of a float column says nothing about NaN), `null_count`, `value_count`
    (nulls included; null: not known).
    """
    if predicate.condition is None:
        return np.ones(count, np.bool_)
    if isinstance(predicate.condition, pc.Expression):
        rows = [{name: _range_at(table, at) for name, table in statistics.items()} for at in range(count)]
        return np.array([statistics_can_match(predicate, row) for row in rows], np.bool_)
    bounds = {
        column.path: _bounds_of_columns(column.type, statistics[name])
        for column in columns_in(predicate.condition)
        if (name := ".".join(column.path)) in statistics
    }
    return np.broadcast_to(outcomes_of(predicate.condition, bounds) & TRUE != 0, (count,)).astype(np.bool_)


def _range_at(table: pa.Table, at: int) -> ColumnRange:
    low, high, nulls, values = (table.column(name)[at] for name in ("min", "max", "null_count", "value_count"))
    lowest, highest = (bound if bound.is_valid else None for bound in (low, high))
    return ColumnRange(lowest, highest, nulls.as_py(), values.as_py())


def _bounds_of_columns(kind: pa.DataType, table: pa.Table) -> Bounds:
    low, high, nulls, values = (one_array(table.column(name)) for name in ("min", "max", "null_count", "value_count"))
    low, high = canonical_array(low), canonical_array(high)
    may_be_null = pc.fill_null(pc.not_equal(nulls, 0), True).to_numpy(zero_copy_only=False)
    may_have_value = pc.fill_null(pc.less(nulls, values), True).to_numpy(zero_copy_only=False)
    if is_float(kind):
        low = pc.if_else(pc.is_nan(low), pa.scalar(None, kind), low)
        high = pa.nulls(len(high), kind)  # no upper bound: a file may hold NaN, the greatest value

    # Bounds in the wrong order come from a faulty writer: they are not believed.
    in_order = compare("<=", low, high)
    is_wrong = pc.fill_null(pc.invert(in_order), False)
    low, high = (pc.if_else(is_wrong, pa.scalar(None, kind), bound) for bound in (low, high))

    return Bounds(low, high, may_be_null, may_have_value)


def _partition_scalar(column: Column, values: Mapping[str, Value]) -> pa.Scalar | None:
    """The column's value in the column's type. None if it is unknown or cannot be converted."""
    name = ".".join(column.path)
    if name not in values:
        return None
    if values[name] is None:
        return pa.scalar(None, column.type)
    return _scalar(values[name], column.type)


def _scalar(value: Value, kind: pa.DataType) -> pa.Scalar | None:
    """The value in this type; text is cast as Spark casts it. None if the conversion would lose anything."""
    try:
        array = canonical_array(pa.array([value.as_py() if isinstance(value, pa.Scalar) else value]))
        if array.type == kind:
            result = array
        elif array.type == pa.string() and can_cast(array.type, kind):
            result = cast_array(array, kind)
        else:
            result = pa.array([array[0].as_py()], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, Unsupported):
        return None
    return result[0] if result[0].is_valid else None


def _substituted(node: Node, constants: Mapping[tuple[str, ...], pa.Scalar]) -> Node:
    """The tree with known columns replaced by their values. Parts that became constant are computed."""

    def inside(child: Node) -> Node:
        return _substituted(child, constants)

    match node:
        case Column():
            value = constants.get(node.path)
            return node if value is None else Literal(value, node.type)
        case Literal():
            return node
        case Compare():
            return fold(Compare(node.operator, inside(node.left), inside(node.right)))
        case And():
            return fold(And(inside(node.left), inside(node.right)))
        case Or():
            return fold(Or(inside(node.left), inside(node.right)))
        case Not():
            return fold(Not(inside(node.operand)))
        case IsNull():
            return fold(IsNull(inside(node.operand)))
        case InList():
            return fold(InList(inside(node.operand), tuple(map(inside, node.values))))
        case Match():
            return fold(Match(inside(node.operand), node.pattern, node.prefix))
        case Cast():
            return fold(Cast(inside(node.operand), node.type))
        case Arithmetic():
            return fold(Arithmetic(node.operator, inside(node.left), inside(node.right), node.type))
        case Call():
            return fold(Call(node.name, tuple(map(inside, node.arguments)), node.type))


def _bounds_of_range(column: Column, known: ColumnRange) -> Bounds:
    may_be_null = known.null_count != 0
    may_have_value = known.null_count is None or known.row_count is None or known.null_count < known.row_count
    low, high = (None if bound is None else _scalar(bound, column.type) for bound in (known.min, known.max))
    if is_float(column.type):
        low, high = (None if _is_nan(bound) else bound for bound in (low, high))
        # Parquet statistics do not count NaN, and NaN is the greatest value.
        high = high if known.nan_count == 0 else None
    if low is not None and high is not None and not compare("<=", low, high).as_py():
        low = high = None
    return Bounds(low, high, np.bool_(may_be_null), np.bool_(may_have_value))


def _is_nan(bound: pa.Scalar | None) -> bool:
    return bound is not None and bool(pc.is_nan(bound).as_py())


def _field(name: str) -> pc.Expression:
    return pc.field(*name.split("."))


def _typed(schema: pa.Schema, name: str, value: Value) -> pa.Scalar | None:
    """The value in the column's type. Needed because Arrow simplifies comparisons only between equal types."""
    if value is None or name not in schema.names:
        return None
    return _scalar(value, schema.field(name).type)


def _equals(schema: pa.Schema, name: str, value: Value) -> pc.Expression | None:
    if value is None or (isinstance(value, pa.Scalar) and not value.is_valid):
        return _field(name).is_null()
    typed = _typed(schema, name, value)
    if typed is None or typed.as_py() != typed.as_py():  # NaN equals nothing in Arrow
        return None
    return _field(name) == typed


def _within(schema: pa.Schema, name: str, known: ColumnRange) -> pc.Expression | None:
    if known.row_count is not None and known.null_count == known.row_count:
        return _field(name).is_null()
    low, high = _typed(schema, name, known.min), _typed(schema, name, known.max)
    if low is None or high is None or (is_float(low.type) and known.nan_count != 0):
        return None
    at_least, at_most, is_null = _field(name) >= low, _field(name) <= high, _field(name).is_null()
    if known.null_count == 0:
        return at_least & at_most
    return (at_least | is_null) & (at_most | is_null)


def _expression_can_match(
    predicate: Predicate, guarantees: Sequence[pc.Expression | None], known: Mapping[str, object]
) -> bool:
    """Lets Arrow decide: would its filter drop a data fragment with these guaranteed values? No I/O."""
    given = [guarantee for guarantee in guarantees if guarantee is not None]
    if not given or not (predicate.columns & {name.split(".")[0] for name in known}):
        return True
    guarantee = functools.reduce(lambda one, other: one & other, given)
    try:
        return _fragment_is_kept(predicate, guarantee)
    except (pa.ArrowException, TypeError):
        return True


def _fragment_is_kept(predicate: Predicate, guarantee: pc.Expression) -> bool:
    import pyarrow.dataset as ds  # imports pandas if it is installed, so not at the top

    storage, file_format = fs.LocalFileSystem(), ds.ParquetFileFormat()
    fragment = file_format.make_fragment("never-opened", storage, partition_expression=guarantee)
    dataset = ds.FileSystemDataset([fragment], predicate.schema, file_format, storage)
    return next(iter(dataset.get_fragments(filter=predicate.condition)), None) is not None
