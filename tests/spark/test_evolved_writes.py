"""A task of Spark could rewrite a file of before under the columns of today.

A DataFrame could be written under other columns than the same rows in this process. Tables that Apache Hudi altered are
written both ways.
"""

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from tests.golden.test_evolved_writes import ALL_FILES, changed, histories
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, with_long
from tests.support.spark_frames import collected, on_spark

pytestmark = pytest.mark.spark

NAMES = ("cow_evo_columns_v9_h120", "cow_evo_types_v6_h0150", "mor_evo_nested_v9_h120", "mor_evo_columns_v8_h102")


@pytest.mark.parametrize("name", with_long(NAMES, {NAMES[3]}))
def test_writes_and_services_on_spark_leave_the_rows_of_those_in_this_process(
    spark: Any, golden: GoldenTables, tmp_path: Path, on_cluster: None, name: str
) -> None:
    here, there = (HudiTable.open(shutil.copytree(golden.get(name).path, tmp_path / where)) for where in "ab")
    rows = here.scan(meta_fields=False).to_arrow()
    keys = rows["id"].to_pylist()
    new = changed(rows, keys[:6]).append_column("brought", pa.array([f"b {key}" for key in sorted(keys[:6])]))
    fills = {"hoodie.write.set.null.for.missing.columns": "true"}

    for table, of in ((here, lambda batch: batch), (there, lambda batch: on_spark(spark, batch, tmp_path))):
        table.upsert(of(new), options=fills)
        table.alter().rename("brought", "kept").commit()
        table.upsert(of(changed(table.scan(meta_fields=False).to_arrow(), keys[3:9])))
        table.delete(of(rows.filter(pc.is_in(rows["id"], value_set=pa.array(keys[9:11]))).select(["id", "part", "ts"])))

    def same() -> pa.Table:
        found = there.scan(meta_fields=False).to_arrow()
        assert_same_rows(found, here.scan(meta_fields=False).to_arrow())
        assert_same_rows(collected(there.scan(meta_fields=False).to_spark(spark)), found)
        return found

    assert pc.sum(pc.is_valid(same()["kept"])).as_py() == 6
    if there.table_type == "MERGE_ON_READ":
        assert there.compact(spark=spark).completed
        same()
    assert there.cluster(options=ALL_FILES, spark=spark).completed
    same()
    assert len({len(content) for content in (max(histories(tmp_path / one).items())[1] for one in "ab")}) == 1


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_values_that_fit_another_type_are_the_same_on_spark(spark: Any, tmp_path: Path, table_type: str) -> None:
    """Spark's own reader casts the files of before; so do tasks, and this process."""
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="ts", table_type=table_type, table_version=9
    )
    home = pa.struct([("x", pa.float32())])
    rows = pa.table({
        "id": ["a", "b", "c", "d"], "ts": [1] * 4, "price": [1.005, -2.5, None, 123456.789],
        "rate": pa.array([0.1, 97735.85, None, -0.0005], pa.float32()), "number": ["1.505", "-2", None, "3E2"],
        "day": ["2021-01-05", "1999-12-31", None, "0999-01-01"],
        "long": ["9" * 33 + ".99", "-" + "9" * 20 + ".5", "0", None],
        "home": pa.array([{"x": 97735.85}, {"x": 0.1}, None, {"x": 1e7}], home),
        "amount": pa.array([Decimal("1.10"), Decimal("-3.00"), None, Decimal("0.00")], pa.decimal128(10, 2)),
    })  # fmt: skip
    table.insert(rows)
    table.upsert(rows.slice(1, 2).set_column(1, "ts", pa.array([2, 2])))
    change = table.alter().change_type("price", pa.decimal128(10, 2)).change_type("rate", pa.decimal128(20, 3))
    change = change.change_type("number", pa.decimal128(10, 2)).change_type("day", "date32")
    change = change.change_type("long", pa.decimal128(38, 0)).change_type("home.x", pa.decimal128(20, 4))
    change.change_type("amount", "string").commit()

    def same(count: int, **asked: Any) -> None:
        scan = table.scan(**asked)
        assert scan.count() == count
        assert_same_rows(collected(scan.to_spark(spark)), scan.to_arrow())

    same(4)
    same(2, where="price > 1")
    same(1, where="rate = 97735.85")
    same(1, where=f"long = 1{'0' * 33}")
    same(1, where="day < date '1999-12-31'")
    same(1, where="amount = '-3.00'", columns=["id", "amount"])
    table.upsert(on_spark(spark, table.scan(meta_fields=False, where="number > 2").to_arrow(), tmp_path))
    same(4)
