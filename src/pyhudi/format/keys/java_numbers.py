"""Floats and doubles as text, as Java prints them.

Java 18 and earlier, which Apache Hudi runs on, take more digits than needed for many floats: `1.80266288E8`, where
`1.8026629E8` reads back, too. Java 19 and later print the shorter text. Record keys and partition paths are made of
such texts, so that each writer of a table must spell them alike.

Seen: Java 17 (`tests/golden/java_numbers`).
"""

import math
import struct
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_POWERS_OF_5_LOOKED_UP = 27
"""5^26 is the last power of 5 whose size Java looks up. For a larger one it takes three bits a power."""

_TINY_END = 0.001
"""Below it Java writes an exponent, and may take more digits than needed."""


class _Format(NamedTuple):
    """A format of IEEE 754."""

    fraction_bits: int
    bias: int
    as_number: str
    """The number and its bits, as `struct` names them."""
    as_bits: str

    def is_shortest(self, value: float) -> bool:
        """Whether every Java prints the shortest text that reads back.

        Seen: Java 17 and 25 print each float of these sizes alike, and each of 20 million doubles.
        """
        return _TINY_END <= abs(value) < self.whole_end or value == 0 or value - value != 0

    @property
    def whole_end(self) -> float:
        """The least number whose larger neighbour is more than one away."""
        return float(1 << (self.fraction_bits + 1))


_FLOAT = _Format(23, 127, "<f", "<i")
_DOUBLE = _Format(52, 1023, "<d", "<q")


def java_double(value: float) -> str:
    """A double as `Double.toString` of Java 18 and earlier prints it."""
    if not _DOUBLE.is_shortest(value):
        return _long_text(value, _DOUBLE)
    two_digits = f"{value:.1e}"
    return _short_text(value, two_digits if float(two_digits) == value else repr(value))


def java_float(value: float) -> str:
    """A 32-bit float, given as a Python number, as `Float.toString` of Java 18 and earlier prints it."""
    if not _FLOAT.is_shortest(value):
        return _long_text(value, _FLOAT)
    single, two_digits = np.float32(value), f"{value:.1e}"
    is_short = np.float32(two_digits) == single
    return _short_text(value, two_digits if is_short else np.format_float_scientific(single, unique=True))


def numeric_texts(array: pa.Array) -> pa.Array:
    """Texts of floats or doubles that read as the numbers that Java's texts read as. They are not spelled like them.

    Example: the float 180266288 is `180266288`; `180266290` is the same float and has a digit less.
    """
    texts = array.cast(pa.string())
    form, spell = (_FLOAT, java_float) if pa.types.is_float32(array.type) else (_DOUBLE, java_double)

    size = pc.abs(array)
    is_tiny = pc.and_(pc.greater(size, 0), pc.less(size, pa.scalar(_TINY_END, array.type)))
    is_large = pc.and_(pc.greater_equal(size, form.whole_end), pc.is_finite(size))
    is_longer = pc.fill_null(pc.or_(is_tiny, is_large), False)
    if not pc.any(is_longer).as_py():
        return texts

    distinct = array.filter(is_longer).dictionary_encode()
    spelled = pa.array([spell(value) for value in distinct.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(texts, is_longer, spelled.take(distinct.indices))


def _short_text(value: float, shortest: str) -> str:
    """The Java text of a number from a text of the digits that are to be shown."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"

    sign = "-" if shortest.startswith("-") else ""
    if value == 0:
        return f"{sign}0.0"

    mantissa, _, exponent_text = shortest.lstrip("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(exponent_text or 0) + len(digits) - len(fraction) - 1
    return sign + _laid_out(digits.rstrip("0"), exponent)


def _long_text(value: float, form: _Format) -> str:
    bits = struct.unpack(form.as_bits, struct.pack(form.as_number, abs(value)))[0]
    number = _binary(bits, form)
    digits, exponent = _whole_digits(number) if number.is_small_integer else _generated_digits(number)
    return ("-" if value < 0 else "") + _laid_out(digits, exponent)


def _laid_out(digits: str, exponent: int) -> str:
    """`digits` with the point behind the first, times ten to the `exponent`, in Java's two layouts."""
    if not -3 <= exponent < 7:
        return f"{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    digits = digits.ljust(exponent + 2, "0")
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


class _Binary(NamedTuple):
    """A positive number: `fraction` / 2^(`bits` - 1) * 2^`exponent`, where `fraction` is odd and of `bits` bits."""

    fraction: int
    bits: int
    exponent: int
    precision: int
    """The bits that the number's neighbours have: 24 for a normal float, fewer for tiny ones."""

    @property
    def is_small_integer(self) -> bool:
        """Whether Java takes this number for a whole one that fits 64 bits."""
        return self.bits <= self.exponent + 1 <= 63


def _binary(bits: int, form: _Format) -> _Binary:
    """The number of these bits, which are not those of zero, infinity or NaN."""
    width = form.fraction_bits
    fraction, exponent = bits & ((1 << width) - 1), bits >> width
    if exponent:
        fraction, precision = fraction | 1 << width, width + 1
    else:
        precision = fraction.bit_length()
        exponent = precision - width

    zeros = (fraction & -fraction).bit_length() - 1
    return _Binary(fraction >> zeros, fraction.bit_length() - zeros, exponent - form.bias, precision)


def _whole_digits(number: _Binary) -> tuple[str, int]:
    """The digits of a whole number, without those that its neighbours have in common, and its exponent."""
    whole = number.fraction << (number.exponent - number.bits + 1)
    dropped = 0
    if number.exponent > number.precision:
        dropped = len(str(1 << (number.exponent - number.precision - 1))) - 1

    kept, rest = divmod(whole, 10**dropped)
    digits = str(kept + (dropped > 0 and 2 * rest >= 10**dropped))
    return digits.rstrip("0"), len(digits) + dropped - 1


def _generated_digits(number: _Binary) -> tuple[str, int]:
    """Digit by digit until what is left is less than half the distance to the next number of this precision.

    The number is `rest` / `scale` * 10^`exponent`, and half of that distance is `half` / `scale`. Java computes in 32
    or 64 bits where the three seem to fit; what overflows there decides on digits.
    """
    exponent = _guessed_exponent(number)
    rest, scale, half, word = _fractions_of(number, exponent)
    tens = _wrapped(10 * scale, word)

    digits, rest = divmod(rest, scale)
    rest, half = 10 * rest, _wrapped(10 * half, word)
    is_low, is_high = rest < half, _exceeds(rest, half, tens, word)
    shown = ""
    if digits == 0 and not is_high:
        exponent -= 1
    else:
        shown = str(digits)

    if not -3 <= exponent < 8:  # with an exponent two digits are shown at least
        is_low = is_high = False
    while not is_low and not is_high:
        digit, rest = divmod(rest, scale)
        rest, half = 10 * rest, _wrapped(10 * half, word)
        is_low, is_high = rest < half, _exceeds(rest, half, tens, word)
        if word and half <= 0:
            is_low = is_high = True
        shown += str(digit)

    beyond_half = _wrapped(2 * rest - tens, word)
    if is_high and (not is_low or beyond_half > 0 or (beyond_half == 0 and int(shown[-1]) % 2 == 1)):
        rounded = str(int(shown) + 1).zfill(len(shown))
        return (rounded[: len(shown)], exponent + len(rounded) - len(shown))
    return shown, exponent


def _guessed_exponent(number: _Binary) -> int:
    """The decimal exponent as Java estimates it: right, or too high by one."""
    leading = number.fraction / (1 << (number.bits - 1))
    return math.floor((leading - 1.5) * 0.289529654 + 0.176091259 + number.exponent * 0.301029995663981)


def _fractions_of(number: _Binary, exponent: int) -> tuple[int, int, int, int]:
    """What `_generated_digits` begins with: rest, scale, half, and the bits of Java's words (0: as many as needed)."""
    fives_rest, fives_scale = max(0, -exponent), max(0, exponent)
    below_one = max(0, number.bits - number.exponent - 1)
    twos_rest = fives_rest + below_one + number.exponent
    twos_scale = fives_scale + below_one
    twos_half = twos_rest - number.precision
    twos_rest -= number.bits - 1

    common = min(twos_rest, twos_scale)
    if number.bits == 1:  # the next smaller number is half as far away as the next larger one
        twos_half -= 1
    shift = -min(common, twos_half)
    twos_rest, twos_scale, twos_half = twos_rest + shift, twos_scale + shift, twos_half + shift

    fives_bits = _size_of_five(fives_rest)
    size_rest = number.bits + twos_rest + fives_bits
    size_tens = twos_scale + 1 + _size_of_five(fives_scale + 1)
    widest = max(size_rest, size_tens)
    word = 32 if widest < 32 else 64 if widest < 64 else 0
    return number.fraction * 5**fives_rest << twos_rest, 5**fives_scale << twos_scale, 5**fives_rest << twos_half, word


def _size_of_five(power: int) -> int:
    """The bits of 5^`power`, as Java counts them."""
    if power >= _POWERS_OF_5_LOOKED_UP:
        return 3 * power
    return (5**power).bit_length() if power else 0


def _exceeds(rest: int, half: int, tens: int, word: int) -> bool:
    """Whether the next larger digit is within `half`. Java's long numbers take the bound in, its words leave it out."""
    return _wrapped(rest + half, word) > tens if word else rest + half >= tens


def _wrapped(number: int, word: int) -> int:
    """The number as a signed word of so many bits, where what overflows is lost."""
    if not word:
        return number
    top = 1 << (word - 1)
    return (number + top) % (2 * top) - top
