"""The file slices that a write may touch, looked up when they are needed: for file groups or whole partitions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import overload

from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot


class SliceCatalog(Sequence[FileSlice]):
    """The newest slices of all partitions and file groups that were brought in, numbered in that order.

    A slice keeps its number when more are brought in. Requests: the listing of each partition, once.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._slices: list[FileSlice] = []
        self._brought: dict[str, dict[str, FileSlice]] = {}
        self._whole: dict[str, list[FileSlice]] = {}

    @property
    def by_partition(self) -> dict[str, list[FileSlice]]:
        """The slices that were brought in, by partition."""
        return {partition: list(by_file_id.values()) for partition, by_file_id in self._brought.items() if by_file_id}

    def bring(self, partitions: Iterable[str]) -> None:
        """Add the slices of these partitions. A partition that the table does not have adds none."""
        for partition, slices in self.whole(partitions).items():
            self._number(partition, slices)

    def bring_groups(self, groups: Mapping[str, Collection[str]]) -> None:
        """Add the slices of these file groups, given by partition. A group that does not exist adds none."""
        self._snapshot.listing.expect(groups)
        for partition, file_ids in groups.items():
            self._number(partition, self._snapshot.slices(partition, file_ids))

    def bring_all(self) -> None:
        self.bring(self._snapshot.listing.partitions())

    def whole(self, partitions: Iterable[str]) -> dict[str, list[FileSlice]]:
        """All slices of each of these partitions, whether they were brought in or not."""
        asked = list(dict.fromkeys(partitions))
        fresh = [partition for partition in asked if partition not in self._whole]
        self._snapshot.listing.expect(fresh)
        self._whole.update({partition: self._snapshot.slices(partition) for partition in fresh})
        return {partition: self._whole[partition] for partition in asked}

    def _number(self, partition: str, slices: Iterable[FileSlice]) -> None:
        known = self._brought.setdefault(partition, {})
        fresh = {file_slice.file_id: file_slice for file_slice in slices if file_slice.file_id not in known}
        known.update(fresh)
        self._slices += fresh.values()

    def __len__(self) -> int:
        return len(self._slices)

    @overload
    def __getitem__(self, at: int) -> FileSlice: ...

    @overload
    def __getitem__(self, at: slice) -> list[FileSlice]: ...

    def __getitem__(self, at: int | slice) -> FileSlice | list[FileSlice]:
        return self._slices[at]
