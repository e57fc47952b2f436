"""A loop's interpreted form could answer otherwise than its compiled one.

So each loop that a test of this folder calls runs in both forms, the first times in each test, and what they return
and what they write must be the same.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pyhudi.loops import dispatch
from pyhudi.loops.dispatch import Loop

CALLS_OF_A_TEST = 20


def copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(copied(each) for each in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def assert_same(loop: Loop[Any], interpreted: Any, compiled: Any) -> None:
    where = f"{loop.__module__}.{loop.__qualname__}"  # type: ignore[attr-defined]  # taken from the function
    if isinstance(compiled, tuple):
        assert len(interpreted) == len(compiled)
        for one, other in zip(interpreted, compiled, strict=True):
            assert_same(loop, one, other)
    elif isinstance(compiled, np.ndarray):
        assert interpreted.dtype == compiled.dtype, where
        np.testing.assert_array_equal(interpreted, compiled, where)
    else:
        assert interpreted == compiled, where


@pytest.fixture(autouse=True)
def _both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[int] = Counter()

    def call(self: Loop[Any], *arguments: Any) -> Any:
        calls[id(self)] += 1
        if calls[id(self)] > CALLS_OF_A_TEST or dispatch.elements(arguments) > dispatch.CALL_MAX:
            return self.compiled(*arguments)
        copies = copied(arguments)
        answer = self.compiled(*arguments)
        with np.errstate(over="ignore"):
            other = self.interpreted(*copies)
        assert_same(self, other, answer)
        assert_same(self, copies, arguments)
        return answer

    monkeypatch.setattr(Loop, "__call__", call)
