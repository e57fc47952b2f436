"""A stream could store a batch twice or not at all: after a restart, a failure, or beside another stream."""

from pathlib import Path
from typing import Any

import pytest

import pyhudi.spark
from pyhudi import Conflict, HudiTable, Invalid, Unsupported
from pyhudi.api.datasource import save_dataframe
from pyhudi.spark.streams import sink as sink_module
from tests.support.streams import OPTIONS, Feed, forget_last_batch, ids_in, rows, run, stored_batches, writer

pytestmark = pytest.mark.spark

INSERT = {"hoodie__datasource__write__operation": "insert"}
IDENTIFIER = "hoodie__datasource__write__streaming__checkpoint__identifier"
NO_WAIT = {"hoodie__datasource__write__streaming__retry__interval__ms": "0"}
SHARED = "default_single_writer"


@pytest.fixture
def feed(spark: Any, tmp_path: Path) -> Feed:
    pyhudi.spark.register(spark)
    made = Feed(spark, tmp_path / "source")
    made.add(range(0, 5))
    return made


def test_each_batch_is_one_commit_that_says_which(feed: Feed, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "c"
    feed.add(range(3, 8), ts=2)

    def go() -> Any:
        # partitionBy, which Spark refuses for streams that Python stores
        mor = {"hoodie__datasource__write__table__type": "MERGE_ON_READ"}
        return run(writer(feed.stream(), checkpoint, **mor).partitionBy("part").queryName("q").start(str(table)))

    assert go().name == "q"
    assert stored_batches(table) == [(SHARED, 0), (SHARED, 1)]
    feed.add(range(8, 9))
    go()
    go()
    assert stored_batches(table) == [(SHARED, 0), (SHARED, 1), (SHARED, 2)]
    assert ids_in(table) == list(range(9))
    made = HudiTable.open(table)
    assert (made.table_type, made.partition_by) == ("MERGE_ON_READ", ("part",))
    assert made.lookup(["4"]).column("n").to_pylist() == [42]


def test_a_batch_that_is_stored_is_not_stored_again_even_if_its_commit_is_archived(feed: Feed, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "c"

    def go() -> None:
        run(writer(feed.stream(), checkpoint, **INSERT).start(str(table)))

    go()
    forget_last_batch(checkpoint)
    go()
    assert stored_batches(table) == [(SHARED, 0)]

    archives = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    for time in range(10, 16):
        few = {**archives, "hoodie.metadata.compact.max.delta.commits": 2}
        HudiTable.open(table).upsert(rows(range(100, 101), time), options=few)
    assert stored_batches(table) == []
    forget_last_batch(checkpoint)
    go()
    assert stored_batches(table, history=True) == [(SHARED, 0)]
    feed.add(range(5, 6))
    go()
    assert ids_in(table) == [*range(6), 100]


def test_streams_into_one_table_are_told_apart(feed: Feed, tmp_path: Path) -> None:
    table, other = tmp_path / "t", Feed(feed.spark, tmp_path / "other")
    other.add(range(10, 12))
    other.add(range(12, 14))

    def go(source: Feed, checkpoint: str, **options: str) -> None:
        run(writer(source.stream(), tmp_path / checkpoint, **INSERT, **options).start(str(table)))

    go(feed, "a", **{IDENTIFIER: "a"})
    go(other, "b", **{IDENTIFIER: "b"})
    forget_last_batch(tmp_path / "a")
    go(feed, "a", **{IDENTIFIER: "a"})
    assert stored_batches(table) == [("a", 0), ("b", 0), ("b", 1)]

    go(feed, "without")
    go(other, "without either")
    assert stored_batches(table)[3:] == [(SHARED, 0), (SHARED, 0), (SHARED, 1)]
    assert ids_in(table) == sorted([*range(5), *range(10, 14)] * 2)

    with pytest.raises(Exception, match=r"identifier 'a'.*needs its own identifier"):
        go(feed, "new", **{IDENTIFIER: "a"})
    assert len(stored_batches(table)) == 6


def test_a_batch_that_fails_is_tried_again(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, save = tmp_path / "t", save_dataframe
    tries: list[int] = []
    feed.add(range(5, 7))

    def failing(*args: Any, **kwargs: Any) -> None:
        tries.append(len(tries))
        if tries[-1] in fails:
            raise error
        save(*args, **kwargs)
        if tries[-1] in answers_lost:
            raise error

    monkeypatch.setattr(sink_module, "save_dataframe", failing)
    error: Exception = Conflict("another writer")
    fails, answers_lost = {0}, {1}
    run(writer(feed.stream(), tmp_path / "c", **INSERT, **NO_WAIT).start(str(table)))
    assert (len(tries), stored_batches(table)) == (4, [(SHARED, 0), (SHARED, 1)])
    assert ids_in(table) == list(range(7))

    feed.add(range(7, 8))
    fails = {4, 5, 6}
    with pytest.raises(Exception, match="another writer"):
        run(writer(feed.stream(), tmp_path / "c", **INSERT, **NO_WAIT).start(str(table)))
    assert len(tries) == 7
    error, fails = Invalid("a row without a key"), {7}
    with pytest.raises(Exception, match="a row without a key"):
        run(writer(feed.stream(), tmp_path / "c", **INSERT, **NO_WAIT).start(str(table)))
    assert len(tries) == 8  # which no other try would mend

    fails, passes = {8}, {"hoodie__datasource__write__streaming__ignore__failed__batch": "true"}
    feed.add(range(8, 9))
    run(writer(feed.stream(), tmp_path / "c", **INSERT, **NO_WAIT, **passes).start(str(table)))
    assert stored_batches(table) == [(SHARED, 0), (SHARED, 1), (SHARED, 3)]
    assert ids_in(table) == [*range(7), 8]


def test_output_modes(feed: Feed, tmp_path: Path) -> None:
    counts = feed.stream().groupBy("part").agg({"id": "count", "ts": "max"})
    counts = counts.selectExpr("part id", "'x' part", "`count(id)` n", "`max(ts)` ts")
    for mode in ("update", "complete"):
        run(writer(counts, tmp_path / mode).outputMode(mode).start(str(tmp_path / f"t_{mode}")))
    feed.add(range(6, 7), ts=2)  # p0 only
    for mode in ("update", "complete"):
        run(writer(counts, tmp_path / mode).start(str(tmp_path / f"t_{mode}"), outputMode=mode))
        forget_last_batch(tmp_path / mode)  # Spark wants the state of a batch, also of one that is passed over
        run(writer(counts, tmp_path / mode).start(str(tmp_path / f"t_{mode}"), outputMode=mode))
        assert stored_batches(tmp_path / f"t_{mode}") == [(SHARED, 0), (SHARED, 1)]

    for mode in ("update", "complete"):
        table = HudiTable.open(tmp_path / f"t_{mode}")
        found = table.scan(columns=["id", "n"]).to_arrow().to_pylist()
        assert sorted((row["id"], row["n"]) for row in found) == [("p0", 4), ("p1", 2)]
        assert table.lookup(["p1"]).column("_hoodie_commit_time").to_pylist() == [
            table.timeline()[0 if mode == "update" else 1].requested
        ]
    with pytest.raises(Invalid, match=r"outputMode 'update'.*expected 'upsert'"):
        writer(counts, tmp_path / "u", **INSERT).outputMode("update").start(str(tmp_path / "t_update"))
    HudiTable.create(tmp_path / "keyless", name="t", partition_by="part")
    for path in ("keyless", "new"):
        keyless = counts.writeStream.format("hudi").option("checkpointLocation", str(tmp_path / "k"))
        with pytest.raises(Invalid, match="expected a table with a record key"):
            keyless.outputMode("update").option("hoodie.table.name", "t").start(str(tmp_path / path))


def test_what_cannot_be_is_refused_before_the_stream_begins(feed: Feed, tmp_path: Path) -> None:
    frame, path = feed.stream(), str(tmp_path / "t")

    with pytest.raises(Invalid, match="'checkpointLocation': expected a folder"):
        frame.writeStream.format("hudi").option("hoodie.table.name", "t").start(path)
    with pytest.raises(Invalid, match=r"hoodie\.table\.name: expected the table's name"):
        frame.writeStream.format("hudi").option("checkpointLocation", str(tmp_path / "c")).start(path)
    with pytest.raises(Invalid, match=r"retry.count"):
        writer(frame, tmp_path / "c", hoodie__datasource__write__streaming__retry__count="0").start(path)
    with pytest.raises(Invalid, match="the nearest known name"):
        writer(frame, tmp_path / "c", hoodie__datasource__write__operatoin="insert").start(path)
    with pytest.raises(Unsupported, match="hive_sync"):
        writer(frame, tmp_path / "c", hoodie__datasource__hive_sync__enable="true").start(path)
    with pytest.raises(Invalid, match="path=None"):
        writer(frame, tmp_path / "c").start()
    HudiTable.create(path, name="other", record_key="id")
    with pytest.raises(Invalid, match=r"table 'other' has 'other' as its name"):
        writer(frame, tmp_path / "c").start(path)
    assert feed.spark.streams.active == []


def test_a_stream_into_a_table_by_name(feed: Feed, tmp_path: Path) -> None:
    feed.spark.sql(f"CREATE DATABASE streams LOCATION '{tmp_path}/streams'")
    try:
        for _ in range(2):
            run(writer(feed.stream(), tmp_path / "c").partitionBy("part").toTable("streams.t"))
            feed.add(range(5, 7))
        found = feed.spark.table("streams.t")
        assert found.columns[-4:] == ["id", "n", "ts", "part"]
        assert found.where("id < 7").count() == 7
        place = tmp_path / "streams" / "t"
        assert stored_batches(place) == [(SHARED, 0), (SHARED, 1)]
        assert HudiTable.open(place).partition_by == ("part",)

        run(writer(feed.stream(), tmp_path / "d", path=str(tmp_path / "place")).toTable("streams.u", format="hudi"))
        assert ids_in(tmp_path / "place") == list(range(7))

        feed.spark.sql("CREATE TABLE streams.p (id BIGINT) USING parquet")
        with pytest.raises(Invalid, match="of another format"):
            writer(feed.stream(), tmp_path / "e").toTable("streams.p")
    finally:
        feed.spark.sql("DROP DATABASE streams CASCADE")


def test_merge_on_read_tables_are_compacted_beside_the_stream(feed: Feed, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for time in range(2, 4):
        feed.add(range(0, 5), time)
    often = {"hoodie__compact__inline__max__delta__commits": "2"}
    mor = {"hoodie__datasource__write__table__type": "MERGE_ON_READ", **often}

    query = writer(feed.stream(), tmp_path / "c", **mor)
    sink = sink_module.TableSink(feed.spark, str(table), {**OPTIONS, **_options(mor)}, "append")
    run(query.start(str(table)))
    assert sink._compaction is not None
    sink._compaction.start(feed.spark)
    assert sink._compaction._thread is not None
    sink._compaction._thread.join(60)
    assert "commit" in [i.action for i in HudiTable.open(table).timeline() if i.completed]
    assert ids_in(table) == list(range(5))

    off = sink_module.TableSink(
        feed.spark, str(table), {**OPTIONS, **_options(mor), "hoodie.compact.inline": "true"}, "append"
    )
    assert off._compaction is not None
    off._compaction.start(feed.spark)
    assert off._compaction._thread is None


def _options(named: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): text for name, text in named.items()}


def test_a_stream_that_is_stopped_ends_without_an_error(feed: Feed, tmp_path: Path) -> None:
    frame = feed.spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    frame = frame.selectExpr("value id", "'p' part", "value n", "value ts")
    query = writer(frame, tmp_path / "c", **INSERT).trigger(processingTime="0 seconds").start(str(tmp_path / "t"))

    while not any(progress["numInputRows"] for progress in query.recentProgress):
        query.awaitTermination(0.2)
    query.stop()

    assert query.exception() is None
    run(writer(frame, tmp_path / "c", **INSERT).start(str(tmp_path / "t")))
    found = ids_in(tmp_path / "t")
    assert found == list(range(len(found))) != []


def test_other_streams_do_not_notice(feed: Feed, tmp_path: Path) -> None:
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "c")
    started = feed.stream().writeStream.format("hudi").format("parquet").option("checkpointLocation", checkpoint)
    run(started.partitionBy("part").outputMode("append").trigger(availableNow=True).start(out))

    assert feed.spark.read.parquet(out).count() == 5
    seen: list[int] = []
    once = feed.stream().writeStream.foreachBatch(lambda frame, _: seen.append(frame.count()))
    run(once.trigger(availableNow=True).start())
    assert seen == [5]


def test_rows_go_to_code_of_the_users_own_that_is_named_after_the_format(feed: Feed, tmp_path: Path) -> None:
    seen: list[int] = []
    stated = writer(feed.stream(), tmp_path / "c").foreachBatch(lambda batch, _: seen.append(batch.count()))
    run(stated.start())
    assert seen == [5]
    assert not HudiTable.exists(tmp_path / "t")
