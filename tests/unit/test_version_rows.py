"""A row could say what Apache Hudi does not do on tables of its version, or a version could be taken for another."""

import zipfile
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.properties import parse_properties
from pyhudi.versions import (
    LAYOUT_1,
    LAYOUT_2,
    LAYOUTS,
    NEW_TABLE_VERSION,
    VERSIONS,
    KeyGeneratorForm,
    LogNaming,
    Merging,
    TableVersion,
    TimelineKind,
    is_born_with,
    table_version,
    timeline_kind,
)
from tests.support.golden_tables import FOLDER, golden_names, old_names


def differences(one: object, other: object) -> set[str]:
    return {of.name for of in fields(one) if getattr(one, of.name) != getattr(other, of.name)}  # type: ignore[arg-type]


def test_rows_stand_under_their_own_numbers() -> None:
    assert [(number, row.number, str(row)) for number, row in VERSIONS.items()] == [
        (2, 2, "2"),
        (3, 3, "3"),
        (4, 4, "4"),
        (5, 5, "5"),
        (6, 6, "6"),
        (7, 7, "7"),
        (8, 8, "8"),
        (9, 9, "9"),
    ]
    assert [(text, kind.number) for text, kind in LAYOUTS.items()] == [("1", 1), ("2", 2)]


def test_what_versions_8_and_9_differ_in() -> None:
    """Spec: format/versions.md section 2, the columns v8 and v9."""
    assert differences(VERSIONS[8], VERSIONS[9]) == {
        "number", "names_only_key_field", "merging", "ordering_property", "has_many_orderings",
        "has_partial_update_modes", "metadata_schema", "index_version",
    }  # fmt: skip


def test_what_versions_5_and_6_differ_in() -> None:
    """Spec: format/versions.md section 2, the columns v5 and v6; format/metadata-table.md section 3."""
    assert differences(VERSIONS[5], VERSIONS[6]) == {
        "number", "log_content", "names_only_key_field", "copies_compaction_plans", "has_low_change_modes",
        "metadata_schema", "metadata_instants", "has_group_suffix", "has_metadata_log_compaction", "indexes",
    }  # fmt: skip


def test_what_versions_6_and_8_have_alike() -> None:
    """Spec: format/versions.md section 2, the columns v6 and v8."""
    alike = {of.name for of in fields(TableVersion)} - differences(VERSIONS[6], VERSIONS[8])
    assert alike == {
        "is_writable", "is_experimental", "names_only_key_field", "log_content", "copies_compaction_plans",
        "has_low_change_modes", "has_group_suffix", "has_metadata_log_compaction", "ordering_property",
        "has_many_orderings", "has_partial_update_modes", "expression_prefix", "index_version", "paths_tell_values",
        "has_known_metadata_table",
    }  # fmt: skip
    assert differences(LAYOUT_1, LAYOUT_2) == {of.name for of in fields(TimelineKind)} - {
        "history_end", "may_archive_beside",
    }  # fmt: skip


def test_what_versions_2_to_4_and_5_differ_in() -> None:
    for number in (2, 3, 4):
        assert differences(VERSIONS[number], VERSIONS[5]) == {
            "number", "is_writable", "timeline", "paths_tell_values", "has_known_metadata_table",
        }  # fmt: skip
        assert differences(VERSIONS[number].timeline, LAYOUT_1) == {"may_archive_beside"}


def test_what_version_7_has_of_8_and_of_6() -> None:
    """The text for version 7; docs/versions.md says which choices it leaves."""
    assert differences(VERSIONS[7], VERSIONS[8]) == {
        "number", "is_experimental", "timeline", "has_initial_version", "has_base_format_flag", "has_log_positions",
        "has_partial_blocks", "key_generator", "merging", "strategy_property", "metadata_schema", "indexes",
        "has_index_definitions", "has_partitioned_record_index", "expression_prefix", "index_removal",
        "bootstrap_index",
    }  # fmt: skip
    assert differences(VERSIONS[7].timeline, LAYOUT_2) == {
        "number", "has_own_folder", "has_names_of_before", "clustering", "history_commits", "history_end",
        "new_folders",
    }  # fmt: skip
    assert timeline_kind({"hoodie.table.version": "7", "hoodie.timeline.layout.version": "2"}) == VERSIONS[7].timeline
    assert timeline_kind({"hoodie.table.version": "6", "hoodie.timeline.layout.version": "3"}) is None


@pytest.mark.parametrize("version", VERSIONS.values(), ids=str)
def test_traits_of_a_row_go_together(version: TableVersion) -> None:
    assert metadata_record_schema(version.metadata_schema)
    assert (version.log_marker == "APPEND") == (version.log_naming is LogNaming.AFTER_SLICE)
    assert version.has_many_orderings or version.merging is not Merging.MODE
    assert version.has_partial_update_modes == (version.merging is Merging.MODE)
    assert version.has_index_definitions or not version.has_partitioned_record_index
    assert hash(version) == hash(replace(version))
    with pytest.raises(FrozenInstanceError):
        version.number = 7  # type: ignore[misc]


def test_a_new_table_has_a_version_that_this_release_writes() -> None:
    assert VERSIONS[NEW_TABLE_VERSION].is_writable


@pytest.mark.parametrize("number", VERSIONS)
def test_a_version_is_found_by_its_number(number: int) -> None:
    assert table_version({"hoodie.table.version": str(number)}, path="t") is VERSIONS[number]


@pytest.mark.parametrize("text", ["0", "1", "10"])
def test_an_unknown_version_is_refused_by_name(text: str) -> None:
    known = "2, 3, 4, 5, 6, 7, 8, 9"
    with pytest.raises(Unsupported, match=rf"^t: hoodie\.table\.version={text}: expected one of {known}; "):
        table_version({"hoodie.table.version": text}, path="t")


@pytest.mark.parametrize("text", ["", "eight", "²", "-8"])
def test_what_is_no_number_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptFile, match=r"a number as hoodie\.table\.version"):
        table_version({"hoodie.table.version": text}, path="t")


@pytest.mark.parametrize("text", ["8", "9"])
def test_a_table_was_born_with_the_layout_of_its_first_version(text: str) -> None:
    assert is_born_with({"hoodie.table.initial.version": text}, LAYOUT_2)
    assert not is_born_with({"hoodie.table.initial.version": text}, LAYOUT_1)


@pytest.mark.parametrize("text", ["6", "7", "", "²"])
def test_a_table_that_was_upgraded_was_not_born_with_its_layout(text: str) -> None:
    assert not is_born_with({"hoodie.table.initial.version": text} if text else {}, LAYOUT_2)


OWN_RELEASES = {2: "h090", 5: "h0131", 6: "h0150", 8: "h102", 9: "h120"}
"""The release of Apache Hudi of which a version is the default; others store some facts in their own way."""


@pytest.mark.parametrize("name", [*golden_names(), *old_names()])
def test_rows_say_what_tables_of_apache_hudi_store(name: str) -> None:
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        properties = parse_properties(archive.read(f"{name}/.hoodie/hoodie.properties"))
    version = table_version(properties, path=name)

    assert properties["hoodie.timeline.layout.version"] == str(version.timeline.number)
    assert ("hoodie.record.merge.mode" in properties) == (version.merging is not Merging.PAYLOAD)
    if not name.endswith(OWN_RELEASES[version.number]):
        return
    spelled = {KeyGeneratorForm.CLASS: "class", KeyGeneratorForm.KIND: "type"}[version.key_generator]
    ordering = {row.ordering_property for row in VERSIONS.values()} & properties.keys()
    assert f"hoodie.table.keygenerator.{spelled}" in properties
    assert ordering <= {version.ordering_property}
    assert ("hoodie.table.initial.version" in properties) == version.has_initial_version
