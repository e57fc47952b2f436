"""A key could be of no part, or of two; or of another part where its column is a slice of a longer one."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format.keys.murmur import murmur2
from pyhudi.table.slices.key_parts import ALL_KEYS, KeyPart


@given(keys=st.lists(st.one_of(st.none(), st.text(max_size=9))), count=st.integers(2, 7), start=st.integers(0, 5))
def test_each_key_is_of_one_part(keys: list[str | None], count: int, start: int) -> None:
    column = pa.array(keys, pa.string()).slice(start)
    parts = [KeyPart(number, count).mask(column) for number in range(count)]
    hits = np.sum([part for part in parts if part is not None], axis=0)
    assert hits.tolist() == [int(key is not None) for key in keys[start:]]
    for number, part in enumerate(parts):
        assert part is not None
        for key, of_part in zip(column.to_pylist(), part.tolist(), strict=True):
            if of_part:
                data = np.frombuffer(key.encode(), np.uint8)
                assert np.uint32(murmur2(data, 0x9747B28C) & 0xFFFFFFFF) % count == number


def test_one_part_takes_every_key() -> None:
    assert ALL_KEYS.mask(pa.array(["a"])) is None
