"""New rows of a partition by ranges of their keys: which rows share a file group."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def split_by_key(keys: pa.Array, bins: Sequence[tuple[int, int]]) -> Iterator[tuple[int, np.ndarray]]:
    """For each task its number and its rows' numbers, ascending. The keys of two tasks do not overlap.

    `bins`: (task number, planned rows), whose counts add up to the rows. Rows of one key stay together, so a task may
    get more rows than planned, or none. Order: of keys, by their UTF-8 bytes, as Spark sorts them.
    Memory: the keys twice, and some numbers a row.
    """
    assert sum(count for _, count in bins) == len(keys)
    order = np.asarray(pc.sort_indices(keys))
    ends = key_edges(keys.take(pa.array(order)), np.cumsum([count for _, count in bins]))

    start = 0
    for (task, _), end in zip(bins, ends.tolist(), strict=True):
        if end > start:
            yield task, np.sort(order[start:end])
        start = end


def key_edges(sorted_keys: pa.Array, ends: np.ndarray) -> np.ndarray:
    """Each end, moved on to where the next key begins.

    Example: for keys a, a, b the end 1 becomes 2. Shape: as `ends`.
    """
    count = len(sorted_keys)
    if count == 0:
        return ends

    is_new = np.asarray(pc.not_equal(sorted_keys.slice(1), sorted_keys.slice(0, count - 1)))
    edges = np.append(np.flatnonzero(is_new) + 1, count)
    return edges[np.searchsorted(edges, np.minimum(ends, count))]
