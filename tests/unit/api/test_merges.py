"""A merge could pair the wrong rows, give a row to the wrong clause, or write part of what it should.

Random merges are compared with a dict that follows the clauses row by row; single cases pin refusals.
"""

import random
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, Unsupported, When
from pyhudi.storage.memory import MemoryStorage
from pyhudi.write.memory_settings import MemorySettings

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])
SOURCE = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("op", pa.string())]
)
TABLES = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in (6, 8, 9)]
Rows = dict[str, tuple[str, int, int | None]]


def make(rows: Rows, kind: str = "COPY_ON_WRITE", version: int = 8, **given: Any) -> HudiTable:
    facts = {"record_key": "id", "partition_by": "city", "ordering": "ts", "storage": MemoryStorage(), **given}
    table = HudiTable.create("unused", name="t", table_type=kind, table_version=version, schema=SCHEMA, **facts)
    if rows:
        table.upsert(pa.Table.from_pylist([_row(key, row) for key, row in rows.items()], SCHEMA))
    return table


def _row(key: str, row: tuple[str, int, int | None]) -> dict[str, Any]:
    return dict(zip(SCHEMA.names, (key, *row), strict=True))


def read(table: HudiTable) -> Rows:
    rows = table.scan(meta_fields=False).to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["city"], row["ts"], row["n"]) for row in rows}


def source(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SOURCE.names, row, strict=True)) for row in rows], SOURCE)


STORED: Rows = {"a": ("oslo", 5, 1), "b": ("oslo", 5, 2), "c": ("rome", 5, None), "d": ("rome", 5, 4)}


@pytest.mark.parametrize("kind,version", TABLES)
def test_random_merges_are_as_a_dict_says(kind: str, version: int) -> None:
    seed = 7 + version
    draw = random.Random(seed)
    cities = {f"k{n}": draw.choice(["oslo", "rome"]) for n in range(30)}
    model: Rows = {key: (city, 0, n) for n, (key, city) in enumerate(cities.items()) if n % 2}
    table = make(model, kind, version)
    for turn in range(1, 5):
        keys = draw.sample(sorted(cities), 12)
        given = [(k, cities[k], turn, draw.choice([None, 1, 2, 50]), draw.choice("udx")) for k in keys]
        table.merge(
            source(*given),
            "target.id = source.id AND source.city = target.city",
            when_matched_update=When("source.op = 'u'", {"n": "coalesce(target.n, 0) + source.n", "ts": "source.ts"}),
            when_matched_delete="op = 'd'",
            when_not_matched_insert=When("op <> 'x'", None),
            when_not_matched_by_source_update=When("n > 40", {"n": "n - 40"}),
            when_not_matched_by_source_delete="n = 3",
        )
        before, model = model, dict(model)
        met = {row[0] for row in given}
        for key, city, ts, n, op in given:
            if key in before and op == "u":
                model[key] = (city, ts, None if n is None else (before[key][2] or 0) + n)
            elif key in before and op == "d":
                del model[key]
            elif key not in before and op != "x":
                model[key] = (city, ts, n)
        for key, (city, ts, n) in before.items():
            if key not in met and n is not None and n > 40:
                model[key] = (city, ts, n - 40)
            elif key not in met and n == 3:
                del model[key]
        assert read(table) == model, (seed, turn)
        assert len(table.timeline()) == turn + 1


@pytest.mark.parametrize("kind,version", TABLES)
def test_a_delete_of_a_merge_wins_whatever_the_ordering_values_are(kind: str, version: int) -> None:
    table = make({**STORED, "a": ("oslo", 10**12, 1)}, kind, version)
    result = table.merge(source(("a", "oslo", 1, 0, "d")), when_matched_delete=True)
    assert (result.deleted, result.updated, result.inserted) == (1, 0, 0)
    assert "a" not in read(table)


def test_the_default_condition_is_the_key_and_partition() -> None:
    table = make(STORED)
    table.merge(source(("a", "rome", 6, 9, "")), when_matched_update={"n": 0}, when_not_matched_insert=True)
    rows = table.scan(columns=["id", "city", "n"], where="id = 'a'").to_arrow().sort_by("city").to_pylist()
    assert rows == [{"id": "a", "city": "oslo", "n": 1}, {"id": "a", "city": "rome", "n": 9}]


def test_names_of_columns_and_aliases() -> None:
    table = make(STORED)
    table.merge(source(("a", "rome", 5, 9, "")), ["id"], when_matched_update={"n": "s.n"}, source_alias="s")
    table.merge(source(("b", "", 5, 9, "")), "t.id = s.id", when_matched_update={"n": "t.n - s.n"}, source_alias="s",
                target_alias="t")  # fmt: skip
    assert read(table)["a"][2] == 9
    assert read(table)["b"][2] == -7


def test_nulls_and_rows_that_match_nothing_are_no_commit() -> None:
    table = make(STORED)
    nothing = source((None, "oslo", 5, 9, ""), ("zz", "oslo", 5, 9, ""))
    assert table.merge(nothing, "target.id = source.id", when_matched_delete=True).requested is None
    assert table.merge(nothing.slice(0, 0), when_matched_update=True, when_not_matched_insert=True).requested is None
    assert (
        table.merge(source(("q", "", 5, None, "")), "target.n = source.n", when_matched_delete=True).requested is None
    )
    assert len(table.timeline()) == 1


def test_a_merge_into_an_empty_table_inserts_all() -> None:
    table = make({})
    result = table.merge(source(("a", "oslo", 5, 1, "")), when_matched_update=True, when_not_matched_insert=True)
    assert (result.inserted, read(table)) == (1, {"a": ("oslo", 5, 1)})


def test_conditions_without_an_equality_pair_rows_all_the_same() -> None:
    table = make(STORED)
    table.merge(source(("x", "", 0, 2, "")), "target.n >= source.n", when_matched_update={"n": "target.n * 10"})
    assert {key: row[2] for key, row in read(table).items()} == {"a": 1, "b": 20, "c": None, "d": 40}


def test_only_files_that_may_hold_a_match_are_read() -> None:
    storage = MemoryStorage()
    table = make(STORED, storage=storage)
    for file in list(storage.list("rome")):
        if file.path.endswith(".parquet"):
            storage.delete(file.path)
    assert table.merge(source(("a", "oslo", 5, 9, "")), when_matched_update=True).updated == 1


@pytest.mark.parametrize("index", ["BUCKET", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_index_takes_all_clauses(kind: str, index: str) -> None:
    properties = {"hoodie.index.type": index, **({"hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {})}
    table = make(STORED, kind, properties=properties)
    rows = source(("a", "oslo", 6, 10, "u"), ("b", "oslo", 6, 0, "d"), ("new", "bonn", 6, 3, "u"))
    table.merge(rows, when_matched_delete="op = 'd'", when_matched_update=True, when_not_matched_insert=True,
                when_not_matched_by_source_delete="n IS NULL")  # fmt: skip
    assert read(table) == {"a": ("oslo", 6, 10), "d": ("rome", 5, 4), "new": ("bonn", 6, 3)}


ONE = source(("a", "oslo", 5, 1, ""))
NEW_TWICE = source(("z", "oslo", 5, 1, ""), ("z", "oslo", 5, 2, ""))
TWICE = source(("a", "oslo", 5, 1, ""), ("a", "oslo", 5, 2, ""))


@pytest.mark.parametrize(
    "rows,given,told",
    [
        (TWICE, {"when_matched_update": True}, "found 2 for the row with id='a', city='oslo'"),
        (NEW_TWICE, {"when_not_matched_insert": True}, "found several for 'z' in partition 'oslo'"),
        (source(("a", "oslo", 4, 1, "")), {"when_matched_update": True}, "('ts') not less than the stored ones"),
        (ONE, {}, "expected at least one clause"),
        (ONE, {"when_matched_update": True, "when_matched_delete": True}, "at most one clause without a condition"),
        (ONE, {"when_matched_update": {"n": "n"}}, "no column 'n'"),
        (ONE, {"when_matched_update": {"id": "'other'"}}, "says which row of table 't' it is"),
        (ONE, {"when_not_matched_insert": {"id": "id", "n": 1}}, "found none of 'city'"),
        (ONE, {"when_not_matched_by_source_update": True}, "these rows have none in the source"),
        (ONE.drop_columns(["n"]), {"when_matched_update": True}, "found no 'n'"),
        (ONE, {"on": "target.id = source.idd", "when_matched_delete": True}, "on 'target.id = source.idd' at"),
        (ONE, {"on": ["id", "CITY", "op"], "when_matched_update": True}, "no column 'op' in the table; there are 'id'"),
        (ONE, {"on": ["ID", "m"], "when_matched_update": True}, "no column 'm' in the table"),
        (ONE.drop_columns(["id"]), {"when_matched_update": {"n": "source.n"}}, "the record key 'id' in the source"),
        (ONE, {"on": "target.n = 7 AND target.id = source.id", "when_not_matched_insert": True}, "row did not match"),
        (ONE, {"on": 5, "when_matched_update": True}, "expected SQL text"),
        (ONE, {"on": "target.id = source.id AND target IS NOT NULL", "when_not_matched_insert": True}, "all of it"),
        (ONE, {"on": "target.id = source.id AND source IS NULL", "when_matched_update": True}, "all of it"),
        (ONE, {"when_matched_delete": True, "source_alias": "target"}, "two different aliases"),
        ([1, 2], {"when_matched_delete": True}, "expected a Spark DataFrame or anything with __arrow_c_stream__"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_a_merge_refuses_changes_nothing(kind: str, rows: Any, given: dict[str, Any], told: str) -> None:
    table = make(STORED, kind)
    with pytest.raises(Invalid) as error:
        table.merge(rows, **given)
    assert told in str(error.value)
    assert read(table) == STORED
    assert len(table.timeline()) == 1


def test_several_rows_may_match_a_row_that_all_clauses_delete() -> None:
    table = make(STORED)
    assert table.merge(TWICE, when_matched_delete=True).deleted == 1


@pytest.mark.parametrize("times", [2, 5])
def test_rows_that_meet_nothing_change_where_one_row_meets_several(times: int) -> None:
    a_row = source(*[("a", "oslo", 6, 10, "u")] * times)
    table = make(STORED)
    table.merge(a_row, when_not_matched_by_source_delete=True)
    assert read(table) == {"a": STORED["a"]}
    table = make(STORED)
    table.merge(
        a_row, when_matched_delete=True, when_not_matched_by_source_update={"n": "coalesce(n, 0) + 100"},
    )  # fmt: skip
    assert read(table) == {"b": ("oslo", 5, 102), "c": ("rome", 5, 100), "d": ("rome", 5, 104)}


def test_rows_of_keys_that_writers_made_are_merged_and_not_inserted() -> None:
    table = make({}, record_key=None, ordering=None)
    table.insert(pa.Table.from_pylist([_row(key, row) for key, row in STORED.items()], SCHEMA))
    rows = source(("a", "oslo", 5, 100, ""), ("d", "rome", 5, 0, "d"))
    with pytest.raises(Invalid, match="no record key columns"):
        table.merge(rows, when_matched_delete=True)
    with pytest.raises(Unsupported, match="keys that the writer makes up"):
        table.merge(rows, ["id"], when_not_matched_insert=True)
    table.merge(rows, ["id"], when_matched_update={"n": "source.n"}, when_matched_delete="op = 'd'")
    assert {key: row[2] for key, row in read(table).items()} == {"a": 100, "b": 2, "c": None}


def test_numbers_of_other_types_and_text_meet_as_in_spark() -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    table = HudiTable.create("unused", name="t", record_key="id", schema=schema, storage=MemoryStorage())
    table.upsert(pa.table({"id": [1, 2, 3], "x": [0.0, float("nan"), 2.5]}, schema=schema))
    table.merge(pa.table({"id": pa.array(["1", "x", None])}), "target.id = source.id", when_matched_update={"x": 9.0})
    table.merge(pa.table({"y": [float("nan"), -0.0]}), "x = y", when_matched_update={"x": 7.0})
    assert table.scan(columns=["id", "x"]).to_arrow().sort_by("id")["x"].to_pylist() == [9.0, 7.0, 2.5]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("is_staged", [False, True])
def test_a_merge_deletes_rows_that_were_stored_without_an_ordering_value(
    kind: str, is_staged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_staged:
        monkeypatch.setattr(MemorySettings, "share_bytes", lambda self, workers: 1)
    table = make({}, kind)
    table.insert(pa.Table.from_pylist([_row("a", ("oslo", None, 1)), _row("b", ("oslo", 5, 2))], SCHEMA))  # type: ignore[arg-type]

    result = table.merge(source(("a", "oslo", 1, 1, "d")), when_matched_delete=True)

    assert result.deleted == 1
    assert read(table) == {"b": ("oslo", 5, 2)}


def test_true_in_a_clause_with_a_condition_means_every_column() -> None:
    table = make(STORED)
    table.merge(
        source(("a", "oslo", 9, 7, "u"), ("e", "oslo", 9, 8, "i"), ("f", "oslo", 9, 9, "x")),
        when_matched_update=When("source.op = 'u'", True),
        when_not_matched_insert=When("source.op = 'i'", True),
    )
    assert read(table) == {**STORED, "a": ("oslo", 9, 7), "e": ("oslo", 9, 8)}


def test_one_name_says_which_rows_match_and_a_name_of_both_sides_is_told() -> None:
    table = make(STORED)
    given = source(("a", "oslo", 6, 10, "u"))
    assert table.merge(given, "id", when_matched_update={"n": "source.n"}).updated == 1
    with pytest.raises(Invalid, match=r"no column 'id'; there are 'target\.id' and 'source\.id'"):
        table.merge(given, "id = source.id", when_matched_delete=True)
    with pytest.raises(Invalid, match=r"no column 'n'; there are 'target\.n' and 'source\.n'"):
        table.merge(given, when_matched_update={"n": "n + 1"})


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    "key,stored,new",
    [
        ("id", ("a", None), ("a", None)),
        ("id", ("a", None), ("a", "")),
        (["id", "city"], ("a", None), ("a", None)),
        (["id", "city"], ("x", "y,city:z"), ("x,city:y", "z")),
    ],
)
def test_a_new_row_whose_values_equal_none_and_whose_key_is_stored_replaces_nothing(
    kind: str, key: Any, stored: tuple[str, str | None], new: tuple[str, str | None]
) -> None:
    partition = "city" if key == "id" else None
    table = HudiTable.create(
        "unused", name="t", record_key=key, partition_by=partition, table_type=kind, storage=MemoryStorage()
    )
    old, given = (
        {"id": pa.array([i]), "city": pa.array([c], pa.string()), "n": [n]} for n, (i, c) in enumerate((stored, new))
    )
    table.insert(pa.table(old))
    with pytest.raises(Invalid, match="expected record keys that table 't' does not have"):
        table.merge(pa.table(given), when_matched_update=True, when_not_matched_insert=True)
    assert table.scan().to_arrow()["n"].to_pylist() == [0]


def test_new_rows_of_a_table_whose_partitions_are_times() -> None:
    times = {
        "hoodie.table.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    }
    table = HudiTable.create(
        "unused", name="t", record_key="id", partition_by="at", properties=times, storage=MemoryStorage()
    )
    table.insert(pa.table({"id": ["a"], "at": [1_000]}))
    assert table.merge(pa.table({"id": ["b"], "at": [5_000]}), when_not_matched_insert=True).inserted == 1
    with pytest.raises(Invalid, match="found 'a' in partition '19700101'"):
        table.merge(pa.table({"id": ["a"], "at": [5_000]}), when_not_matched_insert=True)
    assert table.scan().count() == 2


def test_keys_of_floating_point_stay_as_they_are_spelled() -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    table.insert(pa.table({"id": [0.0, float("nan")], "n": [1, 2]}))
    given = pa.table({"id": [float("nan")], "n": [3]})
    assert table.merge(given, when_matched_update=True, when_not_matched_insert=True).updated == 1
    with pytest.raises(Invalid, match=r"column 'id' says which row .* expected 0\.0, found -0\.0"):
        table.merge(pa.table({"id": [-0.0], "n": [4]}), when_matched_update=True)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 3]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")], ids=str)
def test_times_beyond_the_years_of_python_match(kind: pa.DataType) -> None:
    """DuckDB's `infinity` is one."""
    table = HudiTable.create("unused", name="t", record_key="at", storage=MemoryStorage())
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    rows = pa.table({"at": pa.array([2 ** (whole.bit_width - 1) - 1, 0], whole).view(kind), "n": [1, 2]})
    table.insert(rows)
    assert table.merge(rows, when_matched_update={"n": "source.n + 5"}).updated == 2
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [6, 7]
