"""A planned scan, planned anew for fewer columns, and for a condition that came later."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.predicate.nodes import And, Node, columns_in
from pyhudi.predicate.parse import Predicate
from pyhudi.storage.protocol import Storage
from pyhudi.table.read.files import read_plan_batches
from pyhudi.table.read.plan import ReadPlan

Replan: TypeAlias = Callable[[Predicate], ReadPlan]
"""Plans the same query for another predicate: the same snapshot, the same columns."""


@dataclass(frozen=True)
class NarrowedReads:
    """Reads parts of a scan's answer. `replan`: as it says."""

    storage: Storage
    plan: ReadPlan
    replan: Replan

    @property
    def schema(self) -> pa.Schema:
        return self.plan.schema

    def batches(self, columns: Sequence[str], condition: Node | None, text: str) -> Iterator[pa.RecordBatch]:
        """The rows of the scan for which the condition is true, in these columns; None: all rows.

        The condition is of the scan's columns. Where the scan itself filters by an Arrow expression, rows may come for
        which the condition is not true. `text`: the condition as it is shown.
        Memory: as `read_plan_batches`.
        """
        plan = self.plan if condition is None else self._planned(condition, text)
        schema = pa.schema([self.schema.field(name) for name in columns])
        return read_plan_batches(self.storage, replace(plan, schema=schema))

    def _planned(self, condition: Node, text: str) -> ReadPlan:
        own = self.plan.predicate
        known = self.plan.shown.schema(self.plan.stored_schema)
        if own is None or own.condition is None or isinstance(own.condition, pc.Expression):
            both, shown = condition, text
        else:
            both, shown = And(own.condition, condition), f"({own.text}) AND ({text})"

        names = frozenset(column.path[0] for column in columns_in(both))
        plan = self.replan(Predicate(both, names, shown, known))
        if own is None or not isinstance(own.condition, pc.Expression):
            return plan
        # The scan's own expression filters the rows, and has pruned for itself.
        kept = {file.path for file in self.plan.files}
        return replace(plan, files=tuple(file for file in plan.files if file.path in kept), predicate=own)
