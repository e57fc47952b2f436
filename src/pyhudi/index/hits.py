"""What a lookup of record keys finds, and the protocol of the indexes that find it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.storage.protocol import Storage
from pyhudi.table.file_system_view import FileSlice


@dataclass(frozen=True)
class Hits:
    """Where keys were found: row `rows[i]` of the partition's input has its key in file group `groups[i]`.

    Shape: all (hits,), rows ascending. A key that several groups hold (bulk inserted twice) is a hit in each.
    `positions`: where in the group's base file the key stands, -1 where that holds it twice, or nobody looked.
    """

    rows: np.ndarray
    groups: np.ndarray
    positions: np.ndarray


@dataclass(frozen=True)
class FoundKeys:
    """Which distinct keys of an input a base file holds: their numbers, ascending, and the positions of their rows.

    A key that the file holds twice has the position -1.
    """

    numbers: np.ndarray
    positions: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, positions: np.ndarray) -> "FoundKeys":
        """From a key number and a position for each row of the file that has one of the keys, in any order."""
        distinct, first, counts = np.unique(numbers, return_index=True, return_counts=True)
        return cls(distinct, np.where(counts == 1, positions[first], -1))


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The record keys of an input in one partition, or of all of it: least and greatest by their UTF-8 bytes.

    `keys`: the keys themselves, each at least once; None where there are too many to hold.
    """

    low: str
    high: str
    keys: pa.Array | None = None


class Index(Protocol):
    """One way to find the file groups that hold record keys.

    An engine that holds the input's keys asks `locate`; one that joins keys itself asks `candidates` first.
    """

    @property
    def is_global(self) -> bool:
        """Whether a key is looked for in the whole table, otherwise in its own partition."""

    @property
    def prunes(self) -> bool:
        """Whether `candidates` may leave slices out; if not, it need not be asked."""

    @property
    def is_exact(self) -> bool:
        """Whether a hit is a key that merged slices hold; otherwise base files do, and a log may have deleted it."""

    def locate(
        self, storage: Storage, keys: Mapping[str, pa.Array], slices: Sequence[FileSlice], executor: Executor
    ) -> dict[str, Hits]:
        """For each partition of the input the hits of its keys; groups are positions in `slices`.

        `keys`: record keys by partition, as often as the input has them. Spec: format/indexes.md section 2 (several
        hits of a key are all tagged).
        """

    def candidates(
        self, storage: Storage, bounds: Mapping[str, KeyBounds], slices: Sequence[FileSlice], executor: Executor
    ) -> list[int]:
        """Positions of the slices that may hold a key; none that holds one is left out.

        `bounds`: of the input's keys, by partition.
        """
