"""The rows of a bootstrap's source files as a DataFrame: each Spark task reads some of the files."""

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import core_count, use_running_interpreter
from pyhudi.services.bootstrap.rows import SourceRows

_TASKS_A_CORE = 4


def dataframe_of_source(spark: SparkSession, rows: SourceRows) -> DataFrame:
    """The rows, read by the code that reads them in this process: same types, same values of partition columns."""
    use_running_interpreter(spark)
    count = max(1, min(len(rows.files), _TASKS_A_CORE * core_count(spark)))
    return spark.range(0, count, 1, count).mapInArrow(_reading(rows, count), spark_schema(rows.schema))


def _reading(rows: SourceRows, count: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is the numbers of tasks, its output the rows of every count-th file."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from rows.batches(rows.files[number::count])

    return run
