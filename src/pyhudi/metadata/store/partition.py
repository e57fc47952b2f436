"""A partition of the metadata table: all of its records, those of some keys, or those that begin with some prefixes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.executor import Executor
from pyhudi.format.metadata.groups import MetadataGroupId
from pyhudi.format.metadata.keys import KeyHashing, file_groups
from pyhudi.metadata.store.slice_records import Keys, Prefixes, Wanted, open_slice
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.metadata.store.versions import RecordVersions
from pyhudi.metadata.store.visibility import block_filter
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.timeline.active import Timeline

_QUICK_COUNT = 100_000
"""Up to this many keys, one thread is as fast as several where the storage is near: threads share one interpreter."""


@dataclass(frozen=True, slots=True)
class _Task:
    storage: Storage
    file_slice: FileSlice
    is_visible: Callable[[str], bool]
    wanted: Wanted


@dataclass(frozen=True)
class MetadataPartition:
    """One partition as of the data table's timeline. Its records come as `RecordVersions`, each file group by itself.

    `slices`: the newest slice of each file group, by file id. `is_whole`: as of `ListedPartition`. `executor`: looks up
    in several file groups at once.
    """

    storage: Storage
    name: str
    slices: tuple[FileSlice, ...]
    is_visible: Callable[[str], bool]
    executor: Executor | None = None
    is_whole: bool = True

    @cached_property
    def groups(self) -> dict[str | None, list[FileSlice]]:
        """The newest slices in the order of their file groups, by data partition.

        Only a partitioned record index has data partitions; elsewhere the key is None.
        Raises: CorruptFile if a file group is missing, because keys are spread over all of them.
        """
        found: dict[str | None, dict[int, FileSlice]] = {}
        for file_slice in self.slices:
            parsed = MetadataGroupId.parse(file_slice.file_id, partition=self.name)
            if parsed is None:
                expected, hint = "ids of file groups of this partition", "Drop and rebuild this index."
                raise CorruptFile(self.name, 0, expected=expected, found=f"'{file_slice.file_id}'", hint=hint)
            found.setdefault(parsed.data_partition, {})[parsed.index] = file_slice

        for data_partition, file_slices in found.items():
            if sorted(file_slices) != list(range(len(file_slices))):
                where = self.name if data_partition is None else f"{self.name} of '{data_partition}'"
                indexes = ", ".join(str(index) for index in sorted(file_slices))
                expected = f"file groups 0 to {len(file_slices) - 1}"
                raise CorruptFile(where, 0, expected=expected, found=indexes, hint="Drop and rebuild this index.")

        return {one: [file_slices[index] for index in sorted(file_slices)] for one, file_slices in found.items()}

    def scan(self) -> Iterator[RecordVersions]:
        """Every record. Memory: the log's records of one file group, and a few megabytes."""
        for file_slice in self.slices:
            for part in open_slice(self.storage, file_slice, self.is_visible).read():
                if len(part):
                    yield part

    def lookup(
        self,
        keys: pa.Array | pa.ChunkedArray,
        *,
        data_partition: str | None = None,
        hashing: KeyHashing = KeyHashing.WHOLE,
    ) -> list[RecordVersions]:
        """The records of these keys. Each key is looked up in the one file group that may hold it.

        Memory: the keys, and the answer.
        """
        groups = self.groups.get(data_partition, [])
        distinct = pc.unique(keys).drop_null()
        if not len(distinct) or not groups:
            return []

        indexes = file_groups(distinct, len(groups), hashing=hashing)
        binary = distinct.cast(pa.binary())

        tasks: list[_Task] = []
        for index in np.unique(indexes).tolist():
            here = binary.filter(pa.array(indexes == index))
            wanted = Keys(here.take(pc.sort_indices(here)))
            tasks.append(_Task(self.storage, groups[index], self.is_visible, wanted))

        return self._run(tasks, len(distinct))

    def lookup_prefixes(
        self, prefixes: Iterable[str], *, hashing: KeyHashing = KeyHashing.WHOLE
    ) -> list[RecordVersions]:
        """The records whose keys begin with one of these prefixes.

        Looks into every file group if whole keys decide a record's group, else into the groups of the prefixes.
        """
        wanted = sorted(set(prefixes))
        if not wanted:
            return []

        every = [file_slice for file_slices in self.groups.values() for file_slice in file_slices]
        if hashing is KeyHashing.WHOLE:
            chosen = Prefixes(tuple(prefix.encode() for prefix in wanted))
            tasks = [_Task(self.storage, file_slice, self.is_visible, chosen) for file_slice in every]
            return self._run(tasks, len(wanted))

        indexes = file_groups(pa.array(wanted), len(every), hashing=hashing)
        by_group: dict[int, list[bytes]] = {}
        for index, prefix in zip(indexes.tolist(), wanted, strict=True):
            by_group.setdefault(index, []).append(prefix.encode())

        tasks = [
            _Task(self.storage, every[index], self.is_visible, Prefixes(tuple(some)))
            for index, some in by_group.items()
        ]
        return self._run(tasks, len(wanted))

    def _run(self, tasks: Sequence[_Task], count: int) -> list[RecordVersions]:
        """`count`: how many keys or prefixes all tasks look up."""
        is_quick = self.storage.location.is_near and count <= _QUICK_COUNT
        if self.executor is None or is_quick:
            found = [_look_up(task) for task in tasks]
        else:
            found = self.executor.run(_look_up, tasks)
        return [part for parts in found for part in parts if len(part)]


def open_partition(
    table: MetadataTable, name: str, data_timeline: Timeline, *, executor: Executor | None = None
) -> MetadataPartition:
    """One list request."""
    listed = table.list_partition(name)
    is_visible = block_filter(table, data_timeline)
    return MetadataPartition(table.storage, name, listed.slices, is_visible, executor, listed.is_whole)


def _look_up(task: _Task) -> list[RecordVersions]:
    return list(open_slice(task.storage, task.file_slice, task.is_visible).read(task.wanted))
