"""An archived entry misread is a commit that incremental queries lose. Files of Apache Hudi pin what is read; broken
ones must be CorruptFile and nothing else, but for a torn end, which costs itself alone."""

from functools import cache
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.avro.container import encode_container
from pyhudi.format.avro.schema_files import schema_of
from pyhudi.format.timeline.archived_log import (
    archive_number,
    archived_clean,
    archived_commit,
    decode_archive,
    merged_file_name,
)
from tests.support.golden_tables import FOLDER


@cache
def archive_file(table: str, number: int, folder: str = "archived") -> bytes:
    with ZipFile(FOLDER / f"{table}.zip") as archive:
        return archive.read(f"{table}/.hoodie/{folder}/.commits_.archive.{number}_1-0-1")


def test_completed_instants_of_0150() -> None:
    entries = list(decode_archive(archive_file("cow_clean_archive_v6_h0150", 2), path="a"))

    assert [(e.instant.requested[8:], e.instant.action, e.instant.completed) for e in entries] == [
        ("112719232", "clean", "20261121112721128"),
        ("112724877", "clean", "20261121112726368"),
        ("112716506", "commit", "20261121112719144"),
        ("112721235", "commit", "20261121112724796"),
    ]
    clean = archived_clean(entries[0], path="a")
    assert clean is not None
    assert clean.start_clean_time == "20261121112719232"
    commit = archived_commit(entries[2], path="a")
    assert commit.operation_type == "UPSERT"
    assert sum(s.num_update_writes or 0 for of in commit.partition_to_write_stats.values() for s in of) > 0
    assert archived_clean(entries[2], path="a") is None


def test_a_metadata_tables_archive_holds_compactions_as_commits() -> None:
    with ZipFile(FOLDER / "cow_clean_archive_v6_h0150.zip") as archive:
        path = "cow_clean_archive_v6_h0150/.hoodie/metadata/.hoodie/archived/.commits_.archive.2_1-0-1"
        entries = list(decode_archive(archive.read(path), path="a"))

    assert [e.instant.action for e in entries] == ["deltacommit", "commit", "deltacommit"]


def test_a_torn_end_costs_itself_alone() -> None:
    content = archive_file("cow_clean_archive_v6_h102", 2, "history")
    whole = [e.instant for e in decode_archive(content, path="a")]

    torn = [e.instant for e in decode_archive(content[:-100], path="a")]

    assert torn == whole[:-1]


@given(st.integers(0, 60_000), st.integers(1, 255))
def test_a_flipped_byte_is_read_or_corrupt(at: int, mask: int) -> None:
    content = bytearray(archive_file("cow_clean_archive_v6_h102", 1, "history"))
    content[at] ^= mask

    try:
        for entry in decode_archive(bytes(content), path="a"):
            archived_commit(entry, path="a")
    except (CorruptFile, Unsupported):
        pass


@pytest.mark.parametrize(
    "name,number",
    [(".commits_.archive.7_1-0-1", 7), (".commits_.archive.12", 12), (".commits_.archive.x_1-0-1", None),
     ("..commits_.archive.7_1-0-1.crc", None), ("commits", None)],
)  # fmt: skip
def test_archive_files_are_numbered(name: str, number: int | None) -> None:
    assert archive_number(name) == number


def test_a_merge_plan_names_the_file_that_it_makes() -> None:
    record = {"version": 1, "candidate": ["a", "b"], "mergedArchiveFileName": ".commits_.archive.3_1-0-1"}

    plan = encode_container(schema_of("HoodieMergeArchiveFilePlan"), record)
    assert merged_file_name(plan, path="p") == ".commits_.archive.3_1-0-1"
    assert merged_file_name(b"", path="p") is None
