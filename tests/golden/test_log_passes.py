"""A log too large for memory is merged in several passes: a key could be in none of them, in two, or miss its row."""

from dataclasses import replace

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.table.read.files import read_plan_table
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables

NAMES = (
    *("mor_avro_v6_h0150", "mor_avro_v8_h102", "mor_parquet_log_v9_h120", "mor_delete_field_v9_h120"),
    *("mor_partial_update_v8_h102", "mor_no_meta_v9_h120", "mor_logonly_v9_h120", "mor_nondefaults_v9_h120"),
)


@pytest.mark.parametrize(
    "log_size_bytes_max, name",
    [
        *((3_000, name) for name in NAMES),
        (300, "mor_avro_v8_h102"),
        *(pytest.param(300, name, marks=pytest.mark.long) for name in NAMES if name != "mor_avro_v8_h102"),
    ],
)
def test_several_passes_give_the_rows_of_one(golden: GoldenTables, name: str, log_size_bytes_max: int) -> None:
    scan = HudiTable.open(golden.get(name).path).scan()
    assert scan._plan.log_reading is not None
    reading = replace(scan._plan.log_reading, log_size_bytes_max=log_size_bytes_max)

    found = read_plan_table(scan._storage, replace(scan._plan, log_reading=reading), SerialExecutor())

    assert_same_rows(found, scan.to_arrow())
