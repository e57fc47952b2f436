"""The simple index: a key is where the newest base files of its partition say it is."""

from collections.abc import Sequence
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
NOT_FOUND = -1


@dataclass(frozen=True)
class KeysOfPartition:
    """The input's record keys in one partition; `rows`: which rows of the input they are."""

    keys: pa.Array
    rows: np.ndarray


def locate_keys(
    storage: Storage,
    keys: dict[str, KeysOfPartition],
    slices: Sequence[FileSlice],
    rows: int,
    executor: Executor,
) -> np.ndarray:
    """For each input row the position in `slices` of the file group that holds its key, or -1.

    Shape: (rows,) int32. A key that several groups hold (bulk inserted twice) is found in the last of
    them. Memory: the key column of one base file a worker.
    """
    found = np.full(rows, NOT_FOUND, dtype=np.int32)

    def locate(at: int) -> tuple[int, np.ndarray]:
        piece = slices[at]
        assert piece.base_file is not None
        incoming = keys[piece.partition]
        path = join(piece.partition, piece.base_file.name.format())
        with closing(open_parquet(storage, path)) as file:
            stored = file.read([RECORD_KEY], use_threads=False).column(RECORD_KEY)
        is_here = pc.is_in(incoming.keys, value_set=pc.unique(stored))
        return at, incoming.rows[np.asarray(is_here)]

    for at, hit in executor.run(locate, [at for at, piece in enumerate(slices) if piece.partition in keys]):
        found[hit] = at
    return found
