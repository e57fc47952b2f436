"""A crash while the properties are replaced could leave a table without any, or with half of them."""

import pytest

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.format.names import PROPERTIES, PROPERTIES_BACKUP
from pyhudi.format.properties import CHECKSUM, encode_table_properties
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.properties_file import read_table_properties, recover_table_properties, replace_table_properties
from tests.support.crashes import crash_points

OLD = {"hoodie.table.name": "t", "hoodie.table.version": "8", CHECKSUM: "498511606"}
NEW = {**OLD, "hoodie.table.metadata.partitions": "files"}


def encoded(properties: dict[str, str]) -> bytes:
    return encode_table_properties(properties, epoch_ms=0, is_update=False)


def disk(main: bytes | None, backup: bytes | None = None) -> MemoryStorage:
    storage = MemoryStorage()
    for path, content in ((PROPERTIES, main), (PROPERTIES_BACKUP, backup)):
        if content is not None:
            storage.put(path, content)
    return storage


def replace(storage: Storage) -> None:
    replace_table_properties(storage, NEW, epoch_ms=1)


def test_replacing_leaves_the_new_properties_and_no_backup() -> None:
    storage = disk(encoded(OLD))

    replace(storage)

    assert read_table_properties(storage) == NEW
    assert storage.get(PROPERTIES).startswith(b"#Updated at 1970-01-01T00:00:00.001Z\n")
    assert storage.head(PROPERTIES_BACKUP) is None


STARTS = {
    "whole": disk(encoded(OLD)),
    "a backup was left": disk(encoded(OLD), encoded(OLD)),
    "an older backup was left": disk(encoded(OLD), encoded({**OLD, "a": "b"})),
    "torn, with a backup": disk(encoded(OLD)[:40], encoded(OLD)),
    "gone, with a backup": disk(None, encoded(OLD)),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_crash_at_any_step_leaves_the_old_properties_or_the_new_ones(start: MemoryStorage) -> None:
    crashes = 0
    for crash, after in crash_points(replace, start.copy):
        crashes += 1
        assert read_table_properties(after) in (OLD, NEW), crash

        replace(after)  # whoever comes next finishes the work

        assert read_table_properties(after) == NEW, crash
        assert after.head(PROPERTIES_BACKUP) is None, crash
    assert crashes >= 4


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_crash_while_recovering_loses_nothing(start: MemoryStorage) -> None:
    for crash, after in crash_points(recover_table_properties, start.copy):
        assert read_table_properties(after) == OLD, crash
        recover_table_properties(after)
        assert read_table_properties(after) == OLD, crash
        assert after.head(PROPERTIES_BACKUP) is None, crash


def test_a_torn_file_is_read_from_its_backup_wherever_it_is_torn() -> None:
    content = encoded(OLD)
    for end in range(len(content)):
        storage = disk(content[:end], content)
        assert read_table_properties(storage) == OLD
        recover_table_properties(storage)
        assert storage.get(PROPERTIES) == content
        assert storage.head(PROPERTIES_BACKUP) is None


@pytest.mark.parametrize("backup", [None, b"torn"])
def test_a_file_without_a_checksum_counts_where_no_better_one_is(backup: bytes | None) -> None:
    storage = disk(b"hoodie.table.name=t", backup)

    assert read_table_properties(storage) == {"hoodie.table.name": "t"}
    recover_table_properties(storage)
    assert read_table_properties(storage) == {"hoodie.table.name": "t"}


def test_properties_that_another_writer_is_replacing_are_read_from_the_backup() -> None:
    assert read_table_properties(disk(None, encoded(OLD))) == OLD


def test_the_file_counts_before_its_backup() -> None:
    assert read_table_properties(disk(encoded(NEW), encoded(OLD))) == NEW
    assert read_table_properties(disk(encoded(NEW), b"torn")) == NEW


@pytest.mark.parametrize("backup", [None, b"", b"torn"])
def test_properties_that_are_torn_without_a_good_backup_are_corrupt(backup: bytes | None) -> None:
    storage = disk(b"hoodie.table.na", backup)

    with pytest.raises(CorruptFile, match=r"hoodie\.properties at byte 0"):
        read_table_properties(storage)


def test_a_place_without_properties_is_no_table() -> None:
    storage = MemoryStorage()

    with pytest.raises(NotFound, match=storage.location.uri):
        read_table_properties(storage)
    recover_table_properties(storage)
    assert list(storage.list("", recursive=True)) == []


def test_recovery_changes_nothing_where_nothing_is_amiss() -> None:
    storage = disk(encoded(OLD))

    recover_table_properties(storage)

    assert storage.get(PROPERTIES) == encoded(OLD)
