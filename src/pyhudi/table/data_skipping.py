"""Asks the indexes of the metadata table what a query may skip.

Precise and cheap indexes come first. The record index costs a look-up for each key and leaves one file group for each.
Then partition statistics, with a look-up for each partition, and column statistics, with a look-up for each file;
indexes on expressions are asked along with them. Bloom filters are large, so they are asked last, for the files left.

If the table has changed since the query's snapshot, indexes that describe the latest commit are not used. A damaged
index is an error, or is passed over with a warning.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.table.expression_pruning import ExpressionPruning, expression_pruning
from pyhudi.table.file_statistics import TableStatistics
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.key_pruning import KeyIndexes, LocatedSlices, locate_slices, match_base_files, sought_keys
from pyhudi.table.predicate import Predicate
from pyhudi.table.pruning import PrunedBy, match_partitions, match_slices
from pyhudi.table.snapshot import Snapshot

log = logging.getLogger("pyhudi")

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class DataSkipping:
    """The indexes of the metadata table, for a query of the latest rows.

    `is_current`: whether the table has not changed since the query's snapshot. Partition statistics and record index
    describe the latest commit, so they mean nothing for an older one. `falls_back`: a damaged index is passed over with
    a warning; otherwise it is an error.
    """

    statistics: TableStatistics
    keys: KeyIndexes
    is_current: Callable[[], bool]
    falls_back: bool = False


@dataclass
class SkippingOf:
    """What one query skips with the help of the indexes.

    `besides`: columns that the query shows in another form than the stored one. `is_merged`: the query merges logs, it
    does not read base files alone. `by_columns`: each value of a row is stored in one of its slice's files. `pruned`:
    what indexes ruled out so far. `is_located`: the remaining slices are those that hold the keys.
    """

    indexes: DataSkipping
    snapshot: Snapshot
    predicate: Predicate
    besides: Collection[str]
    is_merged: bool
    by_columns: bool
    pruned: list[PrunedBy] = field(default_factory=list)
    is_located: bool = False

    def slices(self, partitions: Sequence[str]) -> tuple[list[str], Iterable[FileSlice]]:
        """The partitions that may hold a matching row, and the slices in them that may hold one."""
        kept, located = list(partitions), self._located(partitions)
        if located is not None:
            holding = {piece.partition for piece in located.slices}
            kept = [one for one in partitions if one in holding]

        may = self._unless_damaged("partition_stats", lambda: self._match_partitions(kept))
        left = kept if may is None else list(compress(kept, may.tolist()))
        told = self._unless_damaged("an index on an expression", lambda: self._expressions.partitions(left))
        by_expression = told is not None and len(told[0]) < len(left)

        # What these indexes say is of the latest commit. If that is no longer the snapshot's, their answers are
        # dropped.
        if (located is not None or len(left) < len(kept) or by_expression) and not self.indexes.is_current():
            log.info("%s: the table has changed meanwhile: less is skipped", self.snapshot.config.name)
            kept, located, may, told = list(partitions), None, None, None

        if located is not None:
            self.is_located = True
            self._note(PrunedBy(located.index, len(partitions) - len(kept), located.files_pruned))
        # Each index is credited with what the ones before it had left.
        if may is not None:
            self._note(PrunedBy("partition_stats", partitions=len(kept) - int(may.sum())))
            kept = left
        if told is not None:
            kept, by_each = told
            for one in by_each:
                self._note(one)

        if located is None:
            return kept, (piece for partition in kept for piece in self.snapshot.slices(partition))
        remaining = set(kept)
        return kept, [piece for piece in located.slices if piece.partition in remaining]

    def matching(self, slices: Sequence[tuple[str, Sequence[str], bool]]) -> npt.NDArray[np.bool_]:
        """For each slice, whether it may hold a matching row.

        Slices: partition, paths of files, whether it has logs.
        """
        left = np.ones(len(slices), np.bool_)
        self._narrow("column_stats", slices, left, self._match_slices)

        asked = [(partition, paths) for partition, paths, _ in compress(slices, left.tolist())]
        told = self._unless_damaged("an index on an expression", lambda: self._expressions.slices(asked))
        if told is not None:
            left[left], by_each = told
            for one in by_each:
                self._note(one)

        if not self.is_located:
            self._narrow("bloom_filters", slices, left, self._match_base_files)
        return left

    def _narrow(
        self,
        index: str,
        slices: Sequence[tuple[str, Sequence[str], bool]],
        left: npt.NDArray[np.bool_],
        match: Callable[[Sequence[tuple[str, Sequence[str], bool]]], npt.NDArray[np.bool_] | None],
    ) -> None:
        """Ask an index about the slices that are left, and clear those in `left` that it rules out."""
        asked = list(compress(slices, left.tolist()))
        may = self._unless_damaged(index, lambda: match(asked)) if asked else None
        if may is None:
            return
        self._note(PrunedBy(index, files=sum(len(paths) for _, paths, _ in compress(asked, (~may).tolist()))))
        left[left] = may

    def _note(self, pruned: PrunedBy) -> None:
        if pruned.partitions or pruned.files:
            self.pruned.append(pruned)

    @cached_property
    def _expressions(self) -> ExpressionPruning:
        if not self.by_columns:
            return ExpressionPruning(self.indexes.statistics.expressions(), (), ())
        return expression_pruning(self.indexes.statistics.expressions(), self.predicate, besides=self.besides)

    @cached_property
    def _keys(self) -> pa.Array | None:
        return sought_keys(self.snapshot, self.predicate, self.besides)

    def _located(self, partitions: Sequence[str]) -> LocatedSlices | None:
        if not self.is_merged:
            return None
        return self._unless_damaged(
            "record_index",
            lambda: locate_slices(
                self.indexes.keys, self.snapshot, self.predicate, self._keys, partitions, besides=self.besides
            ),
        )

    def _match_partitions(self, partitions: Sequence[str]) -> npt.NDArray[np.bool_] | None:
        if not self.by_columns:
            return None
        return match_partitions(self.indexes.statistics, self.predicate, partitions, besides=self.besides)

    def _match_slices(self, slices: Sequence[tuple[str, Sequence[str], bool]]) -> npt.NDArray[np.bool_] | None:
        if not self.by_columns:
            return None
        named = [(partition, paths) for partition, paths, _ in slices]
        return match_slices(self.indexes.statistics, self.predicate, named, besides=self.besides)

    def _match_base_files(self, slices: Sequence[tuple[str, Sequence[str], bool]]) -> npt.NDArray[np.bool_] | None:
        if self._keys is None:
            return None
        files = [(paths[0], has_logs) for _, paths, has_logs in slices]
        return match_base_files(self.indexes.keys, self._keys, files)

    def _unless_damaged(self, index: str, ask: Callable[[], _Answer | None]) -> _Answer | None:
        try:
            return ask()
        except (CorruptFile, NotFound) as error:
            if not self.indexes.falls_back:
                raise
            log.warning("%s: %s is damaged, and rules nothing out: %s", self.snapshot.config.name, index, error)
            return None
