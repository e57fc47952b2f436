"""A table keyed, placed or ordered by fields of structs could miss the row that it is to replace, keep the one that
loses, put a row into another folder, or store the field once more as a column of its own.

Each table goes through writes of every kind beside a dict.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.storage.memory import MemoryStorage

KEYS: dict[str, tuple[str, ...]] = {"one": ("st.x",), "composite": ("st.x", "v"), "plain": ("v",)}
OPTIONS: dict[str, dict[str, str]] = {
    "simple": {},
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "records": {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    },
    "buckets": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
    "no meta fields": {"hoodie.populate.meta.fields": "false"},
}


def rows(numbers: Iterable[int], ts: int, said: str, *, moved: int = 0) -> pa.Table:
    numbers = list(numbers)
    inner = [{"x": f"k{n}", "deep": {"p": f"p{(n + moved) % 3}"}, "ts": ts + n % 2} for n in numbers]
    return pa.table({"st": inner, "v": pa.array(numbers, pa.int64()), "said": [said] * len(numbers)})


@dataclass
class Modelled:
    """A table beside a dict: number -> ordering value and text."""

    table: HudiTable
    model: dict[int, tuple[int, str]] = field(default_factory=dict)

    def upsert(self, numbers: Iterable[int], ts: int, said: str, *, moved: int = 0) -> None:
        given = rows(numbers, ts, said, moved=moved)
        self.table.upsert(given)
        for row in given.to_pylist():
            number, order = row["v"], row["st"]["ts"]
            if number not in self.model or not self.table.ordering or self.model[number][0] <= order:
                self.model[number] = (order, said)
        self.check()

    def check(self) -> None:
        found = self.table.scan(["st", "v", "said"]).to_arrow().to_pylist()
        assert {row["v"]: (row["st"]["ts"], row["said"]) for row in found} == self.model
        assert len(found) == len(self.model)


def make(table_type: str, keys: str, options: Mapping[str, str], **more: Any) -> Modelled:
    made = HudiTable.create(
        "unused", name="t", record_key=KEYS[keys], ordering="st.ts", table_type=table_type, properties=options,
        storage=MemoryStorage(), **more,
    )  # fmt: skip
    return Modelled(made)


QUICK = {("one", "simple"), ("composite", "no meta fields"), ("one", "records"), ("composite", "global")}
CASES = [
    pytest.param(keys, options, marks=() if (keys, options) in QUICK else pytest.mark.long)
    for keys in KEYS
    for options in OPTIONS
]


@pytest.mark.parametrize("keys, options", CASES)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_are_found_compared_and_placed_by_fields(table_type: str, keys: str, options: str) -> None:
    tried = make(table_type, keys, OPTIONS[options], partition_by="st.deep.p")
    table = tried.table

    tried.upsert(range(20), 10, "first")
    tried.upsert(range(10, 30), 9, "less, of half of the stored ones")
    tried.upsert([25, 25], 11, "twice")
    if options in ("global", "records"):
        tried.upsert(range(4), 12, "moved", moved=1)
        tried.upsert(range(4), 5, "less, and moved", moved=2)

    table.delete(rows([5, 6], 20, ""))
    table.delete(where="v = 3")
    table.delete(where="st.x = 'k4'")
    for number in (3, 4, 5, 6):
        del tried.model[number]
    tried.check()

    table.update(set={"said": "'changed'"}, where="st.deep.p = 'p0' AND v > 20")
    tried.model.update({n: (ts, "changed") for n, (ts, _) in tried.model.items() if n > 20 and n % 3 == 0})
    tried.check()

    if table_type == "MERGE_ON_READ":
        table.compact()
        tried.check()
    if options != "buckets":
        table.cluster()
        tried.check()
    tried.upsert(range(12), 30, "after the services")
    assert table.metadata.validate().differences == ()

    assert table.scan().to_arrow().column_names[-3:] == ["st", "v", "said"]
    found = table.scan(["v"], where="st.deep.p = 'p1'").to_arrow()["v"].to_pylist()
    assert sorted(found) == sorted(n for n in tried.model if n % 3 == 1)
    table.insert_overwrite_table(rows(range(3), 1, "other"))
    tried.model = {n: (1 + n % 2, "other") for n in range(3)}
    tried.check()


def test_a_key_is_looked_up_as_a_value_a_struct_and_a_column_of_its_path() -> None:
    one, composite = make("COPY_ON_WRITE", "one", {}), make("COPY_ON_WRITE", "composite", {})
    for tried in (one, composite):
        tried.upsert(range(9), 1, "first")
    assert one.table.lookup(["k7"]).to_pylist()[0]["v"] == 7
    assert composite.table.lookup(["st.x:k7,v:7"]).to_pylist()[0]["v"] == 7
    for sought in ({"st": [{"x": "k7"}], "v": [7]}, {"st.x": ["k7"], "v": [7]}):
        for tried in (one, composite):
            assert tried.table.lookup(pa.table(sought)).to_pylist()[0]["v"] == 7


def test_rows_are_deleted_by_the_field_alone() -> None:
    tried = make("MERGE_ON_READ", "one", {})
    tried.upsert(range(9), 1, "first")
    tried.table.delete(pa.table({"st": [{"x": "k1"}]}))
    tried.table.delete(pa.table({"st.x": ["k2"]}))
    del tried.model[1], tried.model[2]
    tried.check()


def test_a_stream_too_large_for_memory_goes_by_fields() -> None:
    tried = make("COPY_ON_WRITE", "one", {}, partition_by="st.deep.p")
    given = rows(range(2_000), 1, "x" * 500)
    stream = pa.RecordBatchReader.from_batches(given.schema, given.to_batches(max_chunksize=100))
    tried.table.upsert(stream, options={"pyhudi.memory.max.bytes": str(1 << 20)})
    tried.model = {n: (1 + n % 2, "x" * 500) for n in range(2_000)}
    tried.check()


def test_the_columns_are_checked_before_anything_is_written() -> None:
    table = make("COPY_ON_WRITE", "one", {}, partition_by="st.deep.p").table
    for given, said in (
        ({"v": [1]}, "column 'st.x' is missing from the input"),
        ({"st": [1], "v": [1]}, "'st.x' is the field of a struct: expected it within the column 'st', found int64"),
        ({"st": [{"y": 1}], "v": [1]}, "'st.x' is the field of a struct"),
        ({"st": [{"x": "", "deep": {"p": "a"}, "ts": 1}], "v": [1]}, "null or empty"),
        ({"st": [{"x": "a", "deep": {"p": "a"}, "ts": [1]}], "v": [1]}, "ordering column 'st.ts' of type list"),
    ):
        with pytest.raises(Invalid, match=said):
            table.upsert(pa.table(given))
    with pytest.raises(Invalid, match=r"record_key: no column 'st\.z' in the schema"):
        HudiTable.create("unused", name="t", record_key="st.z", schema=rows([1], 1, "").schema, storage=MemoryStorage())
    with pytest.raises(Invalid, match=r"with the partition column 'st\.deep\.p': expected a column of its own"):
        make(
            "COPY_ON_WRITE", "one", {"hoodie.datasource.write.drop.partition.columns": "true"}, partition_by="st.deep.p"
        )
    assert table.timeline() == ()


@pytest.mark.parametrize("change", [("rename", "st", "s"), ("rename", "st.x", "y"), ("drop", "st"), ("drop", "st.ts")])
def test_fields_that_rows_go_by_are_neither_renamed_nor_dropped(change: tuple[str, ...]) -> None:
    tried = make("COPY_ON_WRITE", "one", {})
    tried.upsert(range(3), 1, "first")
    with pytest.raises(Invalid, match=r"'st.*it is an? (record key|ordering) column"):
        getattr(tried.table.alter(), change[0])(*change[1:]).commit()
    tried.check()


def test_changes_of_rows_keep_who_they_are() -> None:
    tried = make("COPY_ON_WRITE", "plain", {}, partition_by="st.deep.p")
    tried.upsert(range(9), 5, "first")
    with pytest.raises(Invalid, match="column 'st' is a partition column"):
        tried.table.update(set={"st": {"x": "z", "deep": {"p": "p0"}, "ts": 9}})
    with pytest.raises(
        Unsupported, match=r"expected key, partition and ordering columns of their own, found 'st\.deep"
    ):
        tried.table.merge(rows([1], 9, "merged"), when_matched_update="*")
    tried.check()

    ordered = make("COPY_ON_WRITE", "plain", {})
    ordered.upsert(range(9), 5, "first")
    with pytest.raises(Invalid, match=r"expected ordering values \('st.ts'\) not less than the stored ones"):
        ordered.table.update(set={"st": {"x": "z", "deep": {"p": "p0"}, "ts": 1}})
    ordered.check()


def test_a_row_whose_partition_field_is_updated_moves() -> None:
    tried = make("COPY_ON_WRITE", "plain", OPTIONS["global"], partition_by="st.deep.p")
    tried.upsert(range(6), 5, "first")
    tried.table.update(set={"st": {"x": "z", "deep": {"p": "new"}, "ts": 9}}, where="v = 4")
    found = tried.table.scan(["v", "_hoodie_partition_path"]).to_arrow().sort_by("v")
    assert found["_hoodie_partition_path"].to_pylist() == ["p0", "p1", "p2", "p0", "new", "p2"]


def test_what_cannot_go_by_fields_says_so_before_it_looks_further(tmp_path: Path) -> None:
    tried = make("COPY_ON_WRITE", "one", {})
    tried.upsert(range(3), 5, "first")
    own_columns = r"expected key, partition and ordering columns of their own, found 'st\.x'"
    calls: list[dict[str, Any]] = [
        {"when_matched_delete": True}, {"on": "st.x", "when_matched_delete": True},
        {"on": "v", "when_matched_update": {"no": "1"}},
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(Unsupported, match=own_columns):
            tried.table.merge(rows([1], 9, "merged"), **call)
    tried.check()

    source = tmp_path / "source"
    source.mkdir()
    pq.write_table(rows(range(3), 5, "first"), source / "rows.parquet")
    facts: list[dict[str, Any]] = [
        {"record_key": "st.x"}, {"record_key": "v", "ordering": "st.ts"},
        {"record_key": "v", "partition_by": "st.deep.p"},
    ]  # fmt: skip
    for fact in facts:
        with pytest.raises(Unsupported, match=r"bootstrap by 'st\..*', the field of a struct"):
            HudiTable.bootstrap(source, tmp_path / "t", name="t", **fact)
    assert not HudiTable.exists(tmp_path / "t")


@pytest.mark.parametrize("path", ["st.the x", "st.", "st..x", ".x", "`st`.`x`", "st.1"])
@pytest.mark.parametrize("fact", ["record_key", "partition_by", "ordering"])
def test_a_path_that_no_schema_can_have_is_refused_as_the_table_is_made(tmp_path: Path, path: str, fact: str) -> None:
    with pytest.raises(Invalid, match="expected names of letters, digits and _ with a dot between them"):
        HudiTable.create(tmp_path / "t", name="t", **{"record_key": "v", fact: path})  # type: ignore[arg-type]
    assert not HudiTable.exists(tmp_path / "t")
