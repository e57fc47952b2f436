"""Indexes without storage of their own: a key is where the newest base files say it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.names import join
from pyhudi.index.hits import FoundKeys, Hits, KeyBounds
from pyhudi.storage.protocol import Storage
from pyhudi.table.file_system_view import FileSlice

_WHOLE_TABLE = ""
_SEARCHED_TOGETHER_MAX = 64
_PIECES = 32


class KeySearch(Protocol):
    """How base files are searched."""

    @property
    def prunes(self) -> bool:
        """Whether `may_hold` may say no."""

    def encode(self, keys: pa.Array) -> pa.DictionaryArray:
        """The keys as numbers of distinct ones, in the order in which `find` wants those."""

    def prepare(self, paths: Sequence[str]) -> Self:
        """The search, once it knows what is told of these files together: all that it will be asked for."""

    def find(self, storage: Storage, paths: Sequence[str], keys: pa.Array) -> Iterator[FoundKeys]:
        """For each file which of the distinct keys it holds."""

    def may_hold(self, storage: Storage, paths: Sequence[str], bounds: KeyBounds) -> list[bool]:
        """For each file whether it may hold one of the keys, by what is cheap to know."""


@dataclass(frozen=True, slots=True)
class BaseFileIndex:
    """Keys are looked up in the base files themselves.

    `is_global`: every key in the files of all partitions, otherwise in those of its own.
    Memory: the distinct keys, and what one search a worker holds.
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
            return self._locate(storage, keys, slices, [piece.partition for piece in slices], executor)
        together = pa.concat_arrays(list(keys.values())) if keys else pa.array([], pa.string())
        found = self._locate(storage, {_WHOLE_TABLE: together}, slices, [_WHOLE_TABLE] * len(slices), executor)
        return _by_partition(found[_WHOLE_TABLE], {partition: len(of) for partition, of in keys.items()})

    def candidates(
        self, storage: Storage, bounds: Mapping[str, KeyBounds], slices: Sequence[FileSlice], executor: Executor
    ) -> list[int]:
        if not bounds:
            return []
        whole = _together(list(bounds.values())) if self.is_global else None
        scopes = [_WHOLE_TABLE if self.is_global else piece.partition for piece in slices]
        asked = [at for at, piece in enumerate(slices) if self.is_global or piece.partition in bounds]
        search = self.search.prepare([_path(slices[at]) for at in asked])

        def may_hold(some: Sequence[int]) -> list[bool]:
            of = whole or bounds[scopes[some[0]]]
            return search.may_hold(storage, [_path(slices[at]) for at in some], of)

        pieces = _in_pieces(asked, scopes)
        found = zip(pieces, executor.run(may_hold, pieces), strict=True)
        return sorted(at for some, of in found for at, may in zip(some, of, strict=True) if may)

    def _locate(
        self,
        storage: Storage,
        keys: Mapping[str, pa.Array],
        slices: Sequence[FileSlice],
        scopes: Sequence[str],
        executor: Executor,
    ) -> dict[str, Hits]:
        """`keys` by scope; `scopes`: for each slice the scope whose keys it may hold."""
        asked = [at for at, scope in enumerate(scopes) if scope in keys]
        search = self.search.prepare([_path(slices[at]) for at in asked])
        encoded = {scope: search.encode(of) for scope, of in keys.items()}

        def find(some: Sequence[int]) -> list[FoundKeys]:
            paths = [_path(slices[at]) for at in some]
            return list(search.find(storage, paths, encoded[scopes[some[0]]].dictionary))

        searched = _in_pieces(asked, scopes)
        found_in: dict[str, list[tuple[int, FoundKeys]]] = {scope: [] for scope in keys}
        for some, of in zip(searched, executor.run(find, searched), strict=True):
            for at, found in zip(some, of, strict=True):
                found_in[scopes[at]].append((at, found))
        return {
            scope: _hits_of_rows(np.asarray(of.indices), len(of.dictionary), found_in[scope])
            for scope, of in encoded.items()
        }


def _in_pieces(searched: Sequence[int], scopes: Sequence[str]) -> list[list[int]]:
    """Slices of one scope each, so many that they are worth a look together and few enough to share between threads."""
    most = min(_SEARCHED_TOGETHER_MAX, max(1, len(searched) // _PIECES))
    by_scope: dict[str, list[int]] = {}
    for at in searched:
        by_scope.setdefault(scopes[at], []).append(at)
    return [of[start : start + most] for of in by_scope.values() for start in range(0, len(of), most)]


def _path(piece: FileSlice) -> str:
    assert piece.base_file is not None
    return join(piece.partition, piece.base_file.name.format())


def _together(bounds: Sequence[KeyBounds]) -> KeyBounds:
    keys = [of.keys for of in bounds if of.keys is not None]
    return KeyBounds(
        low=min(of.low for of in bounds),
        high=max(of.high for of in bounds),
        keys=pa.concat_arrays(keys) if len(keys) == len(bounds) else None,
    )


def _by_partition(hits: Hits, rows: Mapping[str, int]) -> dict[str, Hits]:
    """Hits of the rows of all partitions, one after the other, as hits of each partition's."""
    ends = np.cumsum([0, *rows.values()])
    cuts = np.searchsorted(hits.rows, ends)
    return {
        partition: Hits(hits.rows[part] - ends[n], hits.groups[part], hits.positions[part])
        for n, partition in enumerate(rows)
        for part in [slice(cuts[n], cuts[n + 1])]
    }


def _hits_of_rows(key_numbers: np.ndarray, key_count: int, found: Sequence[tuple[int, FoundKeys]]) -> Hits:
    """From distinct keys found, by file group, to hits of rows."""
    of_key = np.concatenate([np.zeros(0, dtype=np.int64), *(keys.numbers for _, keys in found)])
    position = np.concatenate([np.zeros(0, dtype=np.int64), *(keys.positions for _, keys in found)])
    group = np.repeat(
        np.array([at for at, _ in found], dtype=np.int32), np.array([len(keys.numbers) for _, keys in found], dtype=int)
    )
    order = np.argsort(of_key, kind="stable")
    counts = np.bincount(of_key, minlength=key_count)
    starts = np.cumsum(counts) - counts
    per_row = counts[key_numbers]
    rows = np.repeat(np.arange(len(key_numbers)), per_row)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    hit = order[starts[key_numbers[rows]] + nth]
    return Hits(rows, group[hit], position[hit])
