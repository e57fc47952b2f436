"""A file name could be taken for what it is not, or come back changed: parse and format must be inverses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format.names import (
    BASE_FILE_EXTENSIONS,
    ArchiveFileName,
    BaseFileName,
    LogFileName,
    MarkerName,
    WriteToken,
    file_group_id,
    heartbeat_path,
    join,
    marker_folder,
)

UUID = "287a0aa1-68e5-446d-8778-91fdcb622dc7"

NUMBERS = st.integers(0, 10**6)
FILE_IDS = st.builds(lambda uuid, n: f"{uuid}-{n}", st.uuids().map(str), NUMBERS)
TOKENS = st.builds(lambda a, b, c: f"{a}-{b}-{c}", NUMBERS, NUMBERS, NUMBERS)
INSTANTS = st.from_regex(r"[0-9]{17}", fullmatch=True)


def test_a_base_file_of_apache_hudi_is_parsed() -> None:
    name = f"{UUID}-0_0-18-16_20261121110725052.parquet"

    assert BaseFileName.parse(name) == BaseFileName(f"{UUID}-0", "0-18-16", "20261121110725052", ".parquet")


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        f".{UUID}-0_20261121110725052.log.1_0-1-1",
        f"{UUID}-0_0-18-16_20261121110725052.parquet.crc",
        f"{UUID}-0_0-18-16_20261121110725052_7.parquet",
        f"{UUID}-0_20261121110725052.parquet",
        f"{UUID}-0_0-18-16_2026112111072505x.parquet",
        f"{UUID}-0_0-18-16_20261121110725052",
        f"{UUID}-0_0-18-16_20261121110725052.parquet\n",
        f"{UUID}-0_0-18-16_٢٠٢٦1121110725052.parquet",
        f"a\n{UUID}-0_0-18-16_20261121110725052.parquet",
        f"a/{UUID}-0_0-18-16_20261121110725052.parquet",
        f"{UUID}-0_0-18-16_20261121110725052.txt",
        f"{UUID}-0_0-18-16_20261121110725052.PARQUET",
        f"{UUID}-0_0-18-16_20261121110725052.parquets",
        f"{UUID}-0_0-18-16_20261121110725052_parquet",
        "my_notes_2024.txt",
        "IMG_0001_2024.jpg",
        "",
    ],
)
def test_other_names_are_no_base_files(name: str) -> None:
    assert BaseFileName.parse(name) is None


@given(st.builds(BaseFileName, FILE_IDS, TOKENS, INSTANTS, st.sampled_from(BASE_FILE_EXTENSIONS)))
def test_format_of_base_files_is_the_inverse_of_parse(name: BaseFileName) -> None:
    assert BaseFileName.parse(name.format()) == name


@given(st.text() | st.from_regex(r"[a-z0-9%-]+_[0-9-]+_[0-9]+\.(parquet|lance|[a-z]+)(\n|_1)?", fullmatch=True))
def test_what_parses_as_a_base_file_formats_to_the_same_text(text: str) -> None:
    name = BaseFileName.parse(text)

    assert name is None or name.format() == text


@pytest.mark.parametrize(
    "text, name",
    [
        (
            f".{UUID}-0_20261121110725052.log.1_0-565-1218.cdc",
            LogFileName(f"{UUID}-0", "20261121110725052", 1, "0-565-1218", ".cdc"),
        ),
        (
            ".files-0000-0_00000000000000000.log.1_0-0-0",
            LogFileName("files-0000-0", "00000000000000000", 1, "0-0-0"),
        ),
        (f".{UUID}-0_20261121110725052.log.12", LogFileName(f"{UUID}-0", "20261121110725052", 12, None)),
    ],
)
def test_log_files_of_apache_hudi_are_parsed(text: str, name: LogFileName) -> None:
    assert LogFileName.parse(text) == name
    assert name.format() == text


@pytest.mark.parametrize(
    "text",
    [
        f"{UUID}-0_20261121110725052.log.1_0-1-1",
        f".{UUID}-0_20261121110725052.log.x_0-1-1",
        f".{UUID}-0_20261121110725052.log.01_0-1-1",
        f".{UUID}-0_20261121110725052.log.٣_0-1-1",
        f".{UUID}-0_20261121110725052.log.1_0-1",
        f".{UUID}-0_20261121110725052.log.1_0-1-1.crc",
        f".{UUID}-0_20261121110725052.archive.1",
    ],
)
def test_other_names_are_no_log_files(text: str) -> None:
    assert LogFileName.parse(text) is None


@given(st.builds(LogFileName, FILE_IDS, INSTANTS, NUMBERS, st.none() | TOKENS, st.sampled_from(["", ".cdc"])))
def test_format_of_log_files_is_the_inverse_of_parse(name: LogFileName) -> None:
    assert LogFileName.parse(name.format()) == name


@given(st.from_regex(r"\.[a-z0-9-]+_[0-9]+\.log\.\d+(_\d+-\d+-\d+)?(\.cdc)?\n?", fullmatch=True))
def test_what_parses_as_a_log_file_formats_to_the_same_text(text: str) -> None:
    name = LogFileName.parse(text)

    assert name is None or name.format() == text


def test_change_data_are_told_from_logs_of_rows() -> None:
    assert LogFileName("f", "1", 1, "0-1-0", ".cdc").is_cdc
    assert not LogFileName("f", "1", 1, "0-1-0").is_cdc


@pytest.mark.parametrize(
    "text, name",
    [
        (".commits_.archive.12_1-0-1", ArchiveFileName(12, "1-0-1")),
        (".commits_.archive.1", ArchiveFileName(1, None)),
    ],
)
def test_files_of_archived_instants_are_parsed(text: str, name: ArchiveFileName) -> None:
    assert ArchiveFileName.parse(text) == name
    assert name.format() == text
    assert LogFileName.parse(text) is None


@pytest.mark.parametrize(
    "text", [".commits_.archive.01", ".commits_.archive.1_1-0", "commits_.archive.1", ".a_1.log.1"]
)
def test_other_names_are_no_files_of_archived_instants(text: str) -> None:
    assert ArchiveFileName.parse(text) is None


@given(st.builds(WriteToken, NUMBERS, NUMBERS, NUMBERS))
def test_format_of_write_tokens_is_the_inverse_of_parse(token: WriteToken) -> None:
    assert WriteToken.parse(token.format()) == token
    assert LogFileName.parse(LogFileName("f", "1", 1, token.format()).format()) is not None


@pytest.mark.parametrize("text", ["", "1-2", "1-2-3-4", "1-02-3", "1-2-x", "1-2-3\n"])
def test_other_texts_are_no_write_tokens(text: str) -> None:
    assert WriteToken.parse(text) is None


def test_log_files_are_read_by_instant_then_version_as_a_number_then_token() -> None:
    names = [
        LogFileName("f", "2", 1, None),
        LogFileName("f", "1", 10, "0-1-0"),
        LogFileName("f", "1", 9, "0-2-0"),
        LogFileName("f", "1", 9, None),
    ]

    assert sorted(names, key=lambda name: name.order) == [names[3], names[2], names[1], names[0]]


def test_markers_name_the_data_file_and_what_happened_to_it() -> None:
    path = f"part=a/{UUID}-0_0-18-16_20261121110725052.parquet"

    assert MarkerName.parse(f"{path}.marker.MERGE") == MarkerName(path, "MERGE")
    assert MarkerName(path, "APPEND").format() == f"{path}.marker.APPEND"
    assert MarkerName.parse(f"{path}.marker.DELETE") is None
    assert MarkerName.parse("MARKERS.type") is None
    assert MarkerName.parse("a.marker.CREATE.marker.MERGE") == MarkerName("a.marker.CREATE", "MERGE")


def test_paths_are_below_their_folders() -> None:
    assert join("", "a") == "a"
    assert join("p/q", "a") == "p/q/a"
    assert marker_folder("1") == ".hoodie/.temp/1"
    assert heartbeat_path("1") == ".hoodie/.heartbeat/1"
    assert file_group_id(UUID, 3) == f"{UUID}-3"
