"""Delete blocks of table version 5 could hold what Java's Kryo serializer reads otherwise, or 0.13 writes otherwise."""

import random
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from pyhudi.errors import Unsupported
from pyhudi.format.log.delete import decode_delete_content, encode_delete_content, make_deletes, no_deletes
from pyhudi.format.log.kryo import decode_kryo_deletes
from pyhudi.format.log.kryo_writing import refuse_java_ordering
from pyhudi.versions import LogContent

TEXTS = ("", "a", "ab", "é", "a€", "😀b", "x" * 63, "x" * 64, "y" * 70_000, "😀" * 40)
TYPES = {
    pa.int32(): (0, -1, 2**31 - 1, -(2**31)),
    pa.int64(): (0, 5, -5, 2**63 - 1, -(2**63), 1 << 55),
    pa.float32(): (0.5, -1e30),
    pa.float64(): (0.1, -1e300),
    pa.bool_(): (True, False),
    pa.string(): TEXTS,
    pa.date32(): (date(2024, 2, 29), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), date(2000, 3, 1)),
    pa.decimal128(30, 15): (
        *map(Decimal, ("0", "12.34", "-0.01", "1", "-1", "0.000000000000001", "-123456789.5")),
        *map(Decimal, ("999999999999999.999999999999999", "-999999999999999.999999999999999")),
    ),
}


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("count", [0, 1, 9, 2_000])
def test_deletes_come_back(kind: pa.DataType, count: int) -> None:
    draw = random.Random(count)
    keys, partitions = (pa.array([draw.choice(TEXTS[:8]) for _ in range(count)], pa.string()) for _ in range(2))
    values = pa.array([draw.choice((None, *TYPES[kind])) for _ in range(count)], kind)
    deletes = make_deletes(keys, partitions, [values])

    content = encode_delete_content(deletes, LogContent.JAVA)

    assert content[:4] == b"\0\0\0\2"
    assert decode_delete_content(content, path="log").equals(deletes)


def test_the_bytes_are_those_of_java() -> None:
    """Spec: format/log-format.md section 2.4, the example."""
    content = encode_delete_content(make_deletes(pa.array(["k1", "key2"]), pa.array(["p=0", "p=0"])), LogContent.JAVA)
    assert content[8:] == (
        b"\x01\x00[Lorg.apache.hudi.common.model.DeleteRecord\xbb\x01\x03"
        b"\x01\x01org.apache.hudi.common.model.DeleteRecor\xe4\x01\x01\x02org.apache.hudi.common.model.HoodieKe\xf9\x01"
        b"\x01p=\xb0\x01k\xb1\x02\x00\x01\x01\x01\x01\x02\x01\x05\x01key\xb2\x02\x00"
    )
    assert encode_delete_content(no_deletes(), LogContent.JAVA)[4:] == (
        b"\x00\x00\x000\x01\x00[Lorg.apache.hudi.common.model.DeleteRecord\xbb\x01\x01"
    )


HEAD = (
    "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f7264bb01{count:02x}01016f72"
    "672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f72e40101026f72672e6170616368652e687564"
    "692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f901018270016bb0"
)


def test_dates_are_objects_of_java() -> None:
    """Seen: the classes of 0.12.3 and 0.13.1, of `LocalDate.of(2024, 2, 29)`, `(1969, 12, 31)`, `(9999, 12, 31)`."""
    java = bytes.fromhex(
        HEAD.format(count=4) + "01036a6176612e74696d652e4c6f63616c446174e501e80f021d"
        "01010101020105016bb1010301b10f0c1f01010101020105016bb20103018f4e0c1f"
    )
    days = pa.array([date(2024, 2, 29), date(1969, 12, 31), date(9999, 12, 31)])
    deletes = make_deletes(pa.array(["k0", "k1", "k2"]), pa.array(["p"] * 3), [days])
    assert encode_delete_content(deletes, LogContent.JAVA)[8:] == java
    before_christ = java[: -len("016bb20103018f4e0c1f") // 2] + bytes.fromhex("016bb2010301d4ffffff0f030f")
    read = decode_kryo_deletes(memoryview(before_christ), path="log", offset=0)
    assert read.field("ordering").flatten()[7].cast(pa.int32()).to_pylist()[2] == -735_525  # 15 March of the year -44
    again = bytes.fromhex(
        HEAD.format(count=3) + "01036a6176612e74696d652e4c6f63616c446174e501e40f010101010101020105016bb1010307"
    )
    read = decode_kryo_deletes(memoryview(again), path="log", offset=0)
    assert read.field("ordering").flatten()[7].to_pylist() == [date(2020, 1, 1)] * 2


def test_decimals_are_objects_of_java() -> None:
    """Seen: the classes of 0.12.3 and 0.13.1, of `new BigDecimal("12.34")` and so on. Ours have 15 decimals."""
    java = (
        HEAD.format(count=8) + "01036a6176612e6d6174682e426967446563696d61ec010304d204"
        "01010101020105016bb101030102ff0401010101020105016bb201030102000001010101020105016bb30103010200040101010102010501"
        "6bb501030102010001010101020105016bb6010301020a0001010101020105016bb7010301026404"
    )
    read = decode_kryo_deletes(memoryview(bytes.fromhex(java)), path="log", offset=0)
    texts = ["12.34", "-0.01", "0", "0", "1", "10", "1"]
    assert read.field("ordering").flatten()[8].to_pylist() == [Decimal(text) for text in texts]
    ours = encode_delete_content(
        make_deletes(pa.array(["k0"]), pa.array(["p"]), [pa.array([Decimal("12.34")])]), LogContent.JAVA
    )[8:]
    named = "01036a6176612e6d6174682e426967446563696d61ec01"
    unscaled = (12_340_000_000_000_000).to_bytes(7, "big").hex()
    assert ours.hex() == HEAD.format(count=2) + named + "08" + unscaled + "1e"


@pytest.mark.parametrize("value", [*map(Decimal, ("1e15", "-1e15", "1e-16", "1e40", "1e-40"))], ids=str)
def test_a_decimal_that_deletes_do_not_hold_is_told(value: Decimal) -> None:
    sign, digits, exponent = value.as_tuple()
    unscaled = (-1 if sign else 1) * int("".join(map(str, digits)))
    scale = -int(exponent)
    java = HEAD.format(count=2) + "01036a6176612e6d6174682e426967446563696d61ec0102"
    java += unscaled.to_bytes(1, "big", signed=True).hex() + f"{scale << 1 if scale >= 0 else (-scale << 1) - 1:02x}"
    with pytest.raises(Unsupported, match=r"ordered by a decimal that decimal128\(30, 15\) does not hold"):
        decode_kryo_deletes(memoryview(bytes.fromhex(java)), path="log", offset=0)


def test_values_whose_form_depends_on_java_are_refused() -> None:
    with pytest.raises(Unsupported, match="ordered by a column of bytes"):
        refuse_java_ordering([pa.binary()], what="table 't'")
    deletes = make_deletes(pa.array(["a"]), pa.array([""]), [pa.array([b"1"]).cast(pa.binary())])
    with pytest.raises(Unsupported, match="ordered by a column of bytes"):
        encode_delete_content(deletes, LogContent.JAVA)
