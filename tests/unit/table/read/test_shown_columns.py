"""A time-based column could be shown other than Apache Hudi shows it, or pruning by its path could lose rows."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.table.facts.config import TableConfig, table_facts
from pyhudi.table.facts.key_properties import PREFIX
from pyhudi.table.read.shown_columns import AS_STORED, ShownColumns, cast_text, shown_columns
from pyhudi.table.view.snapshot import key_spec
from tests.support.golden_tables import GoldenTables

STORED = pa.schema([("id", pa.string()), ("ms", pa.int64()), ("day", pa.string())])
PROPERTIES = {"hoodie.table.name": "t", "hoodie.table.recordkey.fields": "id", "hoodie.table.type": "COPY_ON_WRITE"}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


def config(version: int, kind: str, fields: str, **more: str) -> TableConfig:
    layout = {"hoodie.table.version": str(version), "hoodie.timeline.layout.version": "2" if version >= 8 else "1"}
    keys = {"hoodie.table.keygenerator.type": kind, "hoodie.table.partition.fields": fields}
    return table_facts({**PROPERTIES, **layout, **keys, **more}, path="t")


def shown(of: TableConfig, query: str = "snapshot") -> ShownColumns:
    return shown_columns(of, key_spec(of), STORED, query=query)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("query", ["snapshot", "incremental", "read_optimized"])
def test_from_version_8_a_time_based_column_is_the_text_of_its_value(version: int, query: str) -> None:
    assert shown(config(version, "TIMESTAMP", "ms"), query).texts == ("ms",)
    assert shown(config(version, "CUSTOM", "id:SIMPLE,ms:TIMESTAMP"), query) is AS_STORED
    assert shown(config(version, "SIMPLE", "ms"), query) is AS_STORED


def test_on_version_6_queries_of_base_files_show_the_path() -> None:
    for query in ("snapshot", "read_optimized"):
        assert shown(config(6, "TIMESTAMP", "ms"), query).from_path == ("ms",)
        assert shown(config(6, "CUSTOM", "day,ms"), query).from_path == ("day",)
    assert shown(config(6, "TIMESTAMP", "ms"), "incremental") is AS_STORED
    merge_on_read = {"hoodie.table.type": "MERGE_ON_READ"}
    assert shown(config(6, "TIMESTAMP", "ms", **merge_on_read)) is AS_STORED
    assert shown(config(6, "TIMESTAMP", "ms", **merge_on_read), "read_optimized").from_path == ("ms",)


@pytest.mark.parametrize("column, texts", [
    (pa.array([1700000019000, -1, None]), ["1700000019000", "-1", None]),
    (pa.array([1700000019.9, -2.7, None]), ["1.7000000199E9", "-2.7", None]),
    (pa.array([dt.date(2026, 1, 10)]), ["2026-01-10"]),
    (pa.array([1700000019000000, -1500, 1735689599999999, None], pa.timestamp("us", "UTC")),
     ["2023-11-14 22:13:39", "1969-12-31 23:59:59.9985", "2024-12-31 23:59:59.999999", None]),
    (pa.array([1700000020000000], pa.timestamp("us")), ["2023-11-14 22:13:40"]),
    (pa.array(["a", None]), ["a", None]),
])  # fmt: skip
def test_texts_are_those_that_apache_hudi_gives(column: pa.Array, texts: list[str | None]) -> None:
    """Seen with 1.0.2 and 1.2.0."""
    assert cast_text(column, "x").to_pylist() == texts


def table(path: Path, partition_by: list[str] | str, **times: str) -> HudiTable:
    kind: Mapping[str, str] = {"hoodie.table.keygenerator.type": "TIMESTAMP"} if isinstance(partition_by, str) else {}
    options = {PREFIX + name.replace("_", "."): text for name, text in times.items()}
    return HudiTable.create(path, name="t", record_key="id", partition_by=partition_by, properties={**kind, **options})


def test_pruning_by_a_path_that_looks_like_a_value_loses_no_row(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "ms": pa.array([20231114, 1_700_000_000_000], pa.int64())})
    of = table(tmp_path / "t", "ms", timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyyMMdd")
    of.insert(rows)
    assert set(of.scan(columns=["_hoodie_partition_path"]).to_arrow()[0].to_pylist()) == {"19700101", "20231114"}
    assert of.scan(where="ms = '20231114'").to_arrow()["id"].to_pylist() == ["a"]
    assert of.scan(columns=["id"], where="ms > '17'").to_arrow()["id"].to_pylist() == ["a", "b"][:2]


def test_a_custom_generators_simple_column_prunes_and_its_time_does_not(tmp_path: Path) -> None:
    days = ["2026-01-10", "2026-01-11", "2026-02-01"]
    rows = pa.table({"id": ["a", "b", "c"], "city": ["oslo", "rome", "oslo"], "day": days})
    of = table(tmp_path / "t", ["city:SIMPLE", "day:TIMESTAMP"], timestamp_type="DATE_STRING",
               input_dateformat="yyyy-MM-dd", output_dateformat="yyyyMM", timezone="UTC")  # fmt: skip
    of.insert(rows)
    assert of.scan().to_arrow().sort_by("id")["day"].to_pylist() == days
    assert of.scan(where="day = '2026-01-10'").to_arrow()["id"].to_pylist() == ["a"]
    one = of.scan(where="city = 'rome' AND day < '2027'")
    assert one.to_arrow()["id"].to_pylist() == ["b"]
    assert len(one.files()) == 1


@given(st.lists(st.integers(-(10**13), 10**14), min_size=1, max_size=20), st.integers(0, 19))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_filter_finds_what_a_scan_has(tmp_path_factory: pytest.TempPathFactory, values: list[int], at: int) -> None:
    of = table(tmp_path_factory.mktemp("t") / "t", "ms", timestamp_type="EPOCHMILLISECONDS", output_dateformat="y")
    of.insert(pa.table({"id": [str(n) for n in range(len(values))], "ms": pa.array(values, pa.int64())}))
    wanted = str(values[at % len(values)])
    everything = of.scan().to_arrow()
    assert sorted(everything["ms"].to_pylist()) == sorted(map(str, values))
    for where, keeps in (("=", str.__eq__), ("<", str.__lt__), ("<>", str.__ne__)):
        found = of.scan(where=f"ms {where} '{wanted}'").to_arrow()["ms"].to_pylist()
        assert sorted(found) == sorted(v for v in map(str, values) if keeps(v, wanted))


def test_on_version_6_a_filter_of_the_shown_path_prunes(golden: GoldenTables) -> None:
    of = HudiTable.open(golden.get("cow_tsgen_v6_h0150").path)
    scan = of.scan(where="epoch_ms = '2023/11/15'")
    assert scan.explain().partitions_pruned >= 2
    whole = of.scan().to_arrow()
    expected = [row["id"] for row in whole.to_pylist() if row["epoch_ms"] == "2023/11/15"]
    assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(expected)
    assert expected
    custom = HudiTable.open(golden.get("cow_customgen_v6_h0150").path)
    assert set(custom.scan(where="day = '202601'").to_arrow()["day"].to_pylist()) == {"202601"}
    assert of.schema().field("epoch_ms").type == pa.int64()
