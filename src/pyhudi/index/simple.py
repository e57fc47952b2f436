"""The simple search: reads all keys of a base file."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.hits import FoundKeys, KeyBounds
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten, open_rows


@dataclass(frozen=True, slots=True)
class SimpleSearch:
    """Reads the key column of every base file.

    Memory: key columns of files with about as many rows as there are keys, or of one file.
    `as_written`: how the files hold their keys. Spec: format/indexes.md section 3.
    """

    as_written: AsWritten = TODAY

    @property
    def prunes(self) -> bool:
        return False

    def encode(self, keys: pa.Array) -> pa.DictionaryArray:
        return keys.dictionary_encode()

    def prepare(self, paths: Sequence[str]) -> "SimpleSearch":
        return self

    def find(self, storage: Storage, paths: Sequence[str], keys: pa.Array) -> Iterator[FoundKeys]:
        held: list[pa.ChunkedArray] = []
        for number, path in enumerate(paths, 1):
            with closing(open_rows(storage, path, as_written=self.as_written)) as file:
                held.append(file.read([RECORD_KEY]).column(RECORD_KEY))
            # A look-up hashes all input keys first. Looking up as many stored keys at a time keeps that worth its cost.
            if number == len(paths) or sum(map(len, held)) >= len(keys):
                yield from _find_together(held, keys)
                held = []

    def may_hold(self, storage: Storage, paths: Sequence[str], bounds: KeyBounds) -> list[bool]:
        return [True] * len(paths)


def _find_together(stored: Sequence[pa.ChunkedArray], keys: pa.Array) -> Iterator[FoundKeys]:
    """For each stored column, which of the keys it holds."""
    together = pa.chunked_array([chunk for column in stored for chunk in column.chunks], pa.string())
    found = pc.index_in(together, value_set=keys)
    start = 0
    for column in stored:
        of_column = one_array(found.slice(start, len(column)))
        yield FoundKeys.of(np.asarray(of_column.drop_null()), np.flatnonzero(np.asarray(of_column.is_valid())))
        start += len(column)
