"""Merges the column statistics records of a key.

Spec: format/metadata-table.md section 9. Seen: a key holds the file's name. So only two things are ever merged: the
statistics of the growing logs of table version 6, and statistics of partitions that are not tight.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.stats import STATS_COLUMNS
from pyhudi.format.metadata.stats_values import comparable_values

_SUMMED: Final = ("value_count", "null_count", "total_size", "total_uncompressed_size")

Numbers = npt.NDArray[np.int64]


def merge_column_stats(stats: pa.Table) -> pa.Table:
    """One row a key, from rows of `key` and `STATS_COLUMNS`, oldest first. Tombstones are included. Order: by key.

    A row replaces the earlier rows of its key if it is a tombstone, follows a tombstone, or has tight bounds. Otherwise
    bounds widen and counts add up. Example: the bounds 1 to 5 and 3 to 9 become 1 to 9.

    Bounds of two different kinds become no bounds, which is true of any column. So do bounds merged with a row whose
    bounds are not known. A row that counts only nulls has no bounds to add.
    """
    rows = stats.append_column("row", pa.array(np.arange(len(stats))))
    rows = rows.take(pc.sort_indices(rows, sort_keys=[("key", "ascending"), ("row", "ascending")])).drop_columns("row")
    if not len(rows):
        return rows

    rows = rows.combine_chunks()
    keys = one_array(rows["key"])
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)

    deleted, tight = (one_array(rows[name]).to_numpy(zero_copy_only=False) for name in ("is_deleted", "is_tight_bound"))
    starts_anew = is_first | deleted | tight | np.concatenate([[False], deleted[:-1]])
    runs = np.flatnonzero(starts_anew)
    run_of = np.cumsum(starts_anew) - 1

    last = np.append(np.flatnonzero(is_first)[1:] - 1, len(rows) - 1)
    merged = rows.take(pa.array(last))
    for name in _SUMMED:
        numbers = one_array(rows[name]).fill_null(0).to_numpy()
        sums = np.add.reduceat(numbers, runs)[run_of[last]]
        is_alone = runs[run_of[last]] == last
        column = pc.if_else(pa.array(is_alone), one_array(merged[name]), pa.array(sums))
        merged = merged.set_column(merged.schema.get_field_index(name), name, column)

    for side in ("min", "max"):
        merged = _with_bounds(merged, rows, side, run_of, run_of[last])
    return merged


def _with_bounds(merged: pa.Table, rows: pa.Table, side: str, run_of: Numbers, wanted: Numbers) -> pa.Table:
    """The merged rows, with the bounds of a whole run instead of the bounds of its last row."""
    chosen = _extreme_rows(rows, side, run_of)
    take = pa.array(chosen[wanted], mask=chosen[wanted] < 0)
    nothing = {"kind": 0, "bits": 0, "bytes": b""}
    for part, empty in nothing.items():
        name = f"{side}_{part}"
        column = one_array(rows[name]).take(take).fill_null(pa.scalar(empty, STATS_COLUMNS.field(name).type))
        merged = merged.set_column(merged.schema.get_field_index(name), STATS_COLUMNS.field(name), column)
    return merged


def _extreme_rows(rows: pa.Table, side: str, run_of: Numbers) -> Numbers:
    """For each run, the row with the run's bound; -1 for a run with no bound, or with bounds of different kinds."""
    kinds = one_array(rows[f"{side}_kind"]).to_numpy()
    types = one_array(rows["value_type"]).fill_null(0).to_numpy()
    infos = one_array(rows["value_type_info"]).dictionary_encode()
    classes = kinds.astype(np.int64) << 48 | types.astype(np.int64) << 32
    classes |= infos.indices.fill_null(-1).to_numpy().astype(np.int64) + 1

    # Ranks put the values of a class in order; values of two classes are never compared.
    ranks = np.zeros(len(rows), np.int64)
    for one in np.unique(classes[kinds != 0]):
        members = np.flatnonzero((classes == one) & (kinds != 0))
        part = rows.take(pa.array(members))
        values = comparable_values(part, side)
        if values is None:
            classes[members] = -1 - members  # lists do not compare: each is a class of its own
            continue
        ranks[members] = pc.rank(values, tiebreaker="min").to_numpy()

    held = np.flatnonzero(kinds != 0)
    order = held[np.lexsort((ranks[held], run_of[held]))]
    found = np.full(int(run_of[-1]) + 1, -1, np.int64)

    runs = run_of[order]
    edge = np.searchsorted(runs, np.arange(len(found)), "left" if side == "min" else "right") - (side == "max")
    has_any = np.isin(np.arange(len(found)), runs)
    found[has_any] = order[edge[has_any]]

    # A run with bounds of two classes has no bound, and a run with unknown bounds has none.
    low, high = np.full(len(found), np.iinfo(np.int64).max), np.full(len(found), np.iinfo(np.int64).min)
    np.minimum.at(low, run_of[held], classes[held])
    np.maximum.at(high, run_of[held], classes[held])
    found[has_any & (low != high)] = -1
    found[run_of[_is_unknown(rows, kinds)]] = -1
    return found


def _is_unknown(rows: pa.Table, kinds: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Flags of the rows without a bound, although they count values that are not null."""
    is_empty = pc.fill_null(pc.equal(one_array(rows["null_count"]), one_array(rows["value_count"])), False)
    return (kinds == 0) & ~is_empty.to_numpy(zero_copy_only=False)
