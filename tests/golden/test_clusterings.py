"""A clustering could lose a row, show it twice or as changed, or plan otherwise than Apache Hudi does.

Every table that Apache Hudi wrote and that this release can write is clustered here. What Apache Hudi planned is
planned again, to the byte, and what it left planned is carried out.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.errors import HudiError
from pyhudi.format.timeline.action_files import decode_requested_replace, encode_requested_replace
from pyhudi.format.timeline.instant import Instant
from pyhudi.services.clustering.inputs import groups_of, read_plan
from pyhudi.services.clustering.plan import Sizing, plan_clustering, requested
from pyhudi.services.clustering.settings import ClusteringSettings
from pyhudi.services.clustering.trigger import pending_clusterings
from pyhudi.table.view.commits import read_commit
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, golden_names, with_long
from tests.support.merge_on_read import rows, without_file_names

SORT = "hoodie.clustering.plan.strategy.sort.columns"
BY_KEY = {SORT: "_hoodie_record_key"}
REFUSED = {
    "_no_meta_": "populate.meta.fields|column '_hoodie_record_key'",
    "_virtual_": "populate.meta.fields|column '_hoodie_record_key'",
    "_bucket_": "bucket index",
    "_nbcc_": "bucket index",
    "_consistent_": "bucket index",
    "_nondefaults_v6_": "payload.class",
    "_partial_payload_v6_": "payload.class",
}
"""Part of a table's name -> what the refusal of a table that cannot be clustered names."""
QUICK = (
    *("cow_cluster_scheduled_v6_h0150", "cow_cluster_scheduled_v9_h120", "cow_mdt_all_v9_h120", "cow_nonpart_v9_h120"),
    *("cow_small_files_v9_h120", "cow_restore_v6_h0150", "mor_cluster_v9_h120", "mor_compact_scheduled_v6_h0150"),
    *("mor_event_time_v9_h120", "mor_inflight_v8_h102", "mor_logonly_v9_h120", "mor_mdt_all_v8_h102"),
    *("mor_partial_update_v8_h102", "mor_schema_promote_v9_h120", "mor_bucket_v9_h120", "cow_no_meta_v9_h120"),
    "upgraded_mor_avro_v9_h120",
)
"""One table of each kind; the others in long runs."""
SCHEDULED = ("cow_cluster_scheduled_v6_h0150", "cow_cluster_scheduled_v9_h120")
CLUSTERED = ("cow_cluster_v6_h0150", "cow_cluster_v9_h120", "mor_cluster_v9_h120")
COPIED = (
    *("cow_bulk_insert_v9_h120", "cow_evo_columns_v8_h102", "cow_small_files_v9_h120"),
    *("cow_cdc_ops_simple_data_before_v9_h120", "cow_bootstrap_full_v6_h0150"),
)
"""Tables of which a clustering without a sort copies all row groups."""
SYNC_MARKER_BYTES = 16


@pytest.mark.parametrize("name", with_long(golden_names(), QUICK))
def test_a_clustering_changes_no_answer(unpacked: Callable[[str], Path], name: str) -> None:
    refusal = next((text for part, text in REFUSED.items() if part in f"{name}_"), None)
    path = unpacked(name)
    if refusal is not None:
        with pytest.raises(HudiError, match=refusal):
            HudiTable.open(path).cluster(options=BY_KEY)
        return

    table = HudiTable.open(path)
    before, changes = rows(table), without_file_names(table.incremental().to_arrow())
    writes = ("commit", "deltacommit", "replacecommit")
    newest = [i.requested for i in table.timeline() if i.completed and i.action in writes][-1]

    result = table.cluster(options=BY_KEY)

    assert result.completed is not None or "pending services already" in result.reason
    assert_same_rows(rows(table), before)
    assert_same_rows(rows(table, as_of=newest), before)
    assert_same_rows(without_file_names(table.incremental().to_arrow()), changes)
    if result.completed is not None:
        if not any(i.action == "compaction" and not i.completed for i in table.timeline()):  # which keep their logs
            assert_same_rows(rows(table, query="read_optimized"), before)
        last = result.requested if table.table_version <= 6 else result.completed
        assert table.incremental(start=last).to_arrow().num_rows == 0
    differences = table.metadata.validate().differences
    if name == "cow_cdc_v5_h0131":  # 0.13.1 lists change logs by paths with the partition, where no file is
        differences = tuple(of for of in differences if not of.name.endswith(".cdc"))
    assert differences == ()


@pytest.mark.parametrize("name", with_long(COPIED, ("cow_bulk_insert_v9_h120", "cow_evo_columns_v8_h102")))
def test_row_groups_that_hudi_wrote_are_copied(unpacked: Callable[[str], Path], name: str) -> None:
    path = unpacked(name)
    table = HudiTable.open(path)
    before = rows(table)

    result = table.cluster()

    new = [file for file in path.rglob("*.parquet") if str(result.requested) in file.name]
    written = [pq.read_metadata(file) for file in new if ".hoodie" not in file.parts]
    assert all(footer.metadata[b"original.created.by"].startswith(b"parquet-mr") for footer in written)
    assert written
    assert_same_rows(rows(table), before)
    assert table.metadata.validate().differences == ()


@pytest.mark.parametrize("name", SCHEDULED)
def test_a_plan_that_hudi_left_is_carried_out(unpacked: Callable[[str], Path], name: str) -> None:
    table = HudiTable.open(unpacked(name))
    before = rows(table)
    snapshot = table._access.snapshot()
    (planned,) = pending_clusterings(snapshot)
    plan = read_plan(snapshot, planned)

    result = table.run_clusterings()

    assert (result.requested, result.given_up) == (planned.requested, ())
    assert (result.file_groups, result.files) == (len(groups_of(plan)), len(plan.input_groups or ()))
    assert_same_rows(rows(table), before)
    assert table.metadata.validate().differences == ()


@pytest.mark.parametrize("name", SCHEDULED)
def test_a_plan_that_hudi_left_keeps_writes_off(unpacked: Callable[[str], Path], name: str) -> None:
    """Version 6 calls a pending clustering as it calls an overwrite."""
    table = HudiTable.open(unpacked(name))
    stored = table.scan(meta_fields=False).to_arrow()
    before, files = rows(table), table.metadata.list_files(listed_by="storage")
    for write in (table.upsert, table.delete):
        with pytest.raises(Conflict, match="is being clustered"):
            write(stored)
    assert_same_rows(rows(table), before)
    assert table.metadata.list_files(listed_by="storage") == files


@pytest.mark.parametrize("name", SCHEDULED)
def test_plans_are_those_of_hudi(golden: GoldenTables, name: str) -> None:
    """The plan of the same slices, to the byte. 0.15.0 does not know the field `missingSchedulePartitions`."""
    snapshot = HudiTable.open(golden.get(name).path)._access.snapshot()
    (planned,) = pending_clusterings(snapshot)
    path = snapshot.timeline.layout.path(Instant(planned.requested, planned.action, "REQUESTED"))
    content = snapshot.storage.get(path)
    theirs = decode_requested_replace(content, path=path).clustering_plan
    assert theirs is not None
    first = (theirs.input_groups or ())[0].slices[0].data_file_path or ""
    root, then = first.rpartition("/")[0].rpartition("/")[0], snapshot.at(planned.requested)

    slices = [one for partition in snapshot.listing.partitions() for one in then.slices(partition)]
    ours = plan_clustering(
        slices, ClusteringSettings(sort_columns=("name",)), Sizing(root, new_base_size_bytes=1), taken=()
    )

    if theirs.missing_schedule_partitions is None:
        assert replace(ours, missing_schedule_partitions=None) == theirs
    else:
        assert ours == theirs
        assert without_marker(encode_requested_replace(requested(ours))) == without_marker(content)


def without_marker(content: bytes) -> bytes:
    """An Avro file without the random marker that ends its header and its block."""
    return content.replace(content[-SYNC_MARKER_BYTES:], b"")


@pytest.mark.parametrize("name", CLUSTERED)
def test_a_commit_states_what_hudis_does(unpacked: Callable[[str], Path], name: str) -> None:
    """Of a clustering that Apache Hudi did, taken back and done again from its plan."""
    table = HudiTable.open(unpacked(name))
    snapshot = table._access.snapshot()
    done = [i for i in snapshot.timeline if i.action == "replacecommit"][-1]
    theirs = read_commit(snapshot.storage, snapshot.timeline, done)
    snapshot.storage.delete(snapshot.timeline.layout.path(done))
    table.metadata.delete()
    again = HudiTable.open(table.path)
    assert [i.requested for i in pending_clusterings(again._access.snapshot())] == [done.requested]

    result = again.run_clusterings()

    assert result.requested == done.requested
    now = again._access.snapshot()
    (mine,) = [i for i in now.timeline if i.requested == done.requested]
    ours = read_commit(now.storage, now.timeline, mine)
    assert ours.partition_to_replace_file_ids is not None
    assert {p: set(ids) for p, ids in ours.partition_to_replace_file_ids.items()} == {
        p: set(ids) for p, ids in (theirs.partition_to_replace_file_ids or {}).items()
    }
    assert (ours.operation_type, ours.compacted, set(ours.extra_metadata)) == (
        theirs.operation_type, theirs.compacted, set(theirs.extra_metadata),
    )  # fmt: skip
    own = {"file_id": None, "path": None, "total_write_bytes": 0, "file_size_in_bytes": 0, "runtime_stats": None}
    for partition, stats in theirs.partition_to_write_stats.items():
        found = ours.partition_to_write_stats[partition]
        assert [replace(stat, **own) for stat in found] == [replace(stat, **own) for stat in stats]  # type: ignore[arg-type]
