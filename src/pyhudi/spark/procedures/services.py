"""Procedures that run and show the services of a table, and its savepoints."""

from pyhudi.errors import Invalid, Unsupported
from pyhudi.inspect.services import PlannedService, read_cleans, read_clusterings, read_compactions
from pyhudi.spark.procedures.procedure import PATH, REQUIRED, TABLE, Argument, Invocation, Procedure, Row, limit

_OPS = ("run", "schedule", "execute", "scheduleandexecute")
_COMPACTION = "timestamp string, operation_size int, state string"
_CLUSTERING = "timestamp string, input_group_size int, state string, involved_partitions string"
_CLEAN = (
    "start_clean_time string, time_taken_in_millis long, total_files_deleted int, earliest_commit_to_retain string, "
    "bootstrap_part_metadata string, version int"
)


def _operation(call: Invocation, default: str) -> str:
    operation = str(call["op"] or default).lower()
    if operation not in _OPS:
        raise Invalid(
            f"CALL {call.procedure}: op => '{call['op']}': expected run, schedule, execute or scheduleAndExecute"
        )
    if call["instants"] is not None or (call.values.get("timestamp") is not None):
        raise Unsupported(
            f"CALL {call.procedure}: single instants are not chosen; op => 'execute' carries out all that are pending"
        )
    return operation


def _compaction(one: PlannedService) -> Row:
    return one.instant.requested, one.groups, one.instant.state


def _run_compaction(call: Invocation) -> list[Row]:
    operation, options = _operation(call, "run"), call.options()
    before = {one.instant for one in read_compactions(call.table)}
    if operation == "schedule":
        call.table.schedule_compaction(options=options)
    elif operation == "execute" and not any(one.action == "compaction" for one in before):
        return []
    else:
        call.table.compact(options=options, spark=call.spark)
    return call.limited(_compaction(one) for one in read_compactions(call.table) if one.instant not in before)


def _show_compaction(call: Invocation) -> list[Row]:
    return call.limited(_compaction(one) for one in read_compactions(call.table))


def _clustering(one: PlannedService, *, shows: bool) -> Row:
    return one.instant.requested, one.groups, one.instant.state, ",".join(one.partitions) if shows else "*"


def _run_clustering(call: Invocation) -> list[Row]:
    operation = _operation(call, "scheduleandexecute")
    if call["predicate"] is not None:
        raise Unsupported("CALL run_clustering: predicate: name the partitions: selected_partitions => 'dt=1,dt=2'")
    options = call.options(
        **{
            "hoodie.clustering.plan.strategy.sort.columns": call["order"],
            "hoodie.layout.optimize.strategy": call["order_strategy"],
        }
    )
    named = call["selected_partitions"]
    partitions = None if named is None else [part.strip() for part in str(named).split(",") if part.strip()]
    before = {one.instant for one in read_clusterings(call.table)}
    if operation == "schedule":
        call.table.schedule_clustering(partitions=partitions, options=options)
    elif operation == "execute":
        call.table.run_clusterings(options=options, spark=call.spark)
    else:
        call.table.cluster(partitions=partitions, options=options, spark=call.spark)
    shows = bool(call["show_involved_partition"])
    return call.limited(
        _clustering(one, shows=shows) for one in read_clusterings(call.table) if one.instant not in before
    )


def _show_clustering(call: Invocation) -> list[Row]:
    shows = bool(call["show_involved_partition"])
    return call.limited(_clustering(one, shows=shows) for one in read_clusterings(call.table))


def _run_clean(call: Invocation) -> list[Row]:
    options = call.options(
        **{
            "hoodie.clean.policy": call["clean_policy"],
            "hoodie.clean.commits.retained": call["retain_commits"],
            "hoodie.clean.hours.retained": call["hours_retained"],
            "hoodie.clean.fileversions.retained": call["file_versions_retained"],
            "hoodie.clean.trigger.strategy": call["trigger_strategy"],
            "hoodie.clean.trigger.max.commits": call["trigger_max_commits"],
        }
    )
    done = call.table.clean(options=options)
    return [row for row in _cleans(call) if row[0] == done.requested]


def _cleans(call: Invocation) -> list[Row]:
    return [
        (
            instant.requested, done.time_taken_in_millis, done.total_files_deleted, done.earliest_commit_to_retain,
            "{}", done.version,
        )
        for instant, done in read_cleans(call.table)
    ]  # fmt: skip


def _show_cleans(call: Invocation) -> list[Row]:
    return call.limited(
        (
            instant.requested, instant.completed, instant.action, done.start_clean_time, len(done.partition_metadata),
            done.total_files_deleted, done.earliest_commit_to_retain, done.last_completed_commit, done.version,
            done.time_taken_in_millis,
        )
        for instant, done in read_cleans(call.table)
    )  # fmt: skip


def _run_ttl(call: Invocation) -> list[Row]:
    options = call.options(**{"hoodie.partition.ttl.strategy.days.retain": call["retain_days"]})
    return [(one.partition,) for one in call.table.expire_partitions(options=options).expired]


def _create_savepoint(call: Invocation) -> list[Row]:
    instant = str(call["commit_time"] or "") or None
    call.table.savepoint(instant, user=str(call["user"]), comment=str(call["comments"]))
    return [(True,)]


def _delete_savepoint(call: Invocation) -> list[Row]:
    call.table.delete_savepoint(_savepoint(call))
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

SERVICES: dict[str, Procedure] = {
    "run_compaction": Procedure(
        "compact, or plan a compaction",
        (Argument("op", REQUIRED), TABLE, PATH, Argument("timestamp"), Argument("options"), Argument("instants"),
         limit(None)), _COMPACTION, _run_compaction,
    ),
    "show_compaction": Procedure("compactions, newest first", (TABLE, PATH, limit(20)), _COMPACTION, _show_compaction),
    "run_clustering": Procedure(
        "cluster, or plan a clustering",
        (TABLE, PATH, Argument("predicate"), Argument("order"), Argument("show_involved_partition", default=False),
         Argument("op"), Argument("order_strategy"), Argument("options"), Argument("instants"),
         Argument("selected_partitions"), limit(None)), _CLUSTERING, _run_clustering,
    ),
    "show_clustering": Procedure(
        "clusterings, newest first", (TABLE, PATH, limit(20), Argument("show_involved_partition", default=False)),
        _CLUSTERING, _show_clustering,
    ),
    "run_clean": Procedure(
        "delete files that no retained commit needs",
        (TABLE, Argument("skip_locking", default=False), Argument("schedule_in_line", default=True),
         Argument("clean_policy"), Argument("retain_commits"), Argument("hours_retained"),
         Argument("file_versions_retained"), Argument("trigger_strategy"), Argument("trigger_max_commits"),
         Argument("options"), PATH), _CLEAN, _run_clean,
    ),
    "show_cleans": Procedure(
        "cleans, newest first", (TABLE, limit(10), PATH),
        "clean_time string, state_transition_time string, action string, start_clean_time string, "
        "partitions_cleaned int, total_files_deleted int, earliest_commit_to_retain string, "
        "last_completed_commit_timestamp string, version int, total_time_taken_ms long", _show_cleans,
    ),
    "run_ttl": Procedure(
        "delete partitions that have expired",
        (TABLE, PATH, Argument("ttl_policy"), Argument("retain_days"), Argument("options")), "deleted_partition string",
        _run_ttl,
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
