"""A new table could be born with other facts than Apache Hudi gives one, and then be merged or upgraded otherwise."""

import re
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.properties import decode_table_properties
from pyhudi.table.facts.creation import NewTable, new_table_properties
from pyhudi.txn.locks.guard import LocalGuard
from tests.support.golden_tables import GoldenTables

NOT_OF_THE_TABLE = {
    "hoodie.table.checksum",  # of the file
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.index.defs.path",
    "hoodie.table.partition_extractor_class",  # of catalogs
    "hoodie.table.timeline.timezone",  # ours is UTC
}
DEFAULT_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def new(**facts: Any) -> NewTable:
    given: dict[str, Any] = {
        "name": "t", "record_key": ("id",), "partition_by": (), "ordering": (), "table_type": "COPY_ON_WRITE",
        "table_version": 9, "create_schema": None, "properties": {},
    }  # fmt: skip
    return NewTable(**{**given, **facts})


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize(
    "name,facts",
    [
        ("mor_event_time_v6_h0150", {"ordering": ("ts",), "table_type": "MERGE_ON_READ"}),
        (
            "mor_commit_time_v6_h0150",
            {
                "ordering": ("ts",),
                "table_type": "MERGE_ON_READ",
                "properties": {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
            },
        ),
        ("cow_part_v8_h102", {"partition_by": ("part",), "ordering": ("ts",)}),
        ("cow_part_v9_h120", {"partition_by": ("part",), "ordering": ("ts",)}),
        ("cow_nonpart_v9_h120", {"ordering": ("ts",)}),
        (
            "cow_commit_time_v9_h120",
            {
                "partition_by": ("part",),
                "ordering": ("ts",),
                "properties": {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
            },
        ),
        ("cow_hive_v9_h120", {"properties": {"hoodie.datasource.write.hive_style_partitioning": "true"}}),
    ],
)
def test_a_new_table_has_the_properties_of_one_of_apache_hudi(
    golden: GoldenTables, name: str, facts: dict[str, Any]
) -> None:
    file = golden.get(name).path / ".hoodie" / "hoodie.properties"
    theirs = decode_table_properties(file.read_bytes(), path=str(file))
    keys = {
        what: tuple(theirs.get(f"hoodie.table.{key}", "").split(",")) if theirs.get(f"hoodie.table.{key}") else ()
        for what, key in (("partition_by", "partition.fields"), ("ordering", "ordering.fields"))
    }
    version = int(theirs["hoodie.table.version"])
    ours = new_table_properties(new(**{**keys, **facts}, name=theirs["hoodie.table.name"], table_version=version))

    def told(properties: dict[str, str]) -> dict[str, str]:
        return {key: text for key, text in properties.items() if key not in NOT_OF_THE_TABLE and text}

    assert told(ours) == told(dict(theirs))


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize(
    "key,text",
    [
        ("hoodie.compaction.payload.class", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"),
        ("hoodie.record.merge.strategy.id", "ce9acb64-bde0-424c-9b91-f6ebba25356d"),
        ("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING"),
    ],
)
def test_a_payload_class_or_a_strategy_says_the_mode(version: int, key: str, text: str) -> None:
    made = new_table_properties(new(table_version=version, ordering=("ts",), properties={key: text}))
    assert made["hoodie.record.merge.mode"] == "COMMIT_TIME_ORDERING"


def test_version_9_keeps_a_payload_class_as_a_legacy_and_no_strategy() -> None:
    made = new_table_properties(new(properties={"hoodie.compaction.payload.class": DEFAULT_PAYLOAD}))
    assert made["hoodie.table.legacy.payload.class"] == DEFAULT_PAYLOAD
    assert not {"hoodie.compaction.payload.class", "hoodie.record.merge.strategy.id"} & set(made)


def test_two_ways_to_merge_are_refused() -> None:
    both = {"hoodie.compaction.payload.class": DEFAULT_PAYLOAD, "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    with pytest.raises(Invalid, match="COMMIT_TIME_ORDERING and EVENT_TIME_ORDERING"):
        new_table_properties(new(properties=both))
    with pytest.raises(Unsupported, match=r"hoodie\.compaction\.payload\.class='com\.example\.Mine'"):
        new_table_properties(new(properties={"hoodie.compaction.payload.class": "com.example.Mine"}))


MODEL = "org.apache.hudi.common.model."
PARTIAL, NON_DEFAULTS = f"{MODEL}PartialUpdateAvroPayload", f"{MODEL}OverwriteNonDefaultsWithLatestAvroPayload"
MERGER = "3a0c9d1e-5b42-4f0e-8c0f-2f9d6f1b7a55"
PROPERTY = "hoodie.record.merge.property.hoodie."


@pytest.mark.parametrize(
    "payload, expected",
    [
        (PARTIAL, {"mode": "EVENT_TIME_ORDERING", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}),
        (NON_DEFAULTS, {"mode": "COMMIT_TIME_ORDERING", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}),
        (
            f"{MODEL}AWSDmsAvroPayload",
            {
                "mode": "COMMIT_TIME_ORDERING",
                f"{PROPERTY}payload.delete.field": "Op",
                f"{PROPERTY}payload.delete.marker": "D",
            },
        ),
        (
            f"{MODEL}debezium.PostgresDebeziumAvroPayload",
            {
                "mode": "EVENT_TIME_ORDERING",
                "hoodie.table.ordering.fields": "_event_lsn",
                "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
                f"{PROPERTY}write.partial.update.unavailable.value": "__debezium_unavailable_value",
            },
        ),
        (
            f"{MODEL}debezium.MySqlDebeziumAvroPayload",
            {"mode": "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields": "_event_bin_file,_event_pos"},
        ),
    ],
)
def test_version_9_stores_what_a_payload_class_does(payload: str, expected: dict[str, str]) -> None:
    made = new_table_properties(new(ordering=("ts",), properties={"hoodie.compaction.payload.class": payload}))
    made["mode"] = made["hoodie.record.merge.mode"]
    assert made | expected == made
    assert made["hoodie.table.legacy.payload.class"] == payload
    assert "hoodie.compaction.payload.class" not in made

    both = {"hoodie.compaction.payload.class": payload, "hoodie.write.record.merge.mode": "CUSTOM"}
    assert new_table_properties(new(ordering=("ts",), properties=both)) == {
        name: text for name, text in made.items() if name != "mode"
    }


def test_version_8_stores_a_payload_class_and_that_it_decides() -> None:
    properties = {"hoodie.compaction.payload.class": PARTIAL}
    made = new_table_properties(new(table_version=8, ordering=("ts",), properties=properties))
    assert made["hoodie.record.merge.mode"] == "CUSTOM"
    assert made["hoodie.compaction.payload.class"] == PARTIAL
    assert made["hoodie.record.merge.strategy.id"] == "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("payload", [PARTIAL, NON_DEFAULTS])
def test_version_6_takes_no_payload_class_that_makes_one_row_of_two(payload: str) -> None:
    properties = {"hoodie.compaction.payload.class": payload}
    with pytest.raises(Unsupported, match=f"{payload}.*tables of version 6"):
        new_table_properties(new(table_version=6, ordering=("ts",), properties=properties))


@pytest.mark.parametrize("version", [8, 9])
def test_a_merge_strategy_takes_a_merger_in_this_process(version: int) -> None:
    properties = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": MERGER}
    with pytest.raises(Unsupported, match="expected a merge strategy with a merger in this process"):
        new_table_properties(new(table_version=version, properties=properties))


@pytest.mark.parametrize("version", ["8", 8.0, True, None])
def test_a_version_that_is_no_number_is_refused_as_such(version: Any) -> None:
    with pytest.raises(Invalid, match=f"table_version={re.escape(repr(version))}: expected a number"):
        new_table_properties(new(table_version=version))


@pytest.mark.parametrize("version", [0, 4, 10])
def test_other_versions_are_refused_by_name(version: int) -> None:
    with pytest.raises(
        Unsupported, match=f"table_version={version}: this release creates the versions 5, 6, 7, 8 and 9 only"
    ):
        new_table_properties(new(table_version=version))


@pytest.mark.parametrize(
    "option,text,argument",
    [
        ("hoodie.table.name", "u", "name"),
        ("hoodie.table.recordkey.fields", "v", "record_key"),
        ("hoodie.datasource.write.recordkey.field", "id,v", "record_key"),
        ("hoodie.table.ordering.fields", "v", "ordering"),
        ("hoodie.table.precombine.field", "v", "ordering"),
        ("hoodie.table.type", "MERGE_ON_READ", "table_type"),
        ("hoodie.table.version", "8", "table_version"),
    ],
)
@pytest.mark.parametrize("version", [6, 9])
def test_a_property_that_contradicts_an_argument_is_refused(
    option: str, text: str, argument: str, version: int
) -> None:
    with pytest.raises(Invalid, match=rf"{argument}=.*: contradicts the options, which say '{text}'"):
        new_table_properties(new(properties={option: text}, table_version=version))


def test_a_property_may_repeat_an_argument() -> None:
    said = {"hoodie.table.name": "t", "hoodie.table.recordkey.fields": "id", "hoodie.table.version": "9"}

    assert new_table_properties(new(properties=said)) == new_table_properties(new())


def test_locks_of_a_table_that_is_gone_are_no_files(tmp_path: Path) -> None:
    """Who waited for a table that was deleted meanwhile makes its lock file anew."""
    with LocalGuard(str(tmp_path / "t")).acquire("upsert", "20261121093000000"):
        pass

    assert (tmp_path / "t" / ".hoodie" / ".pyhudi_guard").exists()
    HudiTable.create(tmp_path / "t", name="t")
