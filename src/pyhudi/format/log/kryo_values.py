"""Dates and decimals among ordering values, as Kryo writes `java.time.LocalDate` and `java.math.BigDecimal`.

A date here is a count of days since 1970. A decimal here is a count of 10**-15, in two halves of 64 bits, as Arrow
holds the values of `ordering.DECIMAL`. Seen: 0.12.3 and 0.13.1.
"""

from typing import Final

import numpy as np

from pyhudi.format.log.kryo_reading import (
    AT,
    BAD_VALUE,
    CUT,
    FINE,
    TOO_WIDE,
    Bytes,
    Index,
    Numbers,
    read_number,
    zigzag,
)
from pyhudi.format.log.ordering import DECIMAL
from pyhudi.loops import loop

SCALE: Final = DECIMAL.scale
_WORD: Final = np.uint64(0xFFFF_FFFF)
_LIMIT_HIGH, _LIMIT_LOW = divmod(10**DECIMAL.precision, 1 << 64)
_YEAR_MAX: Final = 5_000_000
"""Of either era: the days of Arrow's dates go further."""


@loop
def read_date(data: Bytes, state: Numbers, value: Numbers) -> int:
    """Read a date into `value[1]`. Answers what is wrong. Layout: the year, then a byte for the month and the day."""
    year = np.int64(np.int32(read_number(data, state) & 0xFFFF_FFFF))
    if state[AT] + 2 > data.size:
        return CUT
    month, day = np.int64(data[state[AT]]), np.int64(data[state[AT] + 1])
    state[AT] += 2
    if not 1 <= month <= 12 or not 1 <= day <= 31 or not -_YEAR_MAX <= year <= _YEAR_MAX:
        return BAD_VALUE

    # Years begin in March, so that the leap day is the last of its year. An era has 400 years.
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    value[1] = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return FINE


@loop
def date_parts(days: np.int64) -> tuple[np.int64, np.int64, np.int64]:
    """The year, month and day of a date."""
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    years = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    month_from_march = (5 * of_year + 2) // 153
    day = of_year - (153 * month_from_march + 2) // 5 + 1
    month = (month_from_march + 2) % 12 + 1
    return years + era * 400 + (1 if month <= 2 else 0), month, day


@loop
def _rescaled(low: np.uint64, high: np.uint64, scale: np.int64) -> tuple[bool | np.bool_, np.uint64, np.uint64]:
    """A magnitude of this scale, in two halves, at the scale of ordering values. Answers first if they hold it."""
    if low == 0 and high == 0:
        scale = np.int64(SCALE)
    while scale < SCALE:
        if high >> np.uint64(59):
            return False, low, high
        first = (low & _WORD) * np.uint64(10)
        second = (low >> np.uint64(32)) * np.uint64(10) + (first >> np.uint64(32))
        low = second << np.uint64(32) | first & _WORD
        high = high * np.uint64(10) + (second >> np.uint64(32))
        scale += 1
    while scale > SCALE:
        rest = high % np.uint64(10)
        high //= np.uint64(10)
        first = rest << np.uint64(32) | low >> np.uint64(32)
        second = first % np.uint64(10) << np.uint64(32) | low & _WORD
        if second % np.uint64(10) != 0:
            return False, low, high
        low = first // np.uint64(10) << np.uint64(32) | second // np.uint64(10)
        scale -= 1
    limit_high, limit_low = np.uint64(_LIMIT_HIGH), np.uint64(_LIMIT_LOW)
    return high < limit_high or (high == limit_high and low < limit_low), low, high


@loop
def read_decimal(data: Bytes, state: Numbers, value: Numbers) -> int:
    """Read a decimal into `value[1]`, its low half, and `value[2]`. Answers what is wrong.

    Layout: the size in bytes + 1; the unscaled number, big-endian; the scale.
    """
    size = read_number(data, state) - 1
    start = state[AT]
    if not 1 <= size < data.size - start:
        return CUT
    state[AT] += size
    scale = zigzag(read_number(data, state))
    if state[AT] == start + size:
        return CUT

    # The magnitude, in two halves.
    is_negative = data[start] >= 0x80
    fill = np.uint64(0xFF) if is_negative else np.uint64(0)
    high, low, carry = np.uint64(0), np.uint64(0), np.uint64(1) if is_negative else np.uint64(0)
    if size > 16:
        return TOO_WIDE
    for step in range(16):
        at = start + size - 1 - step
        byte = (np.uint64(data[at]) if at >= start else fill) ^ fill
        byte += carry
        carry = byte >> np.uint64(8)
        byte &= np.uint64(0xFF)
        if step < 8:
            low |= byte << np.uint64(8 * step)
        else:
            high |= byte << np.uint64(8 * (step - 8))

    is_held, low, high = _rescaled(low, high, scale)
    if not is_held:
        return TOO_WIDE
    if is_negative:
        value[1], value[2] = -np.int64(low), ~np.int64(high)
        if low == 0:
            value[2] += 1
    else:
        value[1], value[2] = np.int64(low), np.int64(high)
    return FINE


@loop
def put_unscaled(out: Bytes, at: Index, low: np.int64, high: np.int64) -> Index:
    """Write a decimal's unscaled number, in as few bytes as hold it, behind their count + 1."""
    size = 16
    while size > 1:  # the first byte says nothing where it only repeats the sign of the next
        first, second = _byte(low, high, size - 1), _byte(low, high, size - 2)
        if (first != 0 or second >= 0x80) and (first != 0xFF or second < 0x80):
            break
        size -= 1
    out[at] = size + 1
    for step in range(size):
        out[at + 1 + step] = _byte(low, high, size - 1 - step)
    return at + 1 + size


@loop
def _byte(low: np.int64, high: np.int64, number: int) -> np.int64:
    """The byte of this number, counted from the lowest."""
    half = low if number < 8 else high
    return half >> np.int64(8 * (number % 8)) & np.int64(0xFF)
