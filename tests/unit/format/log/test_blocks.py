"""A block misread is a row lost or a delete undone; a torn one must cost itself and nothing after it.

The worked examples of the format document and files written by Apache Hudi pin the bytes. Broken lengths
must give CORRUPT blocks, broken insides CorruptFile, and nothing else.
"""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.log import headers
from pyhudi.format.log.block import MAGIC, BlockType, HeaderKey, encode_block
from pyhudi.format.log.data import ROW_TYPES, read_batches, read_row_count
from pyhudi.format.log.delete import no_deletes, read_deletes
from pyhudi.format.log.reader import SEARCH_SIZE_BYTES, read_blocks, scan_log
from pyhudi.format.log.writer import encode_avro_block, encode_delete_block, encode_hfile_block, encode_rollback_block
from tests.support.logs import CountedLog, header, rows, scanned, small_log

GOLDEN = Path(__file__).parents[3] / "golden" / "bytes"

ROLLBACK = bytes.fromhex(
    "23 48 55 44 49 23 00 00 00 00 00 00 00 5b 00 00 00 01 00 00 00 00 00 00 00 03"
    "00 00 00 00 00 00 00 11 3230323631313231313131333032343438"
    "00 00 00 01 00 00 00 11 3230323631313231313131323539333733"
    "00 00 00 03 00 00 00 01 30"
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 61"
)


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def test_the_rollback_block_of_the_format_document():
    encoded = encode_rollback_block(instant_time="20261121111302448", target_instant_time="20261121111259373")
    assert encoded == ROLLBACK
    (block,) = read_blocks(ROLLBACK, path="x")
    assert (block.type, block.offset, block.size, bytes(block.read_content())) == (BlockType.COMMAND, 0, 105, b"")
    assert block.header == {
        HeaderKey.INSTANT_TIME: "20261121111302448",
        HeaderKey.TARGET_INSTANT_TIME: "20261121111259373",
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }


def test_the_rollback_block_of_hudi():
    (block,) = read_blocks(golden("rollback_h0150.log"), path="x")
    assert block.type is BlockType.COMMAND
    encoded = encode_rollback_block(
        instant_time=block.header[HeaderKey.INSTANT_TIME],
        target_instant_time=block.header[HeaderKey.TARGET_INSTANT_TIME],
    )
    assert sorted(encoded) == sorted(golden("rollback_h0150.log"))  # Hudi's order of header entries is a hash map's


def test_the_first_block_of_a_new_file_group():
    expected = golden("init_h120.log")
    assert encode_delete_block(no_deletes(), instant_time="00000000000000000") == expected
    (block,) = read_blocks(expected, path="x")
    assert block.read_content() == bytes.fromhex("00000003 00000001 00")


def test_a_data_block_of_hudi():
    data = golden("record_index_h120.log")
    (block,) = read_blocks(data, path="x")
    assert block.type is BlockType.HFILE_DATA
    reader = HFileReader(block.read_content(), path="x")
    assert reader.schema_text == block.header[HeaderKey.SCHEMA]
    assert len(list(reader.scan())) == reader.entry_count > 0
    assert data[block.content_offset :].startswith(b"DATABLK*")
    encoded = encode_hfile_block(
        block.read_content(),
        instant_time=block.header[HeaderKey.INSTANT_TIME],
        schema_text=block.header[HeaderKey.SCHEMA],
    )
    (again,) = read_blocks(encoded, path="x")
    assert (again.header, bytes(again.read_content()), again.size) == (
        block.header,
        bytes(block.read_content()),
        block.size,
    )


header_maps = st.dictionaries(st.sampled_from(HeaderKey), st.text(max_size=20))
written_types = st.sampled_from([kind for kind in BlockType if kind is not BlockType.CORRUPT])
block_lists = st.lists(st.tuples(written_types, header_maps, st.binary(max_size=60)), max_size=5)


@given(block_lists)
def test_blocks_round_trip(parts):
    data = b"".join(encode_block(*part) for part in parts)
    found = list(read_blocks(data, path="x"))
    assert [(block.type, block.header, bytes(block.read_content())) for block in found] == parts
    assert sum(block.size for block in found) == len(data)
    assert all(data[b.content_offset : b.content_offset + b.content_size] == b.read_content() for b in found)


@given(st.integers(6, 104), st.integers(0, 5))
def test_a_torn_block_costs_itself_only(cut, trailing):
    torn = ROLLBACK[:cut]
    following = encode_delete_block(no_deletes(), instant_time="1")
    found = list(read_blocks(torn + following + b"#HUDI#"[:trailing], path="x"))
    left = [BlockType.CORRUPT] * (trailing > 0)
    assert [block.type for block in found] == [BlockType.CORRUPT, BlockType.DELETE, *left]
    assert all(block.damage is not None and block.damage.is_torn for block in (found[0], *found[2:]))
    assert (found[0].offset, found[0].size, bytes(found[0].read_content())) == (0, cut, torn)
    (alone,) = read_blocks(torn, path="x")
    assert (alone.type, alone.size) == (BlockType.CORRUPT, cut)


def test_a_length_that_runs_beyond_the_next_block_is_corrupt():
    wrong = bytearray(ROLLBACK)
    wrong[13] += 105
    found = list(read_blocks(bytes(wrong) + ROLLBACK + ROLLBACK, path="x"))
    assert [block.type for block in found] == [BlockType.CORRUPT, BlockType.COMMAND, BlockType.COMMAND]


def test_bytes_that_are_no_block_are_corrupt():
    with pytest.raises(CorruptFile, match="at byte 0: expected log block magic #HUDI#, found 00"):
        list(read_blocks(b"\0" * 6, path="x"))
    for size in (1, 5, 6, 2000):
        whole, rest = read_blocks(ROLLBACK + b"\0" * size, path="x")
        assert (whole.type, whole.size) == (BlockType.COMMAND, len(ROLLBACK))  # Apache Hudi would drop it, from 6 on
        assert (rest.type, rest.offset, rest.size) == (BlockType.CORRUPT, len(ROLLBACK), size)


@pytest.mark.parametrize(
    "at, value, error, match",
    [
        (17, 0, Unsupported, "before Hudi 0.5"),
        (17, 2, CorruptFile, "log format version 1"),
        (21, 2, CorruptFile, "a block type"),
        (21, 7, CorruptFile, "a block type"),
        (25, 200, CorruptFile, "header entries"),
        (29, 9, CorruptFile, "newer release"),
        (33, 200, CorruptFile, "header entry's text"),
        (34, 0xFF, CorruptFile, "UTF-8"),
        (92, 1, CorruptFile, "."),
    ],
)
def test_a_broken_inside_is_corrupt_and_says_where(at, value, error, match):
    broken = bytearray(ROLLBACK)
    broken[at] = value
    with pytest.raises(error, match=match):
        list(read_blocks(bytes(broken), path="x"))
    found = scanned(bytes(broken) + ROLLBACK)
    assert [(block.type, block.size) for block in found] == [(BlockType.CORRUPT, 105), (BlockType.COMMAND, 105)]
    assert found[0].damage is not None
    assert not found[0].damage.is_torn
    assert isinstance(found[0].damage.error, error)


@given(st.binary(max_size=300), block_lists, st.data())
def test_random_and_flipped_bytes_never_raise_anything_else(noise, parts, data):
    whole = bytearray(b"".join(encode_block(*part) for part in parts) + noise)
    for _ in range(data.draw(st.integers(0, 4)) if whole else 0):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptFile, Unsupported):
        list(read_blocks(bytes(whole), path="x"))


# Damage, and what a scan reads.


def tiles(data: bytes) -> list:
    """The blocks of a scan, which must cover the data exactly."""
    found = scanned(data)
    at = 0
    for block in found:
        assert block.offset == at
        at += block.size
    assert at == len(data)
    return found


def summary(block, shift: int = 0) -> tuple:
    return block.type, block.offset + shift, block.size, dict(block.header)


LOG = small_log()
WHOLE = b"".join(LOG)
SOUND = tiles(WHOLE)


def test_a_cut_at_any_byte_costs_the_block_that_it_cuts() -> None:
    for cut in range(len(WHOLE)):
        found = tiles(WHOLE[:cut])
        whole = [block for block in SOUND if block.offset + block.size <= cut]
        assert list(map(summary, found[: len(whole)])) == list(map(summary, whole))
        assert all(block.damage is not None and block.damage.is_torn for block in found[len(whole) :])
        assert (len(found) > len(whole)) == (cut not in {0, *(block.offset for block in SOUND)})


def test_a_cut_at_any_byte_hides_no_later_block() -> None:
    for cut in range(len(LOG[0])):
        found = tiles(LOG[0][:cut] + WHOLE[len(LOG[0]) :])
        assert list(map(summary, found[-5:])) == [summary(block, cut - len(LOG[0])) for block in SOUND[1:]]
        assert len(found) == 5 + (cut > 0)


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_costs_no_other_block(flip: int) -> None:
    for at in range(len(WHOLE)):
        broken = bytearray(WHOLE)
        broken[at] ^= flip
        found = {block.offset: block for block in tiles(bytes(broken))}
        for block in SOUND:
            if not block.offset <= at < block.offset + block.size:
                assert summary(found[block.offset]) == summary(block), (at, block)


def read_anything(block) -> None:
    if block.type in ROW_TYPES:
        list(read_batches(block))
        read_row_count(block)
    elif block.type is BlockType.DELETE:
        read_deletes(block)
    elif block.type is BlockType.COMMAND:
        headers.rolled_back_instant(block)


@pytest.mark.parametrize("flip", [0x01, 0x80])
def test_blocks_with_a_flipped_byte_are_read_or_corrupt(flip: int) -> None:
    for block in SOUND:
        stored = WHOLE[block.offset : block.offset + block.size]
        for at in range(0, len(stored), 1 if len(stored) < 600 else 7):
            broken = bytearray(stored)
            broken[at] ^= flip
            for one in scanned(bytes(broken)):
                with contextlib.suppress(CorruptFile, Unsupported):
                    read_anything(one)


def test_the_next_block_is_found_across_the_windows_of_the_search() -> None:
    for shift in range(-8, 9):
        torn = ROLLBACK[:20] + b"x" * (SEARCH_SIZE_BYTES - 20 + len(MAGIC) + shift)
        found = tiles(torn + ROLLBACK)
        assert [block.type for block in found] == [BlockType.CORRUPT, BlockType.COMMAND]


def test_a_scan_reads_heads_and_ends_not_contents() -> None:
    big = encode_avro_block([rows(60_000, text="t" * 100)], header())
    source = CountedLog(big * 5)
    found = list(scan_log(source, len(source.data), path="x"))
    assert [block.type for block in found] == [BlockType.AVRO_DATA] * 5
    assert len(source.reads) <= 6
    assert max(size for _, size in source.reads) <= 1 << 16
    small = CountedLog(WHOLE)
    assert len(list(scan_log(small, len(WHOLE), path="x"))) == len(LOG)
    assert small.reads == [(0, len(WHOLE))]


def test_a_log_that_is_shorter_than_listed_is_corrupt() -> None:
    source = CountedLog(WHOLE)
    with pytest.raises(CorruptFile, match="The file has changed"):
        list(scan_log(source, len(WHOLE) + 10, path="x"))
