"""PySpark's own classes of a session's kind: classic ones and those of Spark Connect have the same names elsewhere."""

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class SparkClasses:
    """The classes whose calls pyhudi answers for Hudi tables."""

    session: Any
    reader: Any
    writer: Any
    writer_of_tables: Any
    frame: Any
    catalog: Any
    stream_reader: Any
    stream_writer: Any


def classes_of(session_class: type) -> SparkClasses:
    """The classes of a kind of session."""
    package = "pyspark.sql.connect" if is_of_connect(session_class) else "pyspark.sql"
    batches = importlib.import_module(f"{package}.readwriter")
    streams = importlib.import_module(f"{package}.streaming.readwriter")
    return SparkClasses(
        session=importlib.import_module(f"{package}.session").SparkSession,
        reader=batches.DataFrameReader,
        writer=batches.DataFrameWriter,
        writer_of_tables=batches.DataFrameWriterV2,
        frame=_frame(package),
        catalog=importlib.import_module(f"{package}.catalog").Catalog,
        stream_reader=streams.DataStreamReader,
        stream_writer=streams.DataStreamWriter,
    )


def _frame(package: str) -> Any:
    """The class of DataFrames. From PySpark 4 on classic ones have a module of their own."""
    if package == "pyspark.sql" and importlib.util.find_spec("pyspark.sql.classic") is not None:
        package = "pyspark.sql.classic"
    return importlib.import_module(f"{package}.dataframe").DataFrame


def is_of_connect(kind: type) -> bool:
    """Whether a class is one of Spark Connect."""
    return kind.__module__.startswith("pyspark.sql.connect")


def session_behind(builder: Any) -> SparkSession:
    """The session of a reader or a writer."""
    named = (getattr(builder, name, None) for name in ("_spark", "_client", "_session"))
    found: SparkSession | None = next((one for one in named if one is not None), None)
    assert found is not None
    return found


def frame_of(writer: Any) -> DataFrame:
    """The DataFrame that a writer writes. Under Connect a writer holds the DataFrame's plan and its session apart."""
    if not is_of_connect(type(writer)):
        frame: DataFrame = writer._df
        return frame
    kind = importlib.import_module("pyspark.sql.connect.dataframe").DataFrame
    make = getattr(kind, "withPlan", kind)  # before PySpark 4.0 a class method
    plan = writer._df if hasattr(writer, "_df") else writer._write_stream._child
    found: DataFrame = make(plan, session_behind(writer))
    return found
