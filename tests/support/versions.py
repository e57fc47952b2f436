"""The table versions that tests go through. Version 5 is close to 6: mostly it goes to the long tests."""

from collections.abc import Sequence
from itertools import product

import pytest

EVERY_VERSION = (pytest.param(5, marks=pytest.mark.long), 6, 8, 9)


def with_types(types: Sequence[str]) -> list[object]:
    """Each version with each type of table, as two parameters of a test."""
    five = [pytest.param(5, of, marks=pytest.mark.long) for of in types]
    return [*five, *product((6, 8, 9), types)]
