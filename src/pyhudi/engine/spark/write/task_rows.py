"""The rows of an input as tasks of Spark get them: from Spark, or from Parquet files that they read themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.engine.spark.batches import map_in_arrow
from pyhudi.engine.spark.session import core_count, session_of
from pyhudi.engine.spark.write.parquet_files import ParquetFiles

ArrowTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class TaskRows:
    """`rows`: a DataFrame. `parts`: the files that hold the same rows, in parts; None where Spark is to read them."""

    rows: DataFrame
    parts: tuple[ParquetFiles, ...] | None

    @classmethod
    def of(cls, rows: DataFrame, files: ParquetFiles | None) -> TaskRows:
        return cls(rows, tuple(files.parts(core_count(session_of(rows)))) if files is not None else None)

    @property
    def session(self) -> SparkSession:
        return session_of(self.rows)

    def map(self, run: ArrowTask, schema: StructType | str) -> DataFrame:
        """As `mapInArrow`; task n of Spark gets part n."""
        if self.parts is None:
            return map_in_arrow(self.rows, run, schema)
        return self.map_columns(run, schema, None)

    def map_columns(self, run: ArrowTask, schema: StructType | str, names: Sequence[str] | None) -> DataFrame:
        """As `map`, of some columns of files."""
        assert self.parts is not None
        numbers = self.session.range(0, len(self.parts), 1, len(self.parts))
        return numbers.mapInArrow(_reading(self.parts, run, names), schema)


def _reading(parts: Sequence[ParquetFiles], run: ArrowTask, names: Sequence[str] | None) -> ArrowTask:
    """The function for `mapInArrow`. Its input is the number of a part."""

    def task(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from run(parts[number].batches(names))

    return task
