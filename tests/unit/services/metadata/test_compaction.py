"""A compaction of the metadata table could stand in the way of the rollback of what is pending on the data table."""

from dataclasses import replace
from datetime import UTC

import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.timeline.instant import Instant
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.metadata.compaction import MetadataCompactor
from pyhudi.table.view.snapshot import read_snapshot
from tests.support.model import Row, arrow
from tests.unit.services.metadata.test_indexes import Store


@pytest.mark.parametrize(
    "version, action, is_older, waits",
    [
        (6, "commit", True, True),
        (6, "commit", False, False),
        (6, "indexing", True, False),
        (9, "commit", True, False),
    ],
)
def test_it_waits_for_older_writes_where_it_is_named_after_the_newest(
    version: int, action: str, is_older: bool, waits: bool
) -> None:
    store = Store("COPY_ON_WRITE", version)
    for turn in range(2):
        store.table.upsert(arrow([Row("k0", "oslo", turn, turn)]))
    newest = store.table.timeline()[-1].requested
    pending = Instant(f"{int(newest) + (-1 if is_older else 1):017d}", action, "INFLIGHT")
    timeline = read_snapshot(store.storage, UTC, open_listing).timeline
    data = replace(timeline, instants=tuple(sorted((*timeline, pending), key=lambda i: i.requested)))

    table = open_metadata_table(store.storage, UTC)
    compactor = MetadataCompactor(
        table, data, ["files"], SerialExecutor(), lambda: f"{int(newest) + 9:017d}", lambda: None
    )  # fmt: skip
    assert compactor.compact_when_due(1) is not waits
