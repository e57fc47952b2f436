"""Procedures that take writes and plans back, and those about savepoints."""

from time import monotonic_ns

from pyhudi.errors import Invalid, NotFound, Unsupported
from pyhudi.inspect.services import read_rollbacks
from pyhudi.spark.procedures.procedure import PATH, REQUIRED, TABLE, Argument, Invocation, Procedure, Row, flag, limit

_INSTANT = Argument("instant_time", REQUIRED)
_SERVICES = ("compaction", "logcompaction", "clustering", "replacecommit")


def _show_rollbacks(call: Invocation) -> list[Row]:
    return call.limited(
        (instant.requested, commit, done.total_files_deleted, done.time_taken_in_millis, len(done.partition_metadata))
        for instant, done in read_rollbacks(call.table)
        for commit in done.commits_rollback
    )


def _show_rollback_detail(call: Invocation) -> list[Row]:
    return call.limited(
        (instant.requested, f"[{', '.join(done.commits_rollback)}]", partition, file, is_gone)
        for instant, done in read_rollbacks(call.table)
        if instant.requested == str(call["instant_time"])
        for partition, of in done.partition_metadata.items()
        for files, is_gone in ((of.success_delete_files, True), (of.failed_delete_files, False))
        for file in files
    )


def _rollback_to_instant(call: Invocation) -> list[Row]:
    call.table.rollback(str(call["instant_time"]))
    return [(True,)]


def _run_rollback_inflight_tableservice(call: Invocation) -> list[Row]:
    """Takes a pending service off the timeline, plan and all: whoever wants it again plans it anew."""
    table, requested = call.table, str(call["pending_instant"])
    found = next((one for one in table.timeline() if one.requested == requested and not one.is_completed), None)
    if found is None or found.action not in _SERVICES:
        what = "none" if found is None else f"a pending {found.action}"
        raise Invalid(
            f"CALL {call.procedure}: '{requested}': expected a pending compaction or clustering, found {what}"
        )
    if not call["delete_request_instant_file"]:
        raise Unsupported(
            f"CALL {call.procedure}: a rollback of pyhudi takes the plan away, too: say delete_request_instant_file => "
            "true; to keep the plan, leave it as it is: the next run does anew what a dead one left"
        )
    start_ns = monotonic_ns()
    table.rollback(requested)
    return [(requested, str((monotonic_ns() - start_ns) // 1_000_000))]


def _create_savepoint(call: Invocation) -> list[Row]:
    instant = str(call["commit_time"] or "") or None
    call.table.savepoint(instant, user=str(call["user"]), comment=str(call["comments"]))
    return [(True,)]


def _delete_savepoint(call: Invocation) -> list[Row]:
    """Several are named with commas between them. All of them must be there before the first one goes."""
    named = [one.strip() for one in _savepoint(call).split(",")]
    known = {one.requested for one in call.table.savepoints()}
    if len(named) > 1 and (missing := [one for one in named if one not in known]):
        raise NotFound(f"CALL delete_savepoint: '{call.table.path}' has no savepoint of {', '.join(missing)}")
    for one in named:
        call.table.delete_savepoint(one)
    return [(True,)]


def _rollback_to_savepoint(call: Invocation) -> list[Row]:
    call.table.restore(_savepoint(call))
    return [(True,)]


def _savepoint(call: Invocation) -> str:
    """The savepoint that is named, or the newest. Raises: Invalid where there is none."""
    if call["instant_time"]:
        return str(call["instant_time"])
    found = call.table.savepoints()
    if not found:
        raise Invalid(f"CALL {call.procedure}: expected a savepoint of table '{call.table.name}', found none")
    return found[-1].requested


def _show_savepoints(call: Invocation) -> list[Row]:
    return [(one.requested,) for one in reversed(call.table.savepoints())]


_SAVEPOINT = (TABLE, Argument("instant_time", ""), PATH)

UNDOING: dict[str, Procedure] = {
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
    "run_rollback_inflight_tableservice": Procedure(
        "take a pending compaction or clustering off the timeline",
        (TABLE, PATH, Argument("pending_instant", REQUIRED), flag("delete_request_instant_file")),
        "instant string, time_cost string", _run_rollback_inflight_tableservice,
    ),
    "create_savepoint": Procedure(
        "keep a commit",
        (TABLE, Argument("commit_time", ""), Argument("user", ""), Argument("comments", ""), PATH),
        "create_savepoint_result boolean", _create_savepoint,
    ),
    "delete_savepoint": Procedure(
        "let go of a commit", _SAVEPOINT, "delete_savepoint_result boolean", _delete_savepoint
    ),
    "rollback_to_savepoint": Procedure(
        "take the table back to a savepoint", _SAVEPOINT, "rollback_savepoint_result boolean", _rollback_to_savepoint
    ),
    "show_savepoints": Procedure("savepoints, newest first", (TABLE, PATH), "savepoint_time string", _show_savepoints),
}  # fmt: skip
