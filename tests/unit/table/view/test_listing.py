"""A partition could be overlooked, or a folder that is none be read as one."""

from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.listing import ListedFile, StorageListing

METAFILE = ".hoodie_partition_metadata"


def listing(*paths: str, nests: bool = False) -> StorageListing:
    storage = MemoryStorage()
    for path in paths:
        storage.put(path, b"12345")
    return StorageListing(storage, nests=nests)


def test_partitions_are_the_folders_with_a_metadata_file() -> None:
    found = listing(
        f"a/{METAFILE}",
        "a/1.parquet",
        f"b/c/d/{METAFILE}",
        f"e/{METAFILE}.parquet",
        f"_f/{METAFILE}.orc",
        "g/2.parquet",
    )

    assert found.partitions() == ["_f", "a", "b/c/d", "e"]


def test_the_root_of_an_unpartitioned_table_is_its_partition() -> None:
    assert listing(METAFILE, "1.parquet", ".hoodie/hoodie.properties").partitions() == [""]


def test_what_lies_in_the_tables_own_folder_is_no_partition() -> None:
    assert listing(f".hoodie/metadata/files/{METAFILE}", f"a/{METAFILE}").partitions() == ["a"]


def test_an_empty_place_has_no_partitions() -> None:
    assert listing().partitions() == []


def test_files_of_a_partition_are_those_directly_in_it() -> None:
    found = listing(f"a/{METAFILE}", "a/2.parquet", "a/1.parquet", "a/.x.log.1_0-1-0", "a/b/3.parquet", "ab/4.parquet")

    assert found.files("a") == [
        ListedFile(".x.log.1_0-1-0", 5),
        ListedFile("1.parquet", 5),
        ListedFile("2.parquet", 5),
    ]
    assert found.files("no such") == []


def test_a_partition_below_another_one_is_listed_where_paths_may_nest() -> None:
    files = (METAFILE, "0.parquet", f"a/{METAFILE}", "a/1.parquet", f"a/b/{METAFILE}", "a/b/2.parquet",
             f"a/c/d/{METAFILE}", f".hoodie/metadata/files/{METAFILE}")  # fmt: skip

    nested = listing(*files, nests=True)

    assert nested.partitions() == ["", "a", "a/b", "a/c/d"]
    assert dict(nested.walk())["a"] == [ListedFile("1.parquet", 5)]
    assert listing(*files[2:]).partitions() == ["a"]
