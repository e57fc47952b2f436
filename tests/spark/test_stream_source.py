"""A stream could give a row twice or never: at its start, after a restart, with limits, or beside a running write."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi.spark
from pyhudi import HudiTable, Invalid, NotFound
from pyhudi.spark.streams import source as source_module
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, golden_answers
from tests.support.spark_frames import collected
from tests.support.streams import Feed, ids_in, rows, run, stored_batches, writer

pytestmark = pytest.mark.spark

Batches = list[list[tuple[Any, ...]]]


@pytest.fixture
def registered(spark: Any) -> Any:
    pyhudi.spark.register(spark)
    return spark


def table_at(path: Path, table_type: str = "COPY_ON_WRITE", **given: Any) -> HudiTable:
    return HudiTable.create(
        path, name="t", record_key="id", ordering="ts", partition_by="part", table_type=table_type, **given
    )


class Reader:
    """A stream of a table, with a checkpoint: what each batch since the last look had, as id and n."""

    def __init__(self, spark: Any, path: Path, checkpoint: Path, columns: str = "id, n") -> None:
        self.spark, self.path, self.checkpoint, self.columns = spark, path, checkpoint, columns.split(", ")

    def __call__(self, **options: Any) -> Batches:
        found: dict[int, list[tuple[Any, ...]]] = {}

        def keep(frame: Any, number: int) -> None:
            found[number] = sorted(tuple(row) for row in frame.select(*self.columns).collect())

        named = {name.replace("__", "."): value for name, value in options.items()}
        frame = self.spark.readStream.format("hudi").options(**named).load(str(self.path))
        started = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))
        run(started.trigger(availableNow=True).start())
        return [found[number] for number in sorted(found)]


@pytest.mark.parametrize(
    "table_type,version",
    [
        ("MERGE_ON_READ", 8),
        ("COPY_ON_WRITE", 6),
        pytest.param("COPY_ON_WRITE", 9, marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", 6, marks=pytest.mark.long),
    ],
)
def test_batches_are_what_commits_wrote(registered: Any, tmp_path: Path, table_type: str, version: int) -> None:
    table, read = (
        table_at(tmp_path / "t", table_type, table_version=version),
        Reader(registered, tmp_path / "t", tmp_path / "c"),
    )
    table.upsert(rows(range(1, 4), 1))
    table.upsert(rows(range(3, 5), 2))

    assert read() == [[(1, 11), (2, 21), (3, 32), (4, 42)]]
    assert read() == []
    table.upsert(rows(range(1, 2), 3))
    table.delete(pa.table({"id": [2], "part": ["p0"]}))
    table.upsert(rows(range(5, 6), 4))
    assert read() == [[(1, 13), (5, 54)]]

    one = Reader(registered, tmp_path / "t", tmp_path / "one")
    assert one(maxCommitsPerTrigger=2) == [[(1, 11), (2, 21), (3, 32), (4, 42)], [(1, 13)], [(5, 54)]]
    few = Reader(registered, tmp_path / "t", tmp_path / "few")
    assert [len(batch) for batch in few(maxBytesPerTrigger=1)] == [3, 2, 1, 0, 1]


def test_a_stream_begins_where_it_is_told(registered: Any, tmp_path: Path) -> None:
    table = table_at(tmp_path / "t")
    table.upsert(rows(range(1, 3)))
    table.upsert(rows(range(3, 4)))
    first = table.timeline()[0].completed

    def read(checkpoint: str, **options: Any) -> Batches:
        return Reader(registered, tmp_path / "t", tmp_path / checkpoint)(**options)

    start = "hoodie__datasource__streaming__startOffset"
    assert read("a", **{start: first}) == [[(3, 31)]]
    assert read("b", startOffset="earliest") == [[(1, 11), (2, 21), (3, 31)]]
    assert read("c", **{start: "latest"}) == [[]]
    table.upsert(rows(range(4, 5)))
    assert read("c", **{start: "latest"}) == [[(4, 41)]]  # its checkpoint knows where it began
    assert read("d", hoodie__datasource__read__begin__instanttime=table.timeline()[1].completed) == [[(4, 41)]]

    load = registered.readStream.format("hudi")
    for options, text in (
        ({"startOffset": "yesterday"}, "startOffset"),
        ({"hoodie.datasource.query.type": "read_optimized"}, "'snapshot' or 'incremental'"),
    ):
        with pytest.raises(Invalid, match=text):
            load.options(**options).load(str(tmp_path / "t"))
    with pytest.raises(NotFound, match="expected a Hudi table"):
        registered.readStream.format("hudi").load(str(tmp_path / "nowhere"))
    with pytest.raises(Invalid, match="cast columns after load"):
        registered.readStream.format("hudi").schema("id long").load(str(tmp_path / "t"))
    table_at(tmp_path / "empty")
    with pytest.raises(Invalid, match="needs its first write"):
        registered.readStream.load(str(tmp_path / "empty"), format="hudi")


def test_a_write_that_runs_is_not_passed_over(registered: Any, tmp_path: Path) -> None:
    """By requested times, as on table version 6, a write may complete after one that was requested later."""
    table = table_at(tmp_path / "t", table_version=6)
    read = Reader(registered, tmp_path / "t", tmp_path / "c")
    table.upsert(rows(range(1, 2)))
    slow = tmp_path / "t" / ".hoodie" / "20000101000000000.commit.requested"
    slow.touch()
    slow.with_name("20000101000000000.inflight").touch()

    assert read() == [[]]
    slow.unlink()
    slow.with_name("20000101000000000.inflight").unlink()
    assert read() == [[(1, 11)]]


def test_files_that_were_cleaned_away_are_missed_aloud(registered: Any, tmp_path: Path) -> None:
    table = table_at(tmp_path / "t")
    read = Reader(registered, tmp_path / "t", tmp_path / "c")
    table.upsert(rows(range(0, 4), 1))
    assert len(read()[0]) == 4
    for time in range(2, 6):
        table.upsert(rows(range(0, 2), time), options={"hoodie.clean.automatic": "false"})
    table.clean(options={"hoodie.clean.commits.retained": "2"})

    with pytest.raises(Exception, match=r"cleaned away after their rows had changed.*earliest start"):
        read(maxCommitsPerTrigger=1)
    assert read(hoodie__datasource__read__incr__fallback__fulltablescan__enable="true") != []
    # A stream from the beginning takes the commits whose files may be gone as one batch.
    new = Reader(registered, tmp_path / "t", tmp_path / "new")(maxCommitsPerTrigger=1)
    assert [len(batch) for batch in new] == [4, 2]


def test_a_stream_of_change_data(registered: Any, tmp_path: Path) -> None:
    table = table_at(tmp_path / "t", properties={"hoodie.table.cdc.enabled": "true"})
    table.upsert(rows(range(1, 3), 1))
    read = Reader(registered, tmp_path / "t", tmp_path / "c", columns="op, ts_ms")
    changes = {
        "hoodie__datasource__query__type": "incremental",
        "hoodie__datasource__query__incremental__format": "cdc",
    }

    assert [[op for op, _ in batch] for batch in read(**changes)] == [["i", "i"]]
    table.upsert(rows(range(2, 4), 2))
    table.delete(pa.table({"id": [1], "part": ["p1"]}))
    requested = [instant.requested for instant in table.timeline()]
    assert read(**changes, maxCommitsPerTrigger=1) == [
        [("i", requested[1]), ("u", requested[1])],
        [("d", requested[2])],
    ]


def test_queries_over_a_stream(registered: Any, tmp_path: Path) -> None:
    """By name, with state, two queries of one DataFrame at once, from table to table."""
    table = table_at(tmp_path / "t", "MERGE_ON_READ")
    table.upsert(rows(range(0, 4), 1))
    registered.sql(f"CREATE TABLE streamed USING hudi LOCATION '{tmp_path}/t'")
    frame = registered.readStream.table("streamed")
    assert frame.isStreaming
    counts = frame.groupBy("part").count()

    def start(name: str) -> Any:
        return counts.writeStream.format("memory").queryName(name).outputMode("complete").start()

    queries = [start("counts_1"), start("counts_2")]
    try:
        for _ in range(2):
            for query in queries:
                query.processAllAvailable()
            table.upsert(rows(range(4, 6), 2))
        for query in queries:
            query.processAllAvailable()
            found = registered.table(query.name).collect()
            assert sorted(tuple(row) for row in found) == [("p0", 4), ("p1", 4)]
            assert query.lastProgress["sources"][0]["description"] == f"HudiSource[{tmp_path}/t]"
    finally:
        for query in queries:
            query.stop()
        registered.sql("DROP TABLE streamed")
    assert [query.exception() for query in queries] == [None, None]


def test_a_query_may_go_on_with_another_trigger(registered: Any, tmp_path: Path) -> None:
    table, counts = table_at(tmp_path / "t"), list[int]()
    table.upsert(rows(range(0, 2)))
    frame = registered.readStream.format("hudi").load(str(tmp_path / "t"))
    started = frame.writeStream.foreachBatch(lambda batch, _: counts.append(batch.count()))
    started = started.option("checkpointLocation", str(tmp_path / "c"))

    run(started.trigger(availableNow=True).start())
    table.upsert(rows(range(2, 5)))
    query = started.trigger(processingTime="0 seconds").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert counts == [2, 3]


def test_the_quick_start_of_apache_hudi_runs(registered: Any, tmp_path: Path) -> None:
    """From a table to a table, as its documentation shows it."""
    table = table_at(tmp_path / "t")
    table.upsert(rows(range(0, 6), 1))
    options = {
        "hoodie.table.name": "copy",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.name": "copy",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.upsert.shuffle.parallelism": 2,
        "hoodie.insert.shuffle.parallelism": 2,
    }

    for _ in range(2):
        frame = registered.readStream.format("hudi").option("pyhudi.where", "id < 5").load(str(tmp_path / "t"))
        started = frame.writeStream.format("hudi").options(**options).outputMode("append")
        started = started.option("path", str(tmp_path / "copy")).option("checkpointLocation", str(tmp_path / "c"))
        run(started.trigger(once=True).start())
        table.upsert(rows(range(0, 1), 3))
    assert ids_in(tmp_path / "copy") == list(range(5))
    assert HudiTable.open(tmp_path / "copy").lookup(["0"]).column("n").to_pylist() == [3]


def test_a_batch_that_was_begun_is_read_again_as_it_was(
    registered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_at(tmp_path / "t")
    table.upsert(rows(range(1, 3), 1))
    asked: list[tuple[str, str]] = []
    original: Callable[..., Any] = source_module.TableBatches.rows

    def noting(self: Any, start: str, end: str) -> Any:
        if start != end:
            asked.append((start, end))
        return original(self, start, end)

    monkeypatch.setattr(source_module.TableBatches, "rows", noting)

    def fail(frame: Any, number: int) -> None:
        raise ValueError("the sink is down")

    frame = registered.readStream.format("hudi").option("startOffset", "2000-01-01").load(str(tmp_path / "t"))
    started = frame.writeStream.foreachBatch(fail).option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(Exception, match="the sink is down"):
        run(started.trigger(availableNow=True).start())
    table.upsert(rows(range(1, 2), 2))
    # The start is that of the first run, whatever the options say now.
    assert Reader(registered, tmp_path / "t", tmp_path / "c")() == [[(1, 11), (2, 21)], [(1, 12)]]
    assert asked[0] == asked[1]
    assert asked[1][1] == asked[2][0]


def test_a_schema_that_grows(registered: Any, tmp_path: Path) -> None:
    """A running query keeps its columns; one that is started again has the new ones. A type that changes is told."""
    table = table_at(tmp_path / "t")
    table.upsert(rows(range(1, 2), 1))
    frame = registered.readStream.format("hudi").load(str(tmp_path / "t"))
    query = frame.select("id", "n").writeStream.format("memory").queryName("grows").start()
    try:
        query.processAllAvailable()
        table.upsert(rows(range(2, 3), 1).append_column("more", pa.array(["x"])))
        query.processAllAvailable()
        assert registered.table("grows").count() == 2
    finally:
        query.stop()
    assert "more" in registered.readStream.format("hudi").load(str(tmp_path / "t")).columns

    def wider(kind: pa.DataType, key: int) -> None:
        more = rows(range(key, key + 1)).append_column("k", pa.array([key], kind))
        table.upsert(more, options={"hoodie.write.set.null.for.missing.columns": "true"})

    wider(pa.int32(), 3)
    frame = registered.readStream.format("hudi").load(str(tmp_path / "t"))
    query = frame.writeStream.format("noop").start()
    try:
        query.processAllAvailable()
        wider(pa.int64(), 4)
        with pytest.raises(Exception, match="column 'k' was int when the query began, and is bigint now"):
            query.processAllAvailable()
    finally:
        query.stop()


def test_a_stream_reads_what_a_stream_writes(registered: Any, tmp_path: Path) -> None:
    feed = Feed(registered, tmp_path / "source")
    read = Reader(registered, tmp_path / "t", tmp_path / "r")
    for at in range(3):
        feed.add(range(at, at + 2), at)
        run(writer(feed.stream(), tmp_path / "w").start(str(tmp_path / "t")))
        assert read() == [[(at, at * 10 + at), (at + 1, (at + 1) * 10 + at)]]
    assert len(stored_batches(tmp_path / "t")) == 3


@pytest.mark.parametrize("name", ["cow_part_v9_h120", "mor_parquet_log_v9_h120", "cow_part_v6_h0150"])
def test_tables_of_apache_hudi(registered: Any, golden: GoldenTables, tmp_path: Path, name: str) -> None:
    """All rows in one batch, and in as many as there are commits, of which the newest row of a key counts."""
    table = golden.get(name)
    (snapshot,) = (answer for answer in golden_answers(name) if answer.query == "snapshot")

    def read(**options: Any) -> list[pa.Table]:
        found: list[pa.Table] = []
        frame = registered.readStream.format("hudi").options(**options).load(str(table.path))
        started = frame.writeStream.foreachBatch(lambda batch, _: found.append(collected(batch)))
        run(started.option("checkpointLocation", str(tmp_path / str(options))).trigger(availableNow=True).start())
        return found

    (whole,) = read()
    assert_same_rows(whole, table.expected(snapshot))
    pieces = read(maxCommitsPerTrigger=1)
    assert len(pieces) > 1
    times = {row["_hoodie_commit_time"] for piece in pieces for row in piece.to_pylist()}
    assert times >= set(whole.column("_hoodie_commit_time").to_pylist())
