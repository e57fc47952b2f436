"""A key whose hash differs from Apache Hudi's goes to another bucket than its older rows: it is then there twice.

Vectors from tables of Apache Hudi pin the rules, and models of Java's texts, lists and parsing, one key at a time,
pin the compiled loops over random Unicode, characters beyond 16 bits included.
"""

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyhudi.errors import Invalid
from pyhudi.format.keys.bucket_hash import bucket_numbers, list_hashes, ring_hashes

PIECES = ("id", "name", ":", ",", "__null__", "__empty__", "x", "é", "漢", "😀", "\0", " ")
keys_of_pieces = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join)
any_text = st.text(max_size=60)
field_lists = st.lists(st.sampled_from(("id", "name", "é", "x")), min_size=1, max_size=3, unique=True)


def one(function, key: str, *fields: str) -> int:
    return int(function(pa.array([key]), list(fields))[0])


def signed(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def java_text_hash(text: str) -> int:
    units = text.encode("utf-16-be")
    h = 0
    for at in range(0, len(units), 2):
        h = signed(31 * h + int.from_bytes(units[at : at + 2], "big"))
    return h


def java_list_hash(values: list[str | None]) -> int:
    h = 1
    for value in values:
        h = signed(31 * h + (0 if value is None else java_text_hash(value)))
    return h


def hash_values(key: str, fields: list[str]) -> list[str | None]:
    """What is hashed of a key, by searching from separator to separator as Java does."""
    if "," not in key or ":" not in key:
        return [key]
    values: list[str | None] = []
    done = 0
    while done < len(key):
        colon = key.index(":", done)
        field, next_colon = key[done:colon], key.find(":", colon + 1)
        comma = key.rfind(",", 0, next_colon) if next_colon >= 0 else -1
        while comma < colon and next_colon >= 0:
            next_colon = key.find(":", next_colon + 1)
            comma = key.rfind(",", 0, next_colon) if next_colon >= 0 else -1
        end = comma if comma > colon else len(key)
        if field in fields:
            value = key[colon + 1 : end]
            values.append({"__null__": None, "__empty__": ""}.get(value, value))
        done = end + 1
    return values or [key]


def xxhash32(data: bytes) -> int:
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    low = 2**32 - 1

    def rotated(x: int, bits: int) -> int:
        return (x << bits | x >> (32 - bits)) & low

    at, h = 0, p5
    if len(data) >= 16:
        lanes = [(p1 + p2) & low, p2, 0, -p1 & low]
        while at <= len(data) - 16:
            for n in range(4):
                word = int.from_bytes(data[at + 4 * n : at + 4 * n + 4], "little")
                lanes[n] = rotated((lanes[n] + word * p2) & low, 13) * p1 & low
            at += 16
        h = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    h = (h + len(data)) & low
    while at <= len(data) - 4:
        h = rotated((h + int.from_bytes(data[at : at + 4], "little") * p3) & low, 17) * p4 & low
        at += 4
    for byte in data[at:]:
        h = rotated((h + byte * p5) & low, 11) * p1 & low
    h = (h ^ h >> 15) * p2 & low
    h = (h ^ h >> 13) * p3 & low
    return h ^ h >> 16


@pytest.mark.parametrize(
    "key, fields, count, bucket",
    [
        ("key_1", ["id"], 256, 112),
        ("id:7,name:x,y", ["id"], 8, 6),
        ("id:7,name:x", ["id", "name"], 8, 2),
        ("id:7", ["id"], 8, 7),
        ("7", ["id"], 8, 6),
    ],
)
def test_buckets_are_those_of_apache_hudi(key: str, fields: list[str], count: int, bucket: int) -> None:
    assert bucket_numbers(pa.array([key]), fields, count).tolist() == [bucket]


def test_a_place_on_a_ring_is_that_of_apache_hudi() -> None:
    assert one(ring_hashes, "key_1", "id") == -199900715 & 0x7FFFFFFF


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", 0x02CC5D05),
        ("a", 0x550D7456),
        ("abc", 0x32D153FF),
        ("Nobody inspects the spammish repetition", 0xE2293B2F),
        ("".join(map(chr, range(101))), 0x1A20E95B),
        ("héllo 😀", 0x903FB492),
    ],
)
def test_xxhash_is_that_of_its_reference(text: str, expected: int) -> None:
    assert xxhash32(text.encode()) == expected
    assert one(ring_hashes, text, "id") == expected & 0x7FFFFFFF


def test_javas_hash_counts_in_16_bit_units() -> None:
    assert one(list_hashes, "😀", "id") == 31 + 31 * 0xD83D + 0xDE00


@settings(deadline=None)  # the first example may compile
@given(keys=st.lists(st.one_of(keys_of_pieces, any_text), max_size=20), fields=field_lists)
@example(keys=["a:1,id:x:y", "id:1,name:10:20:30", "id:a,b,c,name:d", ":,:"], fields=["id"])
def test_hashes_are_those_of_the_model(keys: list[str], fields: list[str]) -> None:
    column = pa.array(keys, pa.string())
    values = [hash_values(key, fields) for key in keys]

    assert list_hashes(column, fields).tolist() == [java_list_hash(of) for of in values]
    joined = ["".join("null" if value is None else value for value in of) for of in values]
    assert ring_hashes(column, fields).tolist() == [xxhash32(text.encode()) & 0x7FFFFFFF for text in joined]


@settings(deadline=None)
@given(keys=st.lists(keys_of_pieces, min_size=1, max_size=20), cut=st.integers(0, 20), is_large=st.booleans())
def test_slices_and_chunks_are_hashed_as_the_whole(keys: list[str], cut: int, is_large: bool) -> None:
    kind = pa.large_string() if is_large else pa.string()
    whole = pa.array(keys, kind)
    parts = pa.chunked_array([whole.slice(0, cut), whole.slice(cut)], kind)

    for function in (list_hashes, ring_hashes):
        expected = function(pa.array(keys), ["id"]).tolist()
        assert function(parts, ["id"]).tolist() == expected
        assert function(whole.slice(min(cut, len(keys))), ["id"]).tolist() == expected[cut:]


def test_a_value_that_is_null_counts_as_nothing_in_a_list_and_as_text_on_a_ring() -> None:
    assert one(list_hashes, "id:__null__,name:x", "id") == one(list_hashes, "id:__empty__,name:x", "id") == 31
    assert one(ring_hashes, "id:__null__,name:x", "id") == one(ring_hashes, "null", "id")
    assert one(ring_hashes, "id:__empty__,name:x", "id") == one(ring_hashes, "", "id")


def test_a_colon_in_a_last_value_of_no_hash_field_ends_the_key() -> None:
    """Apache Hudi 1.2.0 never returns from such a key."""
    assert one(list_hashes, "a:1,b:x:y", "a") == one(list_hashes, "1", "a")


@pytest.mark.parametrize(
    "keys, message",
    [
        (pa.array(["a", None]), "expected no null record key, found 1"),
        (pa.array([1]), "expected record keys as text, found int64"),
        (pa.array([b"\xff"]), "expected record keys as text, found binary"),
        (pa.Array.from_buffers(pa.string(), 1, pa.array([b"a\xf0"]).buffers()), "expected record keys in UTF-8"),
    ],
)
def test_what_has_no_hash_is_refused(keys: pa.Array, message: str) -> None:
    for function in (list_hashes, ring_hashes):
        with pytest.raises(Invalid, match=message):
            function(keys, ["id"])
