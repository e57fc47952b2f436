"""Which of several rows with the same key wins, computed over columns: within a batch, and against stored rows."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array


def latest_per_key(rows: pa.Table, *, key: str, order: Sequence[str]) -> pa.Table:
    """Keep one row a key: the greatest by `order`; on a tie, the one that arrived last.

    Shape: (n, c) -> (m, c), m = number of distinct keys. Rows keep their order. Returns `rows` itself if no key
    repeats. Memory: two int columns beside the input, and the output if a key repeats.
    """
    keys = rows.column(key)
    if pc.count_distinct(keys).as_py() == len(rows):
        return rows

    codes, _ = encode_keys(keys)
    columns = [pa.array(codes)]
    for name in order:
        column = comparable(rows.column(name))
        if column.null_count:
            columns.append(pc.is_valid(column))  # sorts nulls first in every release of Arrow
        columns.append(column)

    sortable = pa.table(columns, names=[str(at) for at in range(len(columns))])
    by = [(name, "ascending") for name in sortable.column_names]
    # The sort is stable: among equal ordering values, the row that arrived last stays last.
    permutation = pc.sort_indices(sortable, sort_keys=by).to_numpy()

    sorted_codes = codes[permutation]
    is_last = np.append(sorted_codes[1:] != sorted_codes[:-1], True)
    return rows.take(pa.array(np.sort(permutation[is_last])))


def encode_keys(keys: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """A number for each row that stands for its key, and the keys by number. Numbers follow the first appearance.

    Example: keys b, a, b give the numbers 0, 1, 0 and the keys b, a.
    Memory: a copy of the keys as one array: comparing keys across many chunks costs ten times as much.
    """
    piece = one_array(keys)
    if _ascends(piece):
        return np.arange(len(piece), dtype=np.int32), piece
    encoded = piece.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):  # keys of more than 2 GiB
        encoded = encoded.unify_dictionaries()
        return np.concatenate([np.asarray(chunk.indices) for chunk in encoded.chunks]), encoded.chunk(0).dictionary
    return np.asarray(encoded.indices), encoded.dictionary


def _ascends(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Whether the keys are ascending numbers, as the row positions of one block are. Then all are distinct."""
    if not pa.types.is_int64(keys.type) or keys.null_count or isinstance(keys, pa.ChunkedArray):
        return False
    numbers = keys.to_numpy()
    return bool((numbers[1:] > numbers[:-1]).all())


def match_rows(stored_keys: pa.Array | pa.ChunkedArray, incoming_keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """For each stored row the index of the incoming row with the same key, or -1.

    Shape: (n,) int32. `incoming_keys` are distinct. Stored keys may repeat (bulk inserted twice): each of them matches.
    Cost: the side with fewer rows is hashed, and the other side is looked up in the hash table.
    """
    if len(stored_keys) == len(incoming_keys) and one_array(stored_keys).equals(one_array(incoming_keys)):
        return np.arange(len(stored_keys), dtype=np.int32)
    if len(stored_keys) >= len(incoming_keys):
        found = pc.index_in(stored_keys, value_set=one_array(incoming_keys))
        return np.array(pc.fill_null(one_array(found), -1), dtype=np.int32)

    stored = one_array(stored_keys).dictionary_encode()
    found = one_array(pc.index_in(incoming_keys, value_set=stored.dictionary))
    incoming_of = np.full(len(stored.dictionary) + 1, -1, np.int32)  # the extra last entry is for null
    rows = np.flatnonzero(np.asarray(found.is_valid()))
    incoming_of[np.asarray(found.drop_null())] = rows
    return incoming_of[np.asarray(pc.fill_null(stored.indices, len(stored.dictionary)))]


def match_in_turn(stored_keys: pa.Array, incoming_keys: pa.Array) -> np.ndarray:
    """As `match_rows`, where keys may repeat on both sides: of equal keys the first match, then the second, and so on.

    No incoming row matches twice. Example: stored a, a, a and incoming a, b, a give 0, 2, -1.
    Memory: where keys repeat, a copy of the keys and some numbers for each row.
    """
    if are_distinct(stored_keys) and are_distinct(incoming_keys):
        return match_rows(stored_keys, incoming_keys)
    count = len(stored_keys)
    codes, _ = encode_keys(pa.chunked_array([stored_keys, incoming_keys]))
    stored, incoming = (one.astype(np.int64) * len(codes) + _turns(one) for one in (codes[:count], codes[count:]))
    return match_rows(pa.array(stored), pa.array(incoming))


def match_all(
    keys: pa.Array | pa.ChunkedArray, other_keys: pa.Array | pa.ChunkedArray
) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of rows with the same key, as two arrays of indices, ascending. Keys may repeat on both sides.

    Example: keys a, b, a and other keys c, a, a give 0, 0, 2, 2 and 1, 2, 1, 2.
    Memory: a copy of the keys and some numbers for each row and each pair.
    """
    codes, _ = encode_keys(pa.chunked_array([one_array(keys), one_array(other_keys)]))
    own, other = codes[: len(keys)], codes[len(keys) :]
    order = np.argsort(other, kind="stable")
    first, end = (np.searchsorted(other[order], own, side) for side in ("left", "right"))
    counts = end - first
    at = np.repeat(np.arange(len(own)), counts)
    turns = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    return at, order[np.repeat(first, counts) + turns]


def are_distinct(keys: pa.Array) -> bool:
    return bool(pc.count_distinct(keys).as_py() == len(keys))


def _turns(codes: np.ndarray) -> np.ndarray:
    """For each code, how many equal ones stand before it."""
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    turns = np.empty(len(codes), np.int64)
    turns[order] = np.arange(len(codes)) - np.searchsorted(sorted_codes, sorted_codes)
    return turns


def incoming_wins(incoming: Sequence[pa.Array], stored: Sequence[pa.Array]) -> np.ndarray:
    """For each incoming row, whether it wins over the stored row at the same position, by event-time ordering.

    It wins if its ordering values are not less than the stored ones, compared one after the other. Null counts as
    least, NaN as greatest. Spec: format/log-format.md section 6, EVENT_TIME_ORDERING.
    """
    assert len(incoming) == len(stored) >= 1
    wins = np.ones(len(incoming[0]), dtype=bool)
    for new, old in zip(map(comparable, reversed(incoming)), map(comparable, reversed(stored)), strict=True):
        new_is_null, old_is_null = np.asarray(pc.is_null(new)), np.asarray(pc.is_null(old))
        greater = np.asarray(pc.fill_null(pc.greater(new, old), False)) | (old_is_null & ~new_is_null)
        equal = np.asarray(pc.fill_null(pc.equal(new, old), False)) | (old_is_null & new_is_null)
        wins = greater | (equal & wins)
    return wins


def comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column for comparing. Floats become integers in the order of Java's `compare`: -0.0 before 0.0, NaN last."""
    if not pa.types.is_floating(column.type):
        return column
    values = one_array(column).cast(pa.float64())
    floats = values.to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(floats), np.nan, floats).view(np.int64)
    ordered = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return pa.array(ordered, pa.int64(), mask=np.asarray(pc.is_null(values)))
