"""An array that is part of a plan: Spark must take its bytes as it lays them out itself, on every release."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as f

from pyhudi.engine.spark.read.array_literal import array_literal

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1_000])
def test_spark_finds_the_numbers_where_they_are(spark: Any, count: int) -> None:
    numbers = np.arange(count, dtype=np.int64) * -(2**53) + 1
    rows = spark.range(0, 1, 1, 1).select(array_literal(spark, numbers).alias("numbers"))

    (found,) = rows.collect()

    assert rows.schema["numbers"].dataType.simpleString() == "array<bigint>"
    assert found["numbers"] == numbers.tolist()


def test_tasks_look_numbers_up_and_plans_do_not_spell_them(spark: Any) -> None:
    numbers = np.arange(10_000, dtype=np.int64)[::-1] + 7_000_000
    values = f.get(array_literal(spark, numbers), f.expr("CAST(id AS INT)"))
    rows = spark.range(0, 10_000, 1, 4).where(values == f.lit(7_009_999) - f.col("id"))

    assert rows.count() == 10_000
    plan = rows._jdf.queryExecution().toString()
    assert "UnsafeArrayData" in plan
    assert "7009999 -" in plan
    assert "7004321" not in plan


def test_equal_arrays_make_equal_plans(spark: Any) -> None:
    """Spark shares what equal plans came to: unlike arrays must never be taken for equal."""
    one, same, other = (spark.range(3).select(array_literal(spark, np.array(of))) for of in ([1, 2], [1, 2], [1, 3]))

    assert one.sameSemantics(same)
    assert not one.sameSemantics(other)
