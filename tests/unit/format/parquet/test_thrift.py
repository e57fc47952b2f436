"""A message that is decoded and encoded again could lose a field that nobody here knows, or a hostile one could make
the reader loop, recurse or take memory without end."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import CorruptFile
from pyhudi.format.parquet.footer import TAIL_SIZE, decode_footer, encode_footer, footer_size
from pyhudi.format.parquet.thrift import Items, Kind, Message, decode_message, encode_message


def a_file() -> bytes:
    out = io.BytesIO()
    rows = pa.table({"a": [1, None, 3], "b": ["x", "y", "z"], "c": [[1.5], [], None], "d": [{"e": True}, None, None]})
    pq.write_table(rows, out, row_group_size=2, write_page_index=True, use_dictionary=["b"])
    return out.getvalue()


def test_the_footer_of_arrow_is_the_same_bytes_after_decoding_and_encoding() -> None:
    content = a_file()
    size = footer_size(content[-TAIL_SIZE:], len(content), path="p")
    start = len(content) - TAIL_SIZE - size
    footer = decode_footer(content[start:-TAIL_SIZE], start, path="p")
    assert encode_footer(footer.message) == content[start:]
    assert [(group.rows, len(group.chunks)) for group in footer.groups] == [(2, 4), (1, 4)]


def test_every_kind_and_far_field_numbers_come_back() -> None:
    message = Message(
        {
            1: (Kind.TRUE, True),
            2: (Kind.TRUE, False),
            3: (Kind.BYTE, 200),
            19: (Kind.I16, -1),
            400: (Kind.I64, -(2**63)),
            401: (Kind.DOUBLE, b"12345678"),
            402: (Kind.LIST, Items(Kind.TRUE, [True, False] * 9)),
            403: (Kind.SET, Items(Kind.I32, [2**31 - 1])),
            404: (Kind.STRUCT, Message({2: (Kind.BINARY, b"x" * 300)})),
        }
    )
    content = encode_message(message)
    found, end = decode_message(b"..." + content + b"more", path="p", start=3)
    assert (found, end) == (message.with_fields(f2=(Kind.FALSE, False)), 3 + len(content))


@pytest.mark.parametrize(
    "content",
    [b"", b"\x1c" * 100, b"\x18\xff\xff\xff\xff\x0f", b"\x19\xfc\xff\xff\xff\xff\x0f", b"\x16" + b"\xff" * 12, b"\x1d"],
    ids=["empty", "deep", "long text", "long list", "long number", "unknown kind"],
)
def test_hostile_messages_are_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_message(content, path="p")


def test_a_footer_whose_pages_lie_outside_of_the_file_is_corrupt() -> None:
    content = a_file()
    size = footer_size(content[-TAIL_SIZE:], len(content), path="p")
    start = len(content) - TAIL_SIZE - size
    with pytest.raises(CorruptFile, match="expected pages within 60 bytes"):
        decode_footer(content[start:-TAIL_SIZE], 60, path="p")
    with pytest.raises(CorruptFile, match="a footer within the file"):
        footer_size(content[-TAIL_SIZE:], size, path="p")
    with pytest.raises(CorruptFile, match="PAR1"):
        footer_size(b"12345678", 100, path="p")
