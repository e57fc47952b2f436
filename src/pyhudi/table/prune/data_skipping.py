"""Skipping what indexes of the metadata table rule out of a query, and what if one is damaged or has moved on."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from typing import TypeVar

import numpy as np

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.table.prune.file_statistics import Kept
from pyhudi.table.prune.index_pruning import IndexPruner, PrunedQuery, Slice
from pyhudi.table.prune.key_pruning import LocatedSlices
from pyhudi.table.prune.pruning import PrunedBy
from pyhudi.table.view.file_system_view import FileSlice

log = logging.getLogger("pyhudi")

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class DataSkipping:
    """The indexes of the metadata table, for a query of the latest rows.

    `pruners`: in the order in which they are asked. `is_current`: whether the table still stands where the query's
    snapshot does, for what is known of partitions and keys is of the latest commit. `are_there`: whether the files of
    the indexes are still those that the query knows. `falls_back`: a damaged index is passed over, with a warning; else
    it is an error.
    """

    pruners: Sequence[IndexPruner]
    is_current: Callable[[], bool]
    are_there: Callable[[], bool]
    falls_back: bool = False


@dataclass
class SkippingOf:
    """What one query skips with the help of the indexes.

    `pruned`: what indexes ruled out so far. `is_located`: the slices that are left are those that hold the keys.
    """

    indexes: DataSkipping
    query: PrunedQuery
    pruned: list[PrunedBy] = field(default_factory=list)
    is_located: bool = False

    def slices(self, partitions: Sequence[str]) -> tuple[list[str], Iterable[FileSlice]]:
        """Of these partitions those that may hold a row that is kept, and the slices in them that may."""
        kept, located, pruned = list(partitions), self._located(partitions), list[PrunedBy]()
        if located is not None:
            holding = {file_slice.partition for file_slice in located.slices}
            kept = [one for one in partitions if one in holding]
            pruned.append(PrunedBy(located.index, len(partitions) - len(kept), located.files_pruned))

        for pruner in self.indexes.pruners:
            told = self._unless_damaged(pruner, partial(pruner.keep_partitions, self.query, kept))
            if told is not None:
                kept, spared = told
                pruned += spared

        snapshot = self.query.snapshot
        is_less = located is not None or len(kept) < len(partitions)
        if is_less and not self.indexes.is_current():
            log.info("%s: the table has changed meanwhile: less is skipped", snapshot.config.name)
            kept, located, pruned = list(partitions), None, []

        self._note(pruned)
        if located is None:
            return kept, (file_slice for partition in kept for file_slice in snapshot.slices(partition))
        self.is_located, remaining = True, set(kept)
        return kept, [file_slice for file_slice in located.slices if file_slice.partition in remaining]

    def matching(self, slices: Sequence[Slice]) -> Kept:
        """Which of these slices may hold such a row. Each index is asked about what those before it have left."""
        left = np.ones(len(slices), np.bool_)
        for pruner in self.indexes.pruners:
            rest = list(compress(slices, left.tolist()))
            match = partial(pruner.match_slices, self.query, rest, is_located=self.is_located)
            told = self._unless_damaged(pruner, match) if rest else None
            if told is not None:
                left[left], spared = told
                self._note(spared)
        return left

    def _located(self, partitions: Sequence[str]) -> LocatedSlices | None:
        """The slices that the first index finds which can tell: of merged rows, not of base files alone."""
        if not self.query.is_merged:
            return None
        for pruner in self.indexes.pruners:
            found = self._unless_damaged(pruner, partial(pruner.locate, self.query, partitions))
            if found is not None:
                return found
        return None

    def _note(self, pruned: Iterable[PrunedBy]) -> None:
        self.pruned += [one for one in pruned if one.partitions or one.files]

    def _unless_damaged(self, pruner: IndexPruner, ask: Callable[[], _Answer | None]) -> _Answer | None:
        """What an index tells. None if it is damaged and passed over, or if its files went while the query was planned:
        another call may have dropped it, or have made its metadata table anew.
        """
        name = self.query.snapshot.config.name
        try:
            return ask()
        except (CorruptFile, NotFound) as error:
            if not self.indexes.are_there():
                log.info("%s: the table has changed meanwhile: %s rules nothing out", name, pruner.label)
                return None
            if not self.indexes.falls_back:
                raise
            log.warning("%s: %s is damaged, and rules nothing out: %s", name, pruner.label, error)
            return None
