"""Settling rows of one key by columns: within a batch, and against the row that is stored."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def latest_per_key(rows: pa.Table, *, key: str, order: Sequence[str]) -> pa.Table:
    """Keep one row a key: the greatest by `order`; on a tie, the one that arrived last.

    Shape: (n, c) -> (m, c), m = number of distinct keys; rows keep their order. `rows` itself when
    no key repeats. Memory: two int columns beside the input, and the output where a key repeats.
    """
    keys = rows.column(key)
    if pc.count_distinct(keys).as_py() == len(rows):
        return rows
    codes = keys.combine_chunks().dictionary_encode()
    codes = codes if isinstance(codes, pa.DictionaryArray) else codes.unify_dictionaries().combine_chunks()
    columns = [codes.indices]
    for name in order:
        column = _comparable(rows.column(name))
        if column.null_count:
            columns.append(pc.is_valid(column))  # sorts nulls first in every release of Arrow
        columns.append(column)
    sortable = pa.table(columns, names=[str(at) for at in range(len(columns))])
    by = [(name, "ascending") for name in sortable.column_names]
    # The sort is stable, so that of equal ordering values the last to arrive stays last.
    permutation = pc.sort_indices(sortable, sort_keys=by).to_numpy()
    sorted_codes = codes.indices.to_numpy()[permutation]
    is_last = np.append(sorted_codes[1:] != sorted_codes[:-1], True)
    return rows.take(pa.array(np.sort(permutation[is_last])))


def match_rows(stored_keys: pa.Array | pa.ChunkedArray, incoming_keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """For each stored row the index of the incoming row of its key, or -1.

    Shape: (n,) int32. `incoming_keys` are distinct. Stored keys may repeat (bulk inserted twice):
    each of them matches.
    """
    found = pc.index_in(stored_keys, value_set=_array(incoming_keys))
    return np.array(pc.fill_null(_array(found), -1), dtype=np.int32)


def incoming_wins(incoming: Sequence[pa.Array], stored: Sequence[pa.Array]) -> np.ndarray:
    """Whether each incoming row wins over the stored row at its side, by event-time ordering.

    Incoming wins iff its ordering values are not less than the stored ones, compared one after the
    other; null counts as least, NaN as greatest. Spec: format/log-format.md section 6, EVENT_TIME_ORDERING.
    """
    assert len(incoming) == len(stored) >= 1
    wins = np.ones(len(incoming[0]), dtype=bool)
    for new, old in zip(map(_comparable, reversed(incoming)), map(_comparable, reversed(stored)), strict=True):
        new_is_null, old_is_null = np.asarray(pc.is_null(new)), np.asarray(pc.is_null(old))
        greater = np.asarray(pc.fill_null(pc.greater(new, old), False)) | (old_is_null & ~new_is_null)
        equal = np.asarray(pc.fill_null(pc.equal(new, old), False)) | (old_is_null & new_is_null)
        wins = greater | (equal & wins)
    return wins


def _comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column; floating numbers as integers in the order of Java's `compare`: -0.0 before 0.0, NaN last."""
    if not pa.types.is_floating(column.type):
        return column
    values = _array(column).cast(pa.float64())
    floats = values.to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(floats), np.nan, floats).view(np.int64)
    ordered = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return pa.array(ordered, pa.int64(), mask=np.asarray(pc.is_null(values)))


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
