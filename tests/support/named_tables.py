"""Names in one Hive metastore, used by pyhudi and by Apache Hudi in turns: each in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.reference.client import ReferenceFailed, ReferenceHudi, Worker
from tests.support.reference.environment import PROJECT, reference_java_home
from tests.support.reference.server import hudi_commands, serve, start_session, store
from tests.support.spark_jvm import SHORT_LIVED_JAVA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def metastore_settings(uri: str, warehouse: Path) -> dict[str, str]:
    """What a session needs to have its names in a metastore. `uri`: empty for one of the session's own, in a folder."""
    shared = {"spark.sql.catalogImplementation": "hive", "spark.sql.warehouse.dir": str(warehouse)}
    if uri:
        return {**shared, "spark.hadoop.hive.metastore.uris": uri}
    place = f"jdbc:derby:;databaseName={warehouse}/names;create=true"
    return {**shared, "spark.hadoop.javax.jdo.option.ConnectionURL": place}


class OwnSql:
    """A session that knows pyhudi. `registers`: False for one in which nobody called `register`."""

    def __init__(self, settings: Mapping[str, str], *, registers: bool = True) -> None:
        self.worker = Worker(
            Path(sys.executable),
            "tests.support.named_tables",
            java_home=reference_java_home(),
            python_path=[PROJECT / "src"],
            java_options=SHORT_LIVED_JAVA,
            spark_settings={
                "spark.driver.memory": "1g",
                "spark.sql.shuffle.partitions": "2",
                "spark.pyhudi.registers": str(registers).lower(),
                **settings,
            },
        )

    def sql(self, text: str) -> Any:
        stored = self.worker.ask("sql", text=text)
        return None if stored is None else ReferenceHudi._fetch(self, stored)  # type: ignore[arg-type]

    def write(self, path: Path, rows: pa.Table, /, **options: object) -> None:
        """A DataFrame to a path, as an upsert."""
        ReferenceHudi.write(self, path, rows, **options)  # type: ignore[arg-type]

    def stream_in(self, path: Path, rows: pa.Table, checkpoint: Path, /, **options: object) -> None:
        """A stream of one batch to a path."""
        source = checkpoint.with_name(f"{checkpoint.name}.source")
        source.mkdir()
        pq.write_table(rows, source / "rows.parquet")
        schema = ", ".join(f"{one.name} {'long' if pa.types.is_int64(one.type) else 'string'}" for one in rows.schema)
        self.worker.ask(
            "stream_in", path=str(path), source=str(source), checkpoint=str(checkpoint), schema=schema,
            options={name: str(value) for name, value in options.items()}, mode="append",
        )  # fmt: skip

    def entry(self, database: str, name: str) -> dict[str, Any]:
        """What the metastore has of a name, as Hive's own client gives it."""
        found: dict[str, Any] = self.worker.ask("entry", database=database, name=name)
        return found

    def close(self) -> None:
        self.worker.close()


def rows_of(side: Any, text: str) -> list[tuple[Any, ...]]:
    """The rows of a statement, none for one that has no columns."""
    found = side.sql(text)
    return [] if found is None else [tuple(row.values()) for row in found.to_pylist()]


def refusal_of(side: Any, text: str) -> str:
    """What a statement was refused with; empty where it was not."""
    try:
        side.sql(text)
    except ReferenceFailed as error:
        return str(error)
    return ""


def _start(settings: Mapping[str, str]) -> SparkSession:
    spark = start_session(settings)
    if spark.conf.get("spark.pyhudi.registers") == "true":
        import pyhudi.spark

        pyhudi.spark.register(spark)
    return spark


def _commands(spark: SparkSession) -> dict[str, Callable[..., Any]]:
    def sql(text: str) -> Any:
        return store(spark, spark.sql(text))

    def entry(database: str, name: str) -> dict[str, Any]:
        jvm: Any = spark._jvm
        catalog = spark._jsparkSession.sessionState().catalog().externalCatalog()
        client = jvm.org.apache.hadoop.hive.ql.metadata.Hive.get(catalog.unwrapped().client().conf()).getMSC()
        table = client.getTable(database, name)
        storage = table.getSd()
        partitioned = table.getPartitionKeys()
        return {
            "type": str(table.getTableType()),
            "location": str(storage.getLocation()),
            "input": str(storage.getInputFormat()),
            "output": str(storage.getOutputFormat()),
            "serde": str(storage.getSerdeInfo().getSerializationLib()),
            "columns": [[one.getName(), one.getType()] for one in storage.getCols()],
            "partition_columns": [[one.getName(), one.getType()] for one in partitioned],
            "properties": {str(key): str(value) for key, value in dict(table.getParameters()).items()},
            "partitions": {
                "/".join(str(value) for value in one.getValues()): str(one.getSd().getLocation())
                for one in (client.listPartitions(database, name, -1) if partitioned else [])
            },
        }

    return {"sql": sql, "entry": entry, **{name: hudi_commands(spark)[name] for name in ("write", "stream_in")}}


if __name__ == "__main__":
    serve(_start, _commands)
