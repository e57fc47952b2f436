"""We could overlook an instant that Apache Hudi archived, or archive others than it would. Its tables with archived
timelines say which commits there were, what each of them did, and which of them went together."""

from datetime import UTC
from typing import Any

import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.lsm import HistoryFileName
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.archive.plan import Keep, commits_kept, plan_archival
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.commits import read_commit, read_earliest_retained, read_stated_schema
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from pyhudi.timeline.active import Timeline
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTable, GoldenTables, golden_names

COW = tuple(name for name in golden_names() if name.startswith("cow_clean_archive_"))
ALL = (*COW, "mor_clean_archive_v9_h120")


def opened(table: GoldenTable) -> Snapshot:
    return read_snapshot(LocalStorage(str(table.path)), UTC, open_listing)


def inserted(snapshot: Snapshot, instant: Instant) -> int:
    stats = read_commit(snapshot.storage, snapshot.timeline, instant).partition_to_write_stats
    return sum(stat.num_inserts or 0 for of in stats.values() for stat in of)


@pytest.mark.parametrize("name", ALL)
def test_archived_and_active_writes_are_those_that_were_made(golden: GoldenTables, name: str) -> None:
    table = golden.get(name)
    snapshot = opened(table)

    found = [i for i in snapshot.timeline.with_archived() if i.action in WRITE_ACTIONS]

    operations: list[dict[str, Any]] = table.manifest["operations"]
    made = [str(operation["completed"]) for operation in operations]  # the manifest means requested times by that
    if name.startswith("mor_"):  # and the compaction's, where one followed
        assert set(made) <= {i.requested for i in found}
    else:
        assert [i.requested for i in found] == made
    assert len(snapshot.timeline.archived_writes()) >= 5
    assert inserted(snapshot, found[0]) == operations[0]["rows"]
    for instant in found:
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        assert metadata.partition_to_write_stats
        assert metadata.extra_metadata["schema"]
        assert instant.completed is not None
        # 0.13.1 does not archive when an instant completed
        assert instant.completed > instant.requested or (
            table.manifest["table_version"] < 6 and instant.completed == instant.requested
        )


@pytest.mark.parametrize("name", ALL)
def test_archived_cleans_say_what_they_retained(golden: GoldenTables, name: str) -> None:
    timeline = opened(golden.get(name)).timeline
    cleans = [i for i in timeline.history.instants() if i.action == "clean"]
    assert cleans

    retained = [timeline.history.read_clean(i) for i in cleans]

    assert [c.start_clean_time for c in retained if c is not None] == [i.requested for i in cleans]
    earliest = [c.earliest_commit_to_retain for c in retained if c is not None]
    assert earliest == sorted(earliest)
    without_active_cleans = Timeline(timeline.layout, timeline.completed_writes, history=timeline.history)
    storage = LocalStorage(str(golden.get(name).path))
    assert read_earliest_retained(storage, without_active_cleans) == earliest[-1]


@pytest.mark.parametrize("name", COW)
def test_an_incremental_query_begins_among_archived_commits(golden: GoldenTables, name: str) -> None:
    table = golden.get(name)
    timeline = opened(table).timeline
    by_completion = timeline.layout.has_completion_times
    archived = timeline.archived_writes()
    ours, everything = HudiTable.open(table.path), HudiTable.open(table.path).scan().to_arrow()

    assert_same_rows(ours.incremental().to_arrow(), everything)
    for instant in archived:
        start = instant.completed if by_completion else instant.requested
        times = everything[META_FIELDS[0]]
        expected = everything.filter(pc.greater(times, instant.requested))
        assert_same_rows(ours.incremental(start).to_arrow(), expected)


@pytest.mark.parametrize("name", COW)
def test_the_schema_of_an_archived_moment_is_known(golden: GoldenTables, name: str) -> None:
    snapshot = opened(golden.get(name))
    first = snapshot.timeline.archived_writes()[0]

    then = snapshot.at(first.requested)

    assert then.timeline.completed_writes == ()
    assert read_stated_schema(snapshot.storage, then.timeline, None).text == snapshot.schema_text
    assert read_stated_schema(snapshot.storage, snapshot.timeline.up_to("20200101000000000"), None).text is None


@pytest.mark.parametrize("name", [n for n in ALL if n.endswith(("v6_h0150", "v8_h102", "v9_h120"))])
def test_the_metadata_tables_history_is_read_the_same_way(golden: GoldenTables, name: str) -> None:
    timeline = open_metadata_table(LocalStorage(str(golden.get(name).path)), UTC).timeline

    archived = timeline.archived_writes()

    assert archived[0].requested.startswith("0000000000000")
    assert {i.action for i in archived} == {"deltacommit", "commit"}
    assert not {i.requested for i in archived} & timeline.completed_requested_times
    for instant in archived:
        timeline.history.read_commit(instant)


@pytest.mark.parametrize(
    "name", ["cow_clean_archive_v8_h102", "cow_clean_archive_v8_h120", "cow_clean_archive_v9_h120"]
)
def test_on_their_timelines_we_choose_what_apache_hudi_chose(golden: GoldenTables, name: str) -> None:
    """Replayed commit by commit with the options of these tables: every file of layer 0 has the same instants."""
    snapshot = opened(golden.get(name))
    layout = snapshot.timeline.layout
    active: list[Instant] = []
    chosen = set()
    for instant in snapshot.timeline.with_archived():
        active.append(instant)
        of = Timeline(layout, tuple(active))
        keep = commits_kept(of, Keep(3, 4), CleanSettings(commits_retained=1), hours_start="")
        if plan := plan_archival(of, keep, []).instants:
            chosen.add(HistoryFileName(plan[0].requested, plan[-1].requested, 0))
            active = [i for i in active if i not in plan]

    paths = (file.path.rpartition("/")[2] for file in snapshot.storage.list(layout.history_folder))
    theirs = {of for of in map(HistoryFileName.parse, paths) if of is not None and of.layer == 0}
    assert len(theirs) >= 3
    assert theirs <= chosen  # those that were merged long ago are not there any more
    assert tuple(active) == snapshot.timeline.instants
