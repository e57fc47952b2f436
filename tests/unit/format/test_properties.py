"""A table's facts could be lost between us and Java: in an escape, a torn file or a wrong checksum."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.format.properties import (
    decode_table_properties,
    encode_partition_metadata,
    encode_table_properties,
    format_properties,
    java_date,
    parse_properties,
    table_checksum,
)

EPOCH_MS = 1_795_258_757_123  # 2026-11-21 10:59:17.123 UTC
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    "line, key, value",
    [
        ("a=b", "a", "b"),
        ("a:b", "a", "b"),
        ("a b", "a", "b"),
        ("  a  =  b  ", "a", "b  "),
        ("a\t:\fb", "a", "b"),
        ("a", "a", ""),
        ("a=", "a", ""),
        ("=b", "", "b"),
        ("a==b", "a", "=b"),
        (r"a\=b=c\:d", "a=b", "c:d"),
        (r"a\ b=c", "a b", "c"),
        (r"a=\ b", "a", " b"),
        (r"a=b\\c", "a", r"b\c"),
        (r"a=\t\n\r\f\q", "a", "\t\n\r\fq"),
        ("a=\\u00e9\\u4E2D", "a", "é中"),
        ("a=\\uD83D\\uDE00", "a", "😀"),
        ("a=\xe9", "a", "é"),
        ("a=b\\\n   c", "a", "bc"),
        ("a=b\\\r\n\tc\\\rd", "a", "bcd"),
        ("a=b\\\\\nc=d", "a", "b\\"),
        ("a=b\\\n#c", "a", "b#c"),
        ("\\\na=b", "a", "b"),
        ("a=b\\", "a", "b"),
        ("#x=y\n!x=y\n\n   # x\na=b", "a", "b"),
        ("a=x\na=b", "a", "b"),
    ],
)
def test_lines_mean_what_they_mean_to_java(line: str, key: str, value: str) -> None:
    properties = parse_properties(line.encode("latin-1"))

    assert properties[key] == value
    assert set(properties) <= {key, "c"}


@pytest.mark.parametrize(
    "key, value, line",
    [
        ("a", "b", "a=b"),
        ("a b", " c d", r"a\ b=\ c d"),
        ("a=b:c", "d=e:f", r"a\=b\:c=d\=e\:f"),
        ("#a", "!b\\", r"\#a=\!b\\"),
        ("a", "\t\n\r\f", r"a=\t\n\r\f"),
        ("é", "中😀\x7f", r"\u00E9=\u4E2D\uD83D\uDE00\u007F"),
    ],
)
def test_values_are_escaped_as_java_escapes_them(key: str, value: str, line: str) -> None:
    assert format_properties({key: value}) == (line + "\n").encode()


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_parse_is_the_inverse_of_format(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties


@pytest.mark.parametrize(
    "database, name, checksum",
    [("", "t", "498511606"), ("", "t_metadata", "3339867397"), ("default", "v6_empty", "1980710965")],
)
def test_the_checksum_covers_database_and_name(database: str, name: str, checksum: str) -> None:
    properties = {"hoodie.table.name": name}
    if database:
        properties["hoodie.database.name"] = database

    assert table_checksum(properties) == checksum
    assert table_checksum({**properties, "hoodie.table.version": "8"}) == checksum


def test_the_checksum_is_over_utf_8() -> None:
    assert table_checksum({"hoodie.table.name": "é"}) == str(zlib.crc32(".é".encode()))


def test_table_properties_come_back_with_their_checksum() -> None:
    properties = {"hoodie.table.name": "t", "hoodie.table.version": "8"}

    content = encode_table_properties(properties, epoch_ms=EPOCH_MS, is_update=False)

    assert content.splitlines()[:2] == [
        b"#Properties saved on 2026-11-21T10:59:17.123Z",
        b"#Sat Nov 21 10:59:17 UTC 2026",
    ]
    assert decode_table_properties(content, path="p") == {**properties, "hoodie.table.checksum": "498511606"}


def test_an_update_says_so_and_replaces_the_checksum() -> None:
    old = {"hoodie.table.name": "t", "hoodie.table.checksum": "1"}

    content = encode_table_properties(old, epoch_ms=EPOCH_MS, is_update=True)

    assert content.startswith(b"#Updated at 2026-11-21T10:59:17.123Z\n")
    assert decode_table_properties(content, path="p")["hoodie.table.checksum"] == "498511606"


def test_properties_without_a_checksum_are_those_of_an_old_release() -> None:
    assert decode_table_properties(b"hoodie.table.name=t\n", path="p") == {"hoodie.table.name": "t"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"#comment\n",
        b"hoodie.table.version=8\n",
        b"hoodie.table.name=\n",
        b"hoodie.table.name=t\nhoodie.table.checksum=498511607\n",
        b"hoodie.table.name=t\nhoodie.table.checksum=\n",
        b"hoodie.table.name=t\na=\\u12",
        b"hoodie.table.name=t\na=\\uzzzz\n",
        b"hoodie.table.name=\\uD83D\n",
    ],
)
def test_torn_properties_are_corrupt_and_the_error_names_the_file(content: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"^place/hoodie\.properties at byte 0: expected") as caught:
        decode_table_properties(content, path="place/hoodie.properties")

    assert caught.value.path == "place/hoodie.properties"


@given(st.binary())
def test_random_bytes_are_corrupt_and_nothing_else(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_table_properties(content, path="p")


def test_a_file_cut_anywhere_in_its_last_lines_is_noticed_or_whole() -> None:
    properties = {"a": "1", "hoodie.table.name": "t", "hoodie.table.checksum": "", "z": "2"}
    content = encode_table_properties(properties, epoch_ms=EPOCH_MS, is_update=False)
    named = content.index(b"hoodie.table.name=t") + len(b"hoodie.table.name=t")

    for end in range(named):
        with pytest.raises(CorruptFile):
            decode_table_properties(content[:end], path="p")


@pytest.mark.parametrize("partition, depth", [("", 0), ("a", 1), ("a=1/b=2", 2)])
def test_partition_metadata_says_how_deep_the_partition_lies(partition: str, depth: int) -> None:
    content = encode_partition_metadata(requested="20261121105911160", partition=partition, epoch_ms=EPOCH_MS)

    assert content.decode() == (
        f"#partition metadata\n#Sat Nov 21 10:59:17 UTC 2026\ncommitTime=20261121105911160\npartitionDepth={depth}\n"
    )


@pytest.mark.parametrize(
    "epoch_ms, text", [(0, "Thu Jan 01 00:00:00 UTC 1970"), (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000")]
)
def test_dates_are_printed_as_java_does(epoch_ms: int, text: str) -> None:
    assert java_date(epoch_ms) == text
