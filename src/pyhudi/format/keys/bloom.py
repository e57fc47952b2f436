"""Hudi's Bloom filters over record keys, SIMPLE and DYNAMIC_V0, byte for byte.

The filters are stored as Base64 text in Parquet footers, ORC metadata, HFile meta blocks and the metadata table.

Cost: about 30 hashes a key with the default settings (60,000 entries, a false positive rate of 1e-9). Memory: the rows
of the filter, 316 KiB each by default, and no copy of the keys.
"""

import base64
import binascii
import math
import struct
from dataclasses import dataclass, field
from typing import Final, Literal, Self, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.arrow_arrays import Bytes, Offsets, key_buffers
from pyhudi.format.keys.murmur import (
    LANES,
    is_lane_run,
    next_hashes,
    prepare_lanes,
    word_count_max,
)
from pyhudi.loops import inlined, loop, loop_over

BloomKind: TypeAlias = Literal["SIMPLE", "DYNAMIC_V0"]

ENTRIES_DEFAULT: Final = 60_000
FALSE_POSITIVE_RATE_DEFAULT: Final = 1e-9
ENTRIES_MAX_DEFAULT: Final = 100_000

_VERSION = -1
_MURMUR = 1
_JENKINS = 0
_HEAD = struct.Struct(">iibi")
_GROWTH = struct.Struct(">iii")
_INT_MAX = 2**31 - 1
_HASH_COUNT_MAX = 1_100
"""The most hashes a key: the smallest positive rate that a double holds asks for 1,075."""


@dataclass(slots=True)
class BloomFilter:
    """A filter over record keys. `may_contain` never misses a key that was added with `add`.

    `entries_max` is not stored in the bytes: to go on adding to a decoded filter, pass the value that the filter was
    made with. `rows` is (row count, bytes a row); SIMPLE has one row, and does not use `entries`.
    """

    kind: BloomKind
    bit_count: int
    hash_count: int
    entries: int
    entries_max: int
    rows: Bytes = field(repr=False)
    last_row_key_count: int = 0

    @classmethod
    def create(
        cls,
        kind: BloomKind,
        *,
        entries: int = ENTRIES_DEFAULT,
        false_positive_rate: float = FALSE_POSITIVE_RATE_DEFAULT,
        entries_max: int = ENTRIES_MAX_DEFAULT,
    ) -> Self:
        """An empty filter, sized as Hudi sizes it.

        Spec: format/layout.md section 7.1. Raises: Invalid for settings that give no filter.
        """
        if not 1 <= entries <= _INT_MAX or not 0.0 < false_positive_rate < 1.0 or entries_max < 1:
            raise Invalid(
                f"bloom filter: expected entries and entries_max of at least 1 and a false positive rate "
                f"between 0 and 1, found {entries:,}, {entries_max:,} and {false_positive_rate}"
            )

        bit_count = math.ceil(entries * (-math.log(false_positive_rate) / (math.log(2.0) * math.log(2.0))))
        hash_count = math.ceil(math.log(2.0) * bit_count / entries)
        if bit_count > _INT_MAX:
            raise Invalid(
                f"bloom filter: expected at most {_INT_MAX:,} bits, found {bit_count:,} for {entries:,} "
                f"entries at {false_positive_rate}; take fewer entries"
            )

        rows = np.zeros((1, (bit_count + 7) // 8), np.uint8)
        return cls(kind, bit_count, hash_count, entries, entries_max, rows)

    @property
    def parameters(self) -> tuple[object, ...]:
        """The settings that must be equal if one filter is to go on where another one stopped."""
        growth = (self.entries, self.entries_max) if self.kind == "DYNAMIC_V0" else ()
        return (self.kind, self.bit_count, self.hash_count, *growth)

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add record keys, in order. The order changes only the bytes of a DYNAMIC_V0 filter.

        Raises: Invalid for a null or empty key; the filter is then unchanged.
        """
        chunks = list(key_buffers(keys, what="bloom filter"))
        for _, offsets, key_count in chunks:
            empty = _first_empty(offsets)
            if empty >= 0:
                found = f"one at row {empty:,} of {key_count:,}"
                raise Invalid(f"bloom filter: expected no empty record key, found {found}")

        for data, offsets, _ in chunks:
            match self.kind:
                case "SIMPLE":
                    _set_bits(self.rows, 0, 0, data, offsets, self.bit_count, self.hash_count)
                case "DYNAMIC_V0":
                    self._add_growing(data, offsets)
                case _:
                    assert_never(self.kind)

    def _add_growing(self, data: Bytes, offsets: Offsets) -> None:
        """Fill the last row, append rows up to the maximum, then take all rows in turn.

        Seen: in Hudi 0.15 and 1.2.0 the first key beyond the maximum goes to row 0 without moving the
        counter that picks the row of the following keys. So the keys beyond the maximum go to rows 0, 0, 1, 2 ...
        """
        start, key_count = 0, len(offsets) - 1
        while start < key_count:
            if self.last_row_key_count >= self.entries:
                if len(self.rows) * self.entries >= self.entries_max:
                    break
                self.rows = np.vstack((self.rows, np.zeros((1, self.rows.shape[1]), np.uint8)))
                self.last_row_key_count = 0

            taken = min(key_count - start, self.entries - self.last_row_key_count)
            part = offsets[start : start + taken + 1]
            _set_bits(self.rows, len(self.rows) - 1, 0, data, part, self.bit_count, self.hash_count)
            self.last_row_key_count += taken
            start += taken

        if start < key_count:
            beyond = self.last_row_key_count - self.entries
            if beyond == 0:
                _set_bits(self.rows, 0, 0, data, offsets[start : start + 2], self.bit_count, self.hash_count)
                start, beyond = start + 1, 1

            row = (beyond - 1) % len(self.rows)
            _set_bits(self.rows, row, 1, data, offsets[start:], self.bit_count, self.hash_count)
            self.last_row_key_count = self.entries + beyond + key_count - start

    def may_contain(self, keys: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        """For each key, in order: False if the key was certainly not added, True if it may have been.

        An empty key is never contained. Raises: Invalid for a null key.
        """
        found = [np.zeros(0, np.uint8)]
        for data, offsets, key_count in key_buffers(keys, what="bloom filter"):
            answers = np.zeros(key_count, np.uint8)
            _test_bits(self.rows, data, offsets, self.bit_count, self.hash_count, answers)
            found.append(answers)
        return pa.array(np.concatenate(found).view(np.bool_))

    def encode(self) -> str:
        """The Base64 text that Hudi stores.

        Layout (big endian): i32 -1, i32 hash count, i8 hash type 1, i32 bit count; for SIMPLE then the
        bits, bit i being byte i >> 3, mask 1 << (i & 7); for DYNAMIC_V0 i32 entries a row, i32 keys in
        the last row, i32 row count, then each row as a SIMPLE filter.

        Spec: format/indexes.md section 1.
        """
        head = _HEAD.pack(_VERSION, self.hash_count, _MURMUR, self.bit_count)
        if self.kind == "SIMPLE":
            return base64.b64encode(head + self.rows[0].tobytes()).decode("ascii")
        growth = _GROWTH.pack(self.entries, self.last_row_key_count, len(self.rows))
        return base64.b64encode(head + growth + b"".join(head + row.tobytes() for row in self.rows)).decode("ascii")

    @classmethod
    def decode(
        cls,
        kind: BloomKind,
        text: str | bytes,
        *,
        entries_max: int = ENTRIES_MAX_DEFAULT,
        path: str = "bloom filter",
    ) -> Self:
        """The filter in a stored text. `path` names the bytes in errors.

        Raises: CorruptFile for text that is no such filter; Unsupported for a filter of Jenkins hashes. A filter of
        the old form without a version, whose first number is positive, always has Jenkins hashes.
        """
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise CorruptFile(path, 0, expected="Base64 text", found=str(error)) from error

        hash_count, bit_count = _decode_head(data, 0, path)
        row_size = (bit_count + 7) // 8
        if kind == "SIMPLE":
            rows = _decode_rows(data, at=0, row_count=1, row_size=row_size, head=data[: _HEAD.size], path=path)
            return cls(kind, bit_count, hash_count, 0, entries_max, rows)

        if len(data) < _HEAD.size + _GROWTH.size:
            raise CorruptFile(path, len(data), expected="the growth numbers of a dynamic filter", found="the end")
        entries, key_count, row_count = _GROWTH.unpack_from(data, _HEAD.size)
        if entries < 1 or key_count < 0 or row_count < 1:
            found = f"{entries}, {key_count} and {row_count}"
            raise CorruptFile(path, _HEAD.size, expected="entries, keys and rows of a dynamic filter", found=found)

        rows = _decode_rows(data, _HEAD.size + _GROWTH.size, row_count, row_size, data[: _HEAD.size], path)
        return cls(kind, bit_count, hash_count, entries, entries_max, rows, key_count)


def _decode_head(data: bytes, at: int, path: str) -> tuple[int, int]:
    """The hash count and the bit count of a filter's head."""
    if len(data) < at + _HEAD.size:
        raise CorruptFile(path, len(data), expected=f"{_HEAD.size} bytes of a bloom filter's head", found="the end")
    version, hash_count, hash_type, bit_count = _HEAD.unpack_from(data, at)
    if version > 0 or (version == _VERSION and hash_type == _JENKINS):
        raise Unsupported(f"{path}: a bloom filter of Jenkins hashes; treat its file as one without a filter")
    if version != _VERSION or hash_type != _MURMUR:
        found = f"version {version} and hash type {hash_type}"
        raise CorruptFile(path, at, expected=f"version {_VERSION} and hash type {_MURMUR}", found=found)
    if not 1 <= hash_count <= _HASH_COUNT_MAX or bit_count < 1:
        found = f"{hash_count} hashes over {bit_count} bits"
        raise CorruptFile(path, at + 4, expected=f"1 to {_HASH_COUNT_MAX:,} hashes over some bits", found=found)
    return hash_count, bit_count


def _decode_rows(data: bytes, at: int, row_count: int, row_size: int, head: bytes, path: str) -> Bytes:
    """The rows of a filter. They fill the rest of the bytes, and each stands behind a head equal to `head`."""
    step = len(head) + row_size
    if len(data) - at != row_count * step:
        found = f"{len(data) - at:,} bytes"
        raise CorruptFile(path, at, expected=f"{row_count:,} rows of {step:,} bytes", found=found)
    rows = np.frombuffer(data, np.uint8, offset=at).reshape(row_count, step)
    expected_head = np.frombuffer(head, np.uint8)
    for index in range(row_count):
        if not np.array_equal(rows[index, : len(head)], expected_head):
            found = rows[index, : len(head)].tobytes().hex(" ")
            raise CorruptFile(path, at + index * step, expected=f"the head {head.hex(' ')}", found=found)
    return rows[:, len(head) :].copy()


@loop
def _first_empty(offsets: Offsets) -> int:
    for index in range(offsets.size - 1):
        if offsets[index] == offsets[index + 1]:
            return index
    return -1


@inlined
def _position(h: np.uint32, bit_count: int) -> np.uint32:
    """The bit of a hash: |h rem bit_count| of the signed hash, as Java computes it."""
    signed = np.int64(np.int32(h))
    return np.uint32(abs(signed)) % np.uint32(bit_count)


def _setting_work(
    rows: Bytes, _row: int, _row_step: int, data: Bytes, offsets: Offsets, _bit_count: int, hash_count: int
) -> int:
    """The work of setting bits, for `loop_over`. The size of `rows` does not count: a hash touches one byte of them."""
    return (data.size // 4 + 16 * offsets.size) * hash_count


@loop_over(_setting_work)
def _set_bits(
    rows: Bytes, row: int, row_step: int, data: Bytes, offsets: Offsets, bit_count: int, hash_count: int
) -> None:
    """Set the bits of keys. The first key goes to `row`, each next key `row_step` rows further, cyclically."""
    words = np.zeros((word_count_max(offsets), LANES), np.uint32)
    tails = np.zeros(LANES, np.uint32)
    h = np.zeros(LANES, np.uint32)
    targets = np.zeros(LANES, np.uint32)

    key_count = offsets.size - 1
    start = 0
    while start < key_count:
        lanes = LANES if is_lane_run(offsets, start) else 1
        prepare_lanes(data, offsets, start, lanes, words, tails)
        size = offsets[start + 1] - offsets[start]
        h[:] = 0

        for lane in range(lanes):
            targets[lane] = row
            row = (row + row_step) % rows.shape[0]

        for _ in range(hash_count):
            next_hashes(h, size, words, tails)
            for lane in range(lanes):
                position = _position(h[lane], bit_count)
                rows[targets[lane], position >> 3] |= np.uint8(1) << np.uint8(position & 7)

        start += lanes


def _testing_work(rows: Bytes, data: Bytes, offsets: Offsets, _bit_count: int, hash_count: int, _answers: Bytes) -> int:
    return (data.size // 4 + (16 + rows.shape[0]) * offsets.size) * hash_count


@loop_over(_testing_work)
def _test_bits(rows: Bytes, data: Bytes, offsets: Offsets, bit_count: int, hash_count: int, answers: Bytes) -> None:
    """Write 1 for each key whose bits are all set in one row."""
    words = np.zeros((word_count_max(offsets), LANES), np.uint32)
    tails = np.zeros(LANES, np.uint32)
    h = np.zeros(LANES, np.uint32)
    alive = np.zeros((rows.shape[0], LANES), np.uint8)

    key_count = offsets.size - 1
    start = 0
    while start < key_count:
        lanes = LANES if is_lane_run(offsets, start) else 1
        prepare_lanes(data, offsets, start, lanes, words, tails)
        size = offsets[start + 1] - offsets[start]
        h[:] = 0

        alive[:, :lanes] = size > 0
        candidates = rows.shape[0] * lanes if size > 0 else 0

        for _ in range(hash_count):
            if candidates == 0:
                break
            next_hashes(h, size, words, tails)
            for lane in range(lanes):
                position = _position(h[lane], bit_count)
                for index in range(rows.shape[0]):
                    if alive[index, lane] and not (rows[index, position >> 3] >> np.uint8(position & 7)) & 1:
                        alive[index, lane] = 0
                        candidates -= 1

        for lane in range(lanes):
            for index in range(rows.shape[0]):
                answers[start + lane] |= alive[index, lane]

        start += lanes
