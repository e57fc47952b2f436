"""Look-ups in file groups that a pending compaction will rewrite: what counts is what their new base files will hold.

The new base file lacks a key that a log had deleted before the compaction was planned. A row with this key that is
appended now would be in a log only, where no later look-up in base files finds it. A key deleted since the plan will be
in the new base file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.hits import Hits, Index, KeyBounds
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.merged_slice import SliceReader
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.pending import FileGroup


@dataclass(frozen=True, slots=True)
class CompactingIndex:
    """An index for a table with pending compactions.

    `planned`: for each file group, the logs that its compaction takes.
    Memory: as `index`, and the keys of one such slice. Requests: its base file and the plan's logs.
    """

    index: Index
    planned: Mapping[FileGroup, frozenset[str]]
    reader: SliceReader

    @property
    def is_global(self) -> bool:
        return self.index.is_global

    @property
    def prunes(self) -> bool:
        return self.index.prunes

    @property
    def is_exact(self) -> bool:
        return False

    def locate(
        self, storage: Storage, keys: Mapping[str, pa.Array], slices: Sequence[FileSlice], executor: Executor
    ) -> dict[str, Hits]:
        others, taken = split_compacting(slices, self.planned)
        found = self.index.locate(storage, keys, [slices[at] for at in others], executor)
        numbers = np.array(others, dtype=np.int32)
        parts = {path: [_at(hits, numbers)] for path, hits in found.items()}

        def look(at: int) -> dict[str, np.ndarray]:
            file_slice = as_planned(slices[at], self.planned)
            stored = one_array(self.reader.rows(storage, file_slice, [RECORD_KEY]).column(RECORD_KEY))
            scopes = keys if self.is_global else [path for path in keys if path == file_slice.partition]
            return {path: np.flatnonzero(np.asarray(pc.is_in(keys[path], value_set=stored))) for path in scopes}

        for at, by_path in zip(taken, executor.run(look, taken), strict=True):
            for path, rows in by_path.items():
                none = np.full(len(rows), -1)
                parts.setdefault(path, []).append(Hits(rows, np.full(len(rows), at, dtype=np.int32), none))
        return {path: _together(hits) for path, hits in parts.items()}

    def candidates(
        self, storage: Storage, bounds: Mapping[str, KeyBounds], slices: Sequence[FileSlice], executor: Executor
    ) -> list[int]:
        others, taken = split_compacting(slices, self.planned)
        found = self.index.candidates(storage, bounds, [slices[at] for at in others], executor)
        return sorted([*(others[at] for at in found), *taken])


def split_compacting(
    slices: Sequence[FileSlice], planned: Mapping[FileGroup, frozenset[str]]
) -> tuple[list[int], list[int]]:
    """Positions of the slices that no pending compaction rewrites, and of those that one does."""
    others: list[int] = []
    taken: list[int] = []
    for at, file_slice in enumerate(slices):
        (taken if (file_slice.partition, file_slice.file_id) in planned else others).append(at)
    return others, taken


def as_planned(file_slice: FileSlice, planned: Mapping[FileGroup, frozenset[str]]) -> FileSlice:
    """The slice as its pending compaction sees it: only with the logs that the plan names."""
    names = planned[file_slice.partition, file_slice.file_id]
    return replace(file_slice, log_files=tuple(log for log in file_slice.log_files if log.name.format() in names))


def _at(hits: Hits, numbers: np.ndarray) -> Hits:
    return Hits(hits.rows, numbers[hits.groups], hits.positions)


def _together(parts: Sequence[Hits]) -> Hits:
    rows = np.concatenate([hits.rows for hits in parts])
    order = np.argsort(rows, kind="stable")
    groups = np.concatenate([hits.groups for hits in parts])
    positions = np.concatenate([hits.positions for hits in parts])
    return Hits(rows[order], groups[order], positions[order])
