"""Indexes without storage of their own: a key is in the file group whose newest base file holds it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.names import join
from pyhudi.index.hits import FoundKeys, Hits, KeyBounds, hits_of_rows
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice

_WHOLE_TABLE = ""
_SEARCHED_TOGETHER_MAX = 64
_PIECES = 32


class KeySearch(Protocol):
    """A way to search base files for keys."""

    @property
    def prunes(self) -> bool:
        """Whether `may_hold` ever says no."""

    def encode(self, keys: pa.Array) -> pa.DictionaryArray:
        """The keys as numbers of distinct keys. The distinct keys are in the order that `find` needs."""

    def prepare(self, paths: Sequence[str]) -> Self:
        """The search for these files, with what is known about them all. Later calls ask about these files only."""

    def find(self, storage: Storage, paths: Sequence[str], keys: pa.Array) -> Iterator[FoundKeys]:
        """For each file, which of the distinct keys it holds."""

    def may_hold(self, storage: Storage, paths: Sequence[str], bounds: KeyBounds) -> list[bool]:
        """For each file, whether it may hold one of the keys, as far as is cheap to know."""


@dataclass(frozen=True, slots=True)
class BaseFileIndex:
    """Looks keys up in the base files themselves.

    `is_global`: looks for every key in the files of all partitions, not only of the key's own.
    Memory: the distinct keys, and what one search holds for each worker.
    """

    search: KeySearch
    is_global: bool

    @property
    def prunes(self) -> bool:
        return self.search.prunes

    @property
    def is_exact(self) -> bool:
        return False

    def locate(
        self, storage: Storage, keys: Mapping[str, pa.Array], slices: Sequence[FileSlice], executor: Executor
    ) -> dict[str, Hits]:
        if not self.is_global:
            return self._locate(storage, keys, slices, [file_slice.partition for file_slice in slices], executor)
        together = pa.concat_arrays(list(keys.values())) if keys else pa.array([], pa.string())
        found = self._locate(storage, {_WHOLE_TABLE: together}, slices, [_WHOLE_TABLE] * len(slices), executor)
        return _by_partition(
            found[_WHOLE_TABLE], {partition: len(partition_keys) for partition, partition_keys in keys.items()}
        )

    def candidates(
        self, storage: Storage, bounds: Mapping[str, KeyBounds], slices: Sequence[FileSlice], executor: Executor
    ) -> list[int]:
        if not bounds:
            return []
        whole = _together(list(bounds.values())) if self.is_global else None
        scopes = [_WHOLE_TABLE if self.is_global else file_slice.partition for file_slice in slices]
        asked = [at for at, file_slice in enumerate(slices) if self.is_global or file_slice.partition in bounds]
        search = self.search.prepare([_path(slices[at]) for at in asked])

        def may_hold(some: Sequence[int]) -> list[bool]:
            scope_bounds = whole or bounds[scopes[some[0]]]
            return search.may_hold(storage, [_path(slices[at]) for at in some], scope_bounds)

        pieces = _in_pieces(asked, scopes)
        found = zip(pieces, executor.run(may_hold, pieces), strict=True)
        return sorted(at for some, answers in found for at, may in zip(some, answers, strict=True) if may)

    def _locate(
        self,
        storage: Storage,
        keys: Mapping[str, pa.Array],
        slices: Sequence[FileSlice],
        scopes: Sequence[str],
        executor: Executor,
    ) -> dict[str, Hits]:
        """`keys`: by scope, a partition or the whole table.

        `scopes`: for each slice, the scope whose keys it may hold.
        """
        asked = [at for at, scope in enumerate(scopes) if scope in keys]
        search = self.search.prepare([_path(slices[at]) for at in asked])
        encoded = {scope: search.encode(scope_keys) for scope, scope_keys in keys.items()}

        def find(some: Sequence[int]) -> list[FoundKeys]:
            paths = [_path(slices[at]) for at in some]
            return list(search.find(storage, paths, encoded[scopes[some[0]]].dictionary))

        searched = _in_pieces(asked, scopes)
        found_in: dict[str, list[tuple[int, FoundKeys]]] = {scope: [] for scope in keys}
        for some, found_keys in zip(searched, executor.run(find, searched), strict=True):
            for at, found in zip(some, found_keys, strict=True):
                found_in[scopes[at]].append((at, found))
        return {
            scope: _hits_of_rows(np.asarray(scope_keys.indices), len(scope_keys.dictionary), found_in[scope])
            for scope, scope_keys in encoded.items()
        }


def _in_pieces(searched: Sequence[int], scopes: Sequence[str]) -> list[list[int]]:
    """The slices in pieces of one scope: large enough to be worth a look-up, small enough to share among threads."""
    most = min(_SEARCHED_TOGETHER_MAX, max(1, len(searched) // _PIECES))
    by_scope: dict[str, list[int]] = {}
    for at in searched:
        by_scope.setdefault(scopes[at], []).append(at)
    return [
        scope_slices[start : start + most]
        for scope_slices in by_scope.values()
        for start in range(0, len(scope_slices), most)
    ]


def _path(file_slice: FileSlice) -> str:
    assert file_slice.base_file is not None
    return join(file_slice.partition, file_slice.base_file.name.format())


def _together(bounds: Sequence[KeyBounds]) -> KeyBounds:
    keys = [bound.keys for bound in bounds if bound.keys is not None]
    return KeyBounds(
        low=min(bound.low for bound in bounds),
        high=max(bound.high for bound in bounds),
        keys=pa.concat_arrays(keys) if len(keys) == len(bounds) else None,
    )


def _by_partition(hits: Hits, rows: Mapping[str, int]) -> dict[str, Hits]:
    """Splits hits of the rows of all partitions, numbered one after the other, into the hits of each partition."""
    ends = np.cumsum([0, *rows.values()])
    cuts = np.searchsorted(hits.rows, ends)
    return {
        partition: Hits(hits.rows[part] - ends[n], hits.groups[part], hits.positions[part])
        for n, partition in enumerate(rows)
        for part in [slice(cuts[n], cuts[n + 1])]
    }


def _hits_of_rows(key_numbers: np.ndarray, key_count: int, found: Sequence[tuple[int, FoundKeys]]) -> Hits:
    """Turns distinct keys found in file groups into hits of input rows."""
    of_key = np.concatenate([np.zeros(0, dtype=np.int64), *(keys.numbers for _, keys in found)])
    position = np.concatenate([np.zeros(0, dtype=np.int64), *(keys.positions for _, keys in found)])
    group = np.repeat(
        np.array([at for at, _ in found], dtype=np.int32), np.array([len(keys.numbers) for _, keys in found], dtype=int)
    )

    return hits_of_rows(key_numbers, key_count, of_key, group, position)
