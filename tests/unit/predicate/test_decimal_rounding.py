"""Decimals of many digits could be rounded wrongly: PyArrow's `round` loses one where 99.9 becomes 100."""

import random
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.predicate.casts import round_decimal
from pyhudi.predicate.text_casts import text_to_wide_decimal


def drawn_text(draw: random.Random) -> str:
    digits = draw.choice(["9", "99999999950", "0123456789"])
    whole = "".join(draw.choice(digits) for _ in range(draw.randint(0, 38))) or "0"
    behind = "".join(draw.choice(digits) for _ in range(draw.randint(0, 38)))
    return f"{draw.choice(['', '-'])}{whole}{f'.{behind}' if behind else ''}"


@pytest.mark.parametrize("seed", range(5))
def test_decimals_are_rounded_as_python_rounds_them(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(40):
        precision = draw.randint(1, 38)
        scale = draw.randint(0, precision)
        texts = [drawn_text(draw) for _ in range(50)]
        expected: list[Decimal | None] = []
        with localcontext() as context:
            context.prec = 120
            for text in texts:
                rounded = Decimal(text).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
                expected.append(rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None)

        found = round_decimal(text_to_wide_decimal(pa.array(texts)), pa.decimal128(precision, scale))

        assert found.to_pylist() == expected, (texts, precision, scale)


def test_filters_and_updates_round_so() -> None:
    table = HudiTable.create("memory://rounding", name="t", record_key="id")
    table.insert(pa.table({"id": ["a"], "s": ["9" * 33 + ".99"], "o": pa.array([Decimal(1)], pa.decimal128(38, 0))}))
    assert table.scan(where=f"cast(s as decimal(38, 0)) = 1{'0' * 33}").count() == 1
    table.update({"o": "cast(s as decimal(38, 0))"})
    assert table.scan().to_arrow()["o"].to_pylist() == [Decimal(10**33)]
