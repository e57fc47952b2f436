"""The other side could look for a row in another partition, or under another key, than where ours put it.

pyhudi and the real Apache Hudi write the same table in turns, for each key generator; a path that one of them spells
otherwise shows as a doubled row, as a row that is not updated, or as a difference between the two answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.table.facts.key_properties import PREFIX
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

RELEASES = ((8, "hudi_102"), (9, "hudi_120"))
KEYGEN = "hoodie.datasource.write.keygenerator.class"
FIELD = "hoodie.datasource.write.partitionpath.field"


def rows(start: int, stop: int, *, said: str) -> pa.Table:
    numbers = range(start, stop)
    days = [None if n % 11 == 0 else f"202{n % 7}-0{1 + n % 9}-1{n % 10}" for n in numbers]
    return pa.table(
        {
            "id": [f"k{n:03}" for n in numbers],
            "city": [("oslo", "rome", None)[n % 3] for n in numbers],
            "ms": pa.array([None if n == 5 else n * 40_000_000_000 - 10**12 for n in numbers], pa.int64()),
            "at": pa.array([None if n == 6 else n * 4 * 10**13 - 1_500 for n in numbers], pa.timestamp("us", "UTC")),
            "day": days,
            "iso": [f"202{n % 7}-01-01T0{n % 10}:30:00{('Z', '+02:00')[n % 2]}" for n in numbers],
            "ts": pa.array([1] * len(numbers), pa.int64()),
            "said": [said] * len(numbers),
        }
    )


@dataclass(frozen=True)
class Generator:
    name: str
    partition_by: tuple[str, ...]
    java_class: str
    times: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, object] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, object]:
        times = {PREFIX + name: text for name, text in self.times.items()}
        return {
            **times,
            **self.more,
            KEYGEN: f"org.apache.hudi.keygen.{self.java_class}",
            FIELD: ",".join(self.partition_by),
        }


GENERATORS = (
    Generator("ms", ("ms",), "TimestampBasedKeyGenerator",
              {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd",
               "timezone": "America/New_York"}),
    Generator("iso_hive_encoded", ("iso",), "TimestampBasedKeyGenerator",
              {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
               "output.dateformat": "yyyy/MM/dd HH:mm", "output.timezone": "Asia/Tokyo"},
              {"hoodie.datasource.write.hive_style_partitioning": True,
               "hoodie.datasource.write.partitionpath.urlencode": True}),
    Generator("custom", ("city:SIMPLE", "day:TIMESTAMP"), "CustomKeyGenerator",
              {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd", "output.dateformat": "yyyyMM",
               "timezone": "UTC"}),
    Generator("simple", ("city",), "SimpleKeyGenerator"),
    Generator("complex", ("city", "day"), "ComplexKeyGenerator"),
    Generator("non_partitioned", (), "NonpartitionedKeyGenerator"),
)  # fmt: skip


def create(path: Path, of: Generator, version: int) -> HudiTable:
    return HudiTable.create(path, name="t", record_key="id", partition_by=of.partition_by or None, ordering="ts",
                            table_version=version, properties=of.options)  # fmt: skip


def written_options(of: Generator, version: int) -> dict[str, Any]:
    ordering = "hoodie.table.ordering.fields" if version == 9 else "hoodie.datasource.write.precombine.field"
    return {"hoodie.datasource.write.recordkey.field": "id", ordering: "ts", **of.options}


@pytest.mark.parametrize("version, release", RELEASES)
@pytest.mark.parametrize("of", GENERATORS, ids=lambda of: of.name)
def test_both_place_rows_alike_and_take_turns(
    request: pytest.FixtureRequest, tmp_path: Path, of: Generator, version: int, release: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(release)
    ours = create(tmp_path / "ours", of, version)
    ours.insert(rows(0, 40, said="ours"))
    options = written_options(of, version)
    hudi.write(ours.path, rows(20, 50, said="theirs"), operation="upsert", **options)
    ours.upsert(rows(30, 60, said="ours again"))
    assert_same_rows(hudi.read(ours.path), ours.scan().to_arrow())
    said = ours.scan(columns=["id", "said"]).to_arrow().sort_by("id")["said"].to_pylist()
    assert said == ["ours"] * 20 + ["theirs"] * 10 + ["ours again"] * 30

    theirs = tmp_path / "theirs"
    hudi.write(theirs, rows(0, 40, said="theirs"), operation="insert", mode="overwrite", **options)
    table = HudiTable.open(theirs)
    assert_same_rows(table.scan().to_arrow(), hudi.read(theirs))
    table.upsert(rows(10, 30, said="ours"), options={k: v for k, v in of.options.items() if k != KEYGEN})
    assert_same_rows(table.scan().to_arrow(), hudi.read(theirs))
    assert len(table.scan().to_arrow()) == 40


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_dates_with_slashes_are_shared(tmp_path: Path, hudi_120: ReferenceHudi, table_type: str) -> None:
    slashed = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
    simple = Generator("slashed", ("day",), "SimpleKeyGenerator")
    ours = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="day", ordering="ts", table_type=table_type,
        table_version=9, properties=slashed,
    )  # fmt: skip
    ours.upsert(rows(0, 40, said="ours"))
    hudi_120.write(ours.path, rows(20, 50, said="theirs"), operation="upsert", **written_options(simple, 9), **slashed)
    ours.upsert(rows(30, 60, said="ours again"))

    found = ours.scan().to_arrow()
    assert_same_rows(hudi_120.read(ours.path), found)
    assert found.sort_by("id")["said"].to_pylist() == ["ours"] * 20 + ["theirs"] * 10 + ["ours again"] * 30
    day = found["day"][3].as_py()
    assert ours.scan(["id"], where=f"day = '{day}'").to_arrow().num_rows == found["day"].to_pylist().count(day)


@pytest.mark.parametrize("version, release", RELEASES)
def test_tables_without_key_columns_are_shared(
    request: pytest.FixtureRequest, tmp_path: Path, version: int, release: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(release)
    ours = HudiTable.create(tmp_path / "ours", name="t", partition_by="city", table_version=version)
    ours.insert(rows(0, 20, said="ours"))
    hudi.write(ours.path, rows(0, 20, said="theirs"), operation="insert", **{FIELD: "city"})
    ours.bulk_insert(rows(0, 20, said="ours"))
    found = ours.scan().to_arrow()
    assert_same_rows(hudi.read(ours.path), found)
    assert len(set(found["_hoodie_record_key"].to_pylist())) == len(found) == 60

    theirs = tmp_path / "theirs"
    hudi.write(theirs, rows(0, 20, said="theirs"), operation="insert", mode="overwrite", **{FIELD: "city"})
    table = HudiTable.open(theirs)
    assert table.record_key == ()
    table.insert(rows(0, 20, said="ours"))
    assert_same_rows(table.scan().to_arrow(), hudi.read(theirs))
    assert len(table.scan().to_arrow()) == 40


def test_several_ordering_columns_are_shared(tmp_path: Path, hudi_120: ReferenceHudi) -> None:
    """Apache Hudi 1.0.2 takes their list for the name of one column, and fails: version 8 has one."""

    def one(*, major: int, minor: int, said: str) -> pa.Table:
        return pa.table({"id": ["a"], "major": [major], "minor": [minor], "said": [said]})

    ours = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering=("major", "minor"), table_version=9)
    ours.upsert(one(major=2, minor=2, said="ours"))
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.ordering.fields": "major,minor"}
    for by_us, major, minor, said in (
        (False, 1, 9, "ours"), (False, 2, 1, "ours"), (False, 2, 3, "theirs"), (True, 2, 2, "theirs"),
        (True, 1, 9, "theirs"), (True, 3, 0, "ours"), (False, 3, 0, "theirs"),
    ):  # fmt: skip
        row = one(major=major, minor=minor, said="ours" if by_us else "theirs")
        if by_us:
            ours.upsert(row)
        else:
            hudi_120.write(ours.path, row, operation="upsert", **options)
        assert ours.scan(columns=["said"]).to_arrow()["said"].to_pylist() == [said]
        assert_same_rows(hudi_120.read(ours.path), ours.scan().to_arrow())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8])
def test_keys_that_name_their_column_stay_so_below_version_9(
    hudi_120: ReferenceHudi, tmp_path: Path, version: int, table_type: str
) -> None:
    """Seen: 1.2.0 writes `id:1` into such tables, as releases up to 0.14.0 did; those in between write `1`."""
    options = {
        "hoodie.datasource.write.recordkey.field": "id", FIELD: "a,b", "hoodie.datasource.write.precombine.field": "ts",
        KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator", "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.table.version": str(version), "hoodie.write.complex.keygen.validation.enable": "false",
    }  # fmt: skip

    def some(*ids: str, ts: int) -> pa.Table:
        return pa.table({"id": list(ids), "a": ["x"] * len(ids), "b": ["y"] * len(ids), "ts": [ts] * len(ids)})

    hudi_120.write(tmp_path / "t", some("1", "2", ts=1), **options)
    HudiTable.open(tmp_path / "t").upsert(some("2", "3", ts=2))
    hudi_120.write(tmp_path / "t", some("3", "4", ts=3), **options)
    HudiTable.open(tmp_path / "t").delete(some("1", ts=4))

    found = hudi_120.read(tmp_path / "t").select(["_hoodie_record_key", "ts"])
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == [
        ("id:2", 2), ("id:3", 3), ("id:4", 3),
    ]  # fmt: skip
    assert_same_rows(HudiTable.open(tmp_path / "t").scan().to_arrow(), hudi_120.read(tmp_path / "t"))


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_times_in_paths_are_spelled_as_by_sql(tmp_path: Path, hudi_120: ReferenceHudi, table_type: str) -> None:
    """Apache Hudi reads null in a partition column of timestamps from any other path."""
    options = {"type": table_type, "primaryKey": "id", "orderingFields": "ts"}
    stated = ", ".join(f"{option} = '{text}'" for option, text in options.items())
    at = "TIMESTAMP '2021-05-20 10:11:12.5'"
    theirs = tmp_path / "theirs"
    name = f"times_{table_type}"
    hudi_120.sql(
        f"CREATE TABLE {name} (id INT, ts INT, at TIMESTAMP) USING hudi PARTITIONED BY (at) "
        f"TBLPROPERTIES ({stated}) LOCATION '{theirs}'"
    )
    hudi_120.sql(f"INSERT INTO {name} VALUES (1, 1, {at}), (2, 1, TIMESTAMP '1965-01-02 03:04:05'), (3, 1, NULL)")

    ours = HudiTable.open(theirs)
    ours.upsert(ours.scan(meta_fields=False, where="id = 1").to_arrow().set_column(1, "ts", pa.array([2], pa.int32())))
    ours.update({"ts": 3}, where="id = 2")
    hudi_120.sql(f"UPDATE {name} SET ts = 4 WHERE id = 1")

    found = ours.scan(["id", "ts"]).to_arrow().sort_by("id")
    assert found.to_pylist() == [{"id": 1, "ts": 4}, {"id": 2, "ts": 3}, {"id": 3, "ts": 1}]

    schema = ours.schema()
    made = HudiTable.create(
        tmp_path / "ours", name="t", record_key="id", partition_by="at", ordering="ts", schema=schema, table_version=9
    )
    made.insert(ours.scan(meta_fields=False).to_arrow())
    answer = hudi_120.read(made.path).select(["id", "at", "_hoodie_partition_path"]).sort_by("id").to_pylist()
    assert [str(row["at"])[:19] for row in answer] == ["2021-05-20 10:11:12", "1965-01-02 03:04:05", "None"]
    assert answer[0]["_hoodie_partition_path"] == "2021-05-20 10%3A11%3A12"


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("version, release", RELEASES)
def test_floats_as_keys_are_shared(
    request: pytest.FixtureRequest, tmp_path: Path, version: int, release: str, kind: pa.DataType
) -> None:
    """Each number has a text of more digits than reads it back."""
    hudi: ReferenceHudi = request.getfixturevalue(release)
    numbers = pa.array([180_266_288.0, 590_266_126_815_864_830.0, 2.0**-100, 0.1], pa.float64()).cast(kind)

    def said(text: str) -> pa.Table:
        return pa.table({"id": numbers, "ts": pa.array([1] * len(numbers), pa.int64()), "said": [text] * len(numbers)})

    ours = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts", table_version=version)
    ours.insert(said("ours"))
    hudi.write(ours.path, said("theirs"), operation="upsert", **written_options(GENERATORS[-1], version))
    assert ours.scan().to_arrow()["said"].to_pylist() == ["theirs"] * len(numbers)

    ours.upsert(said("ours again"))
    assert ours.scan().to_arrow()["said"].to_pylist() == ["ours again"] * len(numbers)
    assert_same_rows(hudi.read(ours.path), ours.scan().to_arrow())
