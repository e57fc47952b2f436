"""The bucket of each row on Spark, for the bucket index.

Native expressions compute fixed buckets. Arrow functions of the key compute buckets on rings (consistent hashing).

Measured with Spark 4.3 on two cores, 2 million rows of 12 columns with keys of 17 characters, beyond the 0.9 s for
reading them: native expressions about 1 s; an Arrow function of the key column 2.5 s, because Spark buffers the other
columns meanwhile; the rows through `mapInArrow` 5.5 s.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StructField, StructType

from pyhudi.engine.local.code_order import rows_by_code
from pyhudi.engine.spark.batches import map_in_arrow
from pyhudi.errors import Bug
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.bucket_hash import RING_MASK
from pyhudi.format.keys.record_keys import EMPTY_COMPONENT, NULL_COMPONENT
from pyhudi.index.bucket import BucketRule, FixedBuckets

_LOW = 0xFFFFFFFF
_PAIR = "(?s)(?:^|,)([^:]*):([^,]*(?:,[^:]*)?(?=,[^:,]*:)|.*)"
"""A field and its value in a composite key such as `a:1,b:2`.

A value may hold commas: it ends at the last comma before the next colon that follows a comma, or with the key. Example:
in `a:x,y,b:2` the value of a is `x,y`.
"""


def fixed_bucket(key: Column, rule: FixedBuckets) -> Column:
    """The bucket of a record key, as `format/keys/bucket_hash.py` computes it. No session setting changes the value."""
    h = list_hash(key, rule.hash_fields)
    return (h.bitwiseAND(RING_MASK) % rule.bucket_count).cast("int")


def list_hash(key: Column, fields: Sequence[str]) -> Column:
    """The low 32 bits of Java's list hash over the values of a key's hash fields, as a non-negative long.

    A key that is no list of pairs, or that has none of the fields, counts as one value. No step exceeds 64 bits, so
    that ANSI mode raises no overflow.
    """
    whole = text_hash(key, 31)
    has_pairs = key.contains(",") & key.contains(":")
    return f.when(has_pairs, _bound(_selected(key, fields), lambda values: _values_hash(values, whole))).otherwise(
        whole
    )


def _selected(key: Column, fields: Sequence[str]) -> Column:
    """The values of the hash fields in a key of `field:value` pairs."""
    names, values = (f.regexp_extract_all(key, f.lit(_PAIR), f.lit(group)) for group in (1, 2))
    pairs = f.zip_with(names, values, lambda name, value: f.struct(name.alias("name"), value.alias("value")))
    return f.transform(f.filter(pairs, lambda pair: pair["name"].isin(*fields)), lambda pair: pair["value"])


def _values_hash(values: Column, whole: Column) -> Column:
    def step(h: Column, value: Column) -> Column:
        is_nothing = value.isin(NULL_COMPONENT, EMPTY_COMPONENT)
        return (h * 31 + f.when(is_nothing, f.lit(0).cast("long")).otherwise(text_hash(value, 0))).bitwiseAND(_LOW)

    return f.when(f.size(values) > 0, f.aggregate(values, f.lit(1).cast("long"), step)).otherwise(whole)


def text_hash(text: Column, added: int) -> Column:
    """The low 32 bits of Java's `String.hashCode` plus `added`.

    Spark splits an empty text into one character with code 0, which adds nothing. A character beyond 16 bits counts as
    two, as in Java.
    """
    characters = f.transform(f.split(text, ""), lambda character: f.ascii(character).cast("long"))

    def step(h: Column, code: Column) -> Column:
        beyond = code - 0x10000
        high, low = f.shiftright(beyond, 10) + 0xD800, beyond.bitwiseAND(0x3FF) + 0xDC00
        return f.when(code < 0x10000, h * 31 + code).otherwise(h * 961 + high * 31 + low).bitwiseAND(_LOW)

    return (f.aggregate(characters, f.lit(0).cast("long"), step) + added).bitwiseAND(_LOW)


def _bound(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use(value)`, with `value` computed once."""
    return f.element_at(f.transform(f.array(value), use), 1)


def with_rule_buckets(
    rows: DataFrame, rules: Mapping[str, BucketRule], *, path: str, key: str, bucket: str
) -> DataFrame:
    """The rows with a column `bucket`, by the rule of the partition that the column `path` names.

    One rule of fixed buckets for all partitions is computed natively.
    """
    distinct = set(rules.values())
    if len(distinct) == 1 and isinstance(fixed := distinct.pop(), FixedBuckets):
        return rows.withColumn(bucket, fixed_bucket(f.col(key), fixed))
    return with_ring_buckets(rows, rules, path=path, key=key, bucket=bucket)


def with_ring_buckets(
    rows: DataFrame, rules: Mapping[str, BucketRule], *, path: str, key: str, bucket: str
) -> DataFrame:
    """The rows with a column `bucket`, by the rule of the partition that the column `path` names.

    From Spark 4.1 only paths and keys go to Python; before that whole rows do. Python holds one batch.
    """
    if hasattr(f, "arrow_udf"):

        def number(paths: pa.Array, keys: pa.Array) -> pa.Array:
            return pa.array(ring_numbers(paths, keys, rules))

        return rows.withColumn(bucket, f.arrow_udf(number, "int")(path, key))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = ring_numbers(batch.column(path), batch.column(key), rules)
            yield batch.append_column(bucket, pa.array(numbers))

    return map_in_arrow(rows, run, StructType([*rows.schema.fields, StructField(bucket, IntegerType())]))


def ring_numbers(paths: pa.Array, keys: pa.Array, rules: Mapping[str, BucketRule]) -> np.ndarray:
    """The bucket of each row, numbered within the row's partition. Shape: (n,) int32."""
    found = np.zeros(len(keys), dtype=np.int32)
    if not len(keys):
        return found

    encoded = one_array(paths).dictionary_encode()
    by_path = rows_by_code(np.asarray(encoded.indices), len(encoded.dictionary))
    for partition, part in zip(encoded.dictionary.to_pylist(), by_path, strict=True):
        if partition not in rules:
            raise Bug(
                f"partition '{partition}': expected the rule of its buckets, found those of {len(rules):,} others"
            )
        found[part] = rules[partition].bucket_of(keys.take(pa.array(part)))
    return found
