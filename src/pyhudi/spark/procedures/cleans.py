"""Procedures that run and show cleans."""

from pyhudi.inspect.services import read_clean_plans, read_cleans
from pyhudi.services.clean.settings import TRIGGER_COMMITS
from pyhudi.spark.procedures.procedure import (
    FILTER,
    PATH,
    TABLE,
    Argument,
    Invocation,
    Procedure,
    Row,
    flag,
    limit,
    number,
)

_CLEAN = (
    "start_clean_time string, time_taken_in_millis long, total_files_deleted int, earliest_commit_to_retain string, "
    "bootstrap_part_metadata string, version int"
)
_CLEANS = (
    "clean_time string, state_transition_time string, action string, start_clean_time string, "
    "time_taken_in_millis long, total_files_deleted int, earliest_commit_to_retain string, "
    "last_completed_commit_timestamp string, version int"
)
_CLEANS_METADATA = (
    "clean_time string, state_transition_time string, action string, start_clean_time string, partition_path string, "
    "policy string, delete_path_patterns int, success_delete_files int, failed_delete_files int, "
    "is_partition_deleted boolean, time_taken_in_millis long, total_files_deleted int"
)
_CLEAN_PLANS = (
    "plan_time string, state string, action string, earliest_instant_to_retain string, "
    "last_completed_commit_timestamp string, policy string, version int, total_partitions_to_clean int, "
    "total_partitions_to_delete int, extra_metadata string"
)

_NO_NEW_ONE = 2**31 - 1
"""Commits that no table has: only what is pending is carried out."""


def _run_clean(call: Invocation) -> list[Row]:
    """A row of the clean, or none where there was nothing to clean or only its plan was asked for."""
    trigger = call["trigger_max_commits"] if call["schedule_in_line"] else _NO_NEW_ONE
    options = call.options(
        **{
            "hoodie.clean.policy": call["clean_policy"],
            "hoodie.clean.commits.retained": call["retain_commits"],
            "hoodie.clean.hours.retained": call["hours_retained"],
            "hoodie.clean.fileversions.retained": call["file_versions_retained"],
            "hoodie.clean.trigger.strategy": call["trigger_strategy"],
            TRIGGER_COMMITS: trigger,
        }
    )
    requested = call.table.clean(options=options).requested
    return [
        (done.start_clean_time, done.time_taken_in_millis, done.total_files_deleted, done.earliest_commit_to_retain,
         "{}", done.version)
        for instant, done in read_cleans(call.table)
        if instant.requested == requested
    ]  # fmt: skip


def _show_cleans(call: Invocation) -> list[Row]:
    return call.limited(
        (
            instant.requested, instant.completed, instant.action, done.start_clean_time, done.time_taken_in_millis,
            done.total_files_deleted, done.earliest_commit_to_retain, done.last_completed_commit, done.version,
        )
        for instant, done in read_cleans(call.table, archived=bool(call["showArchived"]))
    )  # fmt: skip


def _show_cleans_metadata(call: Invocation) -> list[Row]:
    return call.limited(
        (
            instant.requested, instant.completed, instant.action, done.start_clean_time, partition, of.policy,
            len(of.delete_path_patterns), len(of.success_delete_files), len(of.failed_delete_files),
            of.is_partition_deleted, done.time_taken_in_millis, done.total_files_deleted,
        )
        for instant, done in read_cleans(call.table, archived=bool(call["showArchived"]))
        for partition, of in done.partition_metadata.items()
    )  # fmt: skip


def _show_clean_plans(call: Invocation) -> list[Row]:
    return call.limited(
        (
            instant.requested, instant.state, instant.action,
            None if plan.earliest_instant_to_retain is None else plan.earliest_instant_to_retain.requested,
            plan.last_completed_commit, plan.policy, plan.version,
            len(plan.file_paths_to_be_deleted_per_partition or {}), len(plan.partitions_to_be_deleted or ()),
            ", ".join(f"{key}={value}" for key, value in (plan.extra_metadata or {}).items()) or None,
        )
        for instant, plan in read_clean_plans(call.table)
    )  # fmt: skip


_SHOWN = (TABLE, limit(10), flag("showArchived"), FILTER, PATH)

CLEANS: dict[str, Procedure] = {
    "run_clean": Procedure(
        "delete files that no retained commit needs",
        (TABLE, flag("schedule_in_line", True), Argument("clean_policy"), number("retain_commits"),
         number("hours_retained"), number("file_versions_retained"), Argument("trigger_strategy"),
         number("trigger_max_commits"), Argument("options"), PATH), _CLEAN, _run_clean,
    ),
    "show_cleans": Procedure("cleans, newest first", _SHOWN, _CLEANS, _show_cleans),
    "show_cleans_metadata": Procedure(
        "the same with a row for each partition", _SHOWN, _CLEANS_METADATA, _show_cleans_metadata
    ),
    "show_clean_plans": Procedure(
        "what cleans of the active timeline were to delete, newest first", _SHOWN, _CLEAN_PLANS, _show_clean_plans
    ),
}  # fmt: skip
