"""A listing could pass over a link whose name a reader or writer would have looked for."""

import pytest

from pyhudi.format.table_files import is_table_file


@pytest.mark.parametrize(
    "path",
    [
        "oslo/4f4b4e89-0_0-1-0_20261121093000000.parquet",
        "oslo/part-00000.snappy.parquet",
        "a/b/.4f4b4e89-0_20261121093000000.log.1_0-1-0.cdc",
        ".hoodie_partition_metadata",
        "oslo/.hoodie_partition_metadata.orc",
        ".hoodie/timeline/20261121093000000.commit.requested",
        ".hoodie/20261121093000000.inflight",
        ".hoodie/timeline/20261121093000000_20261121093001000.commit",
        ".hoodie/timeline/history/manifest_3",
        ".hoodie/timeline/history/_version_",
        ".hoodie/timeline/history/20261121093000000_20261121093000000_0.parquet",
        ".hoodie/archived/.commits_.archive.1_1-0-1",
        ".hoodie/.heartbeat/20261121093000000",
        ".hoodie/.schema/20261121093000000.schemacommit",
        ".hoodie/.bucket_index/consistent_hashing_metadata/oslo/20261121093000000.hashing_meta",
        ".hoodie/.temp/20261121093000000/oslo/x.parquet.marker.CREATE",
        ".hoodie/.temp/20261121093000000/MARKERS0",
        ".hoodie/metadata/files/.files-0000-0_20261121093000000.log.1_0-0-0",
    ],
)
def test_names_of_a_table(path: str) -> None:
    assert is_table_file(path)


@pytest.mark.parametrize(
    "path",
    [
        "README",
        "oslo/_SUCCESS",
        "oslo/2026 notes.txt",
        "oslo/my_notes_2024.txt",
        "IMG_0001_2024.jpg",
        "oslo/20261121093000000.commit",
        ".git/HEAD",
        ".hoodie/note",
        ".hoodie/timeline/note",
        "manifest_3",
    ],
)
def test_other_names(path: str) -> None:
    assert not is_table_file(path)
