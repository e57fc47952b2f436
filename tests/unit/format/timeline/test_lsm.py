"""A manifest misread hides archived instants; one written otherwise than Apache Hudi's hides them from it."""

import contextlib
import io
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.format.avro.schema_files import schema_of
from pyhudi.format.timeline.lsm import (
    HISTORY_SCHEMA,
    HistoryFile,
    HistoryFileName,
    decode_manifest,
    encode_manifest,
    manifest_number,
    parse_version,
)
from tests.support.golden_tables import FOLDER

NAME = "20261121114211897_20261121114213716_0.parquet"
TABLES = ["cow_clean_archive_v8_h102", "cow_clean_archive_v8_h120", "cow_clean_archive_v9_h120"]


def history_entries(table: str, suffix: str = "") -> dict[str, bytes]:
    """File name -> bytes of a golden table's history folders, the metadata table's too."""
    with ZipFile(FOLDER / f"{table}.zip") as archive:
        paths = [path for path in archive.namelist() if "/timeline/history/" in path and path.endswith(suffix)]
        return {path: archive.read(path) for path in paths if not path.endswith("/")}


@pytest.mark.parametrize("table", TABLES)
def test_manifests_are_those_of_apache_hudi_to_the_byte(table: str) -> None:
    manifests = {p: c for p, c in history_entries(table).items() if manifest_number(p.rpartition("/")[2]) is not None}
    assert len(manifests) >= 3

    for path, content in manifests.items():
        files = decode_manifest(content, path=path)
        assert encode_manifest(files) == content


def test_files_have_the_schema_of_apache_hudis() -> None:
    for path, content in history_entries("cow_clean_archive_v8_h102", ".parquet").items():
        schema = pq.ParquetFile(io.BytesIO(content)).schema_arrow
        assert schema.remove_metadata().equals(HISTORY_SCHEMA), path
        assert schema.metadata[b"parquet.avro.schema"].decode() == schema_of("HoodieLSMTimelineInstant")


def test_a_manifest_of_nothing() -> None:
    assert encode_manifest(()) == b'{\n  "files" : [ ]\n}'
    assert decode_manifest(encode_manifest(()), path="m") == ()
    assert decode_manifest(b"", path="m") == ()


_DIGITS = st.text("0123456789", min_size=1, max_size=20)
_NAMES = st.builds(HistoryFileName, _DIGITS, _DIGITS, st.integers(0, 9))


@given(_NAMES)
def test_names_come_back(name: HistoryFileName) -> None:
    assert HistoryFileName.parse(name.format()) == name


@given(st.lists(st.builds(HistoryFile, _NAMES, st.integers(0, 1 << 40)), max_size=4).map(tuple))
def test_manifests_come_back(files: tuple[HistoryFile, ...]) -> None:
    assert decode_manifest(encode_manifest(files), path="m") == files


@pytest.mark.parametrize(
    "name", [f"{NAME}.crc", f".{NAME}", "1_2.parquet", "1_2_10.parquet", "manifest_1", "_version_"]
)
def test_other_files_are_no_history(name: str) -> None:
    assert HistoryFileName.parse(name) is None


@pytest.mark.parametrize(
    "name,number", [("manifest_12", 12), ("manifest_", None), ("manifest_1.tmp", None), (NAME, None)]
)
def test_manifests_have_numbers(name: str, number: int | None) -> None:
    assert manifest_number(name) == number


@pytest.mark.parametrize("content,number", [(b"4", 4), (b"4\n", 4), (b"", None), (b"x", None), (b"\xff", None)])
def test_a_torn_version_file_names_none(content: bytes, number: int | None) -> None:
    assert parse_version(content) == number


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"{}", b'{"files": [1]}', b'{"files": [{"fileName": "x", "fileLen": 1}]}', b'{"files": [{}]}',
     b'{"files": [{"fileName": "1_2_0.parquet", "fileLen": "long"}]}', b"\xff"],
)  # fmt: skip
def test_what_is_no_manifest_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptFile, match="manifest_3"):
        decode_manifest(content, path="manifest_3")


@given(st.binary(max_size=60))
def test_random_bytes_are_a_manifest_or_corrupt(content: bytes) -> None:
    with contextlib.suppress(CorruptFile):
        decode_manifest(content, path="m")
