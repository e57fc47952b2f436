"""The metadata table could list files that are gone, lose files, or hold records that Java cannot read.

The schema must be Apache Hudi's to the byte; records, bytes seen in real tables; and merging must end
with the same listing in whatever way the history was cut into records.
"""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.format.avro.container import encode_record
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.metadata.record import (
    FILES_TYPE,
    PARTITION_LIST_TYPE,
    FilesRecord,
    FileState,
    decode_files_record,
    encode_files_record,
    files_key,
    merge_files_records,
    partition_of_key,
)
from pyhudi.format.schema.conversion import without_meta_fields

GOLDEN = Path(__file__).parents[3] / "golden" / "bytes" / "timeline"

names = st.text("abc", min_size=1, max_size=2)
states = st.builds(FileState, st.integers(0, 2**62), st.booleans())
records = st.builds(FilesRecord, st.sampled_from([FILES_TYPE, PARTITION_LIST_TYPE]), st.dictionaries(names, states))

SCHEMA = metadata_record_schema(8)


def test_the_schema_has_the_text_that_each_release_writes() -> None:
    names = {5: "metadata_record_h0131.json", 6: "metadata_record_h0150.json"}
    names |= {8: "metadata_record_h102.json", 9: "metadata_record_h120.json"}
    for version, name in names.items():
        assert (GOLDEN / name).read_text(encoding="utf-8") == metadata_record_schema(version)


def test_an_empty_partition_list_has_the_bytes_seen_in_real_tables() -> None:
    empty = FilesRecord(PARTITION_LIST_TYPE, {})
    assert encode_files_record(empty, SCHEMA) == bytes.fromhex("00 00 00 00 00 00 02 02 00 00 00 00 00")
    name = "files-0000-0_0-8-8_00000000000000000.hfile"
    stored = bytes.fromhex("00 00 00 00 02 54") + name.encode() + bytes.fromhex("00 02 02 00 00 00 00 00")
    assert encode_files_record(empty, SCHEMA, base_file_name=name) == stored
    assert decode_files_record(stored, SCHEMA) == empty


@given(records)
def test_records_survive(record: FilesRecord) -> None:
    value = encode_files_record(record, SCHEMA)
    for schema in (SCHEMA, metadata_record_schema(9)):
        assert decode_files_record(value, schema) == record
    assert encode_files_record(record, SCHEMA) == value


@given(records)
def test_records_are_read_under_the_schema_they_were_written_with(record: FilesRecord) -> None:
    older = without_meta_fields(SCHEMA)
    files = {name: {"size": size, "isDeleted": gone} for name, (size, gone) in record.files.items()}
    value = encode_record(older, {"key": "k", "type": record.type, "filesystemMetadata": files})
    assert decode_files_record(value, older) == record


def test_records_of_other_partitions_are_refused() -> None:
    value = encode_record(SCHEMA, {"key": "", "type": 5, "filesystemMetadata": None})
    with pytest.raises(CorruptFile, match="type 5"):
        decode_files_record(value, SCHEMA, path="files-0000-0")


@given(st.binary(max_size=60))
def test_random_bytes_decode_or_are_refused(noise: bytes) -> None:
    with suppress(CorruptFile):
        decode_files_record(noise, SCHEMA)


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(CorruptFile):
        decode_files_record(b"\x00", '{"type": "string"}')


def one(size: int, *, gone: bool = False) -> FilesRecord:
    return FilesRecord(FILES_TYPE, {"f": FileState(size, gone)})


def test_merging_follows_the_rules() -> None:
    nothing = FilesRecord(FILES_TYPE, {})
    assert merge_files_records(one(5), one(3)) == one(5)
    assert merge_files_records(one(3), one(5)) == one(5)
    assert merge_files_records(one(3), one(0, gone=True)) == nothing
    assert merge_files_records(nothing, one(0, gone=True)) == one(0, gone=True)
    assert merge_files_records(one(9, gone=True), one(3)) == one(3)
    assert merge_files_records(one(9, gone=True), one(0, gone=True)) == one(0, gone=True)


@given(st.lists(records, min_size=1, max_size=6))
def test_folding_from_the_base_on_ends_with_what_was_said_last(history: list[FilesRecord]) -> None:
    merged = history[0]
    for record in history[1:]:
        merged = merge_files_records(merged, record)
    said_last = {name: state for record in history for name, state in record.files.items()}
    assert merged.live.keys() == {name for name, state in said_last.items() if not state.is_deleted}


def test_the_root_partition_has_a_key_of_its_own() -> None:
    assert files_key("") == "."
    assert partition_of_key(".") == ""
    assert partition_of_key(files_key("a=1/b=2")) == "a=1/b=2"
