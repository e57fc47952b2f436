"""The simple search: the keys of a base file are all read."""

from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.schema import META_FIELDS
from pyhudi.index.hits import KeyBounds
from pyhudi.storage.protocol import Storage
from pyhudi.table.parquet_files import open_parquet

RECORD_KEY = META_FIELDS[2]


@dataclass(frozen=True, slots=True)
class SimpleSearch:
    """Memory: the key column of one base file. Spec: format/indexes.md section 3."""

    @property
    def prunes(self) -> bool:
        return False

    def encode(self, keys: pa.Array) -> pa.DictionaryArray:
        return keys.dictionary_encode()

    def find(self, storage: Storage, path: str, keys: pa.Array) -> np.ndarray:
        with closing(open_parquet(storage, path)) as file:
            stored = file.read([RECORD_KEY], use_threads=False).column(RECORD_KEY)
        found = pc.index_in(stored, value_set=keys)
        return np.unique(np.asarray(found.drop_null()))

    def may_hold(self, storage: Storage, path: str, bounds: KeyBounds) -> bool:
        return True
