"""A wrong byte in an HFile hides files or keys from every engine; a lax reader returns garbage as a row.

Files written by Apache Hudi pin the bytes, round trips pin reader and writer to each other, and any cut or
flipped byte must end in CorruptFile, or Unsupported where it happens to name another codec.
"""

import contextlib
import io
import json
import struct
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import Bug, CorruptFile, Invalid, Unsupported
from pyhudi.format.hfile import block as blocks
from pyhudi.format.hfile.checksum import ChecksumType, crc32c
from pyhudi.format.hfile.index import (
    IndexEntry,
    decode_root_index,
    encode_key,
    encode_root_index,
)
from pyhudi.format.hfile.origin import Origin
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.hfile.trailer import (
    NO_OFFSET,
    Codec,
    Trailer,
    decode_trailer,
    encode_file_info,
    encode_trailer,
)
from pyhudi.format.hfile.varint import decode_hvint, encode_hvint, encode_varint
from pyhudi.format.hfile.writer import encode_hfile, encode_hfile_table
from pyhudi.format.keys.bloom import BloomFilter

GOLDEN = Path(__file__).parents[3] / "golden" / "bytes"
GOLDEN_FILES = ("files_h0150.hfile", "files_h102.hfile", "files_h120.hfile", "record_index_h120.hfile")
HBASE_FILES = ("files_h0150.hfile", "files_h102.hfile")
ORIGIN = Origin("x", 0)

WORKED_EXAMPLE = bytes.fromhex(
    "44415441424C4B2A 00000033 0000002F FFFFFFFFFFFFFFFF 00 00004000 00000050"
    "0000000D 00000001 0001 61 00 7FFFFFFFFFFFFFFF 04 31 00"
    "0000000D 00000002 0001 62 00 7FFFFFFFFFFFFFFF 04 3232 00"
    "00000000"
)

cell_lists = st.dictionaries(st.binary(min_size=1, max_size=60), st.binary(max_size=300), max_size=40).map(
    lambda cells: sorted(cells.items())
)


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def read(data: bytes) -> HFileReader:
    return HFileReader(data, path="x")


def block_payloads(data: bytes) -> list[tuple[bytes, bytes]]:
    """Magic and payload of each block, walking the file from its start."""
    view, offset = memoryview(data), 0
    codec = decode_trailer(view, "x").codec
    found = []
    while offset < len(data) - 4096:
        magic = data[offset : offset + 8]
        block = blocks.decode_block(view, offset, magic=magic, codec=codec, path="x")
        found.append((magic, block.payload))
        offset += block.size
    return found


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_files_of_hudi_decode(name):
    reader = read(golden(name))
    cells = list(reader.scan())
    assert len(cells) == reader.entry_count > 0
    assert reader.file_info["minRecordKey"] == cells[0][0]
    assert reader.file_info["maxRecordKey"] == cells[-1][0]
    schema = fastavro.parse_schema(json.loads(str(reader.schema_text)))
    for _, value in cells:
        stream = io.BytesIO(value)
        record = fastavro.schemaless_reader(stream, schema, None)
        assert isinstance(record, dict)
        assert record["key"] == ""
        assert stream.read() == b""
    bloom = BloomFilter.decode("DYNAMIC_V0", reader.meta("bloomFilter") or b"")
    assert bloom.may_contain(pa.array([key for key, _ in cells], pa.binary())).false_count == 0
    assert reader.meta("other") is None


def test_a_record_index_file_answers_lookups():
    reader = read(golden("record_index_h120.hfile"))
    cells = dict(reader.scan())
    keys = sorted([*cells, *(key + b"x" for key in cells), b"", b"zz"])
    assert reader.get(keys) == [cells.get(key) for key in keys]
    some = next(iter(cells))[:3]
    assert list(reader.prefix([some])) == [cell for cell in cells.items() if cell[0].startswith(some)]


@pytest.mark.parametrize("name", HBASE_FILES)
def test_the_writer_gives_the_blocks_and_the_trailer_of_hbases_writer(name):
    data = golden(name)
    reader = read(data)
    ours = encode_hfile(
        reader.scan(),
        schema_text=reader.schema_text,
        block_size=1 << 20,
        min_max_record_key=True,
        file_info={"bloomFilterTypeCode": b"DYNAMIC_V0"},
        meta={"bloomFilter": reader.meta("bloomFilter") or b""},
    )
    assert len(block_payloads(ours)) == 5
    # The same zlib gives the same file; another one may compress otherwise, which moves the offsets.
    theirs = block_payloads(data)
    for (magic, payload), expected in zip(block_payloads(ours), theirs, strict=True):
        assert magic == expected[0]
        if magic != blocks.ROOT_INDEX:
            assert payload == expected[1]
    sizes = [decode_trailer(memoryview(one), "x") for one in (ours, data)]
    assert sizes[0].total_uncompressed_bytes == sizes[1].total_uncompressed_bytes
    assert sizes[0].uncompressed_data_index_size == sizes[1].uncompressed_data_index_size


def test_the_worked_example_of_the_format_document():
    cells = [(b"a", b"1"), (b"b", b"22")]
    found = encode_hfile(cells, schema_text=None, compression="NONE")
    payload = WORKED_EXAMPLE[33:-4]
    framed = blocks.encode_block(blocks.DATA, payload, codec=Codec.NONE, checksum_type=ChecksumType.NULL)
    assert framed == WORKED_EXAMPLE
    assert block_payloads(found)[0] == (blocks.DATA, payload)
    assert found[-4:] == bytes.fromhex("03000003")
    assert list(read(found).scan()) == cells


@settings(deadline=None)
@given(cell_lists, st.sampled_from(["GZ", "NONE"]), st.integers(1, 2000))
def test_what_is_written_is_read(cells, compression, block_size):
    data = encode_hfile(cells, schema_text="{}", compression=compression, block_size=block_size)
    assert data == encode_hfile(cells, schema_text="{}", compression=compression, block_size=block_size)
    reader = read(data)
    assert list(reader.scan()) == cells
    assert reader.scan_arrow().to_pylist() == [{"key": key, "value": value} for key, value in cells]
    assert reader.entry_count == len(cells)
    assert reader.schema_text == "{}"
    assert reader.file_info.get("hfile.LASTKEY") == (encode_key(cells[-1][0]) if cells else None)


@settings(deadline=None)
@given(cell_lists, st.lists(st.binary(max_size=4)), st.integers(1, 500))
def test_lookups_agree_with_a_dict(cells, others, block_size):
    reader = read(encode_hfile(cells, schema_text=None, block_size=block_size))
    stored = dict(cells)
    keys = sorted([*stored, *others])
    assert reader.get(keys) == [stored.get(key) for key in keys]
    expected = [cell for cell in cells if any(cell[0].startswith(prefix) for prefix in others)]
    assert list(reader.prefix(others)) == expected


def test_tables_of_any_layout_give_the_same_file():
    cells = [(f"key_{index:04}", f"{index}" * 9) for index in range(1000)]
    expected = encode_hfile([(key.encode(), value.encode()) for key, value in cells], schema_text=None)
    keys = pa.chunked_array([[key for key, _ in cells[:400]], [key for key, _ in cells[400:]]], pa.string())
    values = pa.array(["", *(value for _, value in cells)], pa.large_string()).slice(1)
    assert encode_hfile_table(pa.table({"key": keys, "value": values}), schema_text=None) == expected


def test_keys_out_of_order_are_a_bug_and_bad_ones_invalid():
    for cells in ([(b"b", b""), (b"a", b"")], [(b"a", b""), (b"a", b"")]):
        with pytest.raises(Bug, match="ascending"):
            encode_hfile(cells, schema_text=None)
    for key in (b"", b"x" * 32_768):
        with pytest.raises(Invalid, match="bytes"):
            encode_hfile([(key, b"")], schema_text=None)
    with pytest.raises(Invalid, match="null"):
        encode_hfile([(b"a", None)], schema_text=None)  # type: ignore[list-item]
    with pytest.raises(Invalid, match="block size"):
        encode_hfile([], schema_text=None, block_size=0)
    longest = [(b"x" * 32_767, b"v")]
    assert list(read(encode_hfile(longest, schema_text=None)).scan()) == longest


def test_no_block_ends_in_a_cell_that_java_would_pass_over():
    """Hudi 1.2.0 loses cells that start in the last bytes of a payload, as many as there are checksums."""
    noise = np.random.default_rng(7).bytes(3_000_000)
    cells = [(b"%06d" % index, noise[20 * index : 20 * index + 20]) for index in range(100_000)]
    data = encode_hfile(cells, schema_text=None, compression="NONE", block_size=1 << 20)
    sizes = [len(payload) for magic, payload in block_payloads(data) if magic == blocks.DATA]
    assert max(sizes) > 64 * 1024
    assert all(4 * -(-(size + 33) // 16384) <= 47 for size in sizes)
    assert read(data).scan_arrow().num_rows == len(cells)


def test_rows_in_the_order_of_java_strings_are_found():
    """Java sorts by UTF-16 units: U+10000 comes before U+FF5E there, after it in UTF-8."""
    keys = ["a", "😀1", "😀2", "～1", "～2"]
    payload = b"".join(
        struct.pack(">ii", len(key.encode()) + 12, 1) + encode_key(key.encode()) + b"v" + b"\0" for key in keys
    )
    reader = read(assemble([payload], [[b"a"]], entry_count=5))
    encoded = [key.encode() for key in keys]
    assert reader.get(encoded) == [b"v"] * 5
    assert reader.get([b"b", "～3".encode()]) == [None, None]
    assert [key for key, _ in reader.prefix(["～".encode()])] == encoded[3:]


def cell(row: bytes, value: bytes) -> bytes:
    return struct.pack(">ii", len(row) + 12, len(value)) + encode_key(row) + value + b"\0"


def assemble(payloads: list[bytes], levels: list[list[bytes]], *, entry_count: int) -> bytes:
    """A file of these data blocks; `levels`: the first rows by index block, one list for a root alone."""
    out = b""

    def append(magic: bytes, payload: bytes) -> IndexEntry:
        nonlocal out
        framed = blocks.encode_block(magic, payload, codec=Codec.NONE)
        out += framed
        return IndexEntry(len(out) - len(framed), len(framed), b"")

    rows = [row for group in levels for row in group]
    entries = [
        IndexEntry(found.offset, found.size, row)
        for row, found in zip(rows, [append(blocks.DATA, payload) for payload in payloads], strict=True)
    ]
    level_count = 1
    for magic in (blocks.LEAF_INDEX, blocks.INTERMEDIATE_INDEX) if len(levels) > 1 else ():
        above, taken = [], 0
        groups = [len(group) for group in levels] if magic == blocks.LEAF_INDEX else [len(entries)]
        for count in groups:
            part, taken = entries[taken : taken + count], taken + count
            bodies = [struct.pack(">qi", one.offset, one.size) + encode_key(one.row) for one in part]
            ends = np.cumsum([0, *map(len, bodies)])
            payload = struct.pack(f">i{len(ends)}i", len(bodies), *ends) + b"".join(bodies)
            found = append(magic, payload)
            above.append(IndexEntry(found.offset, found.size, part[0].row))
        entries, level_count = above, level_count + 1
    root = append(blocks.ROOT_INDEX, encode_root_index(entries))
    append(blocks.ROOT_INDEX, b"")
    info = append(blocks.FILE_INFO, encode_file_info({"KEY_VALUE_VERSION": b"\0\0\0\1"}))
    trailer = Trailer(
        info.offset, root.offset, 0, 0, len(entries), 0, entry_count, level_count, 0, NO_OFFSET, Codec.NONE
    )
    return out + encode_trailer(trailer)


def test_an_index_of_three_levels_is_followed():
    groups = [[b"a", b"c"], [b"e"], [b"g", b"i", b"k"]]
    rows = [row for group in groups for row in group]
    cells = [(row + suffix, row) for row in rows for suffix in (b"", b"1")]
    payloads = [b"".join(cell(row + suffix, row) for suffix in (b"", b"1")) for row in rows]
    reader = read(assemble(payloads, groups, entry_count=12))
    assert list(reader.scan()) == cells
    assert reader.get([b"a", b"b", b"e1", b"k1", b"k2"]) == [b"a", None, b"e", b"k", None]
    assert list(reader.prefix([b"e", b"g"])) == cells[4:8]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 32_767, 65_536])
def test_lengths_round_trip(size):
    assert decode_hvint(encode_hvint(size), 0, ORIGIN) == (size, len(encode_hvint(size)))


def test_lengths_are_those_of_hadoop():
    assert [encode_hvint(size).hex() for size in (0, 127, 128, 255, 256)] == [
        "00",
        "7f",
        "8f80",
        "8fff",
        "8e0100",
    ]


@pytest.mark.parametrize("row_size", [1, 100, 125, 126, 127, 128, 141, 142, 300, 20_000])
@pytest.mark.parametrize("has_suffix", [True, False])
@pytest.mark.parametrize("encode_size", [encode_hvint, encode_varint])
def test_index_keys_are_read_with_either_kind_of_length(row_size, has_suffix, encode_size):
    """Hudi 1.1.1 writes protobuf varints where all others write Hadoop's lengths."""
    row = b"r" * row_size
    key = encode_key(row) if has_suffix else encode_key(row)[:-10]
    payload = (struct.pack(">qi", 7, 9) + encode_size(len(key)) + key) * 2
    assert decode_root_index(payload, 2, ORIGIN, is_meta=False) == [IndexEntry(7, 9, row)] * 2


def test_crc32c_is_castagnolis():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0
    assert crc32c(bytes(32)) == 0x8A9136AA


@pytest.mark.parametrize("kind", list(ChecksumType))
def test_checksums_are_verified_chunk_by_chunk(kind):
    payload = bytes(40_000)
    framed = blocks.encode_block(blocks.DATA, payload, codec=Codec.NONE, checksum_type=kind)
    assert len(framed) == 33 + 40_000 + 12
    broken = bytearray(framed)
    broken[33_000] ^= 1

    def decode(data: bytes) -> blocks.Block:
        return blocks.decode_block(memoryview(data), 0, magic=blocks.DATA, codec=Codec.NONE, path="x")

    assert decode(framed).payload == payload
    if kind is ChecksumType.NULL:
        assert decode(bytes(broken)).payload != payload
    else:
        with pytest.raises(CorruptFile, match="at byte 32,768"):
            decode(bytes(broken))


def test_another_codec_is_unsupported_by_name():
    trailer = Trailer(1, 0, 0, 0, 0, 0, 0, 1, NO_OFFSET, NO_OFFSET, Codec.ZSTD)
    with pytest.raises(Unsupported, match="ZSTD"):
        read(b"xx" + encode_trailer(trailer))


def read_all(data: bytes) -> None:
    reader = HFileReader(data, path="x")
    _ = reader.schema_text
    for name in ("bloomFilter", "m"):
        reader.meta(name)
    reader.scan_arrow()
    list(reader.scan())
    reader.get([b"a", "～".encode()])
    list(reader.prefix([b"k"]))


SMALL = [(b"k%02d" % index, bytes([index]) * 40) for index in range(30)]


@settings(deadline=None, max_examples=300)
@given(st.data(), st.sampled_from(["GZ", "NONE"]))
def test_flipped_bytes_never_raise_anything_else(data, compression):
    whole = bytearray(encode_hfile(SMALL, schema_text="{}", compression=compression, block_size=200, meta={"m": b"x"}))
    message_end = len(whole) - 4096 + 120
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.one_of(st.integers(0, message_end), st.integers(len(whole) - 4, len(whole) - 1)))
        whole[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptFile, Unsupported):
        read_all(bytes(whole))


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_flipped_bytes_without_checksums_never_raise_anything_else(data):
    whole = bytearray(assemble([cell(b"a", b"v") + cell(b"b", b"w"), cell(b"c", b"")], [[b"a"], [b"c"]], entry_count=3))
    whole = bytearray(bytes(whole).replace(b"\x02\0\0\x40\0", b"\0\0\0\x40\0"))
    message_end = len(whole) - 4096 + 120
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, message_end))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptFile, Unsupported):
        read_all(bytes(whole))


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_random_bytes_are_corrupt(start, message):
    trailer = (b'TRABLK"$' + encode_varint(len(message)) + message).ljust(4092, b"\0") + b"\3\0\0\3"
    for data in (start, start + trailer):
        with pytest.raises((CorruptFile, Unsupported)):
            read(data)


@pytest.mark.parametrize("size", [0, 7, 4095, 4096, 5000, 6806])
def test_a_cut_file_is_corrupt(size):
    with pytest.raises(CorruptFile):
        read_all(golden("files_h0150.hfile")[:size])


def test_a_file_that_counts_its_cells_wrongly_is_corrupt():
    reader = read(assemble([cell(b"a", b"v")], [[b"a"]], entry_count=2))
    with pytest.raises(CorruptFile, match="1 cells"):
        list(reader.scan())
