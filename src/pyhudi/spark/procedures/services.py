"""Procedures that run and show compactions, clusterings, the expiry of partitions, and archiving."""

import re
from collections.abc import Iterable

from pyhudi.api.partitions import living_partitions
from pyhudi.errors import Invalid
from pyhudi.inspect.services import PlannedService, read_clusterings, read_compactions
from pyhudi.spark.partitions import partitions_where
from pyhudi.spark.procedures.procedure import (
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

_OPS = ("run", "schedule", "execute", "scheduleandexecute")
_COMPACTION = "timestamp string, operation_size int, state string"
_CLUSTERING = "timestamp string, input_group_size int, state string, involved_partitions string"


def _operation(call: Invocation, default: str) -> str:
    operation = str(call["op"] or default).lower()
    if operation not in _OPS:
        raise Invalid(
            f"CALL {call.procedure}: op => '{call['op']}': expected run, schedule, execute or scheduleAndExecute"
        )
    if operation == "schedule" and _instants(call) is not None:
        raise Invalid(f"CALL {call.procedure}: op => 'schedule' plans a new one; expected no instants, found some")
    return operation


def _instants(call: Invocation) -> list[str] | None:
    """The pending plans that a call names; None: it names none."""
    said = [str(call.values[name]) for name in ("instants", "timestamp") if call.values.get(name) is not None]
    return [one.strip() for text in said for one in text.split(",") if one.strip()] if said else None


def _pending(call: Invocation, planned: Iterable[PlannedService]) -> list[str]:
    """The plans to carry out: the oldest that are pending, at most `limit`."""
    pending = sorted(one.instant.requested for one in planned if one.instant.completed is None)
    return pending if call["limit"] is None else pending[: max(0, int(call["limit"]))]


def _compaction(one: PlannedService) -> Row:
    return one.instant.requested, one.groups, one.instant.state


def _run_compaction(call: Invocation) -> list[Row]:
    operation, options, chosen = _operation(call, "run"), call.options(), _instants(call)
    planned = read_compactions(call.table)
    before = {one.instant for one in planned}
    if operation == "schedule":
        call.table.schedule_compaction(options=options)
    elif chosen is not None or operation == "execute":
        if pending := _pending(call, planned) if chosen is None else chosen:
            call.table.compact(instants=pending, options=options, spark=call.spark)
    else:
        call.table.compact(options=options, spark=call.spark)
    return call.limited(_compaction(one) for one in read_compactions(call.table) if one.instant not in before)


def _show_compaction(call: Invocation) -> list[Row]:
    return call.limited(_compaction(one) for one in read_compactions(call.table))


def _clustering(one: PlannedService, *, shows: bool) -> Row:
    return one.instant.requested, one.groups, one.instant.state, ",".join(one.partitions) if shows else "*"


def _run_clustering(call: Invocation) -> list[Row]:
    operation = _operation(call, "scheduleandexecute")
    options = call.options(
        **{
            "hoodie.clustering.plan.strategy.sort.columns": call["order"],
            "hoodie.layout.optimize.strategy": call["order_strategy"],
        }
    )
    chosen = _instants(call)
    partitions = _chosen_partitions(call)
    planned = read_clusterings(call.table)
    before = {one.instant for one in planned}
    if operation == "schedule":
        call.table.schedule_clustering(partitions=partitions, options=options)
    elif chosen is not None or operation == "execute":
        if pending := _pending(call, planned) if chosen is None else chosen:
            call.table.run_clusterings(instants=pending, options=options, spark=call.spark)
    elif _pending(call, planned):  # a plan first: it leaves out what pending plans take
        call.table.schedule_clustering(partitions=partitions, options=options)
        pending = _pending(call, read_clusterings(call.table))
        call.table.run_clusterings(instants=pending, options=options, spark=call.spark)
    else:
        call.table.cluster(partitions=partitions, options=options, spark=call.spark)
    shows = bool(call["show_involved_partition"])
    return call.limited(
        _clustering(one, shows=shows) for one in read_clusterings(call.table) if one.instant not in before
    )


def _chosen_partitions(call: Invocation) -> list[str] | None:
    """Those that the call names, whose whole path its pattern matches, or whose values its predicate is true for; None:
    it says nothing of them.
    """
    named, pattern, predicate = call["selected_partitions"], call["partition_regex_pattern"], call["predicate"]
    chosen = None if named is None else [part.strip() for part in str(named).split(",") if part.strip()]
    if predicate is not None:
        living = living_partitions(call.table) if chosen is None else chosen
        chosen = partitions_where(call.session, call.table, str(predicate), living)
    if pattern is None:
        return chosen
    try:
        matches = re.compile(str(pattern)).fullmatch
    except re.error as error:
        raise Invalid(f"CALL run_clustering: partition_regex_pattern => '{pattern}': {error}") from None
    return [one for one in (living_partitions(call.table) if chosen is None else chosen) if matches(one)]


def _show_clustering(call: Invocation) -> list[Row]:
    shows = bool(call["show_involved_partition"])
    return call.limited(_clustering(one, shows=shows) for one in read_clusterings(call.table))


def _run_ttl(call: Invocation) -> list[Row]:
    options = call.options(
        **{
            "hoodie.partition.ttl.strategy.days.retain": call["retain_days"],
            "hoodie.partition.ttl.management.strategy.type": call["ttl_policy"],
        }
    )
    return [(one.partition,) for one in call.table.expire_partitions(options=options).expired]


def _archive_commits(call: Invocation) -> list[Row]:
    call.table.archive(
        options=call.options(
            **{
                "hoodie.keep.min.commits": call["min_commits"],
                "hoodie.keep.max.commits": call["max_commits"],
                "hoodie.clean.commits.retained": call["retain_commits"],
                "hoodie.metadata.enable": str(bool(call["enable_metadata"])).lower(),
            }
        )
    )
    return [(0,)]


SERVICES: dict[str, Procedure] = {
    "run_compaction": Procedure(
        "compact, or plan a compaction",
        (Argument("op", REQUIRED), TABLE, PATH, number("timestamp", type="long"), Argument("options"),
         Argument("instants"), limit(None)), _COMPACTION, _run_compaction,
    ),
    "show_compaction": Procedure("compactions, newest first", (TABLE, PATH, limit(20)), _COMPACTION, _show_compaction),
    "run_clustering": Procedure(
        "cluster, or plan a clustering",
        (TABLE, PATH, Argument("predicate"), Argument("order"), flag("show_involved_partition"),
         Argument("op"), Argument("order_strategy"), Argument("options"), Argument("instants"),
         Argument("selected_partitions"), Argument("partition_regex_pattern"), limit(None)),
        _CLUSTERING, _run_clustering,
    ),
    "show_clustering": Procedure(
        "clusterings, newest first", (TABLE, PATH, limit(20), flag("show_involved_partition")),
        _CLUSTERING, _show_clustering,
    ),
    "run_ttl": Procedure(
        "delete partitions that have expired",
        (TABLE, Argument("ttl_policy"), number("retain_days"), Argument("options"), PATH), "deleted_partitions string",
        _run_ttl,
    ),
    "archive_commits": Procedure(
        "move old instants into the history",
        (TABLE, PATH, number("min_commits", 20), number("max_commits", 30), number("retain_commits", 10),
         flag("enable_metadata", True)), "result int", _archive_commits,
    ),
}  # fmt: skip
