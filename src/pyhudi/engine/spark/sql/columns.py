"""Columns of a statement and of the catalog as Spark's types."""

import json
import re
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from pyhudi.engine.spark.connect.texts import columns_of
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import is_classic
from pyhudi.errors import Unsupported
from pyhudi.format.schema.conversion import META_FIELDS

_COLLATION = re.compile(r" collate (?!utf8_binary\b)", re.IGNORECASE)


def parsed_columns(spark: SparkSession, text: str) -> t.StructType:
    """The columns of `CREATE TABLE`, from the text in its brackets.

    Raises: Spark's ParseException; Unsupported for defaults and collations.
    """
    if is_classic(spark):
        parsed = spark._jsparkSession.sessionState().sqlParser().parseTableSchema(text)
        columns = t.StructType.fromJson(json.loads(parsed.json()))
    else:
        columns = columns_of(spark, text)
    for field in columns.fields:
        if "CURRENT_DEFAULT" in field.metadata or "GENERATION_EXPRESSION" in field.metadata:
            raise Unsupported(f"column '{field.name}': a Hudi table has no defaults and no generated columns")
    refuse_collations(columns)
    return t.StructType([field for field in columns.fields if field.name not in META_FIELDS])


def refuse_collations(columns: t.StructType) -> None:
    """Raises: Unsupported for text that is compared by a collation. The table would compare it by its bytes."""
    for field in columns.fields:
        if _COLLATION.search(field.dataType.simpleString()):
            raise Unsupported(
                f"column '{field.name}' of type {field.dataType.simpleString()}: a Hudi table has no collations; "
                "leave COLLATE out here, and write it in queries"
            )


def nullable(columns: t.StructType) -> t.StructType:
    """The columns of a query as those of a table that it makes: any of them may be null, as in Spark."""
    return t.StructType([t.StructField(field.name, field.dataType, True, field.metadata) for field in columns.fields])


def reordered(columns: t.StructType, partition_by: Sequence[str]) -> t.StructType:
    """The columns with those of partitions last, as Spark orders the columns of a table."""
    last = [field for name in partition_by for field in columns.fields if field.name == name]
    return t.StructType([*(field for field in columns.fields if field.name not in partition_by), *last])


def catalog_columns(
    schema: pa.Schema, partition_by: Sequence[str], *, said: t.StructType | None, has_meta_fields: bool
) -> t.StructType:
    """A table's columns as the catalog has them: meta fields first, partition columns last.

    `said`: the columns of a statement, whose comments are kept.
    """
    comments = {field.name.lower(): field.metadata for field in said.fields} if said is not None else {}
    own = [
        t.StructField(field.name, field.dataType, True, comments.get(field.name.lower()) or {})
        for field in spark_schema(schema).fields
    ]
    meta = [t.StructField(name, t.StringType()) for name in META_FIELDS] if has_meta_fields else []
    return t.StructType([*meta, *reordered(t.StructType(own), partition_by).fields])


def table_columns(schema: pa.Schema, partition_by: Sequence[str]) -> list[t.StructField]:
    """A table's own columns in the order in which an INSERT counts them: partition columns last."""
    return list(reordered(spark_schema(schema), partition_by).fields)
