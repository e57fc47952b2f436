"""A float could be spelled other than Java spells it: another writer would not find its key and store the row again."""

import math
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format.keys.java_numbers import java_double, java_float, numeric_texts

GOLDEN = Path(__file__).parents[3] / "golden" / "java_numbers"


@pytest.mark.parametrize(
    "name, layout, spell", [("floats", ">f", java_float), ("doubles", ">d", java_double)], ids=["floats", "doubles"]
)
def test_numbers_are_spelled_as_java_17_spells_them(name: str, layout: str, spell: Callable[[float], str]) -> None:
    lines = [line.split() for line in (GOLDEN / f"{name}.txt").read_text().splitlines()]
    values = [struct.unpack(layout, bytes.fromhex(bits))[0] for bits, _ in lines]

    wrong = [
        (value, text, spell(value)) for value, (_, text) in zip(values, lines, strict=True) if spell(value) != text
    ]

    assert len(lines) > 3_000
    assert wrong == []


@pytest.mark.parametrize("name, layout, kind", [("floats", ">f", pa.float32()), ("doubles", ">d", pa.float64())])
def test_texts_of_arrays_read_as_the_numbers_that_java_s_texts_read_as(
    name: str, layout: str, kind: pa.DataType
) -> None:
    lines = [line.split() for line in (GOLDEN / f"{name}.txt").read_text().splitlines() if "NaN" not in line]
    values = pa.array([struct.unpack(layout, bytes.fromhex(bits))[0] for bits, _ in lines] + [None, 0.0, 1.5], kind)

    texts = numeric_texts(values)

    assert [text and float(text) for text in texts.to_pylist()] == [*(float(text) for _, text in lines), None, 0.0, 1.5]
    assert numeric_texts(values.slice(len(lines))).to_pylist() == [None, "0", "1.5"]


@pytest.mark.parametrize(
    "value, text",
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (100.0, "100.0"),
        (123456.789, "123456.789"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00123, "0.00123"),
        (0.00099, "9.9E-4"),
        (1e-4, "1.0E-4"),
        (1e21, "1.0E21"),
        (1e23, "9.999999999999999E22"),
        (2e23, "1.9999999999999998E23"),
        (1.0e16, "1.0E16"),
        (0.1 + 0.2, "0.30000000000000004"),
        (math.pi, "3.141592653589793"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (5e-324, "4.9E-324"),
        (1e-323, "1.0E-323"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_spelled_as_java_spells_them(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (3.3, "3.3"),
        (16777216.0, "1.6777216E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (1e-4, "1.0E-4"),
        (1e10, "1.0E10"),
        (3.4028235e38, "3.4028235E38"),
        (1.17549435e-38, "1.17549435E-38"),
        (1.4e-45, "1.4E-45"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_floats_are_spelled_as_java_spells_them(value: float, text: str) -> None:
    assert java_float(pa.scalar(value, pa.float32()).as_py()) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_reads_back(value: float) -> None:
    text = java_double(value)

    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    mantissa = text.partition("E")[0].lstrip("-")
    assert "." in mantissa
    assert not mantissa.endswith(".")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_reads_back(value: float) -> None:
    assert pa.scalar(float(java_float(value)), pa.float32()).as_py() == value
