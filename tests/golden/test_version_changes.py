"""A table of one version could become one of another that reads otherwise, or has other properties than Apache Hudi's.

Golden tables of versions 5, 6, 8 and 9 go both ways, through version 7 too, and are read like before at each stop.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.errors import Invalid, Unsupported
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, with_long

NAMES = (
    "cow_clean_archive_v5_h0131", "mor_compact_scheduled_v5_h0131", "mor_indexes_v5_h0131", "cow_cdc_v5_h0131",
    "cow_clean_archive_v6_h0150", "cow_clean_archive_v8_h102", "cow_clean_archive_v9_h120", "cow_cluster_v6_h0150",
    "cow_delete_partition_v9_h120", "cow_evo_columns_v6_h0150", "cow_restore_v8_h102", "mor_avro_v8_h102",
    "mor_cluster_v9_h120", "mor_compact_scheduled_v6_h0150", "mor_compact_scheduled_v8_h102",
    "mor_evo_columns_v9_h120", "mor_event_time_v6_h0150", "mor_event_time_v9_h120", "mor_log_compact_v9_h120",
    "mor_mdt_all_v6_h0150", "mor_mdt_all_v9_h120", "mor_replace_v6_h0150", "mor_rollback_v9_h120",
)  # fmt: skip
QUICK = {
    "mor_compact_scheduled_v5_h0131", "cow_clean_archive_v6_h0150", "mor_compact_scheduled_v8_h102",
    "mor_event_time_v9_h120",
}  # fmt: skip


def changed(table: HudiTable, to: int) -> None:
    (table.upgrade if to > table.table_version else table.downgrade)(to)
    assert table.table_version == to


@pytest.mark.parametrize("name", with_long(NAMES, QUICK))
def test_rows_history_and_indexes_stay_at_every_version(tmp_path: Path, name: str) -> None:
    table = HudiTable.open(GoldenTables(tmp_path).get(name).path)
    rows = table.scan(meta_fields=False).to_arrow()
    first = table.table_version
    writes = {i.requested for i in table.timeline(history=True) if i.is_completed and "commit" in i.action}
    indexes = {one for one in table.properties.get("hoodie.table.metadata.partitions", "").split(",") if one}

    for to in [version for version in (9, 7, 6, 8, 7) if version != first] + [first]:
        changed(table, to)
        assert_same_rows(table.scan(meta_fields=False).to_arrow(), rows)
        assert writes <= {i.requested for i in table.timeline(history=True) if i.is_completed}
        assert all(i.is_completed for i in table.timeline())
        if indexes:
            now = set(table.properties["hoodie.table.metadata.partitions"].split(","))
            assert {one for one in indexes if one in ("files", "column_stats", "record_index")} <= now
            assert table.metadata.validate().differences == ()
    keys = rows.slice(0, 1)
    assert table.delete(keys).deleted <= 1


MERGING = ("hoodie.record.merge.mode", "hoodie.record.merge.strategy.id", "hoodie.compaction.payload.class",
           "hoodie.table.legacy.payload.class", "hoodie.table.precombine.field", "hoodie.table.ordering.fields",
           "hoodie.table.version", "hoodie.timeline.layout.version", "hoodie.table.partition.fields")  # fmt: skip

EVENT = {
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.partition.fields": "p",
}  # fmt: skip
DEFAULT = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
LATEST = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
EVENT_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
CHAIN = {
    8: {**EVENT, "hoodie.record.merge.strategy.id": EVENT_ID, "hoodie.compaction.payload.class": DEFAULT,
        "hoodie.table.precombine.field": "ts", "hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"},
    9: {**EVENT, "hoodie.table.legacy.payload.class": DEFAULT, "hoodie.table.ordering.fields": "ts",
        "hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"},
    6: {"hoodie.compaction.payload.class": DEFAULT, "hoodie.table.precombine.field": "ts", "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1", "hoodie.table.partition.fields": "p"},
}  # fmt: skip
"""What 1.2.0 made of such a table, from 6 to 8 to 9 to 8 to 6."""


def test_properties_are_those_that_apache_hudi_gives(tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="cow", record_key="k", partition_by="p", ordering="ts", table_version=6,
        properties={"hoodie.compaction.payload.class": DEFAULT},
    )  # fmt: skip
    table.insert(pa.table({"k": ["a"], "p": ["x"], "ts": [1]}))
    for to in (8, 9, 8, 6):
        changed(table, to)
        properties = table.properties
        assert {name: properties[name] for name in MERGING if name in properties} == CHAIN[to]


def test_a_table_whose_class_and_mode_differ_goes_back_by_its_mode(tmp_path: Path) -> None:
    """1.2.0 upgrades to event time, and names the class of before as the legacy one."""
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="k", ordering="ts", table_version=6, table_type="MERGE_ON_READ",
        properties={"hoodie.compaction.payload.class": LATEST},
    )  # fmt: skip
    changed(table, 9)
    assert table.properties["hoodie.table.legacy.payload.class"] == LATEST
    changed(table, 8)
    assert table.properties["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert table.properties["hoodie.compaction.payload.class"] == DEFAULT


def test_a_dry_run_says_each_step_and_does_none(tmp_path: Path) -> None:
    golden = GoldenTables(tmp_path).get("mor_compact_scheduled_v8_h102")
    table = HudiTable.open(golden.path)
    before = {path: path.read_bytes() for path in golden.path.rglob("*") if path.is_file()}
    plan = table.downgrade(6, dry_run=True)
    assert (plan.before, plan.after, plan.is_dry_run) == (8, 6, True)
    assert plan.steps[0].startswith("finish compaction '")
    assert any(step.startswith("copy ") for step in plan.steps)
    after = {path: path.read_bytes() for path in golden.path.rglob("*") if path.is_file()}
    assert before.items() <= after.items()
    assert table.upgrade(8).steps == ()


def test_what_goes_the_wrong_way_or_cannot_be_said_is_refused(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering=("a", "b"), table_version=9)
    with pytest.raises(Invalid, match="expected one of the numbers 5, 6, 7, 8, 9"):
        table.upgrade(4)
    with pytest.raises(Unsupported, match="version 8 has one ordering column"):
        table.downgrade(7)
    with pytest.raises(Invalid, match="version True: expected one of the numbers"):
        table.upgrade(True)
    with pytest.raises(Invalid, match="expected the version to go to"):
        table.downgrade(None)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="call downgrade"):
        table.upgrade(8)
    with pytest.raises(Unsupported, match="version 8 has one ordering column"):
        table.downgrade(8)
    assert table.table_version == 9


def test_a_write_that_runs_is_not_passed_over(tmp_path: Path) -> None:
    golden = GoldenTables(tmp_path).get("cow_clean_archive_v9_h120")
    table = HudiTable.open(golden.path)
    requested = "20991231235959999"
    (golden.path / ".hoodie" / "timeline" / f"{requested}.commit.requested").write_bytes(b"")
    heartbeat = golden.path / ".hoodie" / ".heartbeat" / requested
    heartbeat.parent.mkdir(parents=True, exist_ok=True)
    heartbeat.write_bytes(b"")
    with pytest.raises(Conflict, match=requested):
        table.downgrade(8)
    assert table.table_version == 9
