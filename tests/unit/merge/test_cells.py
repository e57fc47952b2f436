"""A value could end in another row, lose its neighbour's bytes, or be read at the wrong offset of a slice."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.merge.cells import replace_values

VALUES: dict[pa.DataType, list[object]] = {
    pa.bool_(): [True, False, True],
    pa.int8(): [1, -2, 127],
    pa.int32(): [1, -2, 2**31 - 1],
    pa.int64(): [1, -2, 2**63 - 1],
    pa.float32(): [0.5, -0.0, float("inf")],
    pa.float64(): [0.5, -0.0, float("inf")],
    pa.date32(): [0, 1, 20_000],
    pa.time64("us"): [0, 1, 86_399_999_999],
    pa.timestamp("us", "UTC"): [0, -1, 2**50],
    pa.decimal128(38, 2): [Decimal("1.00"), Decimal("-2.50"), Decimal("123456789012345678901234567890123456.78")],
    pa.string(): ["", "a", "longer than the others"],
    pa.large_string(): ["", "a", "longer than the others"],
    pa.binary(): [b"", b"\0", b"longer than the others"],
    pa.binary(2): [b"ab", b"cd", b"\0\0"],
    pa.list_(pa.int32()): [[], [1], [2, 3]],
    pa.struct([("a", pa.int32())]): [{"a": 1}, {"a": 2}, {"a": None}],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("old_null, new_null", [(False, False), (True, False), (False, True)])
def test_values_stand_where_they_are_put(kind: pa.DataType, old_null: bool, new_null: bool) -> None:
    rand = np.random.default_rng(1)
    choice = VALUES[kind]

    def column(count: int, has_null: bool) -> pa.Array:
        values = [choice[at] for at in rand.integers(0, len(choice), count)]
        if has_null:
            values[count // 2] = None
        return pa.array(values, kind)

    old, new = column(70, old_null).slice(5), column(20, new_null).slice(3)  # as parts of longer ones
    at = np.sort(rand.choice(len(old), len(new), replace=False))
    expected = old.to_pylist()
    for place, value in zip(at.tolist(), new.to_pylist(), strict=True):
        expected[place] = value

    found = replace_values(old, at, new)

    found.validate(full=True)
    assert found.type == kind
    assert found.to_pylist() == expected
