"""What a caller may hand in: told apart without importing the library that it comes from."""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import pyarrow as pa

from pyhudi.api.neighbours.polars_input import is_lazy_frame, lazy_batches, refuse_objects
from pyhudi.engine.local.input_stream import input_batches, stream_failed
from pyhudi.errors import HudiError, Invalid, Unsupported

_SPARK_CLASSES = (
    ("pyspark.sql.dataframe", "DataFrame"),
    ("pyspark.sql.classic.dataframe", "DataFrame"),
    ("pyspark.sql.connect.dataframe", "DataFrame"),
)


def spark_dataframe(data: Any) -> Any | None:
    """The data as a Spark DataFrame, if it is one (classic, Connect, or pandas on Spark); otherwise None.

    Comes before any look at the Arrow interface, which Spark's own class speaks from 4.2 on.
    """
    if _is_instance(data, "pyspark.pandas.frame", "DataFrame"):
        return data.to_spark()
    if any(_is_instance(data, module, name) for module, name in _SPARK_CLASSES):
        return data
    return None


def cluster_of(data: Any) -> Any | None:
    """The Spark session of a DataFrame, if its tasks run on other machines than this one; otherwise None."""
    dataframe = spark_dataframe(data)
    return None if dataframe is None else as_cluster(spark_engine().session_of(dataframe))


def as_cluster(spark: Any | None) -> Any | None:
    """The Spark session, if its tasks run on other machines than this one; otherwise None, as for None."""
    return None if spark is None or spark_engine().runs_on_this_machine(spark) else spark


def is_arrow(data: Any) -> bool:
    """Whether the data speaks the Arrow PyCapsule interface as rows with columns, or can be made to."""
    return hasattr(data, "__arrow_c_stream__") or isinstance(data, pa.RecordBatch) or is_lazy_frame(data)


def is_one_column(data: Any) -> bool:
    """Whether the data is a column without a name, though it may speak the Arrow interface."""
    series = any(_is_instance(data, module, "Series") for module in ("polars", "pandas"))
    return series or isinstance(data, pa.ChunkedArray)


def arrow_table(data: Any) -> pa.Table:
    """The data as an Arrow table, its stream read to the end. Raises: as `arrow_rows` and `input_batches`."""
    rows = arrow_rows(data)
    if isinstance(rows, pa.Table):
        return rows
    batches = list(input_batches(rows))
    return pa.Table.from_batches([batch.cast(rows.schema) for batch in batches], rows.schema)


def arrow_rows(data: Any) -> pa.Table | pa.RecordBatchReader:
    """The data as an Arrow table that is in memory, or as a stream that is still to be read.

    Raises: Invalid for anything that does not speak the Arrow stream interface, and for a query that fails at once.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if is_arrow(data):
        return _stream(data)
    raise Invalid(
        f"data of type {type(data).__module__}.{type(data).__qualname__}: expected a Spark DataFrame or anything with "
        "__arrow_c_stream__ (pyarrow, pandas 2.2 and later, Polars, DuckDB, ...), or a Polars LazyFrame"
    )


def _stream(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):  # through the C interface its errors would become texts
        return data
    refuse_objects(data)
    data = _without_row_labels(data)
    try:
        return lazy_batches(data) if is_lazy_frame(data) else pa.RecordBatchReader.from_stream(data)
    except HudiError:
        raise
    except (pa.ArrowException, TypeError) as error:
        kind = type(data)
        raise Invalid(
            f"data of type {kind.__module__}.{kind.__qualname__}: expected rows of named columns: {error}"
        ) from error
    except Exception as error:  # DuckDB begins a relation's query here, and Polars looks for its columns
        raise stream_failed(error) from error


def _without_row_labels(data: Any) -> Any:
    """A pandas DataFrame without index levels that have no name. Their numbers would become a column of the table.

    Seen: pandas 2.3: `frame[frame.n > 1]` has `__index_level_0__` in its stream.
    """
    if not _is_instance(data, "pandas", "DataFrame"):
        return data
    unnamed = [level for level, name in enumerate(data.index.names) if name is None]
    return data.reset_index(level=unnamed, drop=True) if unnamed else data


def arrow_schema(schema: Any) -> pa.Schema:
    """Anything with an Arrow schema as a `pyarrow.Schema`."""
    if isinstance(schema, pa.Schema):
        return schema
    if not hasattr(schema, "__arrow_c_schema__"):
        raise Invalid(
            f"schema of type {type(schema).__qualname__}: expected a pyarrow.Schema or anything with __arrow_c_schema__"
        )
    try:
        return pa.schema(schema)
    except (pa.ArrowException, TypeError) as error:  # a type or a field has this method, too
        raise Invalid(f"schema of type {type(schema).__qualname__}: expected that of a table, found {error}") from error


def spark_engine() -> ModuleType:
    """The engine on Spark, imported when it is first needed.

    Raises: Unsupported when PySpark is not installed.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise Unsupported("PySpark is not installed: pip install 'pyhudi[spark]'")
    return importlib.import_module("pyhudi.engine.spark.engine")


def _is_instance(data: Any, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(data, kind)
