"""A delete lost brings a row back; one with the wrong ordering value beats a row that it should not.

The worked examples of the format document, files of Apache Hudi, Avro's own reader and random values; the Kryo form of
old releases is made here by its rules.
"""

import contextlib
import struct
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.log import headers
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.delete import DELETES, decode_delete_content, encode_delete_content, make_deletes, read_deletes
from pyhudi.format.log.ordering import OrderingKind, is_commit_time, unwrap_ordering
from pyhudi.format.log.reader import read_blocks

GOLDEN = Path(__file__).parents[3] / "golden" / "bytes"


def deletes(keys: list, partitions: list, *ordering: pa.Array) -> pa.RecordBatch:
    return make_deletes(pa.array(keys, pa.string()), pa.array(partitions, pa.string()), ordering)


def ordering_of(batch: pa.RecordBatch, *types: pa.DataType) -> list:
    return [column.to_pylist() for column in unwrap_ordering(batch.column(2), batch.column(3), types)]


def decoded(content: bytes) -> pa.RecordBatch:
    return decode_delete_content(content, path="x")


@pytest.mark.parametrize(
    "batch, expected",
    [
        (deletes(["y"], [""]), "00 00 00 03 00 00 00 09 02 02 02 79 02 00 04 00 00"),
        (
            deletes(["6", "8"], ["p=0", "p=0"]),
            "00000003 00000016 04 02 02 36 02 06 70 3d 30 04 00 02 02 38 02 06 70 3d 30 04 00 00",
        ),
        (deletes([], []), "00000003 00000001 00"),
    ],
)
def test_delete_contents_of_the_format_document(batch, expected):
    assert encode_delete_content(batch) == bytes.fromhex(expected)
    assert decoded(bytes.fromhex(expected)).equals(batch)


def test_a_delete_block_of_hudi():
    (block,) = read_blocks((GOLDEN / "deletes_h120.log").read_bytes(), path="x")
    batch = read_deletes(block)
    assert batch.select([0, 1]).to_pylist() == [{"record_key": "k0005", "partition_path": "p1"}]
    assert is_commit_time(batch.column(2), batch.column(3)).to_pylist() == [True]
    assert encode_delete_content(batch) == block.read_content()
    assert headers.record_positions(block, 1) is None


COLUMNS = {
    "BOOLEAN": pa.array([True, False, None]),
    "INT": pa.array([5, -(2**31), None], pa.int32()),
    "LONG": pa.array([5, 2**63 - 1, None], pa.int64()),
    "FLOAT": pa.array([0.5, -1.0, None], pa.float32()),
    "DOUBLE": pa.array([0.1, 1e300, None], pa.float64()),
    "BYTES": pa.array([b"", b"\xff", None], pa.binary()),
    "STRING": pa.array(["", "é🙂", None], pa.string()),
    "DATE": pa.array([date(2026, 1, 1), date(1969, 1, 1), None], pa.date32()),
    "DECIMAL": pa.array([Decimal("1.25"), Decimal("-999.99"), None], pa.decimal128(10, 2)),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_ordering_values_of_each_type_come_back(kind):
    column = COLUMNS[kind]
    batch = deletes(["a", "b", "c"], ["p", "p", None], column)
    assert batch.column(2).to_pylist() == [OrderingKind[kind], OrderingKind[kind], OrderingKind.INT]
    again = decoded(encode_delete_content(batch))
    assert again.equals(batch)
    assert ordering_of(again, column.type) == [column.to_pylist()]
    assert is_commit_time(again.column(2), again.column(3)).to_pylist() == [False, False, True]
    other = pa.string() if kind != "STRING" else pa.float32()
    assert ordering_of(again, other) == [[None] * 3]  # values of another class compare with nothing


@pytest.mark.parametrize("columns, expected", [(1, True), (2, True), (3, False)])
def test_a_delete_with_fewer_values_than_ordering_columns_has_none(columns, expected):
    """As earlier pyhudi stored it: the values of ordering columns that are also key or partition columns."""
    values = [pa.array([5], pa.int64()), pa.array(["x"]), pa.array([1], pa.int32())]
    batch = make_deletes(pa.array(["a"]), pa.array(["p"]), values[:columns])
    assert is_commit_time(batch.column(2), batch.column(3), 3).to_pylist() == [expected]


@pytest.mark.parametrize(
    "stored, kind, expected",
    [
        (pa.array([5, -(2**31), None], pa.int32()), pa.int64(), [5, -(2**31), None]),
        (pa.array([5, -(2**31), None], pa.int32()), pa.float32(), [5.0, -(2.0**31), None]),
        (pa.array([5, -(2**31), None], pa.int32()), pa.float64(), [5.0, -(2.0**31), None]),
        (pa.array([5, 2**53 + 1, None], pa.int64()), pa.float64(), [5.0, 2.0**53, None]),
        (pa.array([0.1, float("-inf"), None], pa.float32()), pa.float64(), [0.1, float("-inf"), None]),
    ],
)
def test_numbers_count_as_the_type_that_their_column_widened_to(
    stored: pa.Array, kind: pa.DataType, expected: list
) -> None:
    one = deletes(["a", "b", "c"], ["", "", ""], stored)
    assert ordering_of(decoded(encode_delete_content(one)), kind) == [expected]
    assert ordering_of(one.slice(1), kind) == [expected[1:]]
    two = deletes(["a", "b", "c"], ["", "", ""], stored, stored)
    assert ordering_of(decoded(encode_delete_content(two)), kind, stored.type) == [expected, stored.to_pylist()]


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_timestamps_are_wrapped_as_the_long_that_stores_them(unit, zone):
    kind = pa.timestamp(unit, zone)
    column = pa.array([1_700_000_000_123, None], pa.int64()).view(kind)
    batch = decoded(encode_delete_content(deletes(["a", "b"], ["p", "p"], column)))
    assert batch.column(3).field("long").to_pylist() == [1_700_000_000_123, None]
    assert unwrap_ordering(batch.column(2), batch.column(3), [kind])[0].equals(column)


def test_several_ordering_columns_make_a_list():
    columns = [pa.array([1, None, None], pa.int64()), COLUMNS["DATE"], pa.array(["x", None, None])]
    batch = deletes(["a", "b", "c"], ["", "", ""], *columns)
    assert batch.column(2).to_pylist() == [OrderingKind.ARRAY, OrderingKind.ARRAY, OrderingKind.INT]
    again = decoded(encode_delete_content(batch))
    assert again.equals(batch)
    assert ordering_of(again, pa.int64(), pa.date32(), pa.string()) == [column.to_pylist() for column in columns]
    assert ordering_of(again, pa.int64(), pa.date32()) == [[None] * 3] * 2  # not the table's number of columns
    assert ordering_of(again.slice(1), pa.int64(), pa.date32(), pa.string()) == [c.to_pylist()[1:] for c in columns]
    two = deletes(["a"], [""], pa.array([1], pa.int64()), pa.array([2], pa.int64()))
    assert ordering_of(decoded(encode_delete_content(two)), pa.int64(), pa.int64()) == [[1], [2]]


texts = st.one_of(st.none(), st.text(max_size=8))


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, texts, st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), texts), max_size=8))
def test_delete_contents_round_trip(records):
    keys, partitions, numbers, words = (list(column) for column in zip(*records, strict=True)) if records else ([],) * 4
    columns = pa.array(numbers, pa.int64()), pa.array(words, pa.string())
    for ordering in ((), columns[:1], columns[1:], columns):
        batch = deletes(keys, partitions, *ordering)
        content = encode_delete_content(batch)
        again = decoded(content)
        assert again.schema == DELETES
        assert again.equals(batch)
        assert encode_delete_content(again) == content
        rest = batch.slice(len(keys) // 2)  # columns that do not start where their buffers do
        assert decoded(encode_delete_content(rest)).equals(rest)


@pytest.mark.parametrize("column", [
    pa.array([Decimal("1e15")], pa.decimal128(38, 2)),
    pa.array([Decimal("1e-16")], pa.decimal128(38, 16)),
    pa.array([[1]], pa.list_(pa.int64())),
])  # fmt: skip
def test_ordering_values_that_do_not_fit_are_invalid(column):
    with pytest.raises(Invalid, match="delete record"):
        deletes(["k"], ["p"], column)


def test_kinds_that_the_values_are_not_of_are_invalid():
    batch = deletes(["k"], ["p"], pa.array([1], pa.int64()))
    wrong = batch.set_column(2, DELETES.field(2), pa.array([OrderingKind.STRING], pa.int8()))
    with pytest.raises(Invalid, match="'long'"):
        encode_delete_content(wrong)
    with pytest.raises(Invalid, match="expected the columns"):
        encode_delete_content(batch.select([0, 1]))


@given(st.binary(max_size=60), st.data())
def test_broken_delete_contents_never_raise_anything_else(noise, data):
    batch = deletes(["a", "b"], ["p", None], pa.array([1, None], pa.int64()), pa.array(["x", "y"]))
    content = bytearray(encode_delete_content(batch))
    for _ in range(3):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    framed = [version.to_bytes(4, "big") + len(noise).to_bytes(4, "big") + noise for version in (1, 2, 3)]
    for one in (bytes(content), bytes(content)[: len(content) // 2], *framed, noise):
        with contextlib.suppress(CorruptFile, Unsupported):
            decoded(one)


# Kryo.


class Kryo:
    """Java's Kryo, as far as delete records go. Spec: format/log-format.md section 2.4."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.names: dict[str, int] = {}
        self.objects: dict[object, int] = {}
        self.count = 0

    def number(self, value: int) -> None:
        while value > 0x7F:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)

    def string(self, text: str) -> None:
        if 1 < len(text) < 64 and text.isascii():
            self.out += text[:-1].encode() + bytes([ord(text[-1]) | 0x80])
            return
        units = struct.unpack(f">{len(text.encode('utf-16-be')) // 2}H", text.encode("utf-16-be"))
        length = len(units) + 1
        self.out.append(0x80 | length & 0x3F | (0x40 if length > 0x3F else 0))
        if length > 0x3F:
            self.number(length >> 6)
        for unit in units:
            self.out += chr(unit).encode("utf-8", "surrogatepass")

    def name(self, name: str) -> None:
        self.out.append(1)
        is_new = name not in self.names
        self.number(self.names.setdefault(name, len(self.names)))
        if is_new:
            self.string(name)

    def text(self, text: str | None, token: object) -> None:
        """A string behind its mark: equal tokens are one object."""
        if text is None:
            self.out.append(0)
        elif token in self.objects:
            self.number(self.objects[token] + 2)
        else:
            self.objects[token] = self.first()
            self.string(text)

    def first(self) -> int:
        self.out.append(1)
        self.count += 1
        return self.count - 1

    def key(self, partition: str | None, key: str | None, row: int) -> None:
        self.name("org.apache.hudi.common.model.HoodieKey")
        self.first()
        self.text(partition, ("partition", partition))
        self.text(key, ("key", row))

    def ordering(self, value: object, row: int) -> None:
        match value:
            case None:
                self.out.append(0)
            case ("int", int(number)) | ("long", int(number)):
                self.out.append(2 if value[0] == "int" else 9)
                zigzag = (number << 1) ^ (number >> 63)
                self.long(zigzag & 0xFFFF_FFFF_FFFF_FFFF)
            case float():
                self.out.append(0x0A)
                self.out += struct.pack(">d", value)
            case bool():
                self.out += bytes([5, value])
            case str():
                self.out.append(3)
                self.text(value, ("ordering", row))
            case ("utf8", str(text)):
                self.out.append(0x1D)
                self.first()
                self.number(len(text.encode()) + 1)
                self.out += text.encode()
            case ("timestamp", int(millis)):
                self.name("java.sql.Timestamp")
                self.first()
                self.long(millis)

    def long(self, value: int) -> None:
        for _ in range(8):
            if value < 0x80:
                self.out.append(value)
                return
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)


def kryo_content(records: list[tuple], *, version: int = 2) -> bytes:
    kryo = Kryo()
    kind = "DeleteRecord" if version == 2 else "HoodieKey"
    kryo.name(f"[Lorg.apache.hudi.common.model.{kind};")
    kryo.first()
    kryo.number(len(records) + 1)
    for row, (partition, key, ordering) in enumerate(records):
        if version == 2:
            kryo.name("org.apache.hudi.common.model.DeleteRecord")
            kryo.first()
        kryo.key(partition, key, row)
        if version == 2:
            kryo.ordering(ordering, row)
    return struct.pack(">ii", version, len(kryo.out)) + bytes(kryo.out)


DOCUMENT = (
    "01 00 5b4c 6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f7264 bb 01 03"
    "01 01 6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f72 e4 01"
    "01 02 6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65 f9 01"
    "70 3d b0"
)


def test_the_kryo_form_of_the_format_document():
    content = kryo_content([("p=0", "k1", ("int", 0)), ("p=0", "key2", ("int", 0))])
    assert content[8:].hex().startswith(DOCUMENT.replace(" ", "").removesuffix("703db0"))
    batch = decoded(content)
    assert batch.equals(deletes(["k1", "key2"], ["p=0", "p=0"]))


def test_the_kryo_blocks_of_hudi():
    data, block = read_blocks((GOLDEN / "data_and_deletes_h0131.log").read_bytes(), path="x")
    assert (data.type, block.type) == (BlockType.AVRO_DATA, BlockType.DELETE)
    assert read_deletes(block).equals(deletes(["k1"], ["p"], pa.array([5], pa.int64())))
    (block,) = read_blocks((GOLDEN / "init_h0131.log").read_bytes(), path="x")
    assert read_deletes(block).num_rows == 0


def test_kryo_keys_of_version_1():
    batch = decoded(kryo_content([("p", "a", None), ("p", "b", None), (None, "long " * 40, None)], version=1))
    assert batch.equals(deletes(["a", "b", "long " * 40], ["p", "p", None]))


ORDERINGS = st.one_of(
    st.none(),
    st.integers(-(2**31), 2**31 - 1).map(lambda number: ("int", number)),
    st.integers(-(2**63), 2**63 - 1).map(lambda number: ("long", number)),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text(max_size=70),
    st.text(max_size=9).map(lambda text: ("utf8", text)),
    st.integers(0, 2**41).map(lambda number: ("timestamp", number)),
)
WORDS = st.one_of(st.none(), st.text(max_size=70), st.text("abc", min_size=60, max_size=70))


@given(st.lists(st.tuples(st.sampled_from(["", "p", "é/🙂", None]), WORDS, ORDERINGS), max_size=8))
def test_kryo_deletes_are_read(records):
    batch = decoded(kryo_content(records))
    assert batch.column(0).to_pylist() == [key for _, key, _ in records]
    assert batch.column(1).to_pylist() == [partition for partition, _, _ in records]
    for row, (_, _, ordering) in enumerate(records):
        members = {name: value for name, value in batch.column(3)[row].as_py().items() if value is not None}
        kind = OrderingKind(batch.column(2)[row].as_py())
        match ordering:
            case None:
                assert (kind, members) == (OrderingKind.NULL, {})
            case ("timestamp", millis):
                assert kind is OrderingKind.TIMESTAMP_MICROS
                assert batch.column(3).field("timestamp_micros").cast(pa.int64())[row].as_py() == millis * 1000
            case (("int" | "long") as name, number):
                assert (kind, members) == (OrderingKind[name.upper()], {name: number})
            case ("utf8", text):
                assert (kind, members) == (OrderingKind.STRING, {"string": text})
            case _:
                name = {bool: "boolean", float: "double", str: "string"}[type(ordering)]
                assert (kind, members) == (OrderingKind[name.upper()], {name: ordering})


@given(st.lists(st.tuples(st.sampled_from(["p", "é"]), WORDS, ORDERINGS), min_size=1, max_size=4), st.data())
def test_broken_kryo_is_corrupt_or_unsupported(records, data):
    content = bytearray(kryo_content(records))
    for _ in range(2):
        content[data.draw(st.integers(8, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(8, len(content)))])
    for one in (bytes(content), struct.pack(">ii", 2, len(cut) - 8) + cut[8:]):
        with contextlib.suppress(CorruptFile, Unsupported):
            decoded(one).validate(full=True)


@pytest.mark.parametrize("byte", [0x80, 0xBF, 0xF0, 0xFF])
def test_a_byte_that_begins_no_character_of_kryo_is_corrupt(byte):
    content = kryo_content([("p", "é" + 20 * "k", ("int", 0))]).replace("é".encode(), bytes([byte, 0x00]))
    with pytest.raises(CorruptFile, match="expected a string, found"):
        decoded(content)


def test_kryo_values_of_other_classes_are_unsupported_by_name():
    content = kryo_content([("p", "k", ("timestamp", 5))]).replace(b"java.sql.Timestam", b"java.sql.Timestaz")
    with pytest.raises(Unsupported, match=r"java\.sql\.Timestaz"):
        decoded(content)
