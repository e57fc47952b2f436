"""A compaction could lose a row, bring one back, or show it otherwise than the merge of base file and log does.

Every merge-on-read table that Apache Hudi wrote and that this release can write is compacted here; a compaction that
Apache Hudi did is taken back and done again, and must state what Apache Hudi stated.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Unsupported
from pyhudi.format.names import BaseFileName
from pyhudi.format.timeline.action_files import decode_commit, decode_compaction_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CommitMetadata, CompactionPlan, WriteStat
from pyhudi.services.compaction.plan import plan_compaction
from pyhudi.services.compaction.settings import CompactionSettings
from pyhudi.table.view.snapshot import Snapshot
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import golden_names, with_long
from tests.support.merge_on_read import rows, without_file_names

NAMES = tuple(
    name
    for name in golden_names()
    if name.startswith(("mor_", "upgraded_mor_")) and name.split("_")[-2] in ("v8", "v9")
)
QUICK = (
    *("mor_avro_v8_h102", "mor_bucket_v9_h120", "mor_commit_time_v8_h102", "mor_compact_scheduled_v9_h120"),
    *("mor_event_time_v9_h120", "mor_inflight_v8_h102", "mor_is_deleted_v9_h120", "mor_log_compact_v9_h120"),
    *("mor_logonly_v8_h102", "mor_nonpart_v9_h120", "mor_parquet_log_v9_h120", "mor_partial_update_v8_h102"),
    *("mor_delete_field_v9_h120", "mor_nondefaults_v9_h120", "mor_partial_payload_v9_h120"),
    *(
        "mor_virtual_complex_v9_h120",
        "mor_replace_v9_h120",
        "mor_schema_add_v9_h120",
        "mor_schema_promote_v9_h120",
        "upgraded_mor_avro_v9_h120",
    ),
)
"""One table of each kind; the others in long runs."""
DONE_BY_HUDI = (
    *("mor_compact_inline_v9_h120", "mor_logonly_compact_v9_h120", "mor_bucket_compact_v9_h120"),
    "mor_partial_update_compact_v9_h120",
)


@pytest.mark.parametrize("name", with_long(NAMES, QUICK))
def test_a_compaction_changes_no_answer(unpacked: Callable[[str], Path], name: str) -> None:
    table = HudiTable.open(unpacked(name))
    has_times = table.properties.get("hoodie.populate.meta.fields") != "false"
    before, changes = rows(table), changes_of(table) if has_times else None
    commits = [i.requested for i in table.timeline() if i.completed and i.action in ("commit", "deltacommit")]
    past = {requested: rows(table, as_of=requested) for requested in commits[-2:]}

    result = table.compact()

    assert result.reason or result.completed is not None
    assert_same_rows(rows(table), before)
    assert_same_rows(rows(table, query="read_optimized"), before)
    if changes is not None:
        assert_same_rows(changes_of(table), changes)
    for requested, then in past.items():
        assert_same_rows(rows(table, as_of=requested), then)
    assert_same_rows(rows(HudiTable.open(table.path, options={"hoodie.metadata.enable": "false"})), before)
    assert [i for i in table.timeline() if i.state != "COMPLETED" and i.action == "compaction"] == []
    assert table.compact().reason


def changes_of(table: HudiTable) -> pa.Table:
    return without_file_names(table.incremental().to_arrow())


@pytest.mark.parametrize("name", ["mor_nondefaults_v9_h120", "mor_partial_payload_v9_h120"])
def test_logs_whose_records_make_one_of_several_are_not_compacted_into_logs(
    unpacked: Callable[[str], Path], name: str
) -> None:
    with pytest.raises(Unsupported, match="its merge mode makes a record of several"):
        HudiTable.open(unpacked(name)).log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})


@pytest.mark.parametrize(
    "name",
    with_long(
        [n for n in NAMES if not any(of in n for of in ("partial_update", "nondefaults", "partial_payload"))], QUICK
    ),
)
def test_a_log_compaction_changes_no_answer(unpacked: Callable[[str], Path], name: str) -> None:
    table = HudiTable.open(unpacked(name))
    before = rows(table)

    result = table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})

    assert_same_rows(rows(table), before)
    assert_same_rows(rows(HudiTable.open(table.path, options={"hoodie.metadata.enable": "false"})), before)
    assert result.file_groups > 0 or "no slice" in result.reason
    table.compact()
    assert_same_rows(rows(table), before)
    assert_same_rows(rows(table, query="read_optimized"), before)


def completed(path: Path, operation: str) -> list[tuple[Instant, CommitMetadata]]:
    """The completed instants of an operation, with what they say."""
    table, found = HudiTable.open(path), []
    for instant in table.timeline():
        if instant.completed is not None and instant.action in ("commit", "deltacommit"):
            file = path / f".hoodie/timeline/{instant.requested}_{instant.completed}.{instant.action}"
            metadata = decode_commit(file.read_bytes(), path=file.name)
            if metadata.operation_type == operation:
                found.append((instant, metadata))
    return found


def stated(metadata: CommitMetadata) -> dict[str, tuple[object, ...]]:
    """What a compaction says of each file group, times and bytes left out."""

    def facts(stat: WriteStat) -> tuple[object, ...]:
        return (
            stat.partition_path, stat.prev_commit, stat.prev_base_file, stat.num_writes, stat.num_inserts,
            stat.num_update_writes, stat.num_deletes, stat.total_log_records, stat.total_log_files_compacted,
            stat.total_log_blocks, stat.total_updated_records_compacted, stat.total_corrupt_log_block,
            stat.total_rollback_blocks, stat.is_log,
        )  # fmt: skip

    stats = (stat for of in metadata.partition_to_write_stats.values() for stat in of)
    return {stat.file_id or "": facts(stat) for stat in stats}


@pytest.mark.parametrize("name", DONE_BY_HUDI)
def test_a_compaction_of_apache_hudi_done_again_states_the_same(unpacked: Callable[[str], Path], name: str) -> None:
    path = unpacked(name)
    instant, theirs = completed(path, "COMPACT")[-1]
    (path / f".hoodie/timeline/{instant.requested}_{instant.completed}.commit").unlink()
    table = HudiTable.open(path, options={"hoodie.metadata.enable": "false"})
    before = rows(table)

    result = table.compact()

    again = {i.requested: metadata for i, metadata in completed(path, "COMPACT")}
    ours = again[instant.requested]
    assert stated(ours) == stated(theirs)
    assert ours.compacted == theirs.compacted
    assert set(ours.extra_metadata) == set(theirs.extra_metadata)
    assert_same_rows(rows(table), before)
    stale = [stat.path for of in theirs.partition_to_write_stats.values() for stat in of]
    assert [one for one in stale if (path / str(one)).exists()] == []
    assert result.completed is not None


@pytest.mark.parametrize("name", ["mor_compact_scheduled_v8_h102", "mor_compact_scheduled_v9_h120"])
def test_our_plan_is_the_one_of_apache_hudi(unpacked: Callable[[str], Path], name: str) -> None:
    path = unpacked(name)
    requested = sorted(path.glob(".hoodie/timeline/*.compaction.requested"))[-1]
    theirs = decode_compaction_plan(requested.read_bytes(), path=requested.name)
    snapshot = snapshot_before(path, requested.name.partition(".")[0])

    ours = plan_compaction(
        [piece for partition in snapshot.listing.partitions() for piece in snapshot.slices(partition)],
        CompactionSettings(), taken=(), new_base_size_bytes=120 << 20,
    )  # fmt: skip

    assert by_group(ours) == by_group(theirs)
    assert (ours.version, ours.strategy, ours.preserve_hoodie_metadata) == (
        theirs.version, theirs.strategy, theirs.preserve_hoodie_metadata,
    )  # fmt: skip
    assert (ours.extra_metadata, ours.missing_schedule_partitions) == (
        theirs.extra_metadata, theirs.missing_schedule_partitions,
    )  # fmt: skip
    sizes = [(o.metrics or {})["TOTAL_LOG_FILES_SIZE"] for o in ours.operations or ()]
    assert sizes == [(o.metrics or {})["TOTAL_LOG_FILES_SIZE"] for o in theirs.operations or ()]


def by_group(plan: CompactionPlan) -> dict[str, object]:
    return {operation.file_id or "": operation for operation in plan.operations or ()}


def snapshot_before(path: Path, requested: str) -> Snapshot:
    """The table as its planner saw it: without what was requested later."""
    for file in (path / ".hoodie/timeline").iterdir():
        if file.is_file() and file.name[:17] >= requested:
            file.unlink()
    for file in path.rglob("*"):
        base = BaseFileName.parse(file.name)
        if base is not None and ".hoodie" not in file.parts and base.requested >= requested:
            file.unlink()
    return HudiTable.open(path, options={"hoodie.metadata.enable": "false"})._access.snapshot()
