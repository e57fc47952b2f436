"""Parquet files that Python reads instead of Spark could give other rows, other values, or other errors."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from pyhudi import HudiError, HudiTable, Invalid, Unavailable
from pyhudi.engine.spark.batches import map_in_arrow
from pyhudi.engine.spark.schema import arrow_schema
from pyhudi.engine.spark.session import use_running_interpreter
from pyhudi.engine.spark.write import parquet_files as module
from pyhudi.engine.spark.write import source, staging, task_rows
from pyhudi.engine.spark.write.parquet_files import ParquetFiles, RowGroups, parquet_files
from pyhudi.table.slices.conform import conform_batch
from tests.support.spark_cluster import write_parts, writes_as_on_cluster

pytestmark = pytest.mark.spark

DDL = (
    "id string, p string, yes boolean, small int, large bigint, narrow float, wide double, raw binary, day date, "
    "at timestamp, local timestamp_ntz, price decimal(12,3), huge decimal(38,10), ts int"
)
ROWS = [
    (
        f"k{i}", f"p{i % 3}", i % 2 == 0, i, i << 40, i / 3, i / 7, bytes([i]), dt.date(1600 + i, 1, 2),
        dt.datetime(1950 + i, 1, 2, 3, 4, 5, 678901), dt.datetime(1950 + i, 6, 7, 8, 9, 10, 111213),
        Decimal(i) / 8, Decimal(i) / 1024, 1,
    )
    for i in range(60)
] + [("last", "p0", *[None] * 11, 1)]  # fmt: skip


@pytest.fixture(scope="module")
def written(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of two files that Spark wrote."""
    path = str(tmp_path_factory.mktemp("input") / "rows, 100 % ü")
    spark.createDataFrame(ROWS, DDL).repartition(2).write.parquet(path)
    return path


OUTPUT_TYPE = "spark.sql.parquet.outputTimestampType"


def by_pyarrow(spark: Any, path: Path, **options: Any) -> Path:
    """The same rows in a file of row groups of 7 rows."""
    rows = spark.createDataFrame(ROWS, DDL)
    path.mkdir()
    pq.write_table(read_by_spark(rows), path / "rows.parquet", row_group_size=7, **options)
    return path


def found(rows: Any) -> ParquetFiles | None:
    return parquet_files(rows, arrow_schema(rows.schema))


def in_order(table: pa.Table) -> pa.Table:
    """By key. Floats become their bits, since NaN is like nothing."""
    bits = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
    columns = [column.combine_chunks() for column in table.columns]
    plain = pa.table([c.view(bits[c.type]) if c.type in bits else c for c in columns], names=table.column_names)
    return plain.sort_by("id")


def check_same(spark: Any, rows: Any) -> None:
    files = found(rows)
    assert files is not None
    read = pa.Table.from_batches(files.batches())
    assert files.rows == len(read)
    assert in_order(read).equals(in_order(read_by_spark(rows)))


def read_by_spark(rows: Any) -> pa.Table:
    """As a write gets them from it."""
    use_running_interpreter(rows.sparkSession)
    schema = arrow_schema(rows.schema)
    packed = map_in_arrow(rows, _packed, "batch binary").collect()
    batches = [batch for row in packed for batch in pa.ipc.open_stream(bytes(row.batch))]
    return pa.Table.from_batches([conform_batch(batch, schema, path="input") for batch in batches], schema)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"batch": [sink.getvalue().to_pybytes()]})


def test_rows_and_values_are_those_that_spark_reads(spark: Any, written: str, tmp_path: Path) -> None:
    check_same(spark, spark.read.parquet(written))
    check_same(spark, spark.read.parquet(written).select("price", "id", "at"))
    check_same(spark, spark.read.parquet(written).withColumnsRenamed({"small": "Klein", "raw": "bytes"}))
    check_same(spark, spark.read.parquet(written).selectExpr("id", "small", "small twice"))
    check_same(spark, spark.read.option("recursiveFileLookup", "true").parquet(str(Path(written).parent)))
    check_same(spark, spark.read.schema(DDL).parquet(written).select("ts", "id"))
    check_same(spark, spark.read.format("parquet").load(sorted(map(str, Path(written).glob("*.parquet")))))
    for version in ("1.0", "2.6"):
        # Spark 3.5 wants to be told how to read days of the years before 1900 that somebody else wrote.
        path = by_pyarrow(spark, tmp_path / version, version=version)
        check_same(spark, spark.read.parquet(str(path)).select("id", "price", "huge", "small", "raw"))


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.where("small > 3"),
        lambda rows: rows.limit(5),
        lambda rows: rows.withColumn("small", rows.small.cast("long")),
        lambda rows: rows.selectExpr("id", "small + 1 small"),
        lambda rows: rows.selectExpr("id", "_metadata.file_name name"),
        lambda rows: rows.unionByName(rows),
        lambda rows: rows.distinct(),
        lambda rows: rows.sample(0.5),
        lambda rows: rows.sort("id"),
        lambda rows: rows.join(rows.select("id"), "id"),
        lambda rows: rows.sparkSession.createDataFrame([("a",)], "id string"),
        lambda rows: rows.sparkSession.range(5),
    ],
)
def test_what_is_no_plain_scan_is_left_to_spark(spark: Any, written: str, change: Callable[[Any], Any]) -> None:
    assert found(spark.read.parquet(written)) is not None
    assert found(change(spark.read.parquet(written))) is None


def test_a_plan_that_is_no_plain_scan_is_not_optimized_to_see_that(spark: Any, written: str) -> None:
    """Spark optimizes it for its own job, which takes as long once more."""
    rows = spark.read.parquet(written)
    computed = rows.withColumn("twice", rows["large"] * 2)
    for other in (computed, rows.join(rows.select("id").distinct(), "id"), rows.union(rows), rows.limit(3)):
        assert found(other) is None
        assert not other._jdf.queryExecution().tracker().phases().contains("optimization")
    assert found(rows) is not None
    assert rows._jdf.queryExecution().tracker().phases().contains("optimization")


def test_what_spark_keeps_in_memory_is_left_to_it(spark: Any, written: str) -> None:
    rows = spark.read.parquet(written).cache()
    assert found(rows) is None
    rows.unpersist(True)


@pytest.mark.parametrize(
    "read",
    [
        lambda reader, path: reader.option("mergeSchema", "true").parquet(path),
        lambda reader, path: reader.option("datetimeRebaseMode", "LEGACY").parquet(path),
        lambda reader, path: reader.schema("id string, small bigint").parquet(path),
        lambda reader, path: reader.schema("id string, lacking int").parquet(path),
        lambda reader, path: reader.schema("ID string").parquet(path),
        lambda reader, path: reader.schema("id binary").parquet(path),
    ],
)
def test_what_spark_reads_in_its_own_way_is_left_to_it(
    spark: Any, written: str, read: Callable[[Any, str], Any]
) -> None:
    assert found(read(spark.read, written)) is None


@pytest.mark.parametrize("name, value", [(name, "true") for name in module._EXPECTED_OFF])
def test_settings_of_the_session_are_kept(spark: Any, written: str, name: str, value: str) -> None:
    rows = spark.read.parquet(written)
    spark.conf.set(name, value)
    try:
        assert found(rows) is None
    finally:
        spark.conf.unset(name)
    assert found(rows) is not None


def test_other_files_are_left_to_spark(spark: Any, written: str, tmp_path: Path) -> None:
    rows = spark.read.parquet(written)

    rows.write.orc(str(tmp_path / "orc"))
    assert found(spark.read.orc(str(tmp_path / "orc"))) is None
    rows.write.partitionBy("p").parquet(str(tmp_path / "partitioned"))
    assert found(spark.read.parquet(str(tmp_path / "partitioned"))) is None
    rows.selectExpr("id", "array(small) list").write.parquet(str(tmp_path / "nested"))
    assert found(spark.read.parquet(str(tmp_path / "nested"))) is None
    assert found(spark.read.parquet(str(tmp_path / "nested")).select("id")) is not None
    rows.where("false").write.parquet(str(tmp_path / "empty"))
    assert found(spark.read.parquet(str(tmp_path / "empty"))) is None

    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "rows.parquet").symlink_to(next(Path(written).glob("*.parquet")))
    assert found(spark.read.parquet(str(tmp_path / "links"))) is None


def test_days_and_moments_of_another_calendar_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    old = spark.sql("SELECT '1' id, DATE '1200-01-01' day, TIMESTAMP '1800-01-01 00:00:00' at")

    modes = {"rebase": "spark.sql.parquet.datetimeRebaseModeInWrite", "96": "spark.sql.parquet.int96RebaseModeInWrite"}

    def write(kind: str, *hybrid: str) -> Any:
        settings = {setting: "LEGACY" if name in hybrid else "CORRECTED" for name, setting in modes.items()}
        for name, value in (settings | {OUTPUT_TYPE: kind}).items():
            spark.conf.set(name, value)
        path = str(tmp_path / "-".join([kind, *hybrid]))
        try:
            old.write.parquet(path)
        finally:
            for name in (*settings, OUTPUT_TYPE):
                spark.conf.unset(name)
        return spark.read.parquet(path)

    assert found(write("TIMESTAMP_MICROS")) is not None
    assert found(write("TIMESTAMP_MICROS", "rebase")) is None
    assert found(write("TIMESTAMP_MILLIS")) is None
    assert found(write("INT96")) is not None
    hybrid = write("INT96", "96")
    assert found(hybrid.select("at")) is None
    assert found(hybrid.select("day")) is not None
    hybrid = write("INT96", "rebase")
    assert found(hybrid.select("day")) is None
    assert found(hybrid.select("at")) is not None


@pytest.mark.parametrize("day, mode, is_plain", [
    (dt.date(1582, 10, 15), "EXCEPTION", True), (dt.date(1582, 10, 14), "EXCEPTION", False),
    (dt.date(1582, 10, 14), "LEGACY", False), (dt.date(1582, 10, 14), "CORRECTED", True),
])  # fmt: skip
def test_old_days_of_other_writers_go_by_the_setting(
    spark: Any, tmp_path: Path, day: dt.date, mode: str, is_plain: bool
) -> None:
    pq.write_table(pa.table({"id": ["a"], "day": [day]}), tmp_path / "rows.parquet")
    rows = spark.read.parquet(str(tmp_path / "rows.parquet"))
    spark.conf.set(module._REBASE_MODE, mode)
    try:
        assert (found(rows) is not None) == is_plain
    finally:
        spark.conf.unset(module._REBASE_MODE)


@pytest.mark.parametrize("name", ["_metadata", "_common_metadata", "_metadata_old.parquet", "_x", ".x"])
def test_summaries_and_hidden_files_hold_no_rows(spark: Any, tmp_path: Path, name: str) -> None:
    """Spark lists summary files, and reads no row of them."""
    pq.write_table(pa.table({"id": ["a", "b"]}), tmp_path / "rows.parquet")
    pq.write_table(pa.table({"id": ["c", "d"]}), tmp_path / name)

    rows = spark.read.parquet(str(tmp_path))
    files = found(rows)

    assert files is not None
    assert sorted(pa.Table.from_batches(files.batches())["id"].to_pylist()) == ["a", "b"]
    assert sorted(row.id for row in rows.collect()) == ["a", "b"]


def test_a_file_of_another_size_than_spark_listed_is_left_to_it(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"]}), tmp_path / "rows.parquet")
    rows = spark.read.parquet(str(tmp_path))
    assert found(rows) is not None
    pq.write_table(pa.table({"id": ["c"] * 5_000}), tmp_path / "rows.parquet", row_group_size=500)
    assert found(rows) is None


def test_columns_that_differ_in_case_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "n": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["c"], "n": [3], "N": [4]}), tmp_path / "b.parquet")
    assert found(spark.read.schema("id string, n bigint").parquet(str(tmp_path / "a.parquet"))) is not None
    assert found(spark.read.schema("id string, n bigint").parquet(str(tmp_path))) is None


@pytest.mark.parametrize("version, day, moment", [
    ("", False, False), ("2.4.8", False, False), ("10.0.0", False, False), ("3.0.0", True, False),
    ("3.0.3", True, False), ("3.1.0", True, True), ("4.3.0", True, True), ("abc", True, True),
])  # fmt: skip
def test_old_times_go_by_the_version_of_their_writer(
    spark: Any, tmp_path: Path, version: str, day: bool, moment: bool
) -> None:
    """Spark compares versions as texts. INT96 is of today's calendar since 3.1."""
    old = pa.array([-12_253_852_800_000_000], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ["a"], "at": old, "day": [dt.date(1200, 1, 1)]})
    with pq.ParquetWriter(tmp_path / "rows.parquet", rows.schema, use_deprecated_int96_timestamps=True) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({module._SPARK_VERSION.decode(): version})

    read = spark.read.parquet(str(tmp_path))
    assert (found(read.select("id", "day")) is not None) is day
    assert (found(read.select("id", "at")) is not None) is moment
    stored = read.selectExpr("unix_date(day)", "unix_micros(at)").first()
    assert (stored[0] == (dt.date(1200, 1, 1) - dt.date(1970, 1, 1)).days) is day
    assert (stored[1] == -12_253_852_800_000_000) is moment


@pytest.mark.parametrize("cores, expected", [(1, [[0, 1, 2, 3]]), (2, [[0, 1], [2, 3]]), (3, [[0], [1, 2], [3]])])
def test_parts_have_every_row_group_once(cores: int, expected: list[list[int]]) -> None:
    whole = RowGroups("a", (0, 1, 2, 3, 4), (10, 10, 10, 10, 0), (1, 1, 1, 1, 1))
    parts = ParquetFiles((whole,), ("id",), pa.schema([("id", pa.string())])).parts(cores)
    assert [[number for file in part.files for number in file.numbers] for part in parts] == expected


def test_large_files_are_cut_into_more_parts_than_cores() -> None:
    whole = RowGroups("a", tuple(range(8)), (10,) * 8, (module.PART_BYTES // 2,) * 8)
    assert len(ParquetFiles((whole,), ("id",), pa.schema([("id", pa.string())])).parts(2)) == 4


@pytest.fixture(params=["here", pytest.param("in tasks", marks=pytest.mark.long), "in parts"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How files are read: by this process; by tasks that put the rows aside for it; or by tasks that write them."""
    if request.param != "here":
        monkeypatch.setattr(staging, "READ_HERE_ROWS_MAX", -1)
    if request.param == "in parts":
        writes_as_on_cluster(monkeypatch, gathers=False)
        write_parts(monkeypatch)
    return str(request.param)


def test_no_row_passes_through_spark(
    spark: Any, written: str, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_rows, "map_in_arrow", None)
    monkeypatch.setattr(source, "count_rows", None)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="p", ordering="ts")
    table.bulk_insert(spark.read.parquet(written))
    stored = table.scan(meta_fields=False).to_arrow().sort_by("id")
    assert stored.num_rows == len(ROWS)
    assert stored["large"].to_pylist()[1] == 1 << 40
    assert table.metadata.validate().differences == ()


BAD = [
    ("SELECT 'a' id, 'p' p, 1 ts UNION ALL SELECT '' id, 'p' p, 1 ts", r"found 1 null or empty.*'id': ''"),
    ("SELECT 'a' id, 'p' p, CAST(NULL AS INT) ts", "ordering column 'ts'.*1 null"),
    ("SELECT 'a' id, '../x' p, 1 ts", "partition path"),
]


@pytest.mark.parametrize("query, message", BAD)
def test_bad_rows_are_refused(
    spark: Any, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, query: str, message: str
) -> None:
    spark.sql(query).write.parquet(str(tmp_path / "in"))
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="p", ordering="ts")
    with pytest.raises(Invalid, match=message):
        table.upsert(spark.read.parquet(str(tmp_path / "in")))
    assert table.scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("change", ["another file", "none"])
def test_a_file_that_changes_meanwhile_is_told(
    spark: Any, written: str, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    spark.read.parquet(written).coalesce(1).write.parquet(str(tmp_path / "in"))
    rows = spark.read.parquet(str(tmp_path / "in"))
    (file,) = (tmp_path / "in").glob("*.parquet")
    look = module._checked

    def then_changed(*arguments: Any) -> Any:
        looked = look(*arguments)
        file.unlink()
        if change == "another file":
            pq.write_table(pa.table({"id": ["a"], "p": ["p"]}), file)
        return looked

    monkeypatch.setattr(module, "_checked", then_changed)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="p", ordering="ts")
    with pytest.raises(Unavailable, match=r"\.parquet: .*; write it once more"):
        table.bulk_insert(rows)
    assert table.scan().to_arrow().num_rows == 0
    monkeypatch.setattr(module, "_checked", look)
    table.upsert(spark.read.parquet(written))
    assert table.scan().count() == len(ROWS)


EXTREMES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, None]),
    *((kind, [0, 127, -128, None]) for kind in (pa.int8(), pa.int16())),
    *((kind, [0, 2**7, None]) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    (pa.int32(), [2**31 - 1, -(2**31), None]),
    (pa.int64(), [2**63 - 1, -(2**63), None]),
    (pa.float16(), [1.5, None]),
    (pa.float32(), [0.1, -0.0, float("nan"), float("inf"), None]),
    (pa.float64(), [0.1, -0.0, float("nan"), 5e-324, None]),
    *((kind, ["", "ü\U0001f600", "x" * 5_000, None]) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "a", None]),
    *((kind, [b"", b"\xff\x00", None]) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.binary(3), [b"abc", None]),
    (pa.date32(), [dt.date(9999, 12, 31), dt.date(1600, 1, 1), None]),
    (pa.date64(), [dt.date(2000, 1, 1), None]),
    *((pa.timestamp(unit, zone), [0, 86_399_000, 1_000_000_000, None])
      for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin", "+05:30")),
    (pa.time32("ms"), [5, None]),
    (pa.time64("us"), [5, None]),
    (pa.duration("us"), [5, None]),
    *((pa.decimal128(precision, 2), [Decimal("-1.25"), Decimal("9.99"), None]) for precision in (3, 9, 18, 19, 38)),
    (pa.decimal256(20, 2), [Decimal("-1.25"), None]),
    (pa.decimal32(9, 2), [Decimal("-1.25"), None]),
    (pa.null(), [None, None]),
]  # fmt: skip

INT96_MODE = "spark.sql.parquet.int96RebaseModeInRead"


@pytest.mark.parametrize("options", [
    {},
    pytest.param({"store_schema": False, "use_dictionary": False, "data_page_version": "2.0"}, marks=pytest.mark.long),
    pytest.param({"version": "1.0", "store_decimal_as_integer": True}, marks=pytest.mark.long),
    pytest.param({"use_deprecated_int96_timestamps": True}, marks=pytest.mark.long),
])  # fmt: skip
def test_columns_of_any_type_are_read_alike_or_left_to_spark(
    spark: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    read = set()
    for number, (kind, values) in enumerate(EXTREMES):
        column = pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
        path = tmp_path / f"{number}.parquet"
        try:
            pq.write_table(pa.table({"id": list(map(str, range(len(values)))), "c": column}), path, **options)
        except (pa.ArrowException, NotImplementedError):  # what Parquet does not hold, by these options
            continue
        try:
            rows = spark.read.parquet(str(path))
            schema = arrow_schema(rows.schema)
        except (PySparkException, Py4JJavaError, HudiError):  # what Spark, or a table, does not take
            continue
        if pa.types.is_null(schema.field("c").type) or found(rows) is None:
            continue
        check_same(spark, rows)
        read.add(schema.field("c").type)
    expected = {pa.int64(), pa.float64(), pa.bool_(), pa.decimal128(38, 2)}
    if "use_deprecated_int96_timestamps" not in options or module._is_corrected(spark, INT96_MODE):
        expected.add(pa.timestamp("us", "UTC"))  # else Spark is asked: it refuses old moments, since it cannot know
    assert expected <= read
