"""Spark's own readers could read a base file that holds no columns, or clock readings in another zone than ours.

Answers on Spark must be those of this process, which `tests/golden/test_base_files.py` holds against Apache Hudi.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.golden.conftest import golden as golden
from tests.golden.test_tables import our_answer
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenAnswer, GoldenTables, base_file_names, golden_answers
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

QUICK = ("mor_bootstrap_meta_v9_h120", "cow_bootstrap_mixed_v8_h102", "cow_orc_v9_h120", "mor_drop_part_v9_h120")
ANSWERS = [
    pytest.param(answer, id=str(answer), marks=() if name in QUICK and answer.query == "snapshot" else pytest.mark.long)
    for name in base_file_names()
    if "_lance_" not in name or find_spec("lance")
    for answer in golden_answers(name)
]


def on_spark(spark: Any, table: HudiTable, bounds: Sequence[str], query: str) -> Any:
    match query:
        case "incremental":
            return collected(table.incremental(bounds[0], bounds[1]).to_spark(spark))
        case "time_travel":
            return collected(table.scan(as_of=bounds[0]).to_spark(spark))
        case _:
            return collected(table.scan(query=query).to_spark(spark))


@pytest.mark.parametrize("answer", ANSWERS)
def test_spark_answers_as_this_process(spark: Any, golden: GoldenTables, answer: GoldenAnswer) -> None:
    found = golden.get(answer.table)
    table = HudiTable.open(found.path)
    bounds = found.range_bounds(answer) if answer.query == "incremental" else answer.times

    assert_same_rows(on_spark(spark, table, bounds, answer.query), our_answer(found, answer))


def test_orc_files_without_times_are_read_by_spark_itself(spark: Any, golden: GoldenTables) -> None:
    table = HudiTable.open(golden.get("cow_orc_v9_h120").path)
    columns = [field.name for field in table.schema() if not pa.types.is_timestamp(field.type)]
    assert len(columns) < len(table.schema())

    scan = table.scan(columns=columns, where="part = 'p1' and ts > 100")
    frame = scan.to_spark(spark)

    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "FileScan orc" in plan
    assert "PushedFilters: [IsNotNull(part), IsNotNull(ts)" in plan
    assert "FileScan orc" not in table.scan().to_spark(spark)._jdf.queryExecution().executedPlan().toString()
    assert_same_rows(collected(frame), scan.to_arrow())
