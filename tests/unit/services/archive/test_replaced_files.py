"""Rows that a write replaced could come back, as their files are stored while that write leaves the timeline; or a
stored file could hold the timeline for good, with no clean that looks for it. Files are put back as if a clean had
failed to delete them.
"""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.names import group_named
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import FileInfo
from tests.support.model import StepClock, seeded_uuids

SMALL = {
    "hoodie.keep.max.commits": "6",
    "hoodie.keep.min.commits": "4",
    "hoodie.clean.commits.retained": "2",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
BARE = {"hoodie.metadata.enable": "false"}
BY_HAND = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


class ListedStorage(MemoryStorage):
    """Counts how often each folder of data is listed."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: Counter[str] = Counter()

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        if not prefix.startswith(".hoodie"):
            self.listed[prefix] += 1
        return super().list(prefix, recursive=recursive)


def a_table(storage: MemoryStorage, properties: dict[str, str]) -> HudiTable:
    return HudiTable.create(
        "", name="t", record_key="id", partition_by="p", properties={**SMALL, **properties}, storage=storage,
        clock=StepClock(), random=seeded_uuids(1), executor=SerialExecutor(),
    )  # fmt: skip


def rows(*partitions: str, key: str = "k", value: int = 0) -> pa.Table:
    ids = [f"{key}{number}" for number in range(len(partitions))]
    return pa.table({"id": ids, "p": list(partitions), "v": [value] * len(partitions)})


def ids(table: HudiTable) -> list[str]:
    return sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())


def base_files(storage: MemoryStorage, partition: str) -> list[str]:
    return [file.path for file in storage.list(partition) if file.path.endswith(".parquet")]


def writes(table: HudiTable) -> int:
    return sum(instant.action in ("commit", "replacecommit") for instant in table.timeline())


def upsert(table: HudiTable, count: int, options: dict[str, str] | None = None) -> None:
    for number in range(count):
        table.upsert(rows("b", key="other", value=number), options=options)


def replaced_and_put_back(
    storage: MemoryStorage, properties: dict[str, str], *, with_metafile: bool = True
) -> HudiTable:
    """A table whose partition `a` was deleted and cleaned, and whose file of then is stored again."""
    table = a_table(storage, properties)
    table.insert(rows("a"))
    kept = [(file.path, storage.get(file.path)) for file in storage.list("a")]
    table.delete_partitions(["a"])
    upsert(table, 4, options={"hoodie.archive.automatic": "false"})
    assert not base_files(storage, "a"), "cleaned"
    for path, content in kept:
        if path.endswith(".parquet") or with_metafile:
            storage.put(path, content)
    return table


@pytest.mark.parametrize("metadata", [{}, BARE], ids=["listed by the metadata table", "by the storage"])
@pytest.mark.parametrize("with_metafile", [True, False])
def test_a_replaced_file_that_a_clean_left_is_cleaned_before_its_write_is_archived(
    metadata: dict[str, str], with_metafile: bool
) -> None:
    storage = MemoryStorage()
    table = replaced_and_put_back(storage, metadata, with_metafile=with_metafile)
    upsert(table, 20)
    assert not base_files(storage, "a")
    assert writes(table) <= 6
    table.metadata.delete()
    assert ids(table) == ["other0"]


@pytest.mark.parametrize("metadata", [{}, BARE], ids=["listed by the metadata table", "by the storage"])
def test_an_archival_that_a_replaced_file_holds_names_it_and_a_clean_that_is_asked_for_deletes_it(
    metadata: dict[str, str],
) -> None:
    storage = MemoryStorage()
    table = replaced_and_put_back(storage, {**metadata, "hoodie.archive.automatic": "false"}, with_metafile=False)
    upsert(table, 8, options=BY_HAND)
    left = base_files(storage, "a")[0]
    table.archive()
    held = table.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    assert held.archived == 0
    assert left in held.reason
    assert "clean()" in held.reason
    table.clean()
    assert not base_files(storage, "a")
    assert table.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}).archived


@pytest.mark.parametrize("name", [".{}.crc", "{}_notes.txt"])
@pytest.mark.parametrize("metadata", [{}, BARE], ids=["listed by the metadata table", "by the storage"])
def test_a_file_that_is_no_data_file_holds_no_archival(name: str, metadata: dict[str, str]) -> None:
    storage = MemoryStorage()
    table = a_table(storage, metadata)
    table.insert(rows("a", "b"))
    (replaced,) = base_files(storage, "a")
    storage.put_new(
        "a/" + name.format(replaced.removeprefix("a/") if name.endswith("crc") else group_named(replaced[2:])), b""
    )
    table.insert_overwrite(rows("a", key="new"))
    upsert(table, 16)
    assert writes(table) <= 10
    assert ids(table) == ["k1", "new0", "other0"]


@pytest.mark.parametrize("metadata", [{}, BARE], ids=["listed by the metadata table", "by the storage"])
def test_a_file_that_a_write_which_never_completed_left_in_a_replaced_group_is_cleaned(
    metadata: dict[str, str],
) -> None:
    storage = MemoryStorage()
    table = replaced_and_put_back(storage, metadata)
    path = base_files(storage, "a")[0]
    stamp = path.rpartition("_")[2].removesuffix(".parquet")
    storage.put(path.replace(stamp, str(int(stamp) + 3)), storage.get(path))
    storage.delete(path)
    upsert(table, 20)
    assert not base_files(storage, "a")
    assert writes(table) <= 6


def test_a_savepoint_that_keeps_replaced_files_is_named_where_archiving_goes_on_behind_savepoints() -> None:
    storage = MemoryStorage()
    table = a_table(storage, {"hoodie.archive.beyond.savepoint": "true"})
    table.insert(rows("a"))
    saved = table.savepoint().requested
    kept = base_files(storage, "a")[0]
    for number in range(12):
        (table.upsert if number else table.insert_overwrite)(rows("a", value=number))
    said = table.archive().reason
    assert f"savepoint '{saved}'" in said
    assert kept in said
    assert writes(table) == 13
    table.delete_savepoint(saved)
    for number in range(8):
        table.upsert(rows("a", value=number))
    assert writes(table) <= 6
    assert ids(table) == ["k0"]


@pytest.mark.parametrize("metadata", [{}, BARE], ids=["listed by the metadata table", "by the storage"])
def test_an_archival_lists_each_partition_once_and_those_of_its_batch_only(metadata: dict[str, str]) -> None:
    storage = ListedStorage()
    table = a_table(storage, {**metadata, "hoodie.archive.automatic": "false"})
    partitions = [f"d{number}" for number in range(5)]
    for number in range(80):
        table.insert_overwrite(rows(*(partitions if number < 12 else ["late"])))

    storage.listed.clear()
    assert table.archive().archived > 100, "in three batches"
    assert storage.listed == {**dict.fromkeys(partitions, 1), "late": 3}
