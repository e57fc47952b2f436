"""A write on Spark could store other rows, keys, paths or counts than the same write in this process.

Each operation is done twice, once with a DataFrame and once with the same rows as Arrow; rows, counts and the
sums of the commit's statements must be equal. A random sequence of operations is held against a dict.
"""

import datetime as dt
import random
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.engine.spark.session import parse_java_zone
from pyhudi.table.view.commits import read_commit
from tests.spark.handovers import LONG_WAYS, WAYS, handed
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import collected, on_spark

pytestmark = pytest.mark.spark

META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
"""What differs from write to write."""

URL_ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}


def stored(table: HudiTable) -> pa.Table:
    return table.scan().to_arrow().drop_columns(list(META))


def sums(table: HudiTable) -> dict[str, int]:
    """What the newest commit states, summed over its files."""
    snapshot = table._access.snapshot()
    metadata = read_commit(snapshot.storage, snapshot.timeline, snapshot.timeline.completed_writes[-1])
    stats = [stat for of in metadata.partition_to_write_stats.values() for stat in of]
    names = ("num_writes", "num_inserts", "num_update_writes", "num_deletes")
    return {name: sum(getattr(stat, name) or 0 for stat in stats) for name in names}


def counts(result: Any) -> tuple[str, int, int, int]:
    return result.operation, result.inserted, result.updated, result.deleted


class Twins:
    """Two tables of the same facts: one written on Spark, one in this process."""

    def __init__(self, spark: Any, folder: Path, **facts: Any) -> None:
        self.spark, self.folder = spark, folder
        self.on_spark = HudiTable.create(folder / "spark", name="twin", **facts)
        self.here = HudiTable.create(folder / "here", name="twin", **facts)

    def write(self, operation: str, rows: pa.Table, options: Mapping[str, object] | None = None) -> Any:
        of_spark = getattr(self.on_spark, operation)(on_spark(self.spark, rows, self.folder), options=options)
        of_here = getattr(self.here, operation)(rows, options=options)
        assert counts(of_spark) == counts(of_here)
        assert sums(self.on_spark) == sums(self.here)
        self.compare()
        return of_spark

    def compare(self) -> None:
        assert_same_rows(stored(self.on_spark), stored(self.here))


ALL_TYPES = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("b", pa.bool_()),
        ("bin", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("price", pa.decimal128(12, 3)),
        ("large", pa.decimal128(38, 18)),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("inner", pa.struct([("x", pa.int32()), ("deep", pa.list_(pa.struct([("y", pa.string())])))])),
    ]
)


def rows_of_all_types(start: int, end: int, *, version: int, parts: tuple[Any, ...] = ("p1", "p2", "p3")) -> pa.Table:
    """Rows `start` to `end`; every fifth has nulls wherever a null may be."""
    rows = []
    for n in range(start, end):
        row: dict[str, Any] = {"id": f"k{n:04d}", "part": parts[n % len(parts)], "ts": version}
        if n % 5:
            moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999) + dt.timedelta(days=n * 37, microseconds=n)
            row |= {
                "i": n * version,
                "f": n / 3,
                "d": -n / 7 if n % 3 else float("nan"),
                "b": n % 2 == 0,
                "bin": bytes([n % 256, 0, 255]),
                "day": dt.date(1969, 1, 1) + dt.timedelta(days=n * 31),
                "at": moment.replace(tzinfo=dt.UTC),
                "local": moment,
                "price": Decimal(n * version) / 1000,
                "large": Decimal(f"{n}.{version:018d}"),
                "tags": [f"t{n}", None, ""] if n % 3 else [],
                "counts": [("a", n), ("ü", None)] if n % 4 else [],
                "inner": {"x": n, "deep": [{"y": f"{version}"}, None]} if n % 2 else {"x": None, "deep": None},
            }
        rows.append(row)
    return pa.Table.from_pylist(rows, ALL_TYPES)


LAYOUTS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "partitioned": ({"record_key": "id", "partition_by": "part", "ordering": "ts"}, ("p1", "p2", "p3")),
    "hive, version 6": (
        {"record_key": "id", "partition_by": "part", "properties": HIVE_STYLE, "table_version": 6},
        ("p1", "p2", None),
    ),
    "url-encoded composite": (
        {"record_key": ["id", "i"], "partition_by": "part", "ordering": "ts", "properties": URL_ENCODED},
        ("a/b c", "100%:ü", "x=[1]^"),
    ),
    "unpartitioned": ({"record_key": "id"}, ("p1",)),
    "two levels": (
        {"record_key": "id", "partition_by": ["part", "ts"], "properties": HIVE_STYLE | URL_ENCODED},
        ("a/b", None),
    ),
}


@handed(
    "layout",
    LAYOUTS,
    [("files", "hive, version 6"), ("gathered", "partitioned"), ("shuffle", "url-encoded composite")],
)
def test_operations_on_spark_are_those_in_this_process(spark: Any, tmp_path: Path, handover: str, layout: str) -> None:
    facts, parts = LAYOUTS[layout]
    twins = Twins(spark, tmp_path, **facts)

    twins.write("bulk_insert", rows_of_all_types(0, 120, version=1, parts=parts))
    twins.write("insert", rows_of_all_types(120, 150, version=1, parts=parts))
    twins.write("upsert", rows_of_all_types(90, 180, version=2, parts=parts))
    twins.write("delete", rows_of_all_types(100, 190, version=1, parts=parts))
    keys = sorted({*twins.here.record_key, *twins.here.partition_by})
    result = twins.write("delete", rows_of_all_types(0, 40, version=1, parts=parts).select(keys))

    assert result.deleted == 40


KEY_COLUMNS: dict[str, pa.Array] = {
    "string": pa.array(["a", "B b", "ü,:;", "__null__", "0", "a/b"]),
    "int": pa.array([0, -1, 2**31 - 1, -(2**31)], pa.int32()),
    "long": pa.array([0, -1, 2**63 - 1, -(2**63)], pa.int64()),
    "boolean": pa.array([True, False]),
    "date": pa.array([dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(1582, 10, 15), dt.date(9999, 12, 31)]),
    "timestamp": pa.array([0, -1, 1_710_037_800_123_456, -62_135_596_800_000_000], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([0, -1, 1_710_037_800_123_456, -62_135_596_800_000_000], pa.timestamp("us")),
    "decimal": pa.array([Decimal("0.00"), Decimal("-1.50"), Decimal("99999999.99")], pa.decimal128(10, 2)),
    "decimal_fine": pa.array(
        [Decimal(0), Decimal("0.0000000001"), Decimal("-0.0000012"), Decimal("123456789.5")], pa.decimal128(20, 10)
    ),
    "decimal_whole": pa.array([Decimal(10**37), Decimal(0), Decimal(-7)], pa.decimal128(38, 0)),
    "double": pa.array(
        [
            1e10,
            -0.0,
            0.0,
            float("nan"),
            float("inf"),
            float("-inf"),
            1e-3,
            9.99e-4,
            1e7,
            9_999_999.5,
            0.1,
            1.5e300,
            5e-5,
            590266126815864830.0,
            1e23,
        ]
    ),
    "float": pa.array(
        [1e10, -0.0, 0.0, float("nan"), 1e-3, 1e7, 16_777_216.0, 0.1, 3.4e38, 180_266_288.0], pa.float32()
    ),
}


@pytest.mark.parametrize(
    "ansi, zone",
    [
        ("true", "America/New_York"),
        pytest.param("true", "UTC", marks=pytest.mark.long),
        ("false", "UTC"),
        pytest.param("false", "America/New_York", marks=pytest.mark.long),
    ],
)
def test_keys_and_paths_are_spelled_alike(spark: Any, tmp_path: Path, zone: str, ansi: str) -> None:
    """No session setting changes a key. 02:30 on 10 March 2024 is no time in New York, but one without a zone."""
    from pyhudi.engine.spark.session import use_running_interpreter
    from pyhudi.engine.spark.write import keys as native
    from pyhudi.format.keys import record_keys as keys

    use_running_interpreter(spark)
    longest = max(len(column) for column in KEY_COLUMNS.values())
    columns = {
        name: pa.concat_arrays([column, pa.nulls(longest - len(column), column.type)])
        for name, column in KEY_COLUMNS.items()
    }
    rows = pa.table({"n": pa.array([f"row {n}" for n in range(longest)]), **columns})
    specs = {
        "key": keys.KeySpec(("n", *columns), (), is_composite=True, is_hive_style=False, is_url_encoded=False),
        "path": keys.KeySpec(("n",), tuple(columns), is_composite=False, is_hive_style=True, is_url_encoded=True),
    }
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        found = collected(
            on_spark(spark, rows, tmp_path).select(
                native.record_key(specs["key"], rows.schema).alias("key"),
                native.partition_path(specs["path"], rows.schema).alias("path"),
                *(native.value_text(name, rows.schema).alias(name) for name in columns),
            )
        )

    assert found["key"].to_pylist() == keys.record_keys(rows, specs["key"]).to_pylist()
    assert found["path"].to_pylist() == keys.partition_paths(rows, specs["path"]).to_pylist()
    for name in columns:
        assert found[name].to_pylist() == keys.value_text(rows.column(name), name).to_pylist(), name


class settings:  # noqa: N801  # reads as a function
    """SQL settings for a block, put back after it."""

    def __init__(self, spark: Any, values: Mapping[str, str]) -> None:
        self.spark, self.values = spark, values

    def __enter__(self) -> None:
        self.before = {name: self.spark.conf.get(name, None) for name in self.values}
        for name, value in self.values.items():
            self.spark.conf.set(name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self.before.items():
            if value is None:
                self.spark.conf.unset(name)
            else:
                self.spark.conf.set(name, value)


def test_a_session_of_another_zone_and_mode_writes_and_reads_the_same(spark: Any, tmp_path: Path) -> None:
    twins = Twins(spark, tmp_path, record_key=["local", "at", "price"], partition_by="day", ordering="ts")
    rows = rows_of_all_types(1, 30, version=1).filter(pc.field("local").is_valid())
    changed = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.adaptive.enabled": "false",
    }
    with settings(spark, changed):
        twins.write("upsert", rows)
        twins.write("upsert", rows.slice(5, 12))
        read = twins.on_spark.scan().to_spark(spark)

        assert_same_rows(collected(read).drop_columns(list(META)), stored(twins.here))
        assert {name: spark.conf.get(name) for name in changed} == changed


def test_inputs_of_other_types_and_orders_become_the_tables(spark: Any, tmp_path: Path, handover: str) -> None:
    """Fields of structs go by their names, numbers widen, columns may stand in any order."""
    inner = pa.struct([("a", pa.string()), ("b", pa.string())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", inner),
            ("l", pa.list_(inner)),
            ("m", pa.map_(pa.string(), inner)),
            ("d", pa.float64()),
        ]
    )
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", schema=schema)
    swapped = "named_struct('b', 'is b', 'a', 'is a')"

    table.upsert(
        spark.sql(
            f"select cast(1.5 as float) d, map('k', {swapped}) m, array({swapped}, null) l, {swapped} s, "
            "cast(7 as short) id union all select null, null, null, null, cast(8 as short)"
        )
    )

    one = {"a": "is a", "b": "is b"}
    assert table.scan(meta_fields=False).to_arrow().sort_by("id").to_pylist() == [
        {"id": 7, "s": one, "l": [one, None], "m": [("k", one)], "d": 1.5},
        {"id": 8, "s": None, "l": None, "m": None, "d": None},
    ]


def test_old_days_and_moments_are_read_as_they_were_written(spark: Any, tmp_path: Path) -> None:
    """Before Spark 4.0 the reader asks which calendar they are of, unless it is told."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    old = dt.datetime(1500, 2, 28, 23, 59, 59, 1)
    row = {"id": 1, "day": dt.date(1, 1, 1), "at": old.replace(tzinfo=dt.UTC), "local": old}
    schema = pa.schema([("id", pa.int64()), *(ALL_TYPES.field(name) for name in ("day", "at", "local"))])
    table.insert(on_spark(spark, pa.Table.from_pylist([row], schema), tmp_path))

    table.upsert(table.scan(meta_fields=False).to_spark(spark))

    assert_same_rows(collected(table.scan().to_spark(spark)), table.scan().to_arrow())
    assert table.scan(meta_fields=False).to_arrow().to_pylist() == [row]


def test_an_empty_input_commits_nothing_but_a_commit(spark: Any, tmp_path: Path, handover: str) -> None:
    twins = Twins(spark, tmp_path, record_key="id", partition_by="part")
    rows = rows_of_all_types(0, 9, version=1)

    for operation in ("bulk_insert", "upsert"):
        twins.write(operation, rows.slice(0, 0))
    twins.write("insert", rows)
    for operation in ("upsert", "delete"):
        twins.write(operation, rows.slice(0, 0))

    assert twins.on_spark.scan().to_arrow().num_rows == 9


def test_rows_of_one_key_are_settled_by_ordering_then_by_arrival(spark: Any, tmp_path: Path, handover: str) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts")
    rows = [(f"k{n % 50}", n % 3, n) for n in range(600)]
    expected: dict[str, tuple[int, int]] = {}
    for key, ts, n in rows:
        if key not in expected or ts >= expected[key][0]:
            expected[key] = (ts, n)

    result = table.upsert(spark.createDataFrame(rows, "id string, ts int, n int").coalesce(1))
    found = {row["id"]: (row["ts"], row["n"]) for row in table.scan().to_arrow().to_pylist()}
    assert (result.inserted, found) == (50, expected)

    result = table.upsert(
        spark.createDataFrame([("k1", 1, -1), ("k2", 2, -2), ("k2", 2, -3)], "id string, ts int, n int")
    )
    found = {row["id"]: (row["ts"], row["n"]) for row in table.scan().to_arrow().to_pylist()}
    assert (found["k1"], found["k2"]) == (expected["k1"], (2, -3))


# Spark reads files in an order of its own.
@pytest.mark.parametrize(
    "handover",
    [
        pytest.param(way, marks=[pytest.mark.long] if way in LONG_WAYS else [])
        for way in WAYS
        if way != "Parquet in parts"
    ],
    indirect=True,
)
def test_the_last_to_arrive_wins_without_an_ordering_across_partitions_of_the_input(
    spark: Any, tmp_path: Path, handover: str
) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")

    table.upsert(spark.range(0, 3_000, 1, 3).selectExpr("cast(id % 40 as string) id", "id n"))

    found = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {str(n % 40): n for n in range(2_960, 3_000)}


def test_rows_are_spread_over_many_file_groups_and_none_is_lost(spark: Any, tmp_path: Path, handover: str) -> None:
    """Shuffled, a key has one bucket, whatever their number and shares; else its copies are found in each group."""
    options = {"hoodie.parquet.max.file.size": 20_000, "hoodie.copyonwrite.record.size.estimate": 100}
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part", properties=options)
    rows = spark.range(4_000).selectExpr("cast(id as string) id", "concat('p', id % 2) part", "id n")

    inserted = table.bulk_insert(rows.unionAll(rows.where("n % 10 = 0")))
    after = table.scan().to_arrow()
    of_key = after.group_by("id").aggregate([("_hoodie_file_name", "count_distinct")])
    assert inserted.inserted == after.num_rows == 4_400
    assert inserted.files == len(set(after["_hoodie_file_name"].to_pylist())) > 20
    assert set(of_key["_hoodie_file_name_count_distinct"].to_pylist()) == ({1} if handover == "shuffle" else {1, 2})

    updated = table.upsert(rows.where("n < 3000").selectExpr("id", "part", "-n - 1 as n"))
    after = table.scan().to_arrow()
    assert updated.inserted == 0
    assert set(after["id"].to_pylist()) == {str(n) for n in range(4_000)}
    assert set(after["n"].to_pylist()) == {-n - 1 if n < 3_000 else n for n in range(4_000)}


@pytest.mark.parametrize(
    "handover",
    [
        pytest.param("files", marks=pytest.mark.long),
        pytest.param("shuffle", marks=pytest.mark.long),
        "files and shuffle",
    ],
    indirect=True,
)
def test_a_random_sequence_of_operations_is_that_of_a_dict(spark: Any, tmp_path: Path, handover: str) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    dice = random.Random(seed)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part", ordering="ts")
    model: dict[str, tuple[int, int]] = {}
    history: list[tuple[str, dict[str, tuple[int, int]]]] = []
    ddl = "id string, part string, ts int, v int"
    operations = ["insert", *dice.choices(["upsert", "upsert", "delete", "hard delete", "insert"], k=6)]
    for step, operation in enumerate(operations):
        names = [f"k{dice.randrange(60):02d}" for _ in range(dice.randrange(1, 40))]
        if operation == "insert":
            names = [f"k{n:02d}" for n in range(100) if f"k{n:02d}" not in model and dice.random() < 0.3]
        rows = [(name, f"p{int(name[1:]) % 3}", dice.randrange(4), step * 1_000 + n) for n, name in enumerate(names)]
        frame = spark.createDataFrame(rows, ddl).repartition(1)
        if operation == "hard delete":
            table.delete(frame.select("id", "part"))
            for name in names:
                model.pop(name, None)
        elif operation == "delete":
            table.delete(frame)
            newest: dict[str, int] = {}
            for name, _, ts, _ in rows:
                newest[name] = max(ts, newest.get(name, ts))
            for name, ts in newest.items():
                if name in model and ts >= model[name][0]:
                    del model[name]
        else:
            getattr(table, operation)(frame)
            best: dict[str, tuple[int, int]] = {}
            for name, _, ts, v in rows:
                if name not in best or ts >= best[name][0]:
                    best[name] = (ts, v)
            for name, (ts, v) in best.items():
                if name not in model or ts >= model[name][0]:
                    model[name] = (ts, v)
        found = {row["id"]: (row["ts"], row["v"]) for row in collected(table.scan().to_spark(spark)).to_pylist()}
        assert found == model, (seed, step, operation)
        history.append((table.timeline()[-1].requested, dict(model)))

    for requested, then in history:
        past = collected(table.scan(as_of=requested).to_spark(spark)).to_pylist()
        assert {row["id"]: (row["ts"], row["v"]) for row in past} == then, (seed, requested)
    changed = table.incremental(start=table.timeline()[-3].completed)
    assert_same_rows(collected(changed.to_spark(spark)), changed.to_arrow())


def listed(table: HudiTable) -> dict[str, list[str]]:
    """Data files by where one looks for them: the storage, the newest statements of the commits, the metadata table."""
    root = Path(table.path.removeprefix("file://"))
    snapshot = table._access.snapshot()
    commits = [read_commit(snapshot.storage, snapshot.timeline, one) for one in snapshot.timeline.completed_writes]
    stats = [stat.path for one in commits for of in one.partition_to_write_stats.values() for stat in of]
    listing = snapshot.listing
    return {
        "storage": sorted(p.relative_to(root).as_posix() for p in root.rglob("*.parquet") if ".hoodie" not in p.parts),
        "commits": sorted(path for path in stats if path is not None),
        "metadata": sorted(
            f"{of}/{file.name}"
            for of in listing.partitions()
            for file in listing.files(of)
            if file.name.endswith(".parquet")
        ),
    }


ERRORS: list[tuple[str, str, str]] = [
    (
        "select cast(null as string) id, 'p' part, 1 ts, 1 v union all select 'a', 'p', 1, 1",
        "upsert",
        r"record key.*1 null or empty",
    ),
    ("select '' id, 'p' part, 1 ts, 1 v", "insert", "record key.*1 null or empty"),
    ("select 'a' id, 'p' part, cast(null as int) ts, 1 v", "upsert", "ordering column 'ts'.*1 null"),
    ("select 'a' id, 'p' part, 'now' ts, 1 v", "upsert", "column 'ts': expected int32, found string"),
    ("select 'a' id, 'p' part, 1 ts", "upsert", "column 'v'.*missing"),
    ("select 'a' id, 'p' part, 1 ts, interval '1' day v", "upsert", "'v' of Spark type interval"),
    ("select 'a' id, 'p' part, 1 ts, 1 v, null w", "upsert", "'w' of type null"),
    ("select 'a' id, '../x' part, 1 ts, 1 v", "upsert", "partition path"),
    ("select 'a' id", "delete", "partition"),
]


@pytest.mark.parametrize("query, operation, message", ERRORS, ids=[message for _, _, message in ERRORS])
def test_an_input_that_does_not_fit_is_refused_before_anything_is_written(
    spark: Any, tmp_path: Path, handover: str, query: str, operation: str, message: str
) -> None:
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int32()), ("v", pa.int32())])
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="part", ordering="ts", schema=schema
    )
    before = sorted(path for path in (tmp_path / "t").rglob("*"))

    with pytest.raises(Invalid, match=message):
        getattr(table, operation)(spark.sql(query))

    assert sorted(path for path in (tmp_path / "t").rglob("*")) == before


@pytest.mark.parametrize("handover", ["files", "shuffle"], indirect=True)
def test_a_new_column_that_is_never_null_is_refused(spark: Any, tmp_path: Path, handover: str) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", schema=pa.schema([("id", pa.string())]))
    with pytest.raises(Invalid, match=r"column 'w'.*not in the table"):
        table.bulk_insert(spark.sql("select 'a' id, 2 w"))
    assert table.scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("zone, offset", [("Asia/Kolkata", 330), ("GMT-03:30", -210), ("UTC", 0)])
def test_instants_of_a_local_table_are_of_the_drivers_zone(spark: Any, tmp_path: Path, zone: str, offset: int) -> None:
    properties = {"hoodie.table.timeline.timezone": "LOCAL"}
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", properties=properties)
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    try:
        requested = table.bulk_insert(spark.range(3)).requested
    finally:
        zones.setDefault(before)

    assert requested is not None
    moment = dt.datetime.strptime(requested, "%Y%m%d%H%M%S%f") - dt.timedelta(minutes=offset)
    assert abs(dt.datetime.now(dt.UTC).replace(tzinfo=None) - moment) < dt.timedelta(minutes=5)


def test_zones_by_their_java_ids() -> None:
    def offset(name: str) -> dt.timedelta | None:
        return parse_java_zone(name).utcoffset(dt.datetime(2026, 1, 1))

    assert [offset(name) for name in ("Z", "UTC", "GMT", "UT")] == [dt.timedelta(0)] * 4
    assert offset("+05:30") == offset("GMT+05:30") == offset("Asia/Kolkata") == dt.timedelta(hours=5, minutes=30)
    assert offset("UTC-3") == offset("-03:00") == dt.timedelta(hours=-3)
    assert offset("+00:00:07") == dt.timedelta(seconds=7)


def test_a_table_in_memory_refuses_a_dataframe(spark: Any) -> None:
    table = HudiTable.create("memory://only-here", name="t", record_key="id")

    with pytest.raises(Invalid, match="workers can reach"):
        table.upsert(spark.range(3))


def test_storage_commits_and_metadata_table_list_the_same_files(spark: Any, tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part")
    rows = spark.range(200).selectExpr("cast(id as string) id", "concat('p', id % 3) part", "id n")

    table.bulk_insert(rows)
    table.upsert(rows.where("n < 20"))
    table.delete(rows.where("n = 7").select("id", "part"))

    files = listed(table)
    assert files["storage"] == files["commits"] == files["metadata"]


def test_a_key_that_several_file_groups_hold_is_changed_in_each(spark: Any, tmp_path: Path, handover: str) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part")
    for n in range(3):
        table.bulk_insert(spark.range(4).selectExpr("cast(id % 2 as string) part", "cast(id as string) id", f"{n} n"))

    updated = table.upsert(spark.sql("select '1' part, '1' id, 7 n union all select '1', 'new', 7"))
    deleted = table.delete(spark.sql("select '0' part, '2' id"))

    assert (updated.updated, updated.inserted, deleted.deleted) == (3, 1, 3)
    rows = table.scan().to_arrow().select(["id", "n"]).to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows) == [
        *(("0", n) for n in range(3)), *(("1", 7) for n in range(3)), *(("3", n) for n in range(3)), ("new", 7),
    ]  # fmt: skip
