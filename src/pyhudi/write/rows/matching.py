"""Stored rows that a predicate chooses, read file after file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from pyhudi.predicate import Predicate
from pyhudi.table.prune.data_skipping import DataSkipping
from pyhudi.table.read.files import read_planned
from pyhudi.table.read.plan import ReadPlan, plan_snapshot
from pyhudi.table.read.shown_columns import AS_STORED, ShownColumns
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import STORED_PATH

OpenSkipping: TypeAlias = Callable[[Snapshot], DataSkipping | None]
"""Opens the indexes that reading a snapshot may prune by; None where there are none."""


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """The rows of a snapshot that a predicate chooses.

    `columns`: to read, as they are stored. `shown`: how a query shows columns; predicates and expressions speak of
    those. Memory: one row group of one file, the folded log of one slice.
    """

    snapshot: Snapshot
    plan: ReadPlan
    predicate: Predicate | None
    shown: ShownColumns

    def __iter__(self) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """The rows as they are stored, with the column `STORED_PATH`, and the same rows as a query shows them."""
        storage = self.snapshot.storage
        for file in self.plan.files:
            for stored in read_planned(storage, self.plan, file, use_threads=True):
                shown = self.shown.batch(stored, file.partition)
                if self.plan.predicate is None and self.predicate is not None:
                    mask = self.predicate.mask(shown)
                    stored, shown = stored.filter(mask), shown.filter(mask)
                if len(stored):
                    path = pa.repeat(pa.scalar(file.partition, pa.string()), len(stored))
                    yield stored.append_column(STORED_PATH, path), shown


def matching_rows(
    snapshot: Snapshot, columns: Sequence[str], predicate: Predicate | None, skipping: DataSkipping | None
) -> MatchingRows:
    """Plan to read the rows that a predicate chooses: only files that may hold one. `predicate` None: all rows.

    `columns`: of `schema_with_meta`; those of the predicate are added.
    """
    shown = snapshot.shown_columns("snapshot")
    names = {*columns, *(predicate.columns if predicate is not None else ())}
    schema = pa.schema([field for field in snapshot.schema_with_meta if field.name in names])
    plan = plan_snapshot(
        snapshot,
        schema=schema,
        predicate=predicate,
        where=None if predicate is None else str(predicate),
        query="snapshot",
        shown=shown,
        skipping=skipping if predicate is not None else None,
    )
    if shown != AS_STORED:  # files are pruned by what is shown, and read as they are stored
        plan = replace(plan, shown=AS_STORED, predicate=None)
    return MatchingRows(snapshot, plan, predicate, shown)
