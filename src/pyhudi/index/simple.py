"""The simple index: a key is where the newest base files of its partition say it is."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.names import join
from pyhudi.format.schema import META_FIELDS
from pyhudi.storage.protocol import Storage
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.parquet_files import open_parquet

RECORD_KEY = META_FIELDS[2]


@dataclass(frozen=True)
class Hits:
    """Where keys were found: row `rows[i]` of the partition's input has its key in file group `groups[i]`.

    Shape: both (hits,), rows ascending. A key that several groups hold (bulk inserted twice) is a hit in each.
    """

    rows: np.ndarray
    groups: np.ndarray


def locate_keys(
    storage: Storage,
    keys: Mapping[str, pa.Array],
    slices: Sequence[FileSlice],
    executor: Executor,
) -> dict[str, Hits]:
    """For each partition the hits of its keys; groups are positions in `slices`.

    `keys`: record keys by partition, as often as the input has them. Memory: the distinct keys, and the key
    column of one base file a worker. Spec: format/indexes.md section 2 (several hits of a key are all tagged).
    """
    encoded = {partition: of.dictionary_encode() for partition, of in keys.items()}

    def locate(at: int) -> np.ndarray:
        piece = slices[at]
        assert piece.base_file is not None
        path = join(piece.partition, piece.base_file.name.format())
        with closing(open_parquet(storage, path)) as file:
            stored = file.read([RECORD_KEY], use_threads=False).column(RECORD_KEY)
        found = pc.index_in(stored, value_set=encoded[piece.partition].dictionary)
        return np.unique(np.asarray(found.drop_null()))

    searched = [at for at, piece in enumerate(slices) if piece.partition in keys]
    numbers: dict[str, list[np.ndarray]] = {partition: [] for partition in keys}
    groups: dict[str, list[np.ndarray]] = {partition: [] for partition in keys}
    for at, found in zip(searched, executor.run(locate, searched), strict=True):
        numbers[slices[at].partition].append(found)
        groups[slices[at].partition].append(np.full(len(found), at, dtype=np.int32))
    return {
        partition: _hits_of_rows(np.asarray(of.indices), len(of.dictionary), numbers[partition], groups[partition])
        for partition, of in encoded.items()
    }


def _hits_of_rows(
    key_numbers: np.ndarray, key_count: int, numbers: Sequence[np.ndarray], groups: Sequence[np.ndarray]
) -> Hits:
    """From hits of distinct keys, a chunk a file group, to hits of rows."""
    of_key = np.concatenate([np.zeros(0, dtype=np.int64), *numbers])
    group = np.concatenate([np.zeros(0, dtype=np.int32), *groups])
    order = np.argsort(of_key, kind="stable")
    counts = np.bincount(of_key, minlength=key_count)
    starts = np.cumsum(counts) - counts
    per_row = counts[key_numbers]
    rows = np.repeat(np.arange(len(key_numbers)), per_row)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    return Hits(rows, group[order][starts[key_numbers[rows]] + nth])
