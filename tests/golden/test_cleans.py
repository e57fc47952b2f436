"""A clean of ours could keep or delete other files than Apache Hudi's, or tell the metadata table something else.

The cleans that Apache Hudi ran on the golden tables are planned again by us, on the table as it was right before
each of them; what they told the metadata table is compared with what we would have.
"""

from collections.abc import Iterable
from datetime import UTC

import pytest

from pyhudi import HudiTable, NotFound
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.metadata.groups import FILES
from pyhudi.format.metadata.record import decode_files_record
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.action_files import decode_clean_metadata, decode_cleaner_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanerPlan
from pyhudi.metadata.derive.changes_files import cleaned_records
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.clean.planning import plan_clean
from pyhudi.services.clean.settings import CleanPolicy, CleanSettings
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.cleaned import planned_names
from pyhudi.table.view.listing import ListedFile, StorageListing
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from pyhudi.timeline.active import Timeline
from tests.support.golden_tables import GoldenTable, GoldenTables, has_metadata_table

BY_COMMITS = CleanSettings(commits_retained=1)
BY_VERSIONS = CleanSettings(policy=CleanPolicy.VERSIONS, versions_retained=1)
TABLES = {
    "cow_clean_archive_v6_h0150": BY_COMMITS,
    "cow_clean_archive_v6_h102": BY_COMMITS,
    "cow_clean_archive_v6_h120": BY_COMMITS,
    "cow_clean_archive_v8_h102": BY_COMMITS,
    "cow_clean_archive_v8_h120": BY_COMMITS,
    "cow_clean_archive_v9_h120": BY_COMMITS,
    "cow_clean_versions_v9_h120": BY_VERSIONS,
}


class ListingThen:
    """A table's files as they were right before an instant: those that went since are there, later ones are not."""

    source = "test"

    def __init__(self, now: StorageListing, before: str, gone_since: dict[str, set[str]]) -> None:
        self._now, self._before, self._gone_since = now, before, gone_since

    def partitions(self) -> list[str]:
        return self._now.partitions()

    def expect(self, partitions: Iterable[str]) -> None:
        self._now.expect(partitions)

    def files(self, partition: str) -> list[ListedFile]:
        names = {file.name for file in self._now.files(partition)} | self._gone_since.get(partition, set())
        return [ListedFile(name, 1) for name in sorted(names) if written_at(name) < self._before]


def written_at(name: str) -> str:
    base, log = BaseFileName.parse(name), LogFileName.parse(name)
    assert base is not None or log is not None
    return base.requested if base is not None else log.instant  # type: ignore[union-attr]


def cleans_of(table: GoldenTable) -> tuple[Snapshot, list[Instant]]:
    snapshot = read_snapshot(LocalStorage(str(table.path)), UTC, open_listing)
    return snapshot, [i for i in snapshot.timeline if i.action == "clean" and i.is_completed]


def plan_of(snapshot: Snapshot, clean: Instant) -> CleanerPlan:
    path = snapshot.timeline.layout.path(Instant(clean.requested, "clean", "REQUESTED"))
    return decode_cleaner_plan(snapshot.storage.get(path), path=path)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("is_incremental", [True, False])
def test_we_plan_the_cleans_that_apache_hudi_planned(golden: GoldenTables, name: str, is_incremental: bool) -> None:
    snapshot, cleans = cleans_of(golden.get(name))
    whole = snapshot.timeline.with_archived()
    settings = CleanSettings(
        policy=TABLES[name].policy,
        commits_retained=TABLES[name].commits_retained,
        versions_retained=TABLES[name].versions_retained,
        is_incremental=is_incremental,
    )
    assert len(cleans) >= 3
    for number, clean in enumerate(cleans):
        theirs = plan_of(snapshot, clean)
        gone_since: dict[str, set[str]] = {}
        for later in cleans[number:]:
            for partition, names in planned_names(plan_of(snapshot, later)).items():
                gone_since.setdefault(partition, set()).update(names)
        timeline = Timeline(
            snapshot.timeline.layout,
            tuple(i for i in whole if i.requested < clean.requested),
            history=snapshot.timeline.history,
        )
        listing = ListingThen(StorageListing(snapshot.storage), clean.requested, gone_since)
        then = Snapshot(snapshot.storage, snapshot.config, UTC, timeline, listing)

        ours = plan_clean(then, settings, now_ms=0, is_asked=False)

        assert isinstance(ours, CleanerPlan), ours
        assert {p: sorted(n) for p, n in planned_names(ours).items()} == {
            p: sorted(n) for p, n in planned_names(theirs).items()
        }
        assert ours.earliest_instant_to_retain == theirs.earliest_instant_to_retain
        assert (ours.last_completed_commit, ours.policy) == (theirs.last_completed_commit, theirs.policy)
        assert (ours.version, ours.files_to_be_deleted_per_partition) == (
            theirs.version, theirs.files_to_be_deleted_per_partition
        )  # fmt: skip
        assert (ours.extra_metadata, ours.partitions_to_be_deleted) == (
            theirs.extra_metadata, theirs.partitions_to_be_deleted
        )  # fmt: skip


@pytest.mark.parametrize("name", [name for name in TABLES if has_metadata_table(name)])
def test_the_metadata_table_learns_of_a_clean_what_apache_hudi_tells_it(golden: GoldenTables, name: str) -> None:
    snapshot, cleans = cleans_of(golden.get(name))
    table = open_metadata_table(snapshot.storage, UTC)
    compared = 0
    for clean in cleans:
        path = snapshot.timeline.layout.path(clean)
        metadata = decode_clean_metadata(snapshot.storage.get(path), path=path)
        found = {}
        for file in table.storage.list(FILES):
            if ".log." not in file.path:
                continue
            for block in read_blocks(table.storage.get(file.path), path=file.path):
                if block.type is BlockType.HFILE_DATA and clean.requested in block.header.values():
                    reader = HFileReader(block.read_content(), path=file.path)
                    assert reader.schema_text is not None
                    for key, value in reader.scan():
                        found[key.decode()] = decode_files_record(value, reader.schema_text)
        if found:
            assert found == cleaned_records(metadata)
            compared += 1
    assert compared > 0


def test_a_moment_whose_versions_were_cleaned_away_is_refused(golden: GoldenTables) -> None:
    """A clean that keeps versions names no commit that it retains: the files that it deleted must tell."""
    path = golden.get("cow_clean_versions_v9_h120").path
    table = HudiTable.open(path)
    commits = [i.requested for i in table.timeline() if i.action == "commit"]

    for requested in commits[:-1]:
        with pytest.raises(NotFound, match="files were cleaned away, such as "):
            table.scan(as_of=requested)
    assert table.scan(as_of=commits[-1]).to_arrow().equals(table.scan().to_arrow())
