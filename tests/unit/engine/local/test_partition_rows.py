"""Rows of a partition gathered from a table: the risk is a row lost, doubled or out of place where chunks meet."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.engine.local.partition_rows import PartitionRows

RECORD_KEY = "_hoodie_record_key"


@settings(deadline=None, max_examples=60)
@given(
    chunks=st.lists(st.integers(0, 6_000), min_size=1, max_size=8),
    share=st.sampled_from([0.02, 0.3, 0.9, 1.0]),
    seed=st.integers(0, 100),
)
def test_gathered_rows_are_the_chosen_ones_in_order(chunks: list[int], share: float, seed: int) -> None:
    count = sum(chunks)
    keys = pa.array([f"k{number}" for number in range(count)], pa.string())
    ends = np.cumsum([0, *chunks]).tolist()
    pieces = [keys.slice(start, stop - start) for start, stop in pairwise(ends)]
    numbers = pa.chunked_array([pa.array(range(count), pa.int64())])  # in one chunk, whatever the other is in
    table = pa.table({RECORD_KEY: pa.chunked_array(pieces, pa.string()), "n": numbers})
    chosen = np.flatnonzero(np.random.default_rng(seed).random(count) < share)
    batches = list(PartitionRows(table, RECORD_KEY, chosen).batches(np.arange(len(chosen))))
    found = pa.Table.from_batches(batches, table.schema) if batches else table.slice(0, 0)
    assert found.column("n").to_pylist() == chosen.tolist()
    assert found.column(RECORD_KEY).to_pylist() == [f"k{number}" for number in chosen.tolist()]


@pytest.mark.parametrize("chunk_rows", [7, 5_000])
def test_rows_in_small_chunks_come_in_few_batches(chunk_rows: int) -> None:
    """Each batch costs what follows some 0.1 ms: of a thousand partitions, rows in files lie in small chunks."""
    count = 20_000
    table = pa.table({RECORD_KEY: [f"k{number}" for number in range(count)], "n": range(count)})
    chunked = pa.Table.from_batches(table.to_batches(max_chunksize=chunk_rows))

    batches = list(PartitionRows(chunked, RECORD_KEY).batches_between(3, count - 5))

    assert pa.Table.from_batches(batches).equals(table.slice(3, count - 8))
    assert len(batches) <= 4
