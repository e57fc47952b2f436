"""The slices that a write may touch, made out partition by partition as they are needed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import overload

from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.snapshot import Snapshot


class SliceCatalog(Sequence[FileSlice]):
    """The newest slices of the partitions that were brought in, numbered in the order in which they came.

    A number stays the same while more partitions are brought in. Requests: of `Snapshot.slices`, once a partition.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._slices: list[FileSlice] = []
        self._by_partition: dict[str, list[FileSlice]] = {}

    @property
    def by_partition(self) -> Mapping[str, list[FileSlice]]:
        """The slices of each partition that was brought in and has any."""
        return {partition: of for partition, of in self._by_partition.items() if of}

    def bring(self, partitions: Iterable[str]) -> None:
        """Have the slices of these partitions among the others; one that the table does not have has none."""
        fresh = [partition for partition in dict.fromkeys(partitions) if partition not in self._by_partition]
        self._snapshot.listing.expect(fresh)
        for partition in fresh:
            of = self._by_partition[partition] = self._snapshot.slices(partition)
            self._slices += of

    def bring_all(self) -> None:
        self.bring(self._snapshot.listing.partitions())

    def __len__(self) -> int:
        return len(self._slices)

    @overload
    def __getitem__(self, at: int) -> FileSlice: ...

    @overload
    def __getitem__(self, at: slice) -> list[FileSlice]: ...

    def __getitem__(self, at: int | slice) -> FileSlice | list[FileSlice]:
        return self._slices[at]
