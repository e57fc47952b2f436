"""The slices that a write may touch, made out as they are needed: of file groups, or of partitions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import overload

from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.snapshot import Snapshot


class SliceCatalog(Sequence[FileSlice]):
    """The newest slices of what was brought in, numbered in the order in which they came.

    A number stays the same while more are brought in. Requests: of the listing, once a partition.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._slices: list[FileSlice] = []
        self._brought: dict[str, dict[str, FileSlice]] = {}
        self._whole: dict[str, list[FileSlice]] = {}

    @property
    def by_partition(self) -> dict[str, list[FileSlice]]:
        """What was brought in of each partition."""
        return {partition: list(of.values()) for partition, of in self._brought.items() if of}

    def bring(self, partitions: Iterable[str]) -> None:
        """Have the slices of these partitions among the others; one that the table does not have has none."""
        for partition, of in self.whole(partitions).items():
            self._number(partition, of)

    def bring_groups(self, groups: Mapping[str, Collection[str]]) -> None:
        """Have the slices of these file groups, by partition, among the others; one that is not there has none."""
        self._snapshot.listing.expect(groups)
        for partition, file_ids in groups.items():
            self._number(partition, self._snapshot.slices(partition, file_ids))

    def bring_all(self) -> None:
        self.bring(self._snapshot.listing.partitions())

    def whole(self, partitions: Iterable[str]) -> dict[str, list[FileSlice]]:
        """All slices of each of these partitions, brought in or not."""
        asked = list(dict.fromkeys(partitions))
        fresh = [partition for partition in asked if partition not in self._whole]
        self._snapshot.listing.expect(fresh)
        self._whole.update({partition: self._snapshot.slices(partition) for partition in fresh})
        return {partition: self._whole[partition] for partition in asked}

    def _number(self, partition: str, slices: Iterable[FileSlice]) -> None:
        known = self._brought.setdefault(partition, {})
        fresh = {piece.file_id: piece for piece in slices if piece.file_id not in known}
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
