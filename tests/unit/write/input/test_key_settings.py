"""A write could place rows by other options than the table's, or take an option for something else than it says."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.table.facts.config import table_facts
from pyhudi.table.facts.key_properties import PREFIX
from pyhudi.table.view.snapshot import key_spec
from pyhudi.write.input.key_settings import LOGICAL_TIMESTAMP, PARTITION_FIELDS, KeySettings

TIMES = {f"{PREFIX}timestamp.type": "EPOCHMILLISECONDS", f"{PREFIX}output.dateformat": "yyyyMMdd"}
TEXTS = {
    f"{PREFIX}timestamp.type": "DATE_STRING",
    f"{PREFIX}input.dateformat": "yyyy-MM-dd",
    f"{PREFIX}output.dateformat": "yyyyMM",
}
ROWS = pa.table({"id": ["a"], "ms": pa.array([1_700_000_000_000], pa.int64())})


def settings(**options: str) -> KeySettings:
    return KeySettings.from_options({PREFIX + name.replace("_", "."): text for name, text in options.items()})


@pytest.mark.parametrize("kind, unit", [("UNIX_TIMESTAMP", "SECONDS"), ("EPOCHMILLISECONDS", "MILLISECONDS"),
                                        ("epochmicroseconds", "MICROSECONDS"), ("SCALAR", "SECONDS")])  # fmt: skip
def test_each_type_has_its_unit(kind: str, unit: str) -> None:
    times = settings(timestamp_type=kind, output_dateformat="yyyy").times
    assert times is not None
    assert times.unit == unit


def test_the_unit_of_a_scalar_is_said() -> None:
    times = settings(timestamp_type="SCALAR", timestamp_scalar_time_unit="days", output_dateformat="yyyy").times
    assert times is not None
    assert times.unit == "DAYS"


def test_patterns_are_parted_by_the_delimiter() -> None:
    of = settings(timestamp_type="DATE_STRING", output_dateformat="yyyy", timezone="UTC",
                  input_dateformat="yyyy, MM; yyyy-MM", input_dateformat_list_delimiter_regex="[;|]").times  # fmt: skip
    assert of is not None
    assert [pattern.pattern for pattern in of.inputs] == ["yyyy, MM", "yyyy-MM"]


@pytest.mark.parametrize("zones, expected", [
    ({}, (None, None)), ({"timezone": "GMT"}, ("GMT", "GMT")), ({"input_timezone": "GMT"}, ("GMT", None)),
    ({"timezone": "GMT", "input_timezone": "UTC", "output_timezone": "UTC"}, ("GMT", "GMT")),
    ({"timezone": "", "input_timezone": "UTC", "output_timezone": "UTC"}, (None, None)),
    ({"input_timezone": "Europe/Oslo", "output_timezone": "UTC"}, ("Europe/Oslo", "UTC")),
])  # fmt: skip
def test_one_zone_for_both_goes_before_each(zones: dict[str, str], expected: tuple[str | None, str | None]) -> None:
    of = settings(timestamp_type="DATE_STRING", input_dateformat="yyyy", output_dateformat="yyyy", **zones).times
    assert of is not None
    assert (of.input_zone, of.output_zone) == expected


@pytest.mark.parametrize("options, said", [
    ({"timestamp_type": "HOURS", "output_dateformat": "yyyy"}, "UNIX_TIMESTAMP or"),
    ({"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "WEEKS", "output_dateformat": "yyyy"}, "NANOSECONDS"),
    ({"timestamp_type": "DATE_STRING", "output_dateformat": "yyyy"}, r"input\.dateformat"),
    ({"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy", "output_dateformat": "yyyy",
      "output_timezone": "UTC"}, r"input\.timezone"),
    ({"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy", "output_dateformat": "yyyy",
      "input_dateformat_list_delimiter_regex": "("}, "regular expression"),
])  # fmt: skip
def test_bad_values_are_refused_by_name(options: dict[str, str], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        settings(**options)


def test_options_may_come_from_the_handle_and_the_table_together(tmp_path: Path) -> None:
    """As for tables of 0.15, which do not store the type."""
    table(tmp_path / "t").insert(ROWS)
    of = HudiTable.open(tmp_path / "t", options={f"{PREFIX}timestamp.type": "EPOCHMILLISECONDS"})
    of.upsert(ROWS)
    assert len(of.scan().to_arrow()) == 1


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(Unsupported, match="Mars"):
        settings(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy", timezone="Mars/Olympus")


def test_a_table_without_kinds_takes_them_from_the_option() -> None:
    """As those of version 6: see `cow_customgen_v6_h0150`."""
    config = table_facts(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "6",
            "hoodie.timeline.layout.version": "1",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.partition.fields": "city,day",
            "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        },
        path="t",
    )
    assert config.time_based == ("city", "day")
    stated = KeySettings.from_options({**TEXTS, PARTITION_FIELDS: "city:simple,day:timestamp"})
    assert stated.spec(key_spec(config), config).time_based == ("day",)
    with pytest.raises(Invalid, match="'city:SIMPLE' or 'city:TIMESTAMP'"):
        KeySettings.from_options(TEXTS).spec(key_spec(config), config)


def table(path: Path) -> HudiTable:
    kind = {"hoodie.table.keygenerator.type": "TIMESTAMP"}
    return HudiTable.create(path, name="t", record_key="id", partition_by="ms", properties={**kind, **TIMES})


@pytest.mark.parametrize("name, text", [
    (f"{PREFIX}output.dateformat", "yyyy"), (f"{PREFIX}timestamp.type", "UNIX_TIMESTAMP"),
    ("hoodie.deltastreamer.keygen.timebased.output.dateformat", "yyyy"),
])  # fmt: skip
def test_options_that_contradict_the_table_are_refused(tmp_path: Path, name: str, text: str) -> None:
    of = table(tmp_path / "t")
    with pytest.raises(Invalid, match="by which its rows are placed"):
        of.insert(ROWS, options={name: text})
    of.insert(ROWS, options=TIMES)
    assert of.scan(columns=["_hoodie_partition_path"]).to_arrow()[0].to_pylist() == ["20231114"]


def test_timestamps_in_keys_are_text_where_asked_for(tmp_path: Path) -> None:
    rows = pa.table({"at": pa.array([1_700_000_019_120_999, -1], pa.timestamp("us", "UTC")), "n": [1, 2]})
    of = HudiTable.create(tmp_path / "t", name="t", record_key=["at"], properties={LOGICAL_TIMESTAMP: "true"})
    of.insert(rows)
    of.upsert(rows)
    found = of.scan(columns=["_hoodie_record_key"]).to_arrow()[0].to_pylist()
    assert sorted(found) == ["1970-01-01 00:00:00.0", "2023-11-14 22:13:39.12"]
    assert len(of.lookup(rows.slice(0, 1))) == 1
    with pytest.raises(Invalid, match="by which its rows"):
        of.insert(rows, options={LOGICAL_TIMESTAMP: "false"})
    with pytest.raises(Invalid, match="15 October 1582"):
        of.insert(pa.table({"at": pa.array([-(10**17)], pa.timestamp("us", "UTC")), "n": [1]}))
