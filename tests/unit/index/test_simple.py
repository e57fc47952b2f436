"""The simple search looks into several files at once: a key could be found in the neighbour of its file."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.simple import SimpleSearch
from pyhudi.storage.memory import MemoryStorage

KEYS = [f"k{number}" for number in range(8)]


@given(files=st.lists(st.lists(st.sampled_from(KEYS), max_size=6), max_size=9), keys=st.sets(st.sampled_from(KEYS)))
def test_each_file_has_the_keys_that_it_holds(files: list[list[str]], keys: set[str]) -> None:
    storage = MemoryStorage()
    for number, stored in enumerate(files):
        sink = io.BytesIO()
        pq.write_table(pa.table({RECORD_KEY: pa.array(stored, pa.string())}), sink)
        storage.put_new(f"{number}.parquet", sink.getvalue())
    encoded = SimpleSearch().encode(pa.array(sorted(keys), pa.string()))

    files_found = SimpleSearch().find(
        storage, [f"{number}.parquet" for number in range(len(files))], encoded.dictionary
    )

    found = list(files_found)
    names = [[encoded.dictionary[number].as_py() for number in of.numbers.tolist()] for of in found]
    assert [set(of) for of in names] == [keys & set(stored) for stored in files]
    for of, positions, stored in zip(names, (of.positions.tolist() for of in found), files, strict=True):
        assert positions == [stored.index(key) if stored.count(key) == 1 else -1 for key in of]
