"""Rows of an ORC file could come in another order, shifted by the writer's time zone, or be taken for damage."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.hfile.varint import encode_bytes_field, encode_varint_field
from pyhudi.format.orc.compression import Compression, encode_message
from pyhudi.format.orc.tail import decode_tail, decode_writer_zone
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.table.slices.base_files.zones import as_instants, instants_of

NAME = "a-0_0-1-2_20260101000000000.orc"
TIMES = [datetime(1969, 12, 31, 23, 59, 59, 998500, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC), None]


def stored(rows: pa.Table, **options: object) -> MemoryStorage:
    storage = MemoryStorage()
    with storage.put_stream(NAME) as sink:
        orc.write_table(rows, sink, **options)
    return storage


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_stripes_are_row_groups(codec: str) -> None:
    texts = [f"{n * 2_654_435_761 % 2**32:x}" for n in range(120_000)]
    rows = pa.table({"n": range(120_000), "text": texts})
    file = open_base_file(stored(rows, compression=codec, stripe_size=100_000, batch_size=1_000), NAME)

    assert len(file.group_rows) > 2
    assert sum(file.group_rows) == file.row_count == 120_000
    assert file.read(["text", "n"]).equals(rows.select(["text", "n"]))
    first = file.group_rows[0]
    assert file.read(["n"], groups=[1]).column("n")[0].as_py() == first
    assert [len(batch) for batch in file.batches([], groups=[0], batch_rows=first)] == [first]


def test_clock_readings_are_instants_of_microseconds() -> None:
    kind = pa.timestamp("us", "UTC")
    nested = pa.struct([("at", kind), ("all", pa.list_(kind))])
    rows = pa.table({"at": pa.array(TIMES, kind), "in": pa.array([{"at": t, "all": [t]} for t in TIMES], nested)})
    plain = pa.table({"at": rows.column("at").cast(pa.timestamp("us")), "in": rows.column("in")})

    read = open_base_file(stored(plain), NAME).read(["at", "in"])

    assert read.column("at").to_pylist() == TIMES
    assert read.column("in").to_pylist() == rows.column("in").to_pylist()
    assert read.schema.field("in").type.field("at").type == kind


def test_clock_readings_of_another_zone_are_moved() -> None:
    clock = pa.array([datetime(2026, 7, 1, 12), datetime(2026, 1, 1, 12), None], pa.timestamp("ns"))

    moved = as_instants(clock, instants_of(clock.type), "America/New_York")

    assert moved.to_pylist() == [datetime(2026, 7, 1, 16, tzinfo=UTC), datetime(2026, 1, 1, 17, tzinfo=UTC), None]


def test_the_writers_zone_is_read() -> None:
    assert decode_writer_zone(encode_bytes_field(3, b"Europe/Berlin"), path="f") == "Europe/Berlin"
    assert decode_writer_zone(b"", path="f") is None


def test_times_that_pyarrow_cannot_hold_are_refused_not_damage() -> None:
    """Nanoseconds in 64 bits end in 2262."""
    late = 9_999_999_999_999 * 2
    statistics = encode_bytes_field(9, encode_varint_field(3, 0) + encode_varint_field(4, late))
    tail = decode_tail(encode_bytes_field(2, encode_bytes_field(7, b"") + encode_bytes_field(7, statistics)), path="f")
    assert tail.timestamp_bounds_ms == {1: (0, late // 2)}

    storage = stored(pa.table({"n": [1], "at": pa.array([datetime(2300, 1, 1)], pa.timestamp("us"))}))
    file = open_base_file(storage, NAME)
    assert file.read(["n"]).num_rows == 1
    with pytest.raises(Unsupported, match=r"orc: a timestamp before 1677 or after 2262"):
        file.read(["at"])


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZLIB, Compression.ZSTD])
def test_messages_of_any_codec_are_read(codec: Compression) -> None:
    content = bytes(range(256)) * 40_000
    assert codec.decode(encode_message(content, codec, chunk_bytes=1_000), path="f") == content


@pytest.mark.parametrize("codec, name", [(Compression.SNAPPY, "snappy"), (Compression.LZ4, "lz4_raw")])
@pytest.mark.parametrize(
    "content", [b"", b"abc", b"a" * 1_000, b"of times and of columns " * 999, bytes(range(256)) * 9]
)
def test_blocks_of_any_codec_are_decoded(codec: Compression, name: str, content: bytes) -> None:
    block = pa.compress(content, codec=name, asbytes=True)
    message = (len(block) << 1).to_bytes(3, "little") + block
    assert codec.decode(message, path="f") == content
    if content:
        cut = block[:-1]
        with pytest.raises(CorruptFile):
            codec.decode((len(cut) << 1).to_bytes(3, "little") + cut, path="f")


def test_a_file_that_is_cut_says_which() -> None:
    storage = stored(pa.table({"n": range(1_000)}))
    storage.put(NAME, storage.get(NAME)[:-40])
    with pytest.raises(CorruptFile, match=f"{NAME}.*expected a whole ORC file"):
        open_base_file(storage, NAME)


def test_a_format_that_is_not_read_is_named() -> None:
    with pytest.raises(Unsupported, match=r"a_b_c\.avro: a base file of a format that is not read: expected one of"):
        open_base_file(MemoryStorage(), "p/a_b_c.avro")
