"""A filter that misses a key loses rows; one that differs in a byte from Hudi's is a filter Hudi misreads.

Vectors written by Apache Hudi pin the bytes, a slow filter over plain integers pins the compiled one, and
whatever is cut or flipped in a stored text must end in a named error.
"""

import base64
import contextlib
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.keys.bloom import BloomFilter, BloomKind
from pyhudi.format.keys.murmur import murmur2

KINDS: tuple[BloomKind, ...] = ("SIMPLE", "DYNAMIC_V0")
DYNAMIC_TEXT = "/////wAAAAQBAAAACgAAAAIAAAAFAAAAAv////8AAAAEAQAAAAr/A/////8AAAAEAQAAAAp6Aw=="

keys_lists = st.lists(st.text(min_size=1, max_size=40), max_size=60)


def hash_of(key: bytes, seed: int) -> int:
    return int(murmur2(np.frombuffer(key, np.uint8), seed))


def filled(kind: BloomKind, keys: list[str], **limits) -> BloomFilter:
    bloom = BloomFilter.create(kind, **limits)
    bloom.add(pa.array(keys, pa.string()))
    return bloom


@pytest.mark.parametrize(
    "key, expected",
    [("0", 1111412596), ("98", 566133359), ("abc", 1775488903), ("abcd", 646393889), ("é", -384040333)],
)
def test_murmur_is_hadoops_variant(key, expected):
    assert hash_of(key.encode(), 0) == expected


def test_hashes_chain_and_positions_take_javas_remainder():
    seed, positions = 0, []
    for _ in range(4):
        seed = hash_of(b"98", seed)
        positions.append(abs(math.fmod(seed, 2587966)))
    assert positions == [1956771, 1895929, 2096835, 287608]


@pytest.mark.parametrize(
    "kind, limits, keys, expected",
    [
        (
            "SIMPLE",
            {"entries": 4, "false_positive_rate": 0.1},
            ["key_1", "héllo"],
            "/////wAAAAQBAAAAFMQaAQ==",
        ),
        (
            *("SIMPLE", {"entries": 10, "false_positive_rate": 0.01}, ["k1", "key2"]),
            "/////wAAAAcBAAAAYBIQAEAgIFgCAAJAQA==",
        ),
        (
            *("DYNAMIC_V0", {"entries": 2, "false_positive_rate": 0.1, "entries_max": 4}),
            [f"key_{index}" for index in range(7)],
            DYNAMIC_TEXT,
        ),
    ],
)
def test_bytes_are_those_of_hudi(kind, limits, keys, expected):
    bloom = filled(kind, keys, **limits)
    assert bloom.encode() == expected
    assert BloomFilter.decode(kind, expected).encode() == expected


def test_default_sizes_are_those_of_hudi():
    head = base64.b64decode(filled("DYNAMIC_V0", [str(index) for index in range(50)]).encode())[:41]
    assert head.hex(" ") == (
        "ff ff ff ff 00 00 00 1e 01 00 27 7d 3e 00 00 ea 60 00 00 00 32 00 00 00 01 "
        "ff ff ff ff 00 00 00 1e 01 00 27 7d 3e 00 00 00"
    )


def slow_bits(keys: list[str], bit_count: int, hash_count: int) -> bytes:
    """The bits of one row, one hash at a time."""
    bits = bytearray((bit_count + 7) // 8)
    for key in keys:
        seed = 0
        for _ in range(hash_count):
            seed = hash_of(key.encode(), seed)
            position = abs(int(math.fmod(seed, bit_count)))
            bits[position >> 3] |= 1 << (position & 7)
    return bytes(bits)


def rows_of_keys(keys: list[str], entries: int, entries_max: int) -> list[list[str]]:
    """Which keys Hudi puts in which row of a dynamic filter."""
    rows: list[list[str]] = [[]]
    in_last, beyond = 0, None
    for key in keys:
        if beyond is not None:
            rows[beyond % len(rows)].append(key)
            beyond += 1
        elif in_last < entries:
            rows[-1].append(key)
            in_last += 1
        elif len(rows) * entries < entries_max:
            rows.append([key])
            in_last = 1
        else:
            rows[0].append(key)
            beyond = 0
    return rows


@settings(deadline=None)  # the first example may compile
@given(keys_lists, st.integers(1, 9), st.integers(1, 30))
def test_every_row_holds_the_bits_of_its_keys(keys, entries, entries_max):
    limits = {"entries": entries, "false_positive_rate": 0.01, "entries_max": entries_max}
    for kind in KINDS:
        bloom = filled(kind, keys, **limits)
        expected = [keys] if kind == "SIMPLE" else rows_of_keys(keys, entries, entries_max)
        found = [row.tobytes() for row in bloom.rows]
        assert found == [slow_bits(row, bloom.bit_count, bloom.hash_count) for row in expected]


@settings(deadline=None)  # the first example may compile
@given(keys_lists, keys_lists, st.integers(1, 9), st.integers(1, 30))
def test_adding_goes_on_after_decoding_as_if_never_stored(first, second, entries, entries_max):
    for kind in KINDS:
        limits = {"entries": entries, "false_positive_rate": 0.01, "entries_max": entries_max}
        stored = filled(kind, first, **limits).encode()
        resumed = BloomFilter.decode(kind, stored, entries_max=entries_max)
        resumed.add(pa.array(second, pa.string()))
        assert resumed.encode() == filled(kind, first + second, **limits).encode()


@settings(deadline=None)  # the first example may compile
@given(keys_lists, keys_lists)
def test_added_keys_are_contained_and_an_empty_one_never(added, others):
    for kind in KINDS:
        bloom = filled(kind, added, entries=5, entries_max=20)
        assert bloom.may_contain(pa.array(added, pa.string())).to_pylist() == [True] * len(added)
        answers = bloom.may_contain(pa.array([*others, ""], pa.string())).to_pylist()
        assert len(answers) == len(others) + 1
        assert answers[-1] is False


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_every_arrow_layout_gives_the_same_filter(kind):
    names = [f"key_{index}" for index in range(500)]
    expected = filled("DYNAMIC_V0", names, entries=100, entries_max=300).encode()
    whole = pa.array(["x", "", *names, "y"], kind)
    sliced = whole.slice(2, 500)
    chunked = pa.chunked_array([sliced.slice(0, 137), sliced.slice(137, 0), sliced.slice(137)])
    for keys in (sliced, chunked):
        bloom = BloomFilter.create("DYNAMIC_V0", entries=100, entries_max=300)
        bloom.add(keys)
        assert bloom.encode() == expected
        assert bloom.may_contain(keys).true_count == 500


def test_keys_that_cannot_be_hashed_leave_the_filter_unchanged():
    bloom = filled("DYNAMIC_V0", ["a"], entries=4)
    before = bloom.encode()
    for keys in (pa.array(["b", None]), pa.array(["b", ""]), pa.array([1, 2])):
        with pytest.raises(Invalid, match="bloom filter"):
            bloom.add(keys)
    assert bloom.encode() == before


@pytest.mark.parametrize(
    "limits",
    [{"entries": 0}, {"false_positive_rate": 0.0}, {"false_positive_rate": 1.0}, {"entries": 2**31 - 1}],
)
def test_settings_that_give_no_filter_are_invalid(limits):
    with pytest.raises(Invalid, match="expected"):
        BloomFilter.create("SIMPLE", **limits)


def test_jenkins_filters_are_unsupported_in_both_forms():
    for stored in ("00000004 00000014 000000 000000", "ffffffff 00000004 00 00000014 000000"):
        text = base64.b64encode(bytes.fromhex(stored))
        with pytest.raises(Unsupported, match="Jenkins"):
            BloomFilter.decode("SIMPLE", text)


@settings(deadline=None)  # the first example may compile
@given(st.binary(max_size=80))
def test_random_bytes_are_corrupt_or_unsupported(data):
    for kind in KINDS:
        for text in (base64.b64encode(data), data):
            with contextlib.suppress(CorruptFile, Unsupported):
                BloomFilter.decode(kind, text)


@pytest.mark.parametrize("size", range(len(base64.b64decode(DYNAMIC_TEXT))))
def test_a_cut_filter_is_corrupt(size):
    with pytest.raises(CorruptFile):
        BloomFilter.decode("DYNAMIC_V0", base64.b64encode(base64.b64decode(DYNAMIC_TEXT)[:size]))
