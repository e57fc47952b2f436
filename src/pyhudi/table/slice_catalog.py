"""The slices that a write may touch, made out partition by partition as they are needed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import overload

from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.snapshot import Snapshot


class SliceCatalog(Sequence[FileSlice]):
    """The newest slices of the partitions that were brought in, numbered in the order in which they came.

    A number stays the same while more partitions are brought in. Requests: of `Snapshot.slices`, once a partition.
    """

    def __init__(self, snapshot: Snapshot, partitions: Iterable[str]) -> None:
        """`partitions`: all that may be brought in, those that exist."""
        self._snapshot, self._partitions = snapshot, dict.fromkeys(partitions)
        self._slices: list[FileSlice] = []
        self._by_partition: dict[str, list[FileSlice]] = {}

    @property
    def has_partitions(self) -> bool:
        """Whether there is any partition that may be brought in, or was."""
        return bool(self._partitions)

    @property
    def by_partition(self) -> Mapping[str, list[FileSlice]]:
        """The slices of each partition that was brought in, none for one without file groups."""
        return self._by_partition

    def bring(self, partitions: Iterable[str]) -> None:
        """Have the slices of these partitions among the others; those that are none of the catalog's are left out."""
        for partition in partitions:
            if partition in self._partitions and partition not in self._by_partition:
                of = self._by_partition[partition] = self._snapshot.slices(partition)
                self._slices += of

    def bring_all(self) -> None:
        self.bring(self._partitions)

    def __len__(self) -> int:
        return len(self._slices)

    @overload
    def __getitem__(self, at: int) -> FileSlice: ...

    @overload
    def __getitem__(self, at: slice) -> list[FileSlice]: ...

    def __getitem__(self, at: int | slice) -> FileSlice | list[FileSlice]:
        return self._slices[at]
