"""A query on Spark could read files that an index of the metadata table rules out, or lose rows by one.

The plan that Spark runs names its files: they are counted, with `where` of a scan and with the option that carries it.
"""

from typing import Any

import pyarrow as pa
import pytest

import pyhudi.spark
from pyhudi import HudiTable
from pyhudi.errors import Invalid
from tests.support.golden_tables import GoldenTables

pytestmark = pytest.mark.spark


def files_of(dataframe: Any) -> int:
    return len(dataframe.inputFiles())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """Ten partitions of a file each, with a record index and one of `driver`; no footer tells where a key is."""
    path = tmp_path_factory.mktemp("pruning") / "rides"
    made = HudiTable.create(
        path, name="rides", record_key="id", partition_by="city", ordering="ts",
        properties={"hoodie.metadata.global.record.level.index.enable": "true"},
    )  # fmt: skip
    keys = [f"{n * 7919 % 1000:03}" for n in range(100)]
    made.bulk_insert(
        pa.table({"id": keys, "city": [f"c{n % 10}" for n in range(100)], "ts": [1] * 100,
                  "driver": [f"d{n * 31 % 50}" for n in range(100)]})
    )  # fmt: skip
    made.build_index("secondary_index", columns="driver", name="by_driver")
    return made


def test_where_and_the_readers_option_read_only_what_indexes_leave(spark: Any, table: HudiTable) -> None:
    pyhudi.spark.register(spark)
    rows = table.scan().to_arrow().to_pylist()
    one = rows[0]
    by_driver = f"driver = '{one['driver']}'"
    cities = {r["city"] for r in rows if r["driver"] == one["driver"]}
    cases = [(f"id = '{one['id']}' and ts < 5", 1), ("_hoodie_record_key in ('none')", 0), (by_driver, len(cities))]
    off = {"hoodie.enable.data.skipping": "false"}
    for where, read in cases:
        reader = spark.read.format("hudi").option("pyhudi.where", where)
        assert files_of(table.scan(where=where).to_spark(spark)) == read, where
        assert files_of(reader.load(table.path)) == read, where
        assert files_of(reader.options(**off).load(table.path)) == 10
    expected = sorted(r["id"] for r in rows if r["driver"] == one["driver"])
    loaded = spark.read.format("hudi").option("pyhudi.where", by_driver).load(table.path)
    assert sorted(row["id"] for row in loaded.collect()) == expected


def test_the_option_goes_with_every_kind_of_query(spark: Any, table: HudiTable) -> None:
    pyhudi.spark.register(spark)
    instant = table.timeline()[0].requested
    for options in (
        {"as.of.instant": instant}, {"hoodie.datasource.query.type": "read_optimized"},
        {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"},
    ):  # fmt: skip
        reader = spark.read.format("hudi").option("pyhudi.where", "city = 'c3' and driver is not null")
        found = reader.options(**options).load(table.path).collect()
        assert (len(found), {row["city"] for row in found}) == (10, {"c3"})
    assert spark.read.format("hudi").option("pyhudi.where", "").load(table.path).count() == 100
    with pytest.raises(Invalid, match="nobody"):
        spark.read.format("hudi").option("pyhudi.where", "nobody = 1").load(table.path)


def test_slices_with_logs_are_left_out_as_in_this_process(spark: Any, golden: GoldenTables) -> None:
    pyhudi.spark.register(spark)
    table = HudiTable.open(golden.get("mor_secondary_index_v9_h120").path)
    key = table.scan().to_arrow().column("_hoodie_record_key")[0].as_py()
    scan = table.scan(["id"], where=f"id = '{key}'")
    assert len(scan._plan.files) == 1
    assert [row["id"] for row in scan.to_spark(spark).collect()] == [key]
    option = {"pyhudi.where": f"id = '{key}'"}
    assert [row["id"] for row in spark.read.format("hudi").options(**option).load(table.path).collect()] == [key]
