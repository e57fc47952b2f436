"""Partitions and file slices that indexes on expressions rule out, of a predicate that holds the very same expressions.

Statistics say of an expression what they say of a column: it is put in the place of one. Filters only answer whether it
equals one of some values, which a part of the predicate must ask for that holds for every row that is kept.
"""

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyhudi.format.schema import META_FIELDS
from pyhudi.table.file_statistics import FILES, ExpressionStatistics, Kept, KnownExpression
from pyhudi.table.predicate import Predicate
from pyhudi.table.predicate.nodes import (
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
from pyhudi.table.predicate.types import is_integer
from pyhudi.table.pruning import PrunedBy, match_partitions, match_slices

Slice: TypeAlias = tuple[str, Sequence[str]]
"""A slice: its partition, and the paths of its files."""


@dataclass(frozen=True, slots=True)
class ExpressionPruning:
    """What one predicate can be pruned by. `rewritten`: by an index of statistics, the predicate over a column that
    stands for the expression; `sought`: by an index of filters, the values that the expression must have one of.
    """

    statistics: ExpressionStatistics
    rewritten: Sequence[tuple[KnownExpression, Predicate]]
    sought: Sequence[tuple[KnownExpression, pa.Array]]

    def partitions(self, partitions: Sequence[str]) -> tuple[list[str], list[PrunedBy]]:
        """Of these partitions those that may hold a row that is kept. Cost: a look-up of a key a partition."""
        kept, pruned = list(partitions), list[PrunedBy]()
        for of, predicate in self.rewritten:
            may = match_partitions(_AsColumn(self.statistics, of), predicate, kept, besides=())
            if may is not None:
                pruned.append(PrunedBy(of.index, partitions=len(kept) - int(may.sum())))
                kept = list(compress(kept, may.tolist()))
        return kept, pruned

    def slices(self, slices: Sequence[Slice]) -> tuple[Kept, list[PrunedBy]]:
        """Which of these slices may hold such a row. Cost: a look-up of a key a file; the filters, which are large."""
        left, pruned = np.ones(len(slices), np.bool_), list[PrunedBy]()
        for of, predicate in self.rewritten:
            asked = list(compress(slices, left.tolist()))
            may = match_slices(_AsColumn(self.statistics, of), predicate, asked, besides=())
            if may is not None:
                pruned.append(_pruned_by(of, asked, may))
                left[left] = may
        for of, texts in self.sought:
            asked = list(compress(slices, left.tolist()))
            may = self._may_hold(of, asked, texts)
            pruned.append(_pruned_by(of, asked, may))
            left[left] = may
        return left, pruned

    def _may_hold(self, of: KnownExpression, slices: Sequence[Slice], texts: pa.Array) -> Kept:
        owner = np.repeat(np.arange(len(slices)), [len(paths) for _, paths in slices])
        files = [(partition, path.rpartition("/")[2]) for partition, paths in slices for path in paths]
        table = pa.table([[partition for partition, _ in files], [name for _, name in files]], schema=FILES)
        return np.bincount(owner, self.statistics.may_hold(of, table, texts), len(slices)) > 0


def _pruned_by(of: KnownExpression, asked: Sequence[Slice], may: Kept) -> PrunedBy:
    return PrunedBy(of.index, files=sum(len(paths) for _, paths in compress(asked, (~may).tolist())))


def expression_pruning(
    statistics: ExpressionStatistics, predicate: Predicate, *, besides: Collection[str]
) -> ExpressionPruning:
    """What indexes on expressions can prune of a predicate. `besides`: columns that are shown otherwise than stored."""
    condition = predicate.condition
    if not isinstance(condition, Node):
        return ExpressionPruning(statistics, (), ())
    known = [of for of in statistics.known() if of.source not in (*besides, *META_FIELDS)]
    rewritten, sought = [], []
    for of in known:
        if of.has_filters:
            sought += [(of, texts) for part in conjuncts_of(condition) if (texts := _sought(part, of.node)) is not None]
            continue
        column = Column((of.index,), type_of(of.node))
        replaced = _replaced(condition, of.node, column)
        if replaced != condition:
            schema = pa.schema([*predicate.schema, pa.field(of.index, column.type)])
            rewritten.append((of, Predicate(replaced, predicate.columns, predicate.text, schema)))
    return ExpressionPruning(statistics, rewritten, sought)


@dataclass(frozen=True, slots=True)
class _AsColumn:
    """The statistics of an expression as those of the column that stands for it; of others nothing is known."""

    statistics: ExpressionStatistics
    known: KnownExpression

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        return self.statistics.of_files(self.known, files) if column.name == self.known.index else None

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        return self.statistics.of_partitions(self.known, partitions) if column.name == self.known.index else None


def _replaced(node: Node, sought: Node, by: Column) -> Node:
    """The tree with one node in the place of another, wherever that is."""
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
    """The texts of which the expression has one in every row for which this part holds; None where it asks otherwise.

    An empty text is in no filter, so that nothing can be told of it.
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
    """Whether an operand is the expression, or a whole number that is, in a wider type: its text is the same."""
    if isinstance(operand, Cast) and is_integer(operand.type) and is_integer(type_of(operand.operand)):
        return operand.type.bit_width >= type_of(operand.operand).bit_width and _is_of(operand.operand, node)
    return operand == node
