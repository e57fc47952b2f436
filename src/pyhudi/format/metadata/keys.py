"""Makes the keys of the metadata table's records from columns, and finds the file group of each key.

Names of columns, partitions and files are given as a column of texts, or as one text for all rows.
Cost: 20 to 300 ns a key. Memory: the keys.

Spec: format/metadata-table.md sections 4 and 5.
"""

from enum import Enum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.format.arrow_arrays import Bytes, Offsets, key_buffers, one_array
from pyhudi.format.keys.bucket_hash import text_hashes
from pyhudi.format.metadata.hashes import long_hashes, short_hashes
from pyhudi.format.metadata.record import ROOT_PARTITION_KEY, files_key
from pyhudi.loops import loop

Texts: TypeAlias = pa.Array | pa.ChunkedArray | str

PARTITION_STATS_MARK: Final = "__partition_stat__"
"""Marks the keys of whole partitions' records in an expression index, where files' records have no mark."""

SECONDARY_NULL: Final = "\0"
"""The text that stands for a null value in a secondary key."""

_WHAT: Final = "metadata table"
_ESCAPE, _SEPARATOR = ord("\\"), ord("$")
_ESCAPED: Final = ("\\", "$", "\0")


class KeyHashing(Enum):
    """The part of a key whose hash picks the file group."""

    WHOLE = "the key"
    SECONDARY_PREFIX = "a secondary key up to its separator, that included: index definitions of version V2"


def column_stats_keys(columns: Texts, partitions: Texts, files: Texts) -> pa.StringArray:
    """Keys of column statistics, also in an expression index. `files`: file names without a directory."""
    return _joined(columns, _partitions(partitions), long=files)


def column_stats_prefixes(columns: Texts, partitions: Texts | None = None) -> pa.StringArray:
    """The prefix of all keys of a column's statistics, or of a column's statistics in one partition."""
    return _joined(columns) if partitions is None else partition_stats_keys(columns, partitions)


def partition_stats_keys(columns: Texts, partitions: Texts) -> pa.StringArray:
    """Keys of the statistics of whole partitions."""
    return _joined(columns, _partitions(partitions))


def expression_partition_stats_keys(columns: Texts, partitions: Texts) -> pa.StringArray:
    """Keys of an expression index's statistics of whole partitions."""
    return _joined(columns, PARTITION_STATS_MARK, _partitions(partitions))


def bloom_filter_keys(partitions: Texts, files: Texts) -> pa.StringArray:
    """Keys of Bloom filters, also in an expression index. `files`: names of base files, without a directory."""
    return _joined(_partitions(partitions), long=files)


def secondary_keys(values: pa.Array | pa.ChunkedArray, record_keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Keys of a secondary index. `values`: the column's values as Java spells them; nulls are allowed.

    Shape: (n,) and (n,) text -> (n,) text.
    """
    return pc.binary_join_element_wise(_escaped(values), _escaped(record_keys), "$")


def secondary_prefixes(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The prefix of all keys of a value: the value's escaped text and the separator."""
    return pc.binary_join_element_wise(_escaped(values), "", "$")


def split_secondary_keys(keys: pa.Array | pa.ChunkedArray) -> tuple[pa.StringArray, pa.StringArray]:
    """The values, nulls included, and the record keys that are in a secondary index's keys.

    Raises: CorruptFile for a key without a separator.
    """
    array = one_array(keys).cast(pa.string())
    (values, value_ends), (record_keys, record_ends) = _split(array)
    value_column = _strings(value_ends, values)
    is_null = np.zeros(len(array), np.bool_)
    for data, offsets, _ in key_buffers(array, what=_WHAT):
        _find_nulls(data, offsets, is_null)
    if is_null.any():
        value_column = pc.if_else(pa.array(~is_null), value_column, None)
    return value_column, _strings(record_ends, record_keys)


def file_groups(
    keys: pa.Array | pa.ChunkedArray, group_count: int, *, hashing: KeyHashing = KeyHashing.WHOLE
) -> npt.NDArray[np.int32]:
    """For each key, the index of its file group among the `group_count` of the metadata partition.

    In a partitioned record index, `group_count` counts only the groups of the key's data partition.
    Shape: (n,) text -> (n,). Raises: Invalid for a null key, or text that is no UTF-8.
    """
    assert group_count >= 1
    if group_count == 1:
        return np.zeros(len(keys), np.int32)
    hashed = _prefixes(one_array(keys)) if hashing is KeyHashing.SECONDARY_PREFIX else keys
    hashes = text_hashes(hashed, what=_WHAT).astype(np.int64)
    return (np.abs(hashes) % group_count).astype(np.int32)


# Keys of hashes: all keys of a column have the same size.


def _partitions(partitions: Texts) -> Texts:
    if isinstance(partitions, str):
        return files_key(partitions)
    return pc.if_else(pc.equal(partitions, ""), ROOT_PARTITION_KEY, partitions)


def _joined(*parts: Texts, long: Texts | None = None) -> pa.StringArray:
    hashed = [_hashed(part, is_long=False) for part in parts]
    if long is not None:
        hashed.append(_hashed(long, is_long=True))
    counts = {len(part) for part in (*parts, long) if part is not None and not isinstance(part, str)}
    assert len(counts) <= 1
    count = counts.pop() if counts else 1

    width = sum(block.shape[1] for block in hashed)
    out = np.empty((count, width), np.uint8)
    at = 0
    for block in hashed:
        out[:, at : at + block.shape[1]] = block
        at += block.shape[1]

    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    return _strings(offsets, out.reshape(-1))


def _hashed(part: Texts, *, is_long: bool) -> npt.NDArray[np.uint8]:
    hashes = long_hashes if is_long else short_hashes
    return hashes(pa.array([part])) if isinstance(part, str) else hashes(part)


def _strings(offsets: npt.NDArray[np.int32], data: Bytes) -> pa.StringArray:
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


# Secondary keys.


def _escaped(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = one_array(texts)
    for mark in _ESCAPED:
        array = pc.replace_substring(array, mark, f"\\{mark}")
    return pc.fill_null(array, SECONDARY_NULL) if array.null_count else array


def _prefixes(keys: pa.Array) -> pa.StringArray:
    """Each secondary key up to its separator, still escaped."""
    array = keys.cast(pa.string())
    ends = np.zeros(len(array), np.int64)
    for data, offsets, _ in key_buffers(array, what=_WHAT):
        _find_separators(data, offsets, ends)
        _check_separators(array, ends)
        starts = np.asarray(offsets[:-1], np.int64)
        made = np.zeros(len(array) + 1, np.int64)
        np.cumsum(ends + 1 - starts, out=made[1:])
        out = np.empty(int(made[-1]), np.uint8)
        _copy_ranges(data, starts, ends + 1, out)
        return _strings(made.astype(np.int32), out)
    return array


def _split(array: pa.StringArray) -> tuple[tuple[Bytes, npt.NDArray[np.int32]], tuple[Bytes, npt.NDArray[np.int32]]]:
    """Values and record keys, both without escapes: the bytes of each, and the offsets."""
    ends = np.zeros(len(array), np.int64)
    for data, offsets, _ in key_buffers(array, what=_WHAT):
        _find_separators(data, offsets, ends)
        _check_separators(array, ends)
        starts = np.asarray(offsets[:-1], np.int64)
        return _unescaped(data, starts, ends), _unescaped(data, ends + 1, np.asarray(offsets[1:], np.int64))
    empty = (np.zeros(0, np.uint8), np.zeros(1, np.int32))
    return empty, empty


def _check_separators(array: pa.Array, ends: npt.NDArray[np.int64]) -> None:
    missing = np.flatnonzero(ends < 0)
    if missing.size:
        found = str(array[int(missing[0])])
        raise CorruptFile(_WHAT, 0, expected="secondary keys with an unescaped '$'", found=f"'{found:.60}'")


def _unescaped(
    data: Bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> tuple[Bytes, npt.NDArray[np.int32]]:
    out = np.empty(int((ends - starts).sum()), np.uint8)
    made = np.zeros(len(starts) + 1, np.int32)
    size = _unescape_each(data, starts, ends, out, made)
    return out[:size], made


@loop
def _find_separators(data: Bytes, offsets: Offsets, ends: npt.NDArray[np.int64]) -> None:
    """Find the first separator of each key that is not escaped; -1 for a key without one."""
    for key in range(ends.size):
        at, end = np.int64(offsets[key]), np.int64(offsets[key + 1])
        while at < end and data[at] != _SEPARATOR:
            at += 2 if data[at] == _ESCAPE else 1
        ends[key] = at if at < end else -1


@loop
def _find_nulls(data: Bytes, offsets: Offsets, is_null: npt.NDArray[np.bool_]) -> None:
    for key in range(is_null.size):
        start = offsets[key]
        is_null[key] = offsets[key + 1] - start >= 2 and data[start] == 0 and data[start + 1] == _SEPARATOR


@loop
def _copy_ranges(data: Bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], out: Bytes) -> None:
    to = 0
    for index in range(starts.size):
        for at in range(starts[index], ends[index]):
            out[to] = data[at]
            to += 1


@loop
def _unescape_each(
    data: Bytes,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    out: Bytes,
    made: npt.NDArray[np.int32],
) -> int:
    to = 0
    for index in range(starts.size):
        at = starts[index]
        while at < ends[index]:
            if data[at] == _ESCAPE and at + 1 < ends[index]:
                at += 1
            out[to] = data[at]
            to, at = to + 1, at + 1
        made[index + 1] = to
    return to
