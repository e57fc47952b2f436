"""The table versions that tests go through. 5 is close to 6, and 7 is experimental: both go to the long tests."""

from collections.abc import Sequence
from itertools import product

import pytest

EVERY_VERSION = (*(pytest.param(version, marks=pytest.mark.long) for version in (5, 7)), 6, 8, 9)


def with_types(types: Sequence[str]) -> list[object]:
    """Each version with each type of table, as two parameters of a test."""
    seldom = [pytest.param(version, of, marks=pytest.mark.long) for version, of in product((5, 7), types)]
    return [*seldom, *product((6, 8, 9), types)]
