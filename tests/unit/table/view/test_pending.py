"""A clustering could be taken for a dead write and be rolled back, or its file groups be written to meanwhile.

Before version 8 a pending replacecommit is either; only its plan tells.
"""

from datetime import UTC

import pytest

from pyhudi.format.timeline.action_files import encode_compaction_plan, encode_requested_replace
from pyhudi.format.timeline.records import (
    ClusteringGroup,
    ClusteringPlan,
    CompactionOperation,
    CompactionPlan,
    RequestedReplaceMetadata,
    SliceInfo,
)
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.pending import is_clustering, read_pending_groups
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.timeline.layout import timeline_layout
from pyhudi.txn.locks.guard import MemoryGuard
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.txn.undo.rollback import find_dead_writes

CLUSTERING = encode_requested_replace(
    RequestedReplaceMetadata(
        "CLUSTER", ClusteringPlan((ClusteringGroup((SliceInfo(None, (), "group-1", "oslo"),)),)), {}, version=1
    )
)
OVERWRITE = encode_requested_replace(RequestedReplaceMetadata())
COMPACTION = encode_compaction_plan(CompactionPlan((CompactionOperation("1", (), None, "group-2", "rome"),)))


def timeline(storage: MemoryStorage, version: str) -> Timeline:
    layout = timeline_layout({"hoodie.timeline.layout.version": version})
    return read_timeline(storage, layout, UTC)


def dead(storage: MemoryStorage, of: Timeline) -> list[str]:
    return [i.requested for i in find_dead_writes(storage, of, LifeTerms(MemoryGuard("t"), now_ms=0, expires_ms=1))]


def test_on_layout_1_a_clustering_is_known_by_its_plan() -> None:
    storage = MemoryStorage()
    storage.put(".hoodie/20260101000000001.replacecommit.requested", CLUSTERING)
    storage.put(".hoodie/20260101000000001.replacecommit.inflight", b"")
    storage.put(".hoodie/20260101000000002.replacecommit.requested", OVERWRITE)
    storage.put(".hoodie/20260101000000003.compaction.requested", COMPACTION)
    of = timeline(storage, "1")

    groups = read_pending_groups(storage, of)

    assert {group: instant.action for group, instant in groups.items()} == {
        ("oslo", "group-1"): "replacecommit",
        ("rome", "group-2"): "compaction",
    }
    assert [is_clustering(storage, of, instant) for instant in of] == [True, False, False]
    assert dead(storage, of) == ["20260101000000002"]


def test_on_layout_2_a_clustering_has_a_name_of_its_own() -> None:
    storage = MemoryStorage()
    storage.put(".hoodie/timeline/20260101000000001.clustering.requested", CLUSTERING)
    storage.put(".hoodie/timeline/20260101000000002.replacecommit.requested", OVERWRITE)
    storage.put(".hoodie/timeline/20260101000000004.logcompaction.requested", COMPACTION)
    of = timeline(storage, "2")

    assert set(read_pending_groups(storage, of)) == {("oslo", "group-1"), ("rome", "group-2")}
    assert dead(storage, of) == ["20260101000000002"]


@pytest.mark.parametrize("version,folder", [("1", ".hoodie"), ("2", ".hoodie/timeline")])
def test_a_replacement_without_its_requested_file_is_a_write_half_rolled_back(version: str, folder: str) -> None:
    storage = MemoryStorage()
    storage.put(f"{folder}/20260101000000001.replacecommit.inflight", b"")
    of = timeline(storage, version)

    assert read_pending_groups(storage, of) == {}
    assert dead(storage, of) == ["20260101000000001"]
