"""A row that Spark puts in another bucket than this process does is a row that no upsert finds again.

Keys of every shape are hashed both ways: whatever Java's regular expressions, Spark's characters and ANSI mode
make of them, the numbers must be those of `format/keys/bucket_hash.py`.
"""

import random
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.format.keys.bucket_hash import bucket_numbers
from pyhudi.format.keys.hashing_metadata import HashingMetadata
from pyhudi.index.bucket import FixedBuckets
from pyhudi.index.consistent_buckets import RingBuckets

pytestmark = pytest.mark.spark

FIELDS = [("id",), ("name",), ("id", "name"), ("größe",)]
PIECES = [
    "id",
    "name",
    "größe",
    ":",
    ",",
    "__null__",
    "__empty__",
    "a",
    "é",
    "漢",
    "😀",
    "\n",
    "\\",
    "'",
    "\r",
    "\0",
    "7",
]


def keys() -> list[str]:
    made = random.Random(7)
    mixed = ["".join(made.choices(PIECES, k=made.randint(1, 12))) for _ in range(3_000)]
    pairs = [f"id:{a},name:{b}" for a in PIECES for b in PIECES] + [f"id:{a}" for a in PIECES]
    return sorted({*mixed, *pairs, "id:1,name:10:20:30", "x,y", "a:1,b:x:y"})


@pytest.mark.parametrize("fields", FIELDS)
@pytest.mark.parametrize("is_ansi", [False, True])
def test_fixed_buckets_are_those_of_this_process(spark: Any, fields: tuple[str, ...], is_ansi: bool) -> None:
    from pyspark.sql import functions as f

    from pyhudi.engine.spark.session import with_settings
    from pyhudi.engine.spark.write.buckets import fixed_bucket

    rule, texts = FixedBuckets(1_000_003, fields), keys()
    with with_settings(spark, {"spark.sql.ansi.enabled": str(is_ansi).lower()}):
        rows = spark.createDataFrame([(text,) for text in texts], "k string").repartition(2)
        found = {row.k: row.b for row in rows.select("k", fixed_bucket(f.col("k"), rule).alias("b")).collect()}

    expected = bucket_numbers(pa.array(texts), fields, rule.bucket_count).tolist()
    assert found == dict(zip(texts, expected, strict=True))


@pytest.mark.parametrize("has_arrow_udf", [True, False])
def test_buckets_on_rings_are_those_of_this_process(
    spark: Any, has_arrow_udf: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as f

    from pyhudi.engine.spark.session import use_running_interpreter
    from pyhudi.engine.spark.write.buckets import with_ring_buckets

    use_running_interpreter(spark)
    if not hasattr(f, "arrow_udf") and has_arrow_udf:
        pytest.skip("this release of Spark has no Arrow functions of columns")
    if not has_arrow_udf:
        monkeypatch.delattr(f, "arrow_udf", raising=False)
    texts = keys()
    rules = {path: RingBuckets(HashingMetadata.initial(path, n), ("id",)) for path, n in (("p=1", 3), ("p=2", 500))}
    schema = "p string, k string, n decimal(20, 3), t timestamp"
    rows = [(path, text, None, None) for path in rules for text in texts]

    frame = spark.createDataFrame(rows, schema).repartition(3)
    found = with_ring_buckets(frame, rules, path="p", key="k", bucket="b").collect()

    for path, rule in rules.items():
        expected = dict(zip(texts, rule.bucket_of(pa.array(texts)).tolist(), strict=True))
        assert {row.k: row.b for row in found if row.p == path} == expected
    assert not with_ring_buckets(frame.where("k is null"), rules, path="p", key="k", bucket="b").collect()
