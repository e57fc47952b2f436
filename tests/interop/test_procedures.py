"""A procedure could answer with other values than Apache Hudi's does about the same table."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from pyhudi import HudiTable
from pyhudi.spark.procedures.procedure import REQUIRED, Invocation
from pyhudi.spark.procedures.registry import PROCEDURES
from pyhudi.spark.session import SqlSession
from pyhudi.sql.words import split_list
from tests.support.reference.client import ReferenceHudi

PASSED_OVER: Final[dict[str, tuple[str, ...]]] = {
    # Paths, and the names of the logs, which Apache Hudi shows as Java objects.
    "show_fsview_all": ("data_file", "delta_files"),
    "show_fsview_latest": (
        "data_file", "delta_files_compaction_scheduled", "delta_files_compaction_unscheduled",
    ),
    "show_rollback_detail": ("deleted_file",),
    "init_metadata_table": ("result",),
    # Files that Apache Hudi's file system writes beside each file count there.
    "show_timeline": ("requested_time", "inflight_time", "completed_time"),
}  # fmt: skip
"""Columns that are not compared, by procedure."""

OBJECTS: Final = ("header_metadata", "footer_metadata")
"""Columns of JSON objects. Apache Hudi lists the members in the order of a hash, which is another in each JVM."""

PLAIN: Final = (
    "show_commits", "show_commits_metadata", "show_rollbacks", "show_cleans", "show_cleans_metadata",
    "show_clean_plans", "show_savepoints", "show_compaction", "show_clustering", "stats_file_sizes",
    "show_fsview_all", "show_fsview_latest", "show_metadata_table_partitions", "show_archived_commits",
    "show_archived_commits_metadata", "show_timeline", "show_table_properties", "validate_metadata_table_files",
    "repair_migrate_partition_meta",
)  # fmt: skip


class Both:
    """One table, asked by both sides."""

    def __init__(self, hudi: ReferenceHudi, path: Path) -> None:
        self.hudi, self.path = hudi, path

    def theirs(self, name: str, **arguments: object) -> list[dict[str, Any]]:
        stated = ", ".join(f"{key} => {json.dumps(value)}" for key, value in arguments.items())
        answer = self.hudi.sql(f"CALL {name}(table => 'both'{', ' if stated else ''}{stated})")
        return [] if answer is None else answer.to_pylist()

    def ours(self, name: str, **arguments: object) -> list[dict[str, Any]]:
        """What the procedure gives, without a Spark session."""
        procedure = PROCEDURES[name]
        defaults = {one.name: one.default for one in procedure.arguments if one.default is not REQUIRED}
        call = Invocation(SqlSession(None, None), name, {**defaults, **arguments})  # type: ignore[arg-type]
        call.__dict__["table"] = HudiTable.open(self.path)
        columns = [piece.rpartition(" ")[0].strip("` ") for piece in split_list(procedure.columns)]
        return [dict(zip(columns, row, strict=True)) for row in procedure.run(call)]

    def check(self, name: str, **arguments: object) -> list[dict[str, Any]]:
        """Both answers are equal, in any order. Returns ours."""
        passed_over = PASSED_OVER.get(name, ())
        ours, theirs = self.ours(name, **arguments), self.theirs(name, **arguments)
        assert compared(ours, passed_over) == compared(theirs, passed_over), name
        return ours


def compared(rows: list[dict[str, Any]], passed_over: tuple[str, ...]) -> list[str]:
    """The rows as texts, in an order of their own."""
    return sorted(
        repr({key: canonical(key, value) for key, value in row.items() if key not in passed_over}) for row in rows
    )


def canonical(column: str, value: Any) -> Any:
    """A value to compare. Numbers have nine digits: sums in another order differ in the last ones."""
    if column in OBJECTS:
        return sorted(json.loads(value).items())
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.fixture(scope="module")
def both(hudi_120: ReferenceHudi, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """A merge-on-read table with commits, a compaction, a clean, a rollback, a savepoint and a pending clustering."""
    path = tmp_path_factory.mktemp("procedures") / "both"

    def do(text: str) -> Any:
        answer = hudi_120.sql(text)
        return [] if answer is None else answer.to_pylist()

    settings = ("metadata.index.column.stats.enable=true", "compact.inline=false", "clean.automatic=false")
    for setting in settings:
        do(f"SET hoodie.{setting}")
    do(
        "CREATE TABLE both (id INT, name STRING, price DOUBLE, ts BIGINT, dt STRING) USING hudi TBLPROPERTIES "
        f"(type = 'mor', primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (dt) LOCATION '{path}'"
    )
    do("INSERT INTO both VALUES (1, 'a', 1.0, 1, 'x'), (2, 'b', 2.0, 1, 'x'), (3, 'c', 3.0, 1, 'y')")
    do("INSERT INTO both VALUES (4, 'd', 4.0, 1, 'y')")
    newest = do("CALL show_commits(table => 'both')")[0]["commit_time"]
    do(f"CALL rollback_to_instant(table => 'both', instant_time => '{newest}')")
    for price in (10, 11):
        do(f"UPDATE both SET price = {price}.0, ts = {price} WHERE id = 1")
        do("CALL run_compaction(op => 'run', table => 'both', options => 'hoodie.compact.inline.max.delta.commits=1')")
    do("CALL run_clean(table => 'both', retain_commits => 1)")
    do("UPDATE both SET price = 12.0, ts = 12 WHERE id = 2")
    do("CALL create_savepoint(table => 'both', user => 'me', comments => 'why')")
    do("CALL run_clustering(table => 'both', op => 'schedule')")
    for setting in settings:
        do(f"RESET hoodie.{setting.partition('=')[0]}")
    return Both(hudi_120, path)


def test_what_is_shown_of_one_table_is_the_same(both: Both) -> None:
    limits = {"limit": 100}
    shown = {
        name: both.check(name, **(limits if any(one.name == "limit" for one in PROCEDURES[name].arguments) else {}))
        for name in PLAIN
    }
    empty = {name for name, rows in shown.items() if not rows}
    assert empty == {"show_archived_commits", "show_archived_commits_metadata", "validate_metadata_table_files"}
    for row in shown["show_commits"]:
        for name in ("show_commit_files", "show_commit_partitions", "show_commit_write_stats",
                     "show_commit_extra_metadata"):  # fmt: skip
            both.check(name, instant_time=row["commit_time"], limit=100)
    both.check("show_rollback_detail", instant_time=shown["show_rollbacks"][0]["instant"], limit=100)
    both.check("validate_metadata_table_files", verbose=True)
    for partition in ("dt=x", "dt=y"):
        both.check("show_metadata_table_files", partition=partition)
    both.check("show_commits", limit=1)


def test_bounds_files_and_logs_are_the_same(both: Both) -> None:
    both.check("show_metadata_table_column_stats", targetColumns="id,price")
    cleaned = both.ours("show_cleans_metadata", limit=10)
    assert cleaned
    name = both.ours("show_fsview_latest", limit=10)[0]
    for partition, file in ((name["partition"], name["data_file"].rpartition("/")[2]), ("dt=x", "nothing")):
        both.check("show_file_status", partition=partition, file=file)
    pattern = f"{both.path}/dt=x/.*log*"
    both.check("show_logfile_metadata", log_file_path_pattern=pattern)
    ours, theirs = (
        [json.loads(row["records"]) for row in side("show_logfile_records", log_file_path_pattern=pattern)]
        for side in (both.ours, both.theirs)
    )
    assert ours == theirs
    assert ours
