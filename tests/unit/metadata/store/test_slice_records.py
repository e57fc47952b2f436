"""A look-up in a large file group could read all of it, or miss what a scan finds; damage could pass for an answer."""

from hashlib import sha256

import pyarrow as pa
import pytest

from pyhudi.errors import CorruptFile
from pyhudi.format.hfile.writer import encode_hfile
from pyhudi.format.log.delete import make_deletes
from pyhudi.format.log.writer import encode_delete_block, encode_hfile_block
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.metadata.store.slice_records import Keys, Prefixes, Wanted, open_slice
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.file_system_view import BaseFile, FileSlice, LogFile
from pyhudi.testing.counting import CountingStorage

SCHEMA = '{"type": "record", "name": "r", "fields": []}'
BASE = BaseFileName("g-0000-0", "0-0-0", "001", ".hfile")
LOG = LogFileName("g-0000-0", "002", 1, "0-0-0")
Cells = dict[bytes, bytes]


def stored(base: Cells | None, *blocks: bytes) -> tuple[CountingStorage, FileSlice]:
    storage = MemoryStorage()
    base_file = None
    if base is not None:
        content = encode_hfile(sorted(base.items()), schema_text=SCHEMA)
        storage.put(f"p/{BASE.format()}", content)
        base_file = BaseFile(BASE, len(content))
    logs: tuple[LogFile, ...] = ()
    if blocks:
        storage.put(f"p/{LOG.format()}", b"".join(blocks))
        logs = (LogFile(LOG, sum(map(len, blocks))),)
    return CountingStorage(storage), FileSlice("p", "g-0000-0", "001", base_file, logs)


def puts(cells: Cells, instant: str) -> bytes:
    content = encode_hfile(sorted(cells.items()), schema_text=SCHEMA)
    return encode_hfile_block(content, instant_time=instant, schema_text=SCHEMA)


def deletes(keys: list[str], instant: str) -> bytes:
    return encode_delete_block(make_deletes(pa.array(keys), pa.array(["p"] * len(keys))), instant_time=instant)


def read(storage: CountingStorage, piece: FileSlice, wanted: Wanted = None) -> list[tuple[bytes, bytes]]:
    parts = [part.newest() for part in open_slice(storage, piece, lambda instant: instant != "bad").read(wanted)]
    return [pair for part in parts for pair in zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)]


def large(count: int = 60_000) -> Cells:
    return {f"key{i:06d}".encode(): hash_text(i) for i in range(count)}


def hash_text(i: int) -> bytes:
    return sha256(str(i).encode()).digest()


def test_a_look_up_in_a_large_file_reads_little_of_it() -> None:
    cells = large()
    storage, piece = stored(cells)
    assert piece.base_file is not None
    assert piece.base_file.size_bytes > 1 << 20
    assert read(storage, piece, Keys(pa.array([b"absent", b"key000007", b"key059999"]))) == [
        (key, cells[key]) for key in (b"key000007", b"key059999")
    ]
    assert storage.counts["get"] <= 4
    assert storage.bytes_read < piece.base_file.size_bytes / 2
    storage.reset()
    found = read(storage, piece, Prefixes((b"key0000", b"key05999")))
    assert [key for key, _ in found] == [key for key in cells if key.startswith((b"key0000", b"key05999"))]
    assert storage.counts["get"] <= 4
    assert read(storage, piece) == sorted(cells.items())


def test_the_log_is_merged_in_order_whatever_is_asked() -> None:
    base = large(30_000)
    blocks = [
        puts({b"key000003": b"new", b"a": b"first", b"z": b"last", b"key000009": b"x"}, "002"),
        deletes(["key000009", "key000010", "absent"], "003"),
        puts({b"key000010": b"again", b"key000011": b"no"}, "bad"),
        puts({b"key000010": b"back"}, "004"),
    ]
    storage, piece = stored(base, *blocks)
    expected = {**base, b"key000003": b"new", b"a": b"first", b"z": b"last", b"key000010": b"back"}
    del expected[b"key000009"]
    assert read(storage, piece) == sorted(expected.items())
    keys = [b"a", b"absent", b"key000003", b"key000009", b"key000010", b"key000011", b"z"]
    assert read(storage, piece, Keys(pa.array(keys))) == [(key, expected[key]) for key in keys if key in expected]
    some = sorted((key, value) for key, value in expected.items() if key.startswith(b"key00000"))
    assert read(storage, piece, Prefixes((b"key00000",))) == some


def test_keys_that_java_orders_otherwise_are_merged() -> None:
    # Java sorts by UTF-16 units: U+1F600 before U+FF5E, whose bytes are smaller.
    keys = ["a", "\U0001f600", "\uff5e"]
    base = {key.encode(): b"old" for key in keys}
    storage, piece = stored(base, puts({"\uff5e".encode(): b"new", b"b": b"2"}, "002"))
    assert dict(read(storage, piece)) == {**base, "\uff5e".encode(): b"new", b"b": b"2"}


def test_a_group_of_logs_alone() -> None:
    storage, piece = stored(None, puts({b"a": b"1"}, "002"), deletes(["a"], "003"), puts({b"b": b"2"}, "004"))
    assert read(storage, piece) == [(b"b", b"2")]
    assert read(storage, piece, Keys(pa.array([b"a", b"b"]))) == [(b"b", b"2")]


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_damage_names_the_file(at: float) -> None:
    storage, piece = stored(large())
    assert piece.base_file is not None
    path = f"p/{BASE.format()}"
    content = bytearray(storage.get(path))
    place = int(len(content) * at)
    content[place : place + 8] = bytes(byte ^ 0xFF for byte in content[place : place + 8])
    storage.put(path, bytes(content))
    with pytest.raises(CorruptFile, match=BASE.format()):
        read(storage, piece)
    storage.put(path, bytes(content[: len(content) // 2]))
    with pytest.raises(CorruptFile, match=BASE.format()):
        read(storage, piece, Keys(pa.array([b"key000001"])))


def test_damage_of_a_block_in_the_log_names_the_log() -> None:
    block = bytearray(puts(large(2000), "002"))
    block[len(block) // 3] ^= 0xFF
    storage, piece = stored({b"a": b"1"}, bytes(block), puts({b"b": b"2"}, "003"))
    with pytest.raises(CorruptFile, match=r"\.g-0000-0"):
        read(storage, piece)
