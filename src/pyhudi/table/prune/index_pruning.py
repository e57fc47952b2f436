"""What planning asks an index of the metadata table: which partitions, and which slices, a query need not read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Protocol, TypeAlias

import pyarrow as pa

from pyhudi.predicate import Predicate
from pyhudi.table.prune.file_statistics import Kept
from pyhudi.table.prune.key_pruning import LocatedSlices, sought_keys
from pyhudi.table.prune.pruning import PrunedBy
from pyhudi.table.view.snapshot import Snapshot

Slice: TypeAlias = tuple[str, Sequence[str], bool]
"""A slice: its partition, the paths of its files, and whether there are logs among them."""


@dataclass(frozen=True)
class PrunedQuery:
    """A query of the latest rows, of which files are to be left out.

    `besides`: columns that it shows otherwise than they are stored. `is_merged`: it reads rows as they stand, and not
    base files without their logs. `by_columns`: each value of a row is in one of its slice's files.
    """

    snapshot: Snapshot
    predicate: Predicate
    besides: Collection[str]
    is_merged: bool
    by_columns: bool

    @cached_property
    def keys(self) -> pa.Array | None:
        """Every record key that a row may have which is kept; None: too many to ask for, or any."""
        return sought_keys(self.snapshot, self.predicate, self.besides)


class IndexPruner(Protocol):
    """The indexes of one kind, as of the latest commit. A method that has nothing to say gives None.

    `label`: what messages call it. Raises: CorruptFile, naming the file; NotFound for one that is gone.
    """

    label: str

    def locate(self, query: PrunedQuery, partitions: Sequence[str]) -> LocatedSlices | None:
        """Of these partitions all slices that hold rows that may be kept."""
        return None

    def keep_partitions(
        self, query: PrunedQuery, partitions: Sequence[str]
    ) -> tuple[list[str], Sequence[PrunedBy]] | None:
        """Of these partitions those that may hold a row that is kept."""
        return None

    def match_slices(
        self, query: PrunedQuery, slices: Sequence[Slice], *, is_located: bool
    ) -> tuple[Kept, Sequence[PrunedBy]] | None:
        """Which of these slices may hold such a row. `is_located`: they are those that hold the keys."""
        return None


def pruned_files(index: str, slices: Sequence[Slice], may: Kept) -> PrunedBy:
    """What is spared where only these slices are kept."""
    return PrunedBy(index, files=sum(len(paths) for _, paths, _ in compress(slices, (~may).tolist())))
