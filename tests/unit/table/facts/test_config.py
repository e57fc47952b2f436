"""A table with something in it that we do not know could be opened and read wrong; or a fact be misread."""

from datetime import UTC, timedelta, timezone

import pytest

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.merge.rules import MergeMode
from pyhudi.table.facts.config import KeyKind, TableConfig, table_config

PATH = "place/.hoodie/hoodie.properties"
MINIMAL = {"hoodie.table.name": "t", "hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"}


def with_property(key: str, value: str) -> TableConfig:
    return table_config({**MINIMAL, key: value}, path=PATH)


@pytest.mark.parametrize("version, layout", [("6", "1"), ("8", "2"), ("9", "2")])
def test_known_versions_are_read(version: str, layout: str) -> None:
    facts = {**MINIMAL, "hoodie.table.version": version, "hoodie.timeline.layout.version": layout}
    assert table_config(facts, path=PATH).version.number == int(version)


@pytest.mark.parametrize("version, layout", [("6", "2"), ("8", "1"), ("9", "1")])
def test_a_layout_of_other_versions_is_corrupt(version: str, layout: str) -> None:
    facts = {**MINIMAL, "hoodie.table.version": version, "hoodie.timeline.layout.version": layout}
    with pytest.raises(CorruptFile, match=rf"{PATH}.*on a table of version {version}, found {layout}\.$"):
        table_config(facts, path=PATH)


def test_a_table_of_the_second_layout_that_does_not_say_so_is_corrupt() -> None:
    facts = {name: value for name, value in MINIMAL.items() if name != "hoodie.timeline.layout.version"}
    with pytest.raises(CorruptFile, match=r"expected hoodie\.timeline\.layout\.version=2 .* found none\.$"):
        table_config(facts, path=PATH)


@pytest.mark.parametrize("version", ["0", "1", "10", "99"])
def test_other_versions_are_refused_by_name(version: str) -> None:
    message = rf"{PATH}: hoodie\.table\.version={version}: expected one of 2, 3, 4, 5, 6, 7, 8, 9"
    with pytest.raises(Unsupported, match=message):
        with_property("hoodie.table.version", version)


def test_a_table_without_a_version_is_one_of_the_first() -> None:
    with pytest.raises(Unsupported, match=r"hoodie\.table\.version=0"):
        table_config({"hoodie.table.name": "t"}, path=PATH)


@pytest.mark.parametrize("version", ["EIGHT", "", "8.0", "-8", " 8", "²"])
def test_a_version_that_is_no_number_is_corrupt(version: str) -> None:
    with pytest.raises(CorruptFile, match=PATH):
        with_property("hoodie.table.version", version)


@pytest.mark.parametrize(
    "key, value",
    [
        ("hoodie.table.base.file.format", "HOODIE_LOG"),
        ("hoodie.table.format", "iceberg"),
        ("hoodie.timeline.layout.version", "3"),
    ],
)
def test_features_that_would_be_read_wrong_are_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(Unsupported, match=key.replace(".", r"\.") + f"='?{value}"):
        with_property(key, value)


@pytest.mark.parametrize(
    "key, value",
    [
        ("hoodie.table.base.file.format", "PARQUET"),
        ("hoodie.table.base.file.format", "parquet"),
        ("hoodie.table.format", "native"),
        ("hoodie.datasource.write.drop.partition.columns", "FALSE"),
        ("hoodie.bootstrap.base.path", ""),
        ("hoodie.table.base.file.format", "orc"),
        ("hoodie.table.multiple.base.file.formats.enable", "true"),
        ("hoodie.a.key.of.a.later.release", "anything"),
    ],
)
def test_spellings_of_what_is_known_pass(key: str, value: str) -> None:
    assert with_property(key, value).properties[key] == value


@pytest.mark.parametrize(
    "key, value", [("hoodie.table.type", "COPY_ON_READ"), ("hoodie.record.merge.mode", "event_time_ordering")]
)
def test_values_that_no_release_writes_are_corrupt(key: str, value: str) -> None:
    with pytest.raises(CorruptFile, match=f"{key}.*'{value}'"):
        with_property(key, value)


def test_what_a_table_does_not_say_has_apache_hudis_default() -> None:
    table = table_config(MINIMAL, path=PATH)

    assert table.table_type == "COPY_ON_WRITE"
    assert (table.record_key, table.partition_by, table.ordering) == ((), (), ())
    assert table.has_meta_fields
    assert not table.is_hive_style
    assert not table.is_url_encoded
    assert not table.is_utc
    assert not table.has_metadata_table
    assert table.create_schema is None
    assert table.merge_mode is MergeMode.COMMIT_TIME
    assert table.key_kind is KeyKind.NON_PARTITION


def test_lists_of_columns_are_split() -> None:
    assert with_property("hoodie.table.recordkey.fields", "a, b,").record_key == ("a", "b")
    assert with_property("hoodie.table.partition.fields", "p:SIMPLE,q:TIMESTAMP").partition_by == ("p", "q")
    assert with_property("hoodie.table.partition.fields", "").partition_by == ()
    assert with_property("hoodie.table.precombine.field", "ts").ordering == ("ts",)
    assert with_property("hoodie.table.ordering.fields", "ts,n").ordering == ("ts", "n")


def test_the_files_partition_makes_a_metadata_table() -> None:
    key = "hoodie.table.metadata.partitions"

    assert with_property(key, "column_stats,files").has_metadata_table
    assert not with_property(key, "column_stats").has_metadata_table
    assert not with_property(key, "").has_metadata_table


def test_instants_of_a_local_table_are_in_the_zone_of_the_process() -> None:
    zone = timezone(timedelta(hours=2))

    assert table_config(MINIMAL, path=PATH).zone(zone) is zone
    assert with_property("hoodie.table.timeline.timezone", "LOCAL").zone(zone) is zone
    assert with_property("hoodie.table.timeline.timezone", "UTC").zone(zone) is UTC


@pytest.mark.parametrize(
    "properties, kind",
    [
        ({"hoodie.table.keygenerator.type": "SIMPLE"}, KeyKind.SIMPLE),
        ({"hoodie.table.keygenerator.type": "COMPLEX_AVRO"}, KeyKind.COMPLEX),
        ({"hoodie.table.keygenerator.type": "TIMESTAMP"}, KeyKind.TIMESTAMP),
        ({"hoodie.table.keygenerator.type": "CUSTOM_AVRO"}, KeyKind.CUSTOM),
        ({"hoodie.table.keygenerator.type": "GLOBAL_DELETE"}, KeyKind.OTHER),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}, KeyKind.CUSTOM),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}, KeyKind.TIMESTAMP),
        ({"hoodie.table.partition.fields": "p:SIMPLE,q:TIMESTAMP"}, KeyKind.CUSTOM),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"}, KeyKind.SIMPLE),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexAvroKeyGenerator"}, KeyKind.COMPLEX),
        ({"hoodie.table.keygenerator.class": "com.example.MyKeys"}, KeyKind.OTHER),
        ({"hoodie.table.partition.fields": "p", "hoodie.table.recordkey.fields": "k"}, KeyKind.SIMPLE),
        ({"hoodie.table.partition.fields": "p,q", "hoodie.table.recordkey.fields": "k"}, KeyKind.COMPLEX),
        ({"hoodie.table.recordkey.fields": "k"}, KeyKind.NON_PARTITION),
    ],
)
def test_the_key_generator_is_stored_as_type_or_class_or_not_at_all(properties: dict[str, str], kind: KeyKind) -> None:
    assert table_config({**MINIMAL, **properties}, path=PATH).key_kind is kind


@pytest.mark.parametrize(
    "properties, mode",
    [
        ({"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}, MergeMode.EVENT_TIME),
        ({"hoodie.record.merge.mode": "CUSTOM"}, MergeMode.CUSTOM),
        ({"hoodie.compaction.payload.class": "a.b.DefaultHoodieRecordPayload"}, MergeMode.EVENT_TIME),
        ({"hoodie.compaction.payload.class": "a.b.OverwriteWithLatestAvroPayload"}, MergeMode.COMMIT_TIME),
        ({"hoodie.compaction.payload.class": "com.example.Mine"}, MergeMode.CUSTOM),
        ({"hoodie.table.precombine.field": "ts"}, MergeMode.EVENT_TIME),
        ({}, MergeMode.COMMIT_TIME),
    ],
)
def test_the_merge_mode_is_stored_or_follows_from_payload_and_ordering(
    properties: dict[str, str], mode: MergeMode
) -> None:
    assert table_config({**MINIMAL, **properties}, path=PATH).merge_mode is mode
