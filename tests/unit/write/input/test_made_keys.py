"""Keys that the writer makes up could repeat, or an operation that takes keys could run without any and double rows."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, Unsupported

ROWS = pa.table({"city": ["oslo", "rome", "oslo", "rome"], "n": [1, 2, 3, 4], "ts": [1, 1, 1, 1]})


def create(path: Path, **more: object) -> HudiTable:
    return HudiTable.create(path, name="t", partition_by="city", ordering="ts", properties=more)


def test_keys_are_of_the_instant_and_never_repeat(tmp_path: Path) -> None:
    of = create(tmp_path / "t")
    results = [of.insert(ROWS), of.insert(ROWS), of.bulk_insert(ROWS), of.insert_overwrite(ROWS.slice(0, 1))]
    assert "hoodie.table.recordkey.fields" not in of.properties
    assert of.record_key == ()
    everything = of.scan(as_of=results[2].requested).to_arrow()
    keys, times = everything["_hoodie_record_key"].to_pylist(), everything["_hoodie_commit_time"].to_pylist()
    assert len(set(keys)) == len(keys) == 12
    assert all(re.fullmatch(rf"{time}_\d+_\d+", key) for key, time in zip(keys, times, strict=True))
    assert len(of.scan().to_arrow()) == 7
    last = of.scan().to_arrow()["_hoodie_record_key"][0].as_py()
    assert of.lookup([last])["_hoodie_record_key"].to_pylist() == [last]
    with pytest.raises(Invalid, match="no key columns"):
        of.lookup(ROWS)


def test_equal_rows_stay_apart(tmp_path: Path) -> None:
    of = create(tmp_path / "t")
    of.insert(pa.concat_tables([ROWS.slice(0, 1)] * 5))
    assert len(of.scan().to_arrow()) == 5


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_what_takes_a_key_is_refused(tmp_path: Path, operation: str) -> None:
    of = create(tmp_path / "t")
    of.insert(ROWS)
    with pytest.raises(Invalid, match=f"{operation} in table 't': expected rows of a query of this table"):
        getattr(of, operation)(ROWS)
    assert len(of.scan().to_arrow()) == 4


def test_rows_of_a_query_are_found_by_their_meta_fields(tmp_path: Path) -> None:
    of = create(tmp_path / "t")
    of.insert(ROWS)
    of.insert(ROWS)
    stored = of.scan(where="n in (2, 3)").to_arrow()
    changed = stored.slice(0, 3).set_column(stored.schema.get_field_index("ts"), "ts", pa.array([5, 5, 0]))

    result = of.upsert(changed)

    assert (result.updated, result.inserted) == (2, 0)  # one of them is older than what is stored
    assert sorted(of.scan().to_arrow()["ts"].to_pylist()) == [1] * 6 + [5] * 2
    assert set(of.scan().to_arrow()["_hoodie_record_key"].to_pylist()) >= set(stored["_hoodie_record_key"].to_pylist())
    assert of.delete(of.scan(where="ts = 5").to_arrow()).deleted == 2
    assert of.scan().to_arrow()["ts"].to_pylist() == [1] * 6
    assert of.schema().names == ["city", "n", "ts"]
    without = stored.set_column(2, "_hoodie_record_key", pa.nulls(len(stored), pa.string()))
    with pytest.raises(Invalid, match="_hoodie_record_key"):
        of.upsert(without)


@pytest.mark.parametrize("name", ["hoodie.combine.before.insert", "hoodie.datasource.write.insert.drop.duplicates"])
def test_options_that_take_a_key_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid, match="keys that the writer makes up"):
        create(tmp_path / "t").insert(ROWS, options={name: True})


def test_tables_of_version_8_have_one_ordering_column(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="table_version=9"):
        HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering=("day", "n"))


def test_several_ordering_columns_are_compared_one_after_the_other(tmp_path: Path) -> None:
    of = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering=("day", "n"), table_version=9)
    assert of.properties["hoodie.table.ordering.fields"] == "day,n"

    def rows(*of: tuple[str, int, int, str]) -> pa.Table:
        return pa.table(dict(zip(("id", "day", "n", "said"), map(list, zip(*of, strict=True)), strict=True)))

    of.upsert(rows(("a", 2, 5, "first"), ("a", 2, 9, "greater n"), ("a", 1, 99, "older day"), ("b", 1, 1, "b")))
    assert of.scan(columns=["said"]).to_arrow().sort_by("said")[0].to_pylist() == ["b", "greater n"]
    of.upsert(rows(("a", 2, 8, "less"), ("b", 1, 1, "a tie")))
    assert of.scan(columns=["said"]).to_arrow().sort_by("said")[0].to_pylist() == ["a tie", "greater n"]
    of.upsert(rows(("a", 3, 0, "newer day")))
    assert of.scan(columns=["said"], where="id = 'a'").to_arrow()[0].to_pylist() == ["newer day"]
    of.delete(rows(("a", 2, 99, "")))
    assert len(of.scan(where="id = 'a'").to_arrow()) == 1
    with pytest.raises(Invalid, match="ordering column 'n': expected a value in each row, found 1 null"):
        of.upsert(pa.table({"id": ["a"], "day": [9], "n": pa.nulls(1, pa.int64()), "said": ["null"]}))
