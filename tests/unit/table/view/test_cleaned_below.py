"""A write was requested before another and completed after it. A clean then counts it as the older one, and deletes the
slice that it was built upon. Rolling the write back would show the rows of an even older slice.
"""

from dataclasses import replace

import pytest

from pyhudi.errors import NotFound
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.cleaned import refuse_cleaned_below, refuse_cleaned_of
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.listing import StorageListing
from tests.support.model import Handles, Row, arrow


def test_a_write_is_not_taken_back_without_the_slice_below_it() -> None:
    storage = MemoryStorage()
    table = Handles(storage).create()
    first = table.upsert(arrow([Row("a", "oslo", 1, 1)])).requested
    table.upsert(arrow([Row("a", "oslo", 2, 2), Row("b", "rome", 2, 2)]))
    read = table._access.snapshot()
    snapshot = replace(read, listing=StorageListing(storage))
    newest = snapshot.timeline.completed_writes[-1]
    metadata = read_commit(storage, snapshot.timeline, newest)
    refuse_cleaned_below(snapshot, newest, metadata, asked="rollback")

    (below,) = (file.path for file in storage.list("oslo") if f"_{first}." in file.path)
    storage.delete(below)
    with pytest.raises(NotFound, match=f"rollback: its files were cleaned away.*the slice of '{first}'"):
        refuse_cleaned_below(snapshot, newest, metadata, asked="rollback")


def test_a_write_is_not_taken_back_without_the_groups_that_it_replaced() -> None:
    storage = MemoryStorage()
    table = Handles(storage).create()
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    (replaced,) = (file.path for file in storage.list("oslo") if file.path.endswith(".parquet"))
    table.insert_overwrite(arrow([Row("b", "oslo", 2, 2)]))
    read = table._access.snapshot()
    snapshot = replace(read, listing=StorageListing(storage))
    newest = snapshot.timeline.completed_writes[-1]
    metadata = read_commit(storage, snapshot.timeline, newest)
    refuse_cleaned_below(snapshot, newest, metadata, asked="rollback")

    storage.delete(replaced)
    with pytest.raises(NotFound, match=r"rollback: its files were cleaned away.*which was replaced later"):
        refuse_cleaned_below(snapshot, newest, metadata, asked="rollback")


def test_a_write_that_stays_needs_its_files_unless_they_are_replaced() -> None:
    storage = MemoryStorage()
    table = Handles(storage).create()
    commits = [table.upsert(arrow([Row("a", "oslo", turn, turn)])).requested or "" for turn in (1, 2)]
    read = table._access.snapshot()
    snapshot = replace(read, listing=StorageListing(storage))
    metadata = read_commit(storage, snapshot.timeline, snapshot.timeline.completed_writes[0])
    refuse_cleaned_of(snapshot, metadata, undone={commits[1]}, asked="restore")

    (own,) = (file.path for file in storage.list("oslo") if f"_{commits[0]}." in file.path)
    storage.delete(own)
    refuse_cleaned_of(snapshot, metadata, undone=(), asked="restore")
    with pytest.raises(NotFound, match=f"restore: its files were cleaned away, such as '{own}'"):
        refuse_cleaned_of(snapshot, metadata, undone={commits[1]}, asked="restore")
