"""The far side: one Spark session that obeys JSON commands, one a line.

Runs in the environment of `environment.py`, so it imports the standard library and PySpark only.
Standard input brings {"command": name, ...arguments}; standard output answers {"value": ...} or
{"error": ...}. Whatever Spark, the JVM or a library prints goes to standard error.

    python -m tests.support.reference.server '{"spark.master": "local[2]", ...}'
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Handler = Callable[..., Any]

ERROR_LINES = 12
MICROS = "spark.sql.parquet.outputTimestampType"


def serve(start: Callable[[Mapping[str, str]], SparkSession], commands: Callable[..., dict[str, Handler]]) -> None:
    """Start a session with the settings in the first argument; obey until `stop` or the end of input."""
    answers = _claim_standard_output()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    try:
        spark = start(json.loads(sys.argv[1]))
    except Exception as error:
        _answer(answers, {"error": describe_error(error)})
        return
    handlers = commands(spark)
    _answer(answers, {"value": {"spark": spark.version, "python": sys.version.split()[0]}})
    for line in sys.stdin:
        message = json.loads(line)
        name = message.pop("command")
        if name == "stop":
            break
        try:
            _answer(answers, {"value": handlers[name](**message)})
        except Exception as error:
            traceback.print_exc()
            _answer(answers, {"error": describe_error(error)})
    spark.stop()
    _answer(answers, {"value": None})


def start_session(settings: Mapping[str, str]) -> SparkSession:
    """A Spark session with these settings."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def hudi_commands(spark: SparkSession) -> dict[str, Handler]:
    """What the reference does when asked; each value is what JSON can carry."""

    def read(path: str, options: dict[str, str], where: str | None = None) -> dict[str, Any] | None:
        frame = spark.read.format("hudi").options(**options).load(path)
        return store(spark, frame if where is None else frame.where(where))

    def write(path: str, input: str, options: dict[str, str], mode: str) -> None:
        spark.read.parquet(input).write.format("hudi").options(**options).mode(mode).save(path)

    def stream_in(path: str, source: str, checkpoint: str, schema: str, options: dict[str, str], mode: str) -> None:
        """Write files to a table, one a batch, as long as there are some. `mode`: the output mode."""
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)
        started = frame.writeStream.format("hudi").options(**options).option("checkpointLocation", checkpoint)
        assert started.outputMode(mode).trigger(availableNow=True).start(path).awaitTermination(300)

    def stream_out(path: str, checkpoint: str, options: dict[str, str]) -> list[list[list[int]]]:
        """What each batch of a table holds, as ids."""
        found: dict[int, list[list[int]]] = {}

        def keep(frame: DataFrame, number: int) -> None:
            found[number] = sorted([row["id"]] for row in frame.select("id").collect())

        frame = spark.readStream.format("hudi").options(**options).load(path)
        started = frame.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
        assert started.trigger(availableNow=True).start().awaitTermination(300)
        return [found[number] for number in sorted(found)]

    def sql(text: str) -> dict[str, Any] | None:
        return store(spark, spark.sql(text))

    def schedule_index(path: str, kind: str, options: dict[str, str]) -> str:
        client = index_client(spark, path, options)
        try:
            jvm: Any = spark._jvm
            types, names = _jvm_list(spark), _jvm_list(spark)
            types.add(jvm.org.apache.hudi.metadata.MetadataPartitionType.valueOf(kind.upper()))
            return str(client.scheduleIndexing(types, names).get())
        finally:
            client.close()

    def run_index(path: str, requested: str, options: dict[str, str]) -> None:
        client = index_client(spark, path, options)
        try:
            client.index(requested).get()
        finally:
            client.close()

    def read_by_hbase(path: str, wanted: list[str]) -> dict[str, Any]:
        """The cells of an HFile as HBase's own reader in the bundle gives them, and which of the keys it finds."""
        return scan_hfile(spark, path, wanted)

    return {
        "read": read, "write": write, "sql": sql, "stream_in": stream_in, "stream_out": stream_out,
        "read_by_hbase": read_by_hbase,
        "schedule_index": schedule_index, "run_index": run_index,
    }  # fmt: skip


def index_client(spark: SparkSession, path: str, options: Mapping[str, str]) -> Any:
    """A write client that may build indexes beside writers; it wants a lock provider for that."""
    jvm: Any = spark._jvm
    settings = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.metadata.index.async": "true",
        "hoodie.embed.timeline.server": "false",
        **options,
    }
    properties = jvm.java.util.Properties()
    for name, value in settings.items():
        properties.setProperty(name, value)
    config = jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath(path).withProps(properties).build()
    context = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(spark._jsc)
    return jvm.org.apache.hudi.client.SparkRDDWriteClient(context, config)


def _jvm_list(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.java.util.ArrayList()


def scan_hfile(spark: SparkSession, path: str, wanted: list[str]) -> dict[str, Any]:
    """Rows and values of all cells, in hexadecimal, in order; then what `seekTo` answers for each wanted key."""
    jvm: Any = spark._jvm
    hbase = jvm.org.apache.hudi.org.apache.hadoop.hbase
    settings = spark._jsc.hadoopConfiguration()
    file = jvm.org.apache.hadoop.fs.Path(path)
    reader = hbase.io.hfile.HFile.createReader(
        file.getFileSystem(settings), file, hbase.io.hfile.CacheConfig(settings), True, settings
    )
    scanner = reader.getScanner(False, True)
    cells = []
    going = scanner.seekTo()
    while going:
        cell = scanner.getCell()
        key, value = hbase.CellUtil.cloneRow(cell), hbase.CellUtil.cloneValue(cell)
        cells.append([bytes(key).hex(), bytes(value).hex()])
        going = scanner.next()
    found = {key: scanner.seekTo(hbase.KeyValue(key.encode(), None, None, None)) == 0 for key in wanted}
    answer = {"cells": cells, "found": found, "entries": reader.getEntries()}
    reader.close()
    return answer


def store(spark: SparkSession, frame: DataFrame) -> dict[str, Any] | None:
    """Write the rows where the client can fetch them: Parquet, timestamps in microseconds.

    None for a statement that gives no columns. Columns of no type (`NULL`) are stored as text.
    """
    from pyspark.sql import functions as functions
    from pyspark.sql.types import NullType

    if not frame.columns:
        return None
    for field in frame.schema.fields:
        if isinstance(field.dataType, NullType):
            frame = frame.withColumn(field.name, functions.col(f"`{field.name}`").cast("string"))
    folder = tempfile.mkdtemp(prefix="answer-")
    before = spark.conf.get(MICROS) or "INT96"
    spark.conf.set(MICROS, "TIMESTAMP_MICROS")
    try:
        frame.write.mode("overwrite").parquet(folder)
    finally:
        spark.conf.set(MICROS, before)
    files = sorted(str(file) for file in Path(folder).glob("*.parquet"))
    return {"folder": folder, "files": files, "schema": frame.schema.simpleString()}


def describe_error(error: BaseException) -> dict[str, str]:
    """Class and first lines of an error; for one from the JVM also its causes, which hold the reason."""
    text = str(error)
    lines = [line for line in text.splitlines() if line.strip()]
    causes = [line for line in lines[ERROR_LINES:] if line.startswith("Caused by:")]
    return {"class": type(error).__name__, "message": "\n".join(lines[:ERROR_LINES] + causes)}


def _claim_standard_output() -> TextIO:
    """Keep standard output for answers; what anybody else prints, the JVM too, goes to standard error."""
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return ours


def _answer(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    serve(start_session, hudi_commands)
