"""An entry of a Hive metastore could have columns that Spark cannot read again, or types that Hive has not."""

import pytest

t = pytest.importorskip("pyspark.sql.types")

from pyhudi.engine.spark.sql.catalog import scan_text  # noqa: E402
from pyhudi.engine.spark.sql.hive_entries import fits_hive, schema_properties  # noqa: E402

pytestmark = pytest.mark.spark

PLAIN = t.StructType([t.StructField("id", t.IntegerType()), t.StructField("dt", t.StringType())])


def test_columns_are_told_in_pieces_that_spark_puts_together() -> None:
    many = t.StructType([t.StructField(f"column_{at}", t.DecimalType(10, 2)) for at in range(300)])

    found = schema_properties(many, ["column_7"])

    count = int(found["spark.sql.sources.schema.numParts"])
    pieces = [found[f"spark.sql.sources.schema.part.{at}"] for at in range(count)]
    assert "".join(pieces) == many.json()
    assert max(map(len, pieces)) <= 4_000
    assert found["spark.sql.sources.schema.partCol.0"] == "column_7"
    assert "spark.sql.sources.schema.numPartCols" not in schema_properties(PLAIN, [])


def test_types_and_formats_that_hive_has_not_are_known() -> None:
    nested = t.StructType([t.StructField("a", t.ArrayType(t.StructType([t.StructField("m", t.TimestampNTZType())])))])
    by_key = t.StructType([t.StructField("m", t.MapType(t.StringType(), t.TimestampNTZType()))])

    assert fits_hive(PLAIN, "parquet")
    assert fits_hive(PLAIN, "ORC")
    assert not fits_hive(PLAIN, "LANCE")
    assert not fits_hive(nested, "PARQUET")
    assert not fits_hive(by_key, "PARQUET")


def test_a_name_for_base_files_alone_is_scanned_as_such() -> None:
    assert scan_text("/a'b") == "hudi_scan('/a\\'b')"
    assert scan_text("/t", "CAST(x AS STRING)") == "hudi_scan('/t', CAST(x AS STRING))"
    assert scan_text("/t", reads_optimized=True) == "hudi_scan('/t', NULL, 'read_optimized')"
