"""A procedure or table function could answer with other columns than Apache Hudi's, or do something it does not say."""

from collections.abc import Iterator
from typing import Any

import pytest

from pyhudi import HudiTable, Invalid, NotFound, Unsupported
from tests.spark.test_sql_statements import CREATE, FIRST, A, B, C, Sql, own_database, used
from tests.spark.test_sql_statements import sql as _sql

pytestmark = pytest.mark.spark
sql = _sql


@pytest.fixture(scope="module")
def standing(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """A table of the module's, for calls that change nothing."""
    with own_database(spark, tmp_path_factory.mktemp("standing")) as sql:
        with used(sql):
            sql(f"{CREATE} (type = 'mor', primaryKey = 'id', preCombineField = 'ts')")
            sql(FIRST)
        yield sql


@pytest.fixture
def filled(sql: Sql) -> Sql:
    sql(f"{CREATE} (type = 'mor', primaryKey = 'id', preCombineField = 'ts')")
    sql(FIRST)
    sql("UPDATE t SET name = 'new', ts = 11 WHERE dt = 'x'")
    return sql


def asked(sql: Sql, text: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in sql.spark.sql(text).collect()]


def test_commits_are_shown(filled: Sql) -> None:
    newest, first = (instant.requested for instant in reversed(filled.table("t").timeline()))
    shown = asked(filled, "CALL show_commits(table => 't')")

    assert [row["commit_time"] for row in shown] == [newest, first]
    assert list(shown[0]) == [
        "commit_time", "state_transition_time", "action", "total_bytes_written", "total_files_added",
        "total_files_updated", "total_partitions_written", "total_records_written", "total_update_records_written",
        "total_errors",
    ]  # fmt: skip
    assert [shown[0][name] for name in ("action", "total_files_updated", "total_update_records_written")] == [
        "deltacommit", 1, 2,
    ]  # fmt: skip
    assert len(asked(filled, "CALL show_commits('t', 1)")) == 1
    assert len(asked(filled, "CALL hudi.show_commits('t', 1)")) == 1
    with pytest.raises(Invalid, match="limit => 'x': expected a number"):
        filled("CALL show_commits('t', limit => 'x')")
    path = filled.table("t").path
    assert len(asked(filled, f"call system.show_commits(path => '{path}', limit => 5);")) == 2
    assert len(asked(filled, f"CALL show_commits_metadata(table => '{filled.database}.t')")) == 3
    files = asked(filled, f"CALL show_commit_files(table => 't', instant_time => '{first}')")
    assert sorted(row["partition_path"] for row in files) == ["dt=x", "dt=y"]
    partitions = asked(filled, f"CALL show_commit_partitions(table => 't', instant_time => '{first}')")
    assert sum(row["total_records_inserted"] for row in partitions) == 3
    stats = asked(filled, f"CALL show_commit_write_stats('t', 10, '{first}')")
    assert stats[0]["total_records_written"] == 3
    keys = asked(filled, f"CALL show_commit_extra_metadata(table => 't', instant_time => '{first}')")
    assert "schema" in {row["metadata_key"] for row in keys}
    assert [row["state"] for row in asked(filled, "CALL show_timeline(table => 't')")] == ["COMPLETED"] * 2
    assert asked(filled, "CALL show_archived_commits(table => 't')") == []


def test_services_run(filled: Sql) -> None:
    assert asked(filled, "CALL run_compaction(op => 'schedule', table => 't')")[0]["state"] == "REQUESTED"
    assert asked(filled, "CALL show_compaction(table => 't')")[0]["state"] == "REQUESTED"
    (done,) = asked(filled, "CALL run_compaction(op => 'run', table => 't')")
    assert (done["operation_size"], done["state"]) == (1, "COMPLETED")
    (clustered,) = asked(filled, "CALL run_clustering(table => 't', order => 'ts', show_involved_partition => true)")
    assert (clustered["state"], clustered["involved_partitions"]) == ("COMPLETED", "dt=x,dt=y")
    assert len(asked(filled, "CALL show_clustering('t')")) == 1
    filled("UPDATE t SET name = 'newer' WHERE dt = 'x'")
    assert asked(filled, "CALL run_compaction(op => 'execute', table => 't')") == []  # nothing is planned
    asked(filled, "CALL run_compaction(op => 'schedule', table => 't')")
    filled("SET hoodie.compact.inline = false")
    filled("UPDATE t SET name = 'newest' WHERE dt = 'x'")
    filled("RESET hoodie.compact.inline")
    assert asked(filled, "CALL run_compaction(op => 'execute', table => 't', limit => 0)") == []
    (done,) = asked(filled, "CALL run_compaction(op => 'execute', table => 't')")
    assert done["state"] == "COMPLETED"
    for waits in ("trigger_max_commits => 9", "schedule_in_line => false", "options => 'hoodie.clean.max.commits=9'"):
        assert asked(filled, f"CALL run_clean(table => 't', retain_commits => 1, {waits})") == []
    cleaned = asked(filled, "CALL run_clean(table => 't', retain_commits => 1, trigger_max_commits => 1)")
    assert list(cleaned[0])[:3] == ["start_clean_time", "time_taken_in_millis", "total_files_deleted"]
    assert len(asked(filled, "CALL show_cleans(table => 't')")) == 1
    assert asked(filled, "CALL run_ttl(table => 't', retain_days => 1)") == []
    assert asked(filled, "CALL archive_commits(table => 't')") == [{"result": 0}]
    assert filled.rows("t", "id, name") == [(1, "newest"), (2, "newest"), (3, "c")]


def test_savepoints_and_rollbacks(filled: Sql) -> None:
    assert asked(filled, "CALL create_savepoint('t', '', 'me', 'before')") == [{"create_savepoint_result": True}]
    (saved,) = asked(filled, "CALL show_savepoints(table => 't')")
    filled("DELETE FROM t WHERE id = 3")
    newest = filled.table("t").timeline()[-1].requested
    filled("INSERT INTO t VALUES (4, 'd', 1, 'y')")
    assert asked(filled, "CALL rollback_to_savepoint(table => 't')") == [{"rollback_savepoint_result": True}]
    assert len(filled.rows("t")) == 3
    time = saved["savepoint_time"]
    filled(f"CALL delete_savepoint(table => 't', instant_time => '{time}')")
    assert asked(filled, "CALL show_savepoints(table => 't')") == []
    assert newest > time
    filled("INSERT INTO t VALUES (5, 'e', 1, 'y')")
    last = filled.table("t").timeline()[-1].requested
    assert asked(filled, f"CALL rollback_to_instant(table => 't', instant_time => '{last}')") == [
        {"rollback_result": True}
    ]
    assert last in {row["rollback_instant"] for row in asked(filled, "CALL show_rollbacks(table => 't')")}
    assert len(filled.rows("t")) == 3


def test_files_and_the_table_are_shown_and_copied(filled: Sql) -> None:
    newest = asked(filled, "CALL show_fsview_latest(table => 't')")
    assert sorted((row["partition"], row["num_delta_files"]) for row in newest) == [("dt=x", 1), ("dt=y", 0)]
    assert len(asked(filled, "CALL show_fsview_all(table => 't', path_regex => 'dt=y')")) == 1
    assert asked(filled, "CALL stats_file_sizes(table => 't')")[-1]["num_files"] == 3
    assert asked(filled, "CALL stats_wa(table => 't')")[-1]["write_amplification_factor"] == "2.50"
    properties = {row["key"]: row["value"] for row in asked(filled, "CALL show_table_properties('t', limit => 99)")}
    assert properties["hoodie.table.name"] == "t"
    assert [row["partition"] for row in asked(filled, "CALL show_metadata_table_partitions('t')")] == ["dt=x", "dt=y"]
    assert len(asked(filled, "CALL show_metadata_table_files('t', partition => 'dt=x')")) == 2
    assert "data_files" in {row["stat_key"] for row in asked(filled, "CALL show_metadata_table_stats('t')")}
    filled("CALL copy_to_temp_view(table => 't', view_name => 'copied', replace => true)")
    assert filled.rows("copied", "id") == [(1,), (2,), (3,)]
    filled("CALL copy_to_table(table => 't', new_table => 'other', columns => 'id,name')")
    assert filled("SELECT count(*) FROM other") == [(3,)]
    for call in ("drop_partition('t', '')", "truncate_table('t', 'dt=x, ')", "truncate_table('t', '')"):
        with pytest.raises(Invalid, match="expected names of partitions, found an empty one"):
            filled(f"CALL {call}")
    filled("CALL drop_partition(table => 't', partition => 'dt=x')")
    assert filled.rows("t") == [C]
    filled("CALL truncate_table(table => 't')")
    assert filled.rows("t") == []
    filled("CALL delete_metadata_table(table => 't')")
    assert HudiTable.open(filled.table("t").path).metadata.partitions_in_use == ()
    filled("CALL create_metadata_table('t')")
    filled.spark.catalog.dropTempView("copied")


def test_partitions_get_other_numbers_of_buckets(sql: Sql) -> None:
    sql(f"{CREATE} (primaryKey = 'id', 'hoodie.index.type' = 'BUCKET', 'hoodie.bucket.index.num.buckets' = '2', "
        "'hoodie.bucket.index.partition.expressions' = 'dt=x,4')")  # fmt: skip
    sql(FIRST)
    call = "CALL partition_bucket_index_manager(table => 't', "

    (told,) = asked(sql, f"{call}show_config => true)")
    assert "expressions=dt=x,4, defaultBucketNumber=2" in told["details"]
    (told,) = asked(sql, f"{call}overwrite => 'dt=x,1')")
    assert told == {"result": "SUCCESS", "operation": "DRY_RUN_OVERWRITE", "details": "\ndt=x => 1\n"}
    asked(sql, f"{call}overwrite => 'dt=x,1', dry_run => false)")
    asked(sql, f"{call}add => 'dt=z,3', dry_run => false)")
    assert sql.rows("t") == [A, B, C]
    (told,) = asked(sql, f"{call}show_config => true)")
    assert "expressions=dt=z,3;dt=x,1, defaultBucketNumber=2" in told["details"]
    with pytest.raises(Invalid, match="expected one of overwrite, add, rollback and show_config"):
        sql(f"{call}overwrite => 'dt=x,1', add => 'dt=y,1')")


def test_help_lists_all_procedures(filled: Sql) -> None:
    (text,) = filled("CALL help")[0]
    assert all(name in text for name in ("show_commits", "run_compaction", "create_savepoint", "copy_to_table"))
    (one,) = filled("CALL help('show_commit_files')")[0]
    assert "instant_time: required" in one
    assert "file_size long" in one


@pytest.mark.parametrize(
    "text,error,expected",
    [
        ("CALL nonsense('t')", Invalid, "CALL help"),
        ("CALL show_commit()", Invalid, "nearest is 'show_commits'"),
        ("CALL hive_sync(table => 't')", Unsupported, "CALL hive_sync: is not carried out"),
        ("CALL show_commits()", Invalid, "table => 'name' or path"),
        ("CALL show_commits(table => 'nothing')", NotFound, "nothing"),
        ("CALL show_commits('t', nonsense => 1)", Invalid, "found 'nonsense'"),
        ("CALL show_commits('t', 1, '/x', 4)", Invalid, "at most 3"),
        ("CALL show_commit_files('t')", Invalid, "a value for 'instant_time'"),
        ("CALL run_compaction(op => 'nonsense', table => 't')", Invalid, "scheduleAndExecute"),
        ("SELECT * FROM hudi_table_changes('t', 'nonsense', 'earliest')", Invalid, "'latest_state' or 'cdc'"),
        ("SELECT * FROM hudi_table_changes('t', 'latest_state')", Invalid, "third argument"),
        ("SELECT * FROM hudi_query_timeline('nothing')", NotFound, "nothing"),
        ("SELECT * FROM hudi_query('t', 'nonsense')", Invalid, "nonsense"),
    ],
)
def test_a_call_that_cannot_be_says_why(standing: Sql, text: str, error: type, expected: str) -> None:
    with used(standing), pytest.raises(error, match=expected):
        standing(text)


def test_table_functions_go_by_name_and_path_and_stand_anywhere(filled: Sql) -> None:
    sql, path = filled, filled.table("t").path
    first = sql.table("t").timeline()[0]
    changed = f"SELECT id FROM hudi_table_changes('{path}', 'latest_state', '{first.completed}') ORDER BY id"
    assert sql(changed) == [(1,), (2,)]
    assert sql("SELECT count(*) FROM t JOIN hudi_table_changes('t', 'latest_state', 'earliest') c USING (id)") == [(3,)]
    made = asked(sql, f"SELECT * FROM hudi_table_changes('t', 'cdc', '{first.completed}') ORDER BY after")
    assert (list(made[0]), [row["op"] for row in made]) == (["op", "ts_ms", "before", "after"], ["u", "u"])
    sql("CREATE VIEW changes AS SELECT * FROM hudi_table_changes('t', 'latest_state', 'earliest') WHERE dt = 'x'")
    assert sql("SELECT count(*) FROM changes") == [(2,)]
    timeline = asked(sql, "SELECT * FROM hudi_query_timeline('t', 'true') ORDER BY Timestamp")
    assert list(timeline[0])[:5] == ["Timestamp", "Action", "State", "Completion_Time", "File_Name"]
    assert [row["Total_Records_Written"] for row in timeline] == [3, 2]
    assert sql("SELECT sum(Log_File_Count) FROM hudi_filesystem_view('t')") == [(1,)]
    assert sql("SELECT count(*) FROM hudi_filesystem_view('t', 'dt=y')") == [(1,)]
    listed = dict(sql("SELECT key, size(filesystemMetadata) FROM hudi_metadata('t')"))
    assert listed == {"__all_partitions__": 2, "dt=x": 2, "dt=y": 1}
    assert sorted(sql("SELECT id, name FROM hudi_query('t', 'read_optimized')")) == [A[:2], B[:2], C[:2]]


def test_compactions_have_an_older_form(sql: Sql) -> None:
    sql("CREATE TABLE t (id INT, v INT) USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id')")
    sql("INSERT INTO t VALUES (1, 1)")
    sql("UPDATE t SET v = 2")
    ((planned, _, state),) = sql("SCHEDULE COMPACTION ON t")
    assert (state, sql("SHOW COMPACTION ON t LIMIT 1")) == ("REQUESTED", [(planned, 1, "REQUESTED")])
    with pytest.raises(NotFound, match=f"'2020', found none; pending are {planned}"):
        sql("RUN COMPACTION ON t AT 2020")
    assert sql(f"RUN COMPACTION ON '{sql.table('t').path}' AT {planned}") == [(planned, 1, "COMPLETED")]
    assert sql("SELECT v FROM hudi_query('t', 'read_optimized')") == [(2,)]


def test_savepoints_go_all_or_none(filled: Sql) -> None:
    filled("CALL create_savepoint('t')")
    filled("INSERT INTO t VALUES (4, 'd', 1, 'y')")
    filled("CALL create_savepoint('t')")
    times = [row["savepoint_time"] for row in asked(filled, "CALL show_savepoints('t')")]
    assert len(times) == 2

    with pytest.raises(NotFound, match="no savepoint of 2020"):
        filled(f"CALL delete_savepoint('t', '{times[0]},2020')")
    assert len(filled("CALL show_savepoints('t')")) == 2
    filled(f"CALL delete_savepoint('t', '{times[0]}, {times[1]}')")
    assert filled("CALL show_savepoints('t')") == []


def test_clusterings_take_partitions_by_a_predicate_and_plans_by_their_time(sql: Sql) -> None:
    sql("CREATE TABLE t (id INT, n INT) USING hudi PARTITIONED BY (n) TBLPROPERTIES (primaryKey = 'id', "
        "'hoodie.parquet.small.file.limit' = '0')")  # fmt: skip
    for ids in ((1, 2, 3), (4, 5, 6)):
        sql(f"INSERT INTO t VALUES ({ids[0]}, 5), ({ids[1]}, 50), ({ids[2]}, 500)")

    (done,) = asked(sql, "CALL run_clustering('t', predicate => 'n > 400', show_involved_partition => true)")
    assert done["involved_partitions"] == "n=500"
    assert sql("CALL run_clustering('t', predicate => 'n > 1000')") == []
    with pytest.raises(Exception, match="nothing"):
        sql("CALL run_clustering('t', predicate => 'nothing = 1')")

    plans = []
    for n in (5, 50):
        (planned,) = asked(sql, f"CALL run_clustering('t', op => 'schedule', selected_partitions => 'n={n}')")
        plans.append(planned["timestamp"])
    (done,) = asked(sql, f"CALL run_clustering('t', instants => '{plans[1]}', show_involved_partition => true)")
    assert (done["timestamp"], done["involved_partitions"], done["state"]) == (plans[1], "n=50", "COMPLETED")
    states = {row["timestamp"]: row["state"] for row in asked(sql, "CALL show_clustering('t')")}
    assert (states[plans[0]], states[plans[1]]) == ("REQUESTED", "COMPLETED")
    with pytest.raises(Invalid, match="plans a new one"):
        sql(f"CALL run_clustering('t', op => 'schedule', instants => '{plans[0]}')")
