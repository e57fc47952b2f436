"""What a look-up of record keys finds, and the protocol of the indexes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice


@dataclass(frozen=True)
class Hits:
    """Where keys were found: row `rows[i]` of the partition's input has its key in file group `groups[i]`.

    Shape: all (hits,), rows ascending. A key that several groups hold (bulk inserted twice) is a hit in each.
    `positions`: the row position of the key in the group's base file. -1: the file holds the key twice, or the position
    is not known.
    """

    rows: np.ndarray
    groups: np.ndarray
    positions: np.ndarray


def hits_of_rows(
    key_numbers: np.ndarray, key_count: int, of_key: np.ndarray, groups: np.ndarray, positions: np.ndarray
) -> Hits:
    """Turns keys found in file groups into hits of input rows.

    `key_numbers`: for each input row the number of its key, of `key_count`. `of_key`, `groups`, `positions`: for each
    find the key's number, and as in `Hits`.
    """
    order = np.argsort(of_key, kind="stable")
    counts = np.bincount(of_key, minlength=key_count)
    starts = np.cumsum(counts) - counts

    # A row has one hit for each file group that holds its key: `nth` counts a row's hits from 0.
    per_row = counts[key_numbers]
    rows = np.repeat(np.arange(len(key_numbers)), per_row)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    hit = order[starts[key_numbers[rows]] + nth]
    return Hits(rows, groups[hit], positions[hit])


@dataclass(frozen=True)
class FoundKeys:
    """The distinct keys of an input that a base file holds: their numbers, ascending, and the positions of their rows.

    The position is -1 for a key that the file holds twice.
    """

    numbers: np.ndarray
    positions: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, positions: np.ndarray) -> "FoundKeys":
        """From the rows of a file that have one of the keys, in any order: each row's key number and position."""
        distinct, first, counts = np.unique(numbers, return_index=True, return_counts=True)
        return cls(distinct, np.where(counts == 1, positions[first], -1))


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The record keys of an input in one partition, or in all: the least and the greatest by their UTF-8 bytes.

    `keys`: the keys themselves, each at least once. None if they are too many to hold.
    """

    low: str
    high: str
    keys: pa.Array | None = None


class Index(Protocol):
    """A way to find the file groups that hold record keys.

    An engine that has the input's keys in memory calls `locate`. One that joins keys itself calls `candidates` first.
    """

    @property
    def is_global(self) -> bool:
        """Whether a key is looked for in the whole table, not only in its own partition."""

    @property
    def prunes(self) -> bool:
        """Whether `candidates` may leave slices out. If not, it need not be called."""

    @property
    def is_exact(self) -> bool:
        """Whether every hit is a key that the merged slice holds.

        If not, a base file holds it and a log may delete it.
        """

    def locate(
        self, storage: Storage, keys: Mapping[str, pa.Array], slices: Sequence[FileSlice], executor: Executor
    ) -> dict[str, Hits]:
        """For each partition of the input, the hits of its keys. Groups are positions in `slices`.

        `keys`: record keys by partition, repeated as the input repeats them. Spec: format/indexes.md section 2 (several
        hits of a key are all tagged).
        """

    def candidates(
        self, storage: Storage, bounds: Mapping[str, KeyBounds], slices: Sequence[FileSlice], executor: Executor
    ) -> list[int]:
        """Positions of all slices that may hold a key.

        `bounds`: bounds of the input's keys, by partition.
        """
