"""The far side of `bench.indexes`: a Spark session that builds indexes, and finds keys by them, as it is told.

Also runs where only PySpark 3.5 is. A format is `hudi`, `pyhudi` (on Spark), or `arrow`: pyhudi without Spark. Each
command answers the seconds that it took here, and what it found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.worker import KEY, PARTITION, Target, bench_commands, hudi_options
from tests.support.reference.server import Handler, serve, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.api.scan import Scan

BY_INDEX = {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}

Answer = dict[str, Any]


def index_commands(spark: SparkSession) -> dict[str, Handler]:
    of_bench = bench_commands(spark)

    def build(path: str, format: str, kind: str, options: dict[str, str]) -> Answer:
        started = time.perf_counter()
        if format == "hudi":
            of_bench["run_index"](path, of_bench["schedule_index"](path, kind, options), options)
        else:
            from pyhudi import HudiTable

            HudiTable.open(path).build_index(kind, spark=spark if format == "pyhudi" else None)
        return {"seconds": time.perf_counter() - started}

    def tag(path: str, format: str, input: str, options: dict[str, str]) -> Answer:
        """The file group of each key of an input, as an upsert finds it out; the keys are in memory before."""
        return _tag_by_hudi(spark, path, input, options) if format == "hudi" else _tag_by_pyhudi(path, input)

    def find(path: str, format: str, keys: list[str]) -> Answer:
        """The row of each key, one query a key; the seconds of all of them."""
        finders: dict[str, Callable[[str], int]] = {
            "hudi": lambda key: _count(spark.read.format("hudi").options(**SKIPPING).load(path), key),
            "pyhudi": lambda key: len(_scan(path, key).to_spark(spark).collect()),
            "arrow": lambda key: _look_up(path, key),
        }
        started = time.perf_counter()
        count = sum(finders[format](key) for key in keys)
        return {"seconds": time.perf_counter() - started, "count": count}

    def ask(path: str, format: str, keys: list[str]) -> Answer:
        """As `find`, by SQL on the table's name; without Spark, by a condition."""
        if format != "arrow":
            _name(spark, path, format)
        started = time.perf_counter()
        count = sum(_matching(path, key) if format == "arrow" else _asked(spark, key) for key in keys)
        return {"seconds": time.perf_counter() - started, "count": count}

    def upsert(path: str, format: str, input: str, options: dict[str, str]) -> Answer:
        frame = spark.read.parquet(input)
        rows = pq.read_table(input) if format == "arrow" else frame
        started = time.perf_counter()
        if format == "hudi":
            told = hudi_options(Target(path, "COPY_ON_WRITE", {**options, **BY_INDEX}), "upsert")
            frame.write.format("hudi").options(**told).mode("append").save(path)
        else:
            from pyhudi import HudiTable

            HudiTable.open(path, options=BY_INDEX).upsert(rows)
        return {"seconds": time.perf_counter() - started}

    return {**of_bench, "build": build, "tag": tag, "find": find, "ask": ask, "upsert": upsert}


def _tag_by_hudi(spark: SparkSession, path: str, input: str, options: dict[str, str]) -> Answer:
    """By its client's own look-up, of the index that its writer asks."""
    jvm: Any = spark._jvm
    properties = jvm.java.util.Properties()
    for name, value in {**BY_INDEX, **options}.items():
        properties.setProperty(name, value)
    wanted = _records_of_hudi(spark, input).coalesce(2)  # as they are, and not yet held: it wants to do that
    started = time.perf_counter()
    config = jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath(path).withProps(properties).build()
    context = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(spark._jsc)
    found = jvm.org.apache.hudi.client.SparkRDDReadClient(context, config).tagLocation(wanted)
    count = int(found.count())
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "count": count - sum(not of.isCurrentLocationKnown() for of in found.take(1_000))}


@cache
def _records_of_hudi(spark: SparkSession, input: str) -> Any:
    """The keys of an input as records, as for a delete, held by Spark: making them is not part of any figure."""
    jvm: Any = spark._jvm
    model, listed = jvm.org.apache.hudi.common.model, jvm.java.util.ArrayList()
    nothing = model.EmptyHoodieRecordPayload()
    for row in spark.read.parquet(input).select(KEY, PARTITION).collect():
        listed.add(model.HoodieAvroRecord(model.HoodieKey(row[KEY], row[PARTITION]), nothing))
    records = spark._jsc.parallelize(listed, 2).cache()
    records.count()
    return records


def _tag_by_pyhudi(path: str, input: str) -> Answer:
    """In this process, as an upsert on Spark does, too, as long as Spark runs on one machine."""
    from pyhudi import HudiTable
    from pyhudi.engine.local.executors import LocalExecutor
    from pyhudi.index.record_index import RecordIndex
    from pyhudi.metadata.store.indexes import open_indexes

    rows = pq.read_table(input)
    by_path = {name: rows.filter(pc.equal(rows[PARTITION], name)) for name in rows[PARTITION].unique().to_pylist()}
    keys = {name: of[KEY].combine_chunks() for name, of in by_path.items()}
    started = time.perf_counter()
    snapshot = HudiTable.open(path)._access.snapshot()
    executor = LocalExecutor()
    indexes = open_indexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone, executor=executor)
    assert indexes is not None
    slices = [piece for name in snapshot.listing.partitions() for piece in snapshot.slices(name)]
    found = RecordIndex(indexes, is_global=True).locate(snapshot.storage, keys, slices, executor)
    count = sum(len(hits.rows) for hits in found.values())
    return {"seconds": time.perf_counter() - started, "count": count}


def _scan(path: str, key: str) -> Scan:
    from pyhudi import HudiTable

    return HudiTable.open(path).scan(where=f"{KEY} = '{key}'")


def _count(rows: DataFrame, key: str) -> int:
    return len(rows.where(f"{KEY} = '{key}'").collect())


def _name(spark: SparkSession, path: str, format: str) -> None:
    """Give the table a name in the session's catalog."""
    if format == "pyhudi":
        import pyhudi.spark

        pyhudi.spark.register(spark)
    else:
        for name, value in SKIPPING.items():
            spark.conf.set(name, value)
    spark.sql("DROP TABLE IF EXISTS bench_asked")
    spark.sql(f"CREATE TABLE bench_asked USING hudi LOCATION '{path}'")


def _asked(spark: SparkSession, key: str) -> int:
    return len(spark.sql(f"SELECT * FROM bench_asked WHERE {KEY} = '{key}'").collect())


def _matching(path: str, key: str) -> int:
    return int(_scan(path, key).to_arrow().num_rows)


def _look_up(path: str, key: str) -> int:
    from pyhudi import HudiTable

    return int(HudiTable.open(path).lookup([key]).num_rows)


if __name__ == "__main__":
    serve(start_session, index_commands)
