"""Procedures about commits and the timeline."""

from collections.abc import Iterator

from pyhudi.inspect.commits import Commit, file_counts, get_commit, read_commits, totals_of
from pyhudi.inspect.comparison import compare_commits
from pyhudi.inspect.exports import export_instants
from pyhudi.inspect.instants import ShownInstant, read_instants, read_undone
from pyhudi.spark.procedures.procedure import (
    FILTER,
    PATH,
    REQUIRED,
    TABLE,
    Argument,
    Invocation,
    Procedure,
    Row,
    flag,
    limit,
    number,
)

_INSTANT = Argument("instant_time", REQUIRED)
_EXPORTED = "clean,commit,deltacommit,rollback,savepoint,restore"
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


_ARCHIVED_COMMITS = _COMMITS.replace("action string, ", "")


def _shown(commit: Commit) -> Row:
    t, instant = commit.totals, commit.instant
    return (
        instant.requested, instant.completed, instant.action, t.size_bytes, t.files_added, t.files_updated,
        t.partitions, t.records, t.updated_records, t.errors,
    )  # fmt: skip


def _shown_archived(commit: Commit) -> Row:
    requested, completed, _, *sums = _shown(commit)
    return requested, completed, *sums


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
    return call.limited(_shown_archived(commit) for commit in _in_range(call))


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
    average = -(-totals.size_bytes // totals.records) if totals.records else 0  # Apache Hudi rounds it up
    return call.limited([(commit.instant.action, totals.size_bytes, totals.records, average)])


def _show_commit_extra_metadata(call: Invocation) -> list[Row]:
    """Of the newest commit, where none is named."""
    commit = next(read_commits(call.table), None)
    if call["instant_time"] is not None:
        commit = get_commit(call.table, str(call["instant_time"]))
    if commit is None:
        return []
    wanted = call["metadata_key"]
    return call.limited(
        (commit.instant.requested, commit.instant.action, key, value)
        for key, value in commit.metadata.extra_metadata.items()
        if wanted is None or key == wanted
    )


def _show_timeline(call: Invocation) -> list[Row]:
    """The instants, newest first. `limit` does not count where both ends of a range are given."""
    start, end = str(call["startTime"]).strip(), str(call["endTime"]).strip()
    table = call.table
    undone = read_undone(table)
    rows = (
        _instant(one, undone.get(one.instant.requested, ()))
        for one in reversed(list(read_instants(table, archived=bool(call["showArchived"]))))
        if (not start or one.instant.requested >= start) and (not end or one.instant.requested <= end)
    )
    return list(rows) if start and end else call.limited(rows)


def _instant(one: ShownInstant, undone: tuple[str, ...]) -> Row:
    instant, put_at = one.instant, one.put_at
    kind = "ARCHIVED" if one.is_archived else "ACTIVE"
    return (
        instant.requested, instant.action, instant.state, _clock_time(put_at.get("REQUESTED", instant.requested)),
        _clock_time(put_at.get("INFLIGHT")), _clock_time(instant.completed), kind,
        f"Rolled back: {', '.join(undone)}" if undone else None,
    )  # fmt: skip


def _clock_time(instant: str | None) -> str | None:
    """Month, day and time of an instant, such as `11-26 09:10:36`."""
    if instant is None:
        return None
    return f"{instant[4:6]}-{instant[6:8]} {instant[8:10]}:{instant[10:12]}:{instant[12:14]}"


def _commits_compare(call: Invocation) -> list[Row]:
    return [(compare_commits(call.named(call["table"]), call.named(call["path"])),)]


def _export_instants(call: Invocation) -> list[Row]:
    folder, count = str(call["local_folder"]), int(call["limit"])
    actions = tuple(one.strip() for one in str(call["actions"]).split(",") if one.strip())
    exported = export_instants(
        call.table, folder, actions=actions, count_max=None if count < 0 else count, newest_first=bool(call["desc"])
    )
    return [(f"Exported {exported} Instants to {folder}",)]


_ARCHIVED = (TABLE, limit(10), Argument("start_ts", ""), Argument("end_ts", ""), PATH)

COMMITS: dict[str, Procedure] = {
    "show_commits": Procedure(
        "commits on the active timeline, newest first", (TABLE, limit(10), PATH), _COMMITS, _show_commits
    ),
    "show_commits_metadata": Procedure(
        "the same with a row for each file", (TABLE, limit(10), PATH), _METADATA, _show_commits_metadata
    ),
    "show_archived_commits": Procedure("commits of the history", _ARCHIVED, _ARCHIVED_COMMITS, _show_archived_commits),
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
        "what a commit carries beside its files",
        (TABLE, limit(100), Argument("instant_time"), Argument("metadata_key"), PATH),
        "instant_time string, action string, metadata_key string, metadata_value string", _show_commit_extra_metadata,
    ),
    "show_timeline": Procedure(
        "all instants, newest first",
        (TABLE, PATH, limit(20), flag("showArchived"), FILTER, Argument("startTime", ""), Argument("endTime", "")),
        _TIMELINE, _show_timeline,
    ),
    "commits_compare": Procedure(
        "how many commits a table is behind another, or ahead of it",
        (Argument("table", REQUIRED), Argument("path", REQUIRED)),
        "compare_detail string", _commits_compare,
    ),
    "export_instants": Procedure(
        "write what completed instants say to files in a folder of this machine",
        (TABLE, Argument("local_folder", REQUIRED), number("limit", -1), Argument("actions", _EXPORTED), flag("desc"),
         PATH), "export_detail string", _export_instants,
    ),
}  # fmt: skip
