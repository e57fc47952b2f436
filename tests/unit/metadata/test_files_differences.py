"""A validation could tell of files that no reader looks at."""

from datetime import UTC

from pyhudi.metadata.check.differences import DifferenceKind
from pyhudi.metadata.kinds.files import CommittedFiles, files_differences
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.snapshot import read_snapshot
from tests.support.model import Handles


def listing(*names: str) -> StorageListing:
    storage = MemoryStorage()
    for name in (".hoodie_partition_metadata", *names):
        storage.put(f"p/{name}", b"x")
    return StorageListing(storage)


def test_a_file_of_others_is_no_difference_on_either_side() -> None:
    """Earlier releases put some into the metadata table."""
    table = MemoryStorage()
    Handles(table).create()
    snapshot = read_snapshot(table, UTC, open_listing)
    committed = CommittedFiles(table, snapshot.config, snapshot.timeline)
    stored = listing("f_0-0-0_1.parquet", "IMG_0001_2024.jpg")
    known = listing("f_0-0-0_1.parquet", "my_notes_2024.txt", "gone_0-0-0_1.parquet")

    found = list(files_differences(stored, known, committed, (), on_progress=lambda *_: None))

    assert [(one.kind, one.name) for one in found] == [(DifferenceKind.FILE_ABSENT, "gone_0-0-0_1.parquet")]
