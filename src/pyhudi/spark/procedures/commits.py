"""Procedures about commits and the timeline."""

from collections.abc import Iterator

from pyhudi.inspect.commits import Commit, file_counts, get_commit, read_commits, totals_of
from pyhudi.inspect.instants import read_instants
from pyhudi.inspect.services import read_rollbacks
from pyhudi.spark.procedures.procedure import PATH, REQUIRED, TABLE, Argument, Invocation, Procedure, Row, limit

_INSTANT = Argument("instant_time", REQUIRED)
_COMMITS = (
    "commit_time string, state_transition_time string, action string, total_bytes_written long, "
    "total_files_added long, total_files_updated long, total_partitions_written long, total_records_written long, "
    "total_update_records_written long, total_errors long"
)
_METADATA = (
    "commit_time string, state_transition_time string, action string, partition string, file_id string, "
    "previous_commit string, num_writes long, num_inserts long, num_deletes long, num_update_writes long, "
    "total_errors long, total_log_blocks long, total_corrupt_log_blocks long, total_rollback_blocks long, "
    "total_log_records long, total_updated_records_compacted long, total_bytes_written long"
)
_TIMELINE = (
    "instant_time string, action string, state string, requested_time string, inflight_time string, "
    "completed_time string, timeline_type string, rollback_info string"
)


def _shown(commit: Commit) -> Row:
    t, instant = commit.totals, commit.instant
    return (
        instant.requested, instant.completed, instant.action, t.size_bytes, t.files_added, t.files_updated,
        t.partitions, t.records, t.updated_records, t.errors,
    )  # fmt: skip


def _with_files(commit: Commit) -> Iterator[Row]:
    instant = commit.instant
    for partition, s in commit.stats:
        yield (
            instant.requested, instant.completed, instant.action, partition, s.file_id, s.prev_commit, s.num_writes,
            s.num_inserts, s.num_deletes, s.num_update_writes, s.total_write_errors, s.total_log_blocks,
            s.total_corrupt_log_block, s.total_rollback_blocks, s.total_log_records,
            s.total_updated_records_compacted, s.total_write_bytes,
        )  # fmt: skip


def _show_commits(call: Invocation) -> list[Row]:
    return call.limited(_shown(commit) for commit in read_commits(call.table))


def _show_commits_metadata(call: Invocation) -> list[Row]:
    return call.limited(row for commit in read_commits(call.table) for row in _with_files(commit))


def _in_range(call: Invocation) -> Iterator[Commit]:
    start, end = str(call["start_ts"] or ""), str(call["end_ts"] or "")
    for commit in read_commits(call.table, archived=True):
        if (not start or commit.instant.requested >= start) and (not end or commit.instant.requested <= end):
            yield commit


def _show_archived_commits(call: Invocation) -> list[Row]:
    return call.limited(_shown(commit) for commit in _in_range(call))


def _show_archived_commits_metadata(call: Invocation) -> list[Row]:
    return call.limited(row for commit in _in_range(call) for row in _with_files(commit))


def _show_commit_files(call: Invocation) -> list[Row]:
    commit = get_commit(call.table, str(call["instant_time"]))
    return call.limited(
        (
            commit.instant.action, partition, s.file_id, s.prev_commit, s.num_update_writes, s.num_writes,
            s.total_write_bytes, s.total_write_errors, s.file_size_in_bytes,
        )
        for partition, s in commit.stats
    )  # fmt: skip


def _show_commit_partitions(call: Invocation) -> list[Row]:
    commit = get_commit(call.table, str(call["instant_time"]))
    return call.limited(
        (
            commit.instant.action, partition, t.files_added, t.files_updated, t.inserted_records, t.updated_records,
            t.size_bytes, t.errors,
        )
        for partition, t in file_counts(commit.metadata.partition_to_write_stats).items()
    )  # fmt: skip


def _show_commit_write_stats(call: Invocation) -> list[Row]:
    commit = get_commit(call.table, str(call["instant_time"]))
    totals = totals_of([stat for _, stat in commit.stats])
    average = totals.size_bytes // totals.records if totals.records else 0
    return call.limited([(commit.instant.action, totals.size_bytes, totals.records, average)])


def _show_commit_extra_metadata(call: Invocation) -> list[Row]:
    commit = get_commit(call.table, str(call["instant_time"]))
    wanted = call["metadata_key"]
    return call.limited(
        (commit.instant.requested, commit.instant.action, key, value)
        for key, value in commit.metadata.extra_metadata.items()
        if wanted is None or key == wanted
    )


def _show_timeline(call: Invocation) -> list[Row]:
    shown = list(read_instants(call.table, archived=bool(call["show_archived"])))
    return call.limited(
        (
            one.instant.requested, one.instant.action, one.instant.state, one.instant.requested, None,
            one.instant.completed, "ARCHIVED" if one.is_archived else "ACTIVE", None,
        )
        for one in reversed(shown)
    )  # fmt: skip


def _show_rollbacks(call: Invocation) -> list[Row]:
    return call.limited(
        (instant.requested, commit, done.total_files_deleted, done.time_taken_in_millis, len(done.partition_metadata))
        for instant, done in read_rollbacks(call.table)
        for commit in done.commits_rollback
    )


def _show_rollback_detail(call: Invocation) -> list[Row]:
    return call.limited(
        (instant.requested, ",".join(done.commits_rollback), partition, file, is_gone)
        for instant, done in read_rollbacks(call.table)
        if instant.requested == str(call["instant_time"])
        for partition, of in done.partition_metadata.items()
        for files, is_gone in ((of.success_delete_files, True), (of.failed_delete_files, False))
        for file in files
    )


def _rollback_to_instant(call: Invocation) -> list[Row]:
    call.table.rollback(str(call["instant_time"]))
    return [(True,)]


def _archive_commits(call: Invocation) -> list[Row]:
    call.table.archive(
        options=call.options(
            **{
                "hoodie.keep.min.commits": call["min_commits"],
                "hoodie.keep.max.commits": call["max_commits"],
            }
        )
    )
    return [(0,)]


_ARCHIVED = (TABLE, PATH, limit(10), Argument("start_ts", ""), Argument("end_ts", ""))

COMMITS: dict[str, Procedure] = {
    "show_commits": Procedure(
        "commits on the active timeline, newest first", (TABLE, limit(10), PATH), _COMMITS, _show_commits
    ),
    "show_commits_metadata": Procedure(
        "the same with a row for each file", (TABLE, limit(10), PATH), _METADATA, _show_commits_metadata
    ),
    "show_archived_commits": Procedure("commits of the history", _ARCHIVED, _COMMITS, _show_archived_commits),
    "show_archived_commits_metadata": Procedure(
        "the same with a row for each file", _ARCHIVED, _METADATA, _show_archived_commits_metadata
    ),
    "show_commit_files": Procedure(
        "the files of a commit", (TABLE, limit(10), _INSTANT, PATH),
        "action string, partition_path string, file_id string, previous_commit string, total_records_updated long, "
        "total_records_written long, total_bytes_written long, total_errors long, file_size long", _show_commit_files,
    ),
    "show_commit_partitions": Procedure(
        "the partitions of a commit", (TABLE, limit(10), _INSTANT, PATH),
        "action string, partition_path string, total_files_added long, total_files_updated long, "
        "total_records_inserted long, total_records_updated long, total_bytes_written long, total_errors long",
        _show_commit_partitions,
    ),
    "show_commit_write_stats": Procedure(
        "sums of a commit", (TABLE, limit(10), _INSTANT, PATH),
        "action string, total_bytes_written long, total_records_written long, avg_record_size long",
        _show_commit_write_stats,
    ),
    "show_commit_extra_metadata": Procedure(
        "what a commit carries beside its files", (TABLE, limit(100), _INSTANT, Argument("metadata_key"), PATH),
        "instant_time string, action string, metadata_key string, metadata_value string", _show_commit_extra_metadata,
    ),
    "show_timeline": Procedure(
        "all instants, newest first", (TABLE, PATH, limit(20), Argument("show_archived", default=False)), _TIMELINE,
        _show_timeline,
    ),
    "show_rollbacks": Procedure(
        "rollbacks, newest first", (TABLE, limit(10), PATH),
        "instant string, rollback_instant string, total_files_deleted int, time_taken_in_millis long, "
        "total_partitions int", _show_rollbacks,
    ),
    "show_rollback_detail": Procedure(
        "the files of a rollback", (TABLE, limit(10), _INSTANT, PATH),
        "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean",
        _show_rollback_detail,
    ),
    "rollback_to_instant": Procedure(
        "take back the newest write", (TABLE, _INSTANT, PATH), "rollback_result boolean", _rollback_to_instant
    ),
    "archive_commits": Procedure(
        "move old instants into the history",
        (TABLE, PATH, Argument("min_commits", 20), Argument("max_commits", 30), Argument("options")),
        "result int", _archive_commits,
    ),
}  # fmt: skip
