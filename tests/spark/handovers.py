"""Cases of a test for each way of rows to their file group (the fixture `handover`), most of them in the long run."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest

LONG_WAYS = ("gathered", "sent", "parts", "files and shuffle", "Parquet", "Parquet in parts")
WAYS = ("files", "shuffle", *LONG_WAYS)


def handed(names: str, cases: Iterable[Any], quick: Sequence[tuple[str, Any]]) -> pytest.MarkDecorator:
    """Each case by each way. `quick`: the way and the case that the tests of every change try; the others are long.

    `names` as in `parametrize`; a case is a tuple of their values, or the one value.
    """
    pairs = list(product(WAYS, cases))
    assert all(pair in pairs for pair in quick)

    given = []
    for way, case in pairs:
        values = case if isinstance(case, tuple) else (case,)
        given.append(pytest.param(way, *values, marks=[] if (way, case) in quick else [pytest.mark.long]))
    return pytest.mark.parametrize(f"handover, {names}", given, indirect=["handover"])
