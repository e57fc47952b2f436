"""Streams of Apache Hudi and of pyhudi that go on from one checkpoint could store a batch twice, or pass rows over."""

from pathlib import Path
from typing import Any

import pytest

import pyhudi.spark
from pyhudi import HudiTable
from tests.support.reference.client import ReferenceHudi
from tests.support.streams import OPTIONS, SCHEMA, Feed, forget_last_batch, ids_in, rows, run, stored_batches, writer

pytestmark = [pytest.mark.interop, pytest.mark.spark]

SHARED = "default_single_writer"
NAMED = {
    **OPTIONS,
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.streaming.checkpoint.identifier": SHARED,
    "hoodie.datasource.write.streaming.disable.compaction": "true",
    "hoodie.parquet.small.file.limit": "0",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    pyhudi.spark.register(session)
    yield session
    session.stop()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_one_stream_into_a_table_by_both_in_turns(
    hudi_120: ReferenceHudi, spark: Any, tmp_path: Path, table_type: str
) -> None:
    feed, table, checkpoint = Feed(spark, tmp_path / "source"), tmp_path / "t", tmp_path / "c"
    options = {**NAMED, "hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": "9"}

    def ours() -> None:
        named = {name.replace(".", "__"): text for name, text in options.items()}
        run(writer(feed.stream(), checkpoint, **named).start(str(table)))

    def theirs() -> None:
        hudi_120.worker.ask(
            "stream_in", path=str(table), source=str(feed.folder), checkpoint=str(checkpoint), schema=SCHEMA,
            options=options, mode="append",
        )  # fmt: skip

    for turn, (write, other) in enumerate(((ours, theirs), (theirs, ours), (ours, theirs))):
        feed.add(range(turn * 10, turn * 10 + 3))
        write()
        forget_last_batch(checkpoint)
        other()
        assert stored_batches(table) == [(SHARED, number) for number in range(turn + 1)]
    assert ids_in(table) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert hudi_120.read(table).num_rows == 9


def test_in_update_mode_apache_hudi_replaces_the_table_by_each_batch(
    hudi_120: ReferenceHudi, spark: Any, tmp_path: Path
) -> None:
    """We upsert the batch."""
    feed, found = Feed(spark, tmp_path / "source"), {}
    options = {**NAMED, "hoodie.datasource.write.operation": "upsert"}
    for ids in (range(0, 3), range(2, 5)):
        feed.add(ids)

    hudi_120.worker.ask(
        "stream_in", path=str(tmp_path / "theirs"), source=str(feed.folder), checkpoint=str(tmp_path / "c"),
        schema=SCHEMA, options=options, mode="update",
    )  # fmt: skip
    named = {name.replace(".", "__"): text for name, text in options.items()}
    run(writer(feed.stream(), tmp_path / "d", **named).outputMode("update").start(str(tmp_path / "ours")))
    for who in ("theirs", "ours"):
        found[who] = ids_in(tmp_path / who)
    assert found == {"theirs": [2, 3, 4], "ours": [0, 1, 2, 3, 4]}


def test_one_stream_out_of_a_table_by_both_in_turns(hudi_120: ReferenceHudi, spark: Any, tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts", table_version=9)
    checkpoint = tmp_path / "c"

    def ours() -> list[list[list[int]]]:
        found: dict[int, list[list[int]]] = {}

        def keep(frame: Any, number: int) -> None:
            found[number] = sorted([row["id"]] for row in frame.select("id").collect())

        frame = spark.readStream.format("hudi").load(str(tmp_path / "t"))
        run(
            frame.writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        return [found[number] for number in sorted(found)]

    def theirs() -> list[list[list[int]]]:
        found: list[list[list[int]]] = hudi_120.worker.ask(
            "stream_out", path=str(tmp_path / "t"), checkpoint=str(checkpoint), options={}
        )
        return found

    for turn, read in enumerate((theirs, ours, theirs, ours)):
        table.upsert(rows(range(turn, turn + 2)))
        assert [batch for batch in read() if batch] == [[[turn], [turn + 1]]]
