"""Partitions and file slices that indexes on expressions rule out, for predicates that hold the same expressions.

Statistics of an expression work like those of a column: in the predicate, a column stands for the expression.
Bloom filters only tell whether the expression equals one of some values. The predicate must ask just that, in a part
that every matching row satisfies.
"""

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.predicate import Predicate
from pyhudi.predicate.nodes import (
    Cast,
    Column,
    Compare,
    InList,
    Literal,
    Node,
    children_of,
    conjuncts_of,
    type_of,
)
from pyhudi.predicate.types import is_integer
from pyhudi.table.prune.file_statistics import FILES, ExpressionStatistics, Kept, KnownExpression
from pyhudi.table.prune.pruning import PrunedBy, match_partitions, match_slices

Slice: TypeAlias = tuple[str, Sequence[str]]
"""A slice: its partition, and the paths of its files."""


@dataclass(frozen=True, slots=True)
class ExpressionPruning:
    """How the indexes on expressions apply to one predicate.

    `rewritten`: for each index with statistics, the predicate with a column instead of the expression. `sought`: for
    each index with filters, values of which a matching row's expression has one.
    """

    statistics: ExpressionStatistics
    rewritten: Sequence[tuple[KnownExpression, Predicate]]
    sought: Sequence[tuple[KnownExpression, pa.Array]]

    def partitions(self, partitions: Sequence[str]) -> tuple[list[str], list[PrunedBy]]:
        """The partitions that may hold a matching row. Cost: for each index a look-up for each partition."""
        kept, pruned = list(partitions), list[PrunedBy]()
        for expression, predicate in self.rewritten:
            may = match_partitions(_AsColumn(self.statistics, expression), predicate, kept, besides=())
            if may is not None:
                pruned.append(PrunedBy(expression.index, partitions=len(kept) - int(may.sum())))
                kept = list(compress(kept, may.tolist()))
        return kept, pruned

    def slices(self, slices: Sequence[Slice]) -> tuple[Kept, list[PrunedBy]]:
        """For each slice, whether it may hold a matching row.

        Cost: a look-up for each file; filters, which are large.
        """
        left, pruned = np.ones(len(slices), np.bool_), list[PrunedBy]()
        for expression, predicate in self.rewritten:
            asked = list(compress(slices, left.tolist()))
            may = match_slices(_AsColumn(self.statistics, expression), predicate, asked, besides=())
            if may is not None:
                pruned.append(_pruned_by(expression, asked, may))
                left[left] = may

        for expression, texts in self.sought:
            asked = list(compress(slices, left.tolist()))
            may = self._may_hold(expression, asked, texts)
            pruned.append(_pruned_by(expression, asked, may))
            left[left] = may
        return left, pruned

    def _may_hold(self, expression: KnownExpression, slices: Sequence[Slice], texts: pa.Array) -> Kept:
        owner = np.repeat(np.arange(len(slices)), [len(paths) for _, paths in slices])
        files = [(partition, path.rpartition("/")[2]) for partition, paths in slices for path in paths]
        table = pa.table([[partition for partition, _ in files], [name for _, name in files]], schema=FILES)
        return np.bincount(owner, self.statistics.may_hold(expression, table, texts), len(slices)) > 0


def _pruned_by(expression: KnownExpression, asked: Sequence[Slice], may: Kept) -> PrunedBy:
    return PrunedBy(expression.index, files=sum(len(paths) for _, paths in compress(asked, (~may).tolist())))


def expression_pruning(
    statistics: ExpressionStatistics, predicate: Predicate, *, besides: Collection[str]
) -> ExpressionPruning:
    """How indexes on expressions apply to a predicate. `besides`: columns shown in another form than the stored one."""
    condition = predicate.condition
    if not isinstance(condition, Node):
        return ExpressionPruning(statistics, rewritten=(), sought=())
    known = [expression for expression in statistics.known() if expression.source not in (*besides, *META_FIELDS)]
    rewritten, sought = [], []
    for expression in known:
        if expression.has_filters:
            sought += [
                (expression, texts)
                for part in conjuncts_of(condition)
                if (texts := _sought(part, expression.node)) is not None
            ]
            continue

        column = Column((expression.index,), type_of(expression.node))
        replaced = _replaced(condition, expression.node, column)
        if replaced != condition:
            schema = pa.schema([*predicate.schema, pa.field(expression.index, column.type)])
            rewritten.append((expression, Predicate(replaced, predicate.columns, predicate.text, schema)))
    return ExpressionPruning(statistics, rewritten, sought)


@dataclass(frozen=True, slots=True)
class _AsColumn:
    """Statistics of an expression, served as those of the column that stands for it. Knows no other column."""

    statistics: ExpressionStatistics
    known: KnownExpression

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        return self.statistics.of_files(self.known, files) if column.name == self.known.index else None

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        return self.statistics.of_partitions(self.known, partitions) if column.name == self.known.index else None


def _replaced(node: Node, sought: Node, by: Column) -> Node:
    """The tree of `node` with `by` instead of each node that equals `sought`."""
    if node == sought:
        return by
    if not children_of(node):
        return node
    changed: dict[str, Any] = {
        field.name: _replaced_value(getattr(node, field.name), sought, by) for field in dataclasses.fields(node)
    }
    return type(node)(**changed)


def _replaced_value(value: object, sought: Node, by: Column) -> object:
    if isinstance(value, tuple):
        return tuple(_replaced_value(one, sought, by) for one in value)
    return _replaced(value, sought, by) if isinstance(value, Node) else value


def _sought(part: Node, node: Node) -> pa.Array | None:
    """The texts that the expression may have if this part of the predicate holds. None if the part does not say.

    Example: for `lower(city) IN ('oslo', 'bergen')` the two texts. Filters do not hold the empty text, so a part that
    allows it tells nothing.
    """
    match part:
        case Compare("=" | "<=>", left, right):
            operand, other = (left, right) if _is_of(left, node) else (right, left)
            wanted: tuple[Node, ...] = (other,)
        case InList(operand, values):
            wanted = values
        case _:
            return None

    literals = [one.value for one in wanted if isinstance(one, Literal)]
    if not _is_of(operand, node) or len(literals) < len(wanted):
        return None
    texts = pa.array([str(value.as_py()) for value in literals if value.is_valid], pa.string())
    return texts if len(texts) and "" not in texts.to_pylist() else None


def _is_of(operand: Node, node: Node) -> bool:
    """Whether an operand is the expression, or a cast of it to a wider whole number, which does not change its text."""
    if isinstance(operand, Cast) and is_integer(operand.type) and is_integer(type_of(operand.operand)):
        return operand.type.bit_width >= type_of(operand.operand).bit_width and _is_of(operand.operand, node)
    return operand == node
