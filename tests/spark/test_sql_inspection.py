"""A procedure that looks into files, statistics or folders could show what is not there, or a repair harm the table."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import Conflict, HudiTable, Invalid, NotFound, Unsupported
from pyhudi.format.names import marker_folder
from tests.spark.test_sql_procedures import asked
from tests.spark.test_sql_statements import CREATE, FIRST, Sql, own_database, used

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def shown(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """A table with base files, logs and column statistics, for calls that leave its rows alone."""
    with own_database(spark, tmp_path_factory.mktemp("shown")) as sql:
        with used(sql):
            sql(f"{CREATE} (type = 'mor', primaryKey = 'id', preCombineField = 'ts')")
            sql(FIRST)
            sql("UPDATE t SET name = 'new', ts = 11 WHERE dt = 'x'")
            sql.table("t").build_index("column_stats")
        yield sql


@pytest.fixture(autouse=True)
def _used(shown: Sql) -> Iterator[None]:
    with used(shown):
        yield


def test_logs_are_shown(shown: Sql) -> None:
    path = shown.table("t").path
    (block,) = asked(shown, f"CALL show_logfile_metadata(table => 't', log_file_path_pattern => '{path}/dt=x/.*log*')")
    assert (block["record_count"], block["block_type"], block["footer_metadata"]) == (2, "AVRO_DATA_BLOCK", "{}")
    assert json.loads(block["header_metadata"])["INSTANT_TIME"] == block["instant_time"]
    pattern = f"file://{path}/dt=x/.*log*"
    records = asked(shown, f"CALL show_logfile_records(table => 't', log_file_path_pattern => '{pattern}')")
    assert sorted(json.loads(row["records"])["id"] for row in records) == [1, 2]
    assert asked(shown, f"CALL show_logfile_metadata(table => 't', log_file_path_pattern => '{path}/dt=y/*')") == []
    with pytest.raises(Unsupported, match="SELECT from the table"):
        shown(f"CALL show_logfile_records(table => 't', log_file_path_pattern => '{pattern}', merge => true)")


def test_bounds_of_columns_and_their_overlap(shown: Sql) -> None:
    stats = asked(shown, "CALL show_metadata_table_column_stats(table => 't', targetColumns => 'id')")
    bounds = sorted((row["min_value"], row["max_value"], row["null_number"]) for row in stats)
    assert bounds == [("1", "2", 0), ("3", "3", 0)]  # the newest base file of each partition
    only = asked(shown, "CALL show_metadata_table_column_stats(table => 't', partition => 'dt=y')")
    assert {row["column_name"] for row in only} == {"id", "name", "ts", "dt"}
    shown_overlap = asked(shown, "CALL show_metadata_column_stats_overlap(table => 't', targetColumns => 'id')")
    assert [tuple(row.values())[:5] for row in shown_overlap] == [("dt=x", "id", 1.0, 1, 1), ("dt=y", "id", 1.0, 1, 1)]
    with pytest.raises(Invalid, match="column 'nothing'"):
        shown("CALL show_metadata_table_column_stats(table => 't', targetColumns => 'nothing')")


def test_folders_and_files_are_shown(shown: Sql, tmp_path: Path) -> None:
    path = shown.table("t").path
    (whole,) = asked(shown, f"CALL show_fs_path_detail(path => '{path}')")
    below = asked(shown, f"CALL show_fs_path_detail(path => '{path}', is_sub => true, filter => 'file_num > 0')")
    assert whole["storage_size"] == sum(row["storage_size"] for row in below)
    assert {row["storage_path"] for row in below} == {f"{path}/{name}" for name in (".hoodie", "dt=x", "dt=y")}
    with pytest.raises(NotFound, match="found none"):
        shown(f"CALL show_fs_path_detail(path => '{tmp_path}/nothing')")

    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "torn.parquet").write_bytes(b"PAR1 not whole")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "p" / "sound.parquet")
    found = asked(shown, f"CALL show_invalid_parquet(path => '{tmp_path}')")
    assert found == [{"path": f"{tmp_path}/p/torn.parquet"}]
    assert asked(shown, f"CALL show_invalid_parquet(path => '{tmp_path}', partitions => 'q')") == []
    with pytest.raises(Unsupported, match="needDelete"):
        shown(f"CALL show_invalid_parquet(path => '{tmp_path}', needDelete => true)")


def test_the_status_of_a_file_is_told(shown: Sql) -> None:
    name = asked(shown, "CALL show_fsview_latest(table => 't', path_regex => 'dt=y')")[0]["data_file"].rpartition("/")[
        2
    ]
    (there,) = asked(shown, f"CALL show_file_status(table => 't', partition => 'dt=y', file => '{name}')")
    assert (there["status"], there["timeline"], there["full_path"].rpartition("/")[2]) == ("exist", "active", name)
    (gone,) = asked(shown, "CALL show_file_status(table => 't', partition => 'dt=y', file => 'nothing')")
    assert tuple(gone.values()) == ("unknown", "", "", "", "")
    with pytest.raises(Invalid, match="expected its partition"):
        shown(f"CALL show_file_status(table => 't', file => '{name}')")


def test_the_metadata_table_is_compared_and_initialised(shown: Sql) -> None:
    assert asked(shown, "CALL validate_metadata_table_files(table => 't')") == []
    all_files = asked(shown, "CALL validate_metadata_table_files(table => 't', verbose => true)")
    assert len(all_files) == 3
    assert all(row["fs_size"] == row["metadata_size"] > 0 for row in all_files)
    for call, verb in (("read_only => true", "Opened"), ("read_only => false", "Initialized")):
        (told,) = asked(shown, f"CALL init_metadata_table(table => 't', {call})")
        assert told["result"].startswith(f"{verb} Metadata Table in {shown.table('t').path}/.hoodie/metadata")


def test_commits_are_compared_and_exported(shown: Sql, tmp_path: Path) -> None:
    path = shown.table("t").path
    (told,) = asked(shown, f"CALL commits_compare(table => 't', path => '{path}')")
    assert told["compare_detail"] == "Source t is ahead by 0 commits. Commits to catch up - []"
    shown("CREATE TABLE u (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    behind = asked(shown, f"CALL commits_compare(table => 'u', path => '{path}')")[0]["compare_detail"]
    assert behind.startswith("Source u is behind by 2 commits. Commits to catch up - [2")
    (done,) = asked(
        shown, f"CALL export_instants(table => 't', local_folder => '{tmp_path}', desc => true, limit => 1)"
    )
    assert done["export_detail"] == f"Exported 1 Instants to {tmp_path}"
    (file,) = tmp_path.iterdir()
    assert list(json.loads(file.read_text())["partitionToWriteStats"]) == ["dt=x"]
    with pytest.raises(Invalid, match="folder of this machine"):
        shown(f"CALL export_instants(table => 't', local_folder => '{tmp_path}/nothing')")
    for inside in (f"{path}/.hoodie/timeline", f"{path}/dt=x", path):
        with pytest.raises(Invalid, match="expected a folder outside of tables, found one in table"):
            shown(f"CALL export_instants(table => 't', local_folder => '{inside}')")


def test_markers_and_marks_of_partitions(shown: Sql) -> None:
    table = shown.table("t")
    root, requested = Path(table.path), table.timeline()[0].requested
    marker = root / marker_folder(requested) / "dt=x" / "left.parquet.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.write_bytes(b"")
    assert asked(shown, f"CALL delete_marker(table => 't', instant_time => '{requested}')") == [
        {"delete_marker_result": True}
    ]
    assert not marker.exists()

    (mark,) = (root / "dt=y").glob(".hoodie_partition_metadata*")
    mark.unlink()
    rows = {row["partition_path"]: row for row in asked(shown, "CALL repair_add_partition_meta(table => 't')")}
    assert (rows["dt=x"]["metadata_is_present"], rows["dt=y"]["metadata_is_present"]) == ("Yes", "No")
    assert not mark.exists()
    done = {row["partition_path"]: row["action"] for row in asked(shown, "CALL repair_add_partition_meta('t', false)")}
    assert done == {"dt=x": "None", "dt=y": "Repaired"}
    assert mark.exists()
    shapes = asked(shown, "CALL repair_migrate_partition_meta(table => 't')")
    assert {(row["text_metafile_present"], row["action"]) for row in shapes} == {("true", "MIGRATE")}
    with pytest.raises(Unsupported, match="dry_run => true"):
        shown("CALL repair_migrate_partition_meta(table => 't', dry_run => false)")


def test_a_pending_service_is_taken_off_and_its_markers_stay(shown: Sql) -> None:
    shown("CALL run_compaction(op => 'schedule', table => 't')")
    (planned,) = asked(shown, "CALL show_timeline(table => 't', filter => \"state = 'REQUESTED'\")")
    pending = planned["instant_time"]
    assert planned["requested_time"][2] == "-"
    with pytest.raises(Conflict, match="is pending"):
        shown(f"CALL delete_marker(table => 't', instant_time => '{pending}')")
    call = f"CALL run_rollback_inflight_tableservice(table => 't', pending_instant => '{pending}'"
    with pytest.raises(Unsupported, match="delete_request_instant_file => true"):
        shown(f"{call})")
    (done,) = asked(shown, f"{call}, delete_request_instant_file => true)")
    assert (done["instant"], done["time_cost"].isdigit()) == (pending, True)
    assert asked(shown, "CALL show_compaction(table => 't')") == []
    with pytest.raises(Invalid, match="expected a pending compaction or clustering, found none"):
        shown(f"{call})")
    rollbacks = asked(shown, "CALL show_timeline(table => 't', filter => \"action = 'rollback'\")")
    assert [row["rollback_info"] for row in rollbacks] == [f"Rolled back: {pending}"]


def test_versions_change_by_word_and_number(shown: Sql) -> None:
    assert asked(shown, "CALL downgrade_table(table => 't', to_version => 'eight')") == [{"result": True}]
    assert shown.table("t").table_version == 8
    assert asked(shown, "CALL upgrade_table(table => 't', to_version => '9')") == [{"result": True}]
    assert shown.table("t").table_version == 9
    for said in ("nonsense", "12"):
        with pytest.raises(Invalid):
            shown(f"CALL upgrade_table(table => 't', to_version => '{said}')")


def test_a_table_is_bootstrapped_and_its_sources_shown(shown: Sql, tmp_path: Path) -> None:
    (tmp_path / "files" / "dt=x").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "files" / "dt=x" / "one.parquet")
    call = (
        f"CALL run_bootstrap(table => 'booted', table_type => 'COPY_ON_WRITE', bootstrap_path => '{tmp_path}/files', "
        f"base_path => '{tmp_path}/booted', rowKey_field => 'id', partition_path_field => 'dt'"
    )
    with pytest.raises(Unsupported, match="enable_hive_sync"):
        shown(f"{call}, enable_hive_sync => true)")
    facts = "options => 'hoodie.datasource.write.precombine.field=id,hoodie.write.table.version=9'"
    generator = "bootstrap_overwrite => true, key_generator_class => 'SIMPLE'"
    assert asked(shown, f"{call}, {generator}, {facts})") == [{"status": 0}]
    booted = HudiTable.open(f"{tmp_path}/booted")
    assert (booted.ordering, booted.table_version) == (("id",), 9)
    assert asked(shown, f"CALL show_bootstrap_partitions(path => '{tmp_path}/booted')") == [
        {"indexed_partitions": "dt=x"}
    ]
    (row,) = asked(shown, f"CALL show_bootstrap_mapping(path => '{tmp_path}/booted', partition_path => 'dt=x')")
    assert (row["partition"], row["source_partition"]) == ("dt=x", "dt=x")
    assert row["source_file"].endswith("files/dt=x/one.parquet")
    assert len(shown(f"SELECT * FROM hudi.`{tmp_path}/booted`")) == 2
    with pytest.raises(NotFound, match="bootstrapped table"):
        shown("CALL show_bootstrap_partitions(table => 't')")
