"""Questions to a Spark session, classic or Connect: its time zone, its cores. Also settings that last for one block."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, timedelta, timezone, tzinfo
from functools import cache, partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.connect.server import refuse_unseen, refuse_without_package
from pyhudi.errors import Invalid
from pyhudi.storage.protocol import StorageLocation

if TYPE_CHECKING:  # Spark's workers import this module, too; they do not need what the next line would import
    from pyhudi.txn.action.session import TableAccess

BATCH_ROWS = 8_192
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"

_OFFSET = re.compile(r"(UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(:(?P<minutes>\d{2})(:(?P<seconds>\d{2}))?)?")


def session_of(dataframe: DataFrame) -> SparkSession:
    return dataframe.sparkSession


def is_classic(spark: SparkSession) -> bool:
    """Whether the session has a gateway to the driver's JVM. Under Spark Connect there is none."""
    return getattr(spark, "_jvm", None) is not None if not _is_connect(spark) else False


def spark_access(access: TableAccess, dataframe: DataFrame) -> TableAccess:
    """The same table, accessed from the session of a DataFrame."""
    return session_access(access, session_of(dataframe))


def session_access(access: TableAccess, spark: SparkSession) -> TableAccess:
    """The same table, accessed from a Spark session. Instants of a LOCAL table are in the driver JVM's time zone."""
    refuse_unshared(spark, access.location)
    use_running_interpreter(spark)
    zone = partial(driver_zone, spark)
    # A JVM keeps its time zone, and to ask it takes some milliseconds.
    return replace(access, process_zone=cache(zone) if is_classic(spark) else zone)


def refuse_unshared(spark: SparkSession, location: StorageLocation) -> None:
    """Refuse a storage that only this process can reach, and what is no session. Raises: Invalid."""
    check_session(spark)
    if location.uri.startswith("memory:"):
        raise Invalid(
            f"{location.uri}: expected a storage that Spark's workers can reach, found this process's memory; "
            "hand Arrow data to a table in memory, or put the table on a disk"
        )
    if not is_classic(spark):
        refuse_unseen(spark, location)


def check_session(spark: object) -> None:
    """Raises: Invalid for anything but a session, classic or Connect."""
    if not any(kind.__name__ == "SparkSession" for kind in type(spark).__mro__):
        raise Invalid(f"spark={spark!r}: expected a SparkSession, found {type(spark).__name__}")


def driver_zone(spark: SparkSession) -> tzinfo:
    """The time zone of the driver JVM, in which Apache Hudi writes instants of LOCAL tables."""
    if is_classic(spark):
        return parse_java_zone(spark._jvm.java.util.TimeZone.getDefault().toZoneId().getId())  # type: ignore[union-attr]
    return parse_java_zone(spark.conf.get("spark.sql.session.timeZone") or "UTC")


def parse_java_zone(name: str) -> tzinfo:
    """The zone of a Java zone id: a region, or an offset such as `+05:30`, `GMT+05:30` or `Z`."""
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return UTC if name in ("UTC", "GMT", "UT", "Z") else ZoneInfo(name)
    sign = -1 if offset["sign"] == "-" else 1
    hours, minutes, seconds = (int(offset[part] or 0) for part in ("hours", "minutes", "seconds"))
    return timezone(sign * timedelta(hours=hours, minutes=minutes, seconds=seconds))


def use_running_interpreter(spark: SparkSession) -> None:
    """In local mode, run workers with this process's Python, unless the user has chosen another.

    Another Python may lack pyarrow. Under Spark Connect the server's Python is the server's choice.
    Raises: Unsupported where that has not this package.
    """
    if not is_classic(spark):
        refuse_without_package(spark)
        return
    if "PYSPARK_PYTHON" in os.environ:
        return
    context = spark.sparkContext
    if (context.master or "").startswith("local") and not spark.conf.get("spark.pyspark.python", ""):
        context.pythonExec = sys.executable


def core_count(spark: SparkSession) -> int:
    """How many tasks run at once, as far as the session tells."""
    if is_classic(spark):
        return max(1, spark.sparkContext.defaultParallelism)
    return max(1, int(spark.conf.get("spark.default.parallelism", "") or os.cpu_count() or 1))


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """SQL settings for the length of a block. After it the earlier settings are restored."""
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in settings}

    try:
        for name, wanted in settings.items():
            spark.conf.set(name, wanted)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


@contextmanager
def arrow_batches(spark: SparkSession) -> Iterator[None]:
    """Let `mapInArrow` get batches of at most `BATCH_ROWS` rows, or fewer if the session asks for fewer.

    Spark 4.1 and later measure a batch's bytes after each row, which takes longer than the rest of the handover.
    Batches are therefore cut by rows alone, unless the session itself sets a limit in bytes.
    """
    asked = int(spark.conf.get(_BATCH_ROWS, None) or BATCH_ROWS)
    settings = {_BATCH_ROWS: str(min(asked, BATCH_ROWS) if asked > 0 else BATCH_ROWS)}
    if spark.conf.get(_BATCH_BYTES, None) is None:
        settings[_BATCH_BYTES] = str(2**31 - 1)
    with with_settings(spark, settings):
        yield


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")
