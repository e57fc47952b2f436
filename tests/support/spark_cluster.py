"""A session of this machine whose writes go as on a cluster, or as from Parquet files."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

_WRITE = "pyhudi.engine.spark.write"


def writes_as_on_cluster(patch: pytest.MonkeyPatch, *, gathers: bool) -> None:
    """`gathers`: few rows are brought to the driver, as they are; otherwise all rows go through Spark's shuffle."""
    patch.setattr(f"{_WRITE}.staged_source.runs_on_this_machine", lambda spark: False)
    if not gathers:
        shuffle_all(patch)


def send_all(patch: pytest.MonkeyPatch) -> None:
    """Gathered rows are written by tasks of Spark, whatever the plan."""
    patch.setattr(f"{_WRITE}.gathered_source.REWRITES_MAX", -1)


def write_parts(patch: pytest.MonkeyPatch) -> None:
    """New rows are written where Spark reads them, however small the files."""
    for name in ("FILES_MAX", "UNEVEN_MAX"):
        patch.setattr(f"{_WRITE}.parts.{name}", 1_000)
    patch.setattr(f"{_WRITE}.parts.ROWS_MIN", 0)


def shuffle_all(patch: pytest.MonkeyPatch) -> None:
    """No input counts as few rows."""
    for name in ("GATHERED_ROWS_MAX", "GATHERED_BYTES_MAX"):
        patch.setattr(f"{_WRITE}.gathered_source.{name}", -1)


def through_parquet(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Rows of DataFrames without nested columns are put into Parquet files first, and written from there."""
    from pyspark.sql import types as t

    from pyhudi.engine.spark import engine

    source_of, numbers = engine.source_of, count()

    def source_of_files(rows: Any, *arguments: Any) -> Any:
        nested = (t.StructType, t.ArrayType, t.MapType, t.NullType)
        if not any(isinstance(field.dataType, nested) for field in rows.schema.fields):
            path = str(folder / str(next(numbers)))
            rows.write.parquet(path)
            rows = rows.sparkSession.read.parquet(path)
        return source_of(rows, *arguments)

    patch.setattr(engine, "source_of", source_of_files)
