"""A LazyFrame over a table could read files that its query cannot need, or lose rows that it does."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable, Invalid, Unsupported, scan_polars
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.read import files
from tests.unit.api.neighbours.conftest import Read, torn
from tests.unit.predicate.foreign.test_polars import tree

pl = pytest.importorskip("polars")


def test_a_query_of_a_lazy_frame_gives_the_rows_of_a_collected_one(table: HudiTable) -> None:
    lazy, collected = table.scan().to_polars(lazy=True), table.scan().to_polars()
    assert lazy.collect_schema() == collected.schema
    for seed in range(24):
        predicate = tree(random.Random(seed), 2)
        expected = collected.filter(predicate).select("id", "i32").sort("id")
        assert lazy.filter(predicate).select("id", "i32").sort("id").collect().equals(expected), (seed, str(predicate))


@pytest.mark.parametrize(
    "narrow, partitions",
    [
        (lambda rows: rows.filter(pl.col("city") == "oslo"), ["oslo"]),
        (lambda rows: rows.filter(pl.col("city").is_in(["rome", None]) & (pl.col("s").str.len_chars() < 9)), ["rome"]),
        (lambda rows: rows.filter(pl.col("id") == "k000"), ["rome"]),  # the record index knows its slice
        (lambda rows: rows.filter(pl.col("id") == "none"), []),
        (lambda rows: rows.head(3), ["oslo"]),
    ],
    ids=["partition", "beside what only Polars knows", "key", "no such key", "limit"],
)
def test_slices_that_a_query_cannot_need_are_not_read(
    table: HudiTable, read: Read, narrow: Any, partitions: list[str]
) -> None:
    narrow(table.scan().to_polars(lazy=True)).collect()
    assert read.partitions == partitions


def test_columns_that_a_query_cannot_need_are_not_read(table: HudiTable, read: Read) -> None:
    rows = table.scan().to_polars(lazy=True)
    assert rows.filter(pl.col("bo")).select("id").collect().width == 1
    assert read.columns == {"id", "bo"}
    assert "SELECTION" in rows.filter(pl.col("bo")).explain()


def test_a_limit_comes_before_a_filter(table: HudiTable) -> None:
    limited = table.scan().limit(5).to_polars(lazy=True)
    assert limited.collect().height == limited.filter(pl.col("id") != "none").collect().height == 5


def test_a_lazy_frame_stays_at_its_moment_and_keeps_the_scans_own_filter(table: HudiTable) -> None:
    first = table.timeline()[0].requested
    for where in ("i32 = 7", pa.compute.field("i32") == 7):
        rows = table.scan(where=where, columns=["id", "i32", "city"]).to_polars(lazy=True)
        assert rows.filter(pl.col("city") == "oslo").collect().height == 20
        assert rows.filter(pl.col("i32") != 7).collect().height == 0
    assert table.scan(as_of=first).to_polars(lazy=True).filter(pl.col("i32") == 7).collect().height == 0
    changed = table.incremental(start=table.timeline()[0].completed).to_polars(lazy=True)
    assert changed.filter(pl.col("id") >= "k040").collect().height == 10


def test_the_number_of_rows_and_a_top_k_are_asked_of_few_columns(table: HudiTable) -> None:
    rows = table.scan(meta_fields=False).to_polars(lazy=True)
    assert rows.select(pl.len()).collect().item() == 140
    assert rows.filter(pl.col("id") > "k100").top_k(2, by="id").collect()["id"].sort().to_list() == ["k138", "k139"]
    assert rows.collect(engine="streaming").height == 140


def test_scan_polars_opens_a_table_by_its_path(tmp_path: Path) -> None:
    HudiTable.create(str(tmp_path / "t"), name="t", record_key="id").bulk_insert(pa.table({"id": ["a"], "n": [1]}))
    assert scan_polars(tmp_path / "t", meta_fields=False).collect().to_dicts() == [{"id": "a", "n": 1}]
    assert scan_polars(str(tmp_path / "t"), columns=["n"], where="n > 1").collect().height == 0
    with pytest.raises(Invalid, match="no column"):
        scan_polars(tmp_path / "t", columns=["m"])


def test_a_series_is_looked_up_and_changes_are_a_frame() -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    table.insert(pl.DataFrame({"id": [1, 2, 3]}))
    assert table.lookup(pl.Series([1, 3, 9])).num_rows == 2
    assert table.lookup(pa.chunked_array([[1], [3]])).num_rows == 2
    assert table.cdc(columns=["id"]).to_polars()["op"].to_list() == ["i"] * 3


def test_a_lazy_frame_is_written_without_being_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    rows = pl.LazyFrame({"id": [f"k{n}" for n in range(100)], "n": range(100)}).filter(pl.col("n") < 60)
    monkeypatch.setattr(pl.LazyFrame, "collect", None)
    assert table.upsert(rows.with_columns(c=pl.lit("x", dtype=pl.Categorical))).inserted == 60
    assert (
        table.merge(rows.with_columns(c=pl.lit("y")), "target.id = source.id", when_matched_update=True).updated == 60
    )
    assert table.scan(where="c = 'y'").count() == 60


def test_a_query_that_fails_half_way_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars 1 ends the stream of such a query without an error, and half of the rows would be written."""
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    texts = pl.LazyFrame({"id": [str(n) for n in range(200_000)], "s": ["1"] * 199_999 + ["x"]})
    rows = texts.with_columns(n=pl.col("s").cast(pl.Int64))
    with pytest.raises(Invalid, match="could not be read to its end, and nothing was written"):
        table.upsert(rows)
    monkeypatch.setattr(pl, "__version__", "1.36.1")
    with pytest.raises(Unsupported, match="expected Polars 2 or later"):
        table.upsert(rows)
    assert table.timeline() == ()


def test_frames_that_cannot_be_a_tables_rows_are_refused() -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    frame = pl.DataFrame({"id": ["a"], "o": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(Invalid, match="column 'o' of type Object"):
        table.upsert(frame)
    with pytest.raises(Invalid, match="nothing was written: ColumnNotFoundError"):
        table.upsert(frame.lazy().select("no such column"))
    assert table.timeline() == ()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_file_that_cannot_be_read_fails_the_query(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, engine: Any
) -> None:
    monkeypatch.setattr(files, "read_planned", torn(files.read_planned))
    with pytest.raises((HudiError, pl.exceptions.PolarsError), match="torn"):
        table.scan().to_polars(lazy=True).collect(engine=engine)
