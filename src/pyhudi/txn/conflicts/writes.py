"""The verdict on a write that worked while others wrote.

A write is planned upon the table as it was when the write began. Others may have completed since then. The write may
complete if the table is then as if the writes had come one after the other: what the others changed must not be what
this write was planned upon, or rewrote. Spec: format/actions.md section 11.2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyhudi.format.names import nested_folders
from pyhudi.format.schema.differences import describe_changes
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import COMPACTION, LOG_COMPACTION
from pyhudi.table.view.pending import CLUSTERINGS, FileGroup
from pyhudi.txn.conflicts.changes import Change
from pyhudi.txn.conflicts.verdict import Mine, Proceed, Refused, TableState, Verdict

_BUCKET_DIGITS = 8
"""The digits of the bucket number at the beginning of a file id. Spec: format/layout.md section 4.1."""


@dataclass(frozen=True, slots=True)
class WriteRules:
    """What the judge of a write must know of the write and its table.

    `looks_keys_up`: each incoming key is looked up, and a key that is not stored becomes a new row. `is_global`: a key
    may lie in any partition. `by_bucket`: a key's bucket says its file group, so that two file groups of one bucket are
    the same. `shares_logs`: two writers may append different keys to the logs of one file group, each under a name of
    its own. `appends_freely`: they may append the same keys, too: how rows are merged decides between them. `schemas`:
    the table's schema before and after the write. `missed`: the partitions in which a delete did not find all of its
    keys. `planned`: the file groups in which it looked for something to change. `passes_clusterings`: it may change a
    file group that a pending clustering is about to take: the clustering gives way. `doubles_rows`: planned anew, it
    also writes to what a pending resizing makes. `doubled_for`: the requested times of the resizings for which it did.
    `schema_before`: the table's schema before the write. `brings`: what the write changes in it, in words; empty if
    nothing. `new_schemas`: the schema that the write brings, as `schemas`; empty if it leaves the schema as it is.
    `new_partitions`: the partitions that it makes, where one may lie within another.
    """

    looks_keys_up: bool
    is_global: bool
    by_bucket: bool
    shares_logs: bool
    schemas: frozenset[str | None]
    missed: frozenset[str] = frozenset()
    planned: frozenset[FileGroup] = frozenset()
    appends_freely: bool = False
    passes_clusterings: bool = False
    doubles_rows: bool = False
    doubled_for: frozenset[str] = frozenset()
    schema_before: str | None = None
    brings: str = ""
    new_schemas: frozenset[str | None] = frozenset()
    new_partitions: frozenset[str] = frozenset()


def judge_write(mine: Mine, now: TableState, rules: WriteRules, apart: frozenset[str] = frozenset()) -> Verdict:
    """Judge a write. Two writes conflict if one rewrote or replaced a file group that the other touched.

    Of the cases in which nothing conflicts:
    - compactions of file groups to whose logs the write appended, since the log lies upon the new base file;
    - new file groups of both in one partition, unless their keys must be looked up;
    - logs of both in one file group, or new rows of both in one partition, with different keys;
    - logs of both in one file group, whatever their keys, if the write appends freely.
    `apart`: the requested times of others that wrote none of this write's keys.
    """
    requested = mine.target.requested
    if now.version != mine.upon.version:
        return Refused(
            f"{now.uri}: table version {mine.upon.version} when this write began, now {now.version}: it was upgraded "
            "meanwhile; run the write again"
        )
    if not mine.is_requested or not any(instant.requested == requested for instant in now.pending):
        return Refused(
            f"{now.uri}: another writer took this write ('{requested}') for dead and rolled it back; run it again",
            is_mendable=True,
        )

    if again := _stored_again(mine, now):
        return Refused(again)

    if undone := _taken_back(mine, now) or _ended(mine, now, rules) or _nested(mine, now, rules):
        return Refused(undone, is_mendable=True)

    planned = [group for group in now.planned if group not in mine.upon.planned]
    taken = sorted(group for group in planned if group in _frozen(mine.change, now.planned[group], rules))
    if taken:
        partition, file_id = taken[0]
        service = now.planned[taken[0]]
        return Refused(
            f"{now.uri}: {service.action} '{service.requested}', which was planned while this write ('{requested}') "
            f"ran, takes file group '{file_id}' in partition '{partition}'; let it end, then run the write again",
            is_mendable=rules.doubles_rows if service.action in CLUSTERINGS else not mine.change.replaced,
        )

    if turned := _turned(mine.change, now):
        return Refused(
            f"{now.uri}: a log compaction took file group '{turned[1]}' in partition '{turned[0]}' with rows that are "
            f"older and rows that are newer than this write ('{requested}'), while it ran; run the write again",
            is_mendable=True,
        )

    by_keys, text = set[str](), ""
    for other in now.changes:
        why = next(_clashes(mine.change, other, rules, now.planned, are_apart=other.requested in apart), None)
        if why is None:
            continue
        text = (
            f"{now.uri}: another writer's {other.operation or 'write'} '{other.requested}' {why} while this write "
            f"('{requested}') ran; run the write again"
        )
        if next(_clashes(mine.change, other, rules, now.planned, are_apart=True), None) is not None:
            return Refused(text, is_mendable=True)
        by_keys.add(other.requested)
    return Refused(text, is_mendable=True, by_keys=frozenset(by_keys)) if by_keys else Proceed()


def _taken_back(mine: Mine, now: TableState) -> str:
    """Why a write upon a write that was taken back meanwhile must not complete."""
    oldest = min(now.committed, default="")  # archived writes are older than all that is on the timeline now
    gone = sorted(commit for commit in mine.upon.committed - now.committed if commit >= oldest)
    return f"{now.uri}: the write '{gone[0]}' was taken back while this write ran; run the write again" if gone else ""


def _stored_again(mine: Mine, now: TableState) -> str:
    """Why a batch of a stream must not be stored, if another driver of the stream stored it meanwhile."""
    for other in now.changes:
        if other.batch and other.batch == mine.change.batch:
            return f"{now.uri}: '{other.requested}' stored this batch of the stream meanwhile; it is not stored twice"
    return ""


def _nested(mine: Mine, now: TableState, rules: WriteRules) -> str:
    """Why a write must not make partitions within those that others made or changed meanwhile, or around them."""
    for other in now.changes if rules.new_partitions else ():
        found = next(nested_folders(rules.new_partitions, other.files), None)
        if found is not None:
            return (
                f"{now.uri}: '{other.requested}' wrote while this write ('{mine.target.requested}') ran, and partition "
                f"'{found[1]}' of one of them lies within partition '{found[0]}' of the other; run the write again"
            )
    return ""


def _ended(mine: Mine, now: TableState, rules: WriteRules) -> str:
    """Why rows must not be logged for a resizing that is no longer pending: nobody would ever see them there."""
    ended = sorted(rules.doubled_for - {instant.requested for instant in now.pending})
    if not ended:
        return ""
    return (
        f"{now.uri}: clustering '{ended[0]}' ended, for which this write ('{mine.target.requested}') has logged its "
        "rows, too; run the write again"
    )


def compacted_since(mine: Mine, now: TableState) -> frozenset[FileGroup]:
    """The file groups to whose logs a write appended, and that a compaction has taken since the write was planned."""
    planned = {
        group
        for group, service in now.planned.items()
        if service.action == "compaction" and mine.upon.planned.get(group) != service
    }
    done = {group for other in now.changes if other.operation == COMPACTION for group in other.rewritten}
    return mine.change.appended & (planned | done)


def refuse_other_counts(mine: Mine, now: TableState) -> Refused:
    """The verdict on a write that was placed by bucket, after another gave partitions other numbers of buckets."""
    return Refused(
        f"{now.uri}: another write changed how many buckets partitions have while this write "
        f"('{mine.target.requested}') ran; run the write again",
        is_mendable=True,
    )


def refuse_revived(mine: Mine, now: TableState, group: FileGroup) -> Refused:
    """The verdict on a write that brought a key back into a file group, whose compaction drops that key."""
    partition, file_id = group
    return Refused(
        f"{now.uri}: a compaction took file group '{file_id}' in partition '{partition}' without a key that this write "
        f"('{mine.target.requested}') brought back there meanwhile; run the write again",
        is_mendable=True,
    )


def _frozen(mine: Change, service: Instant, rules: WriteRules) -> frozenset[FileGroup]:
    """The file groups that a write must not have changed if a service has planned to take them.

    A clustering takes the rows elsewhere, unless writes go first and the clustering gives way. A compaction would bring
    the rows back that the write replaced, and its base file, made of older rows, would count as newer than one that the
    write made; it looks at nothing that writes have done.
    """
    if service.action in CLUSTERINGS:
        return frozenset() if rules.passes_clusterings else mine.touched
    return mine.replaced | mine.rewritten


def _turned(mine: Change, now: TableState) -> FileGroup | None:
    """A file group in whose log a log compaction would turn the order of writes; None if there is none.

    A merged log stands where the newest of its sources stands. If that is later than this write, the older rows in it
    would go before this write's. Seen: Apache Hudi plans log compactions beside writes that run (1.0.2, 1.2.0).
    """
    merged = {of.requested: of.appended for of in now.changes if of.operation == LOG_COMPACTION}
    for group, service in now.planned.items():
        if service.action == "logcompaction":
            merged[service.requested] = merged.get(service.requested, frozenset()) | {group}

    turned: set[FileGroup] = set()
    for of in now.changes:
        if not of.keeps_rows and of.requested > mine.requested:
            later = [groups for requested, groups in merged.items() if requested > of.requested]
            turned |= mine.appended & of.appended & frozenset().union(*later)
    return min(turned, default=None)


def _clashes(
    mine: Change, other: Change, rules: WriteRules, planned: Mapping[FileGroup, Instant], *, are_apart: bool
) -> Iterator[str]:
    """Why a write cannot complete beside what another did, in words; nothing if it can.

    `planned`: the file groups in the plans of pending services. `are_apart`: the two wrote no key in common.
    """
    if other.schema is not None:
        if other.alters_columns or other.schema not in rules.schemas:
            yield f"changed the table's schema{_both_changes(other.schema, rules)}"
        elif _hides(other, mine, rules):
            brings = rules.brings or "other than names and types"
            yield f"began later, completed earlier, and hides what this write changes in the table's schema ({brings})"

    if shared := _shared(mine, other, rules, planned, are_apart=are_apart):
        partition, file_id = min(shared)
        yield f"changed file group '{file_id}' in partition '{partition}', which this write changes, too,"
    if other.keeps_rows:
        return

    # What this write replaces as a whole must be all that is there.
    grown = other.gaining | {partition for partition, _ in other.created}
    emptied = grown if mine.replaces_table else grown & mine.emptied
    if emptied:
        yield f"added rows to partition '{min(emptied)}', which this write replaces,"

    if other.moves_rows:  # it brought no key that was not there
        return

    # A key that was new to both would become two rows.
    if rules.looks_keys_up and not rules.by_bucket and mine.gaining and not are_apart:
        met = grown if rules.is_global else grown & mine.gaining
        if met:
            yield f"added rows to partition '{min(met)}', maybe with keys that this write adds, too,"

    # A file group that this write left as it was, for none of its keys was there, or stored rows win.
    if left := (_named(rules.planned, rules) - _named(mine.touched, rules)) & _named(other.touched, rules):
        partition, file_id = min(left)
        yield f"changed file group '{file_id}' in partition '{partition}', where this write found nothing to change,"

    # A key that a delete did not find may have come meanwhile. It would outlive a delete that completes after it.
    sought = grown if rules.is_global and rules.missed else grown & rules.missed
    if sought:
        yield f"added rows to partition '{min(sought)}', maybe with keys that this delete did not find,"


def _hides(other: Change, mine: Change, rules: WriteRules) -> bool:
    """Whether nobody would see the schema that a write brings: the table's is that of the write that began last."""
    return bool(rules.new_schemas) and other.requested > mine.requested and other.schema not in rules.new_schemas


def _both_changes(schema: str, rules: WriteRules) -> str:
    """What two writes change in the schema that both began with, in words. Empty if that schema is not known."""
    if rules.schema_before is None:
        return ""
    theirs = describe_changes(rules.schema_before, schema) or "no column differs"
    return f" ({theirs}; this write: {rules.brings or 'no change'})"


def _shared(
    mine: Change, other: Change, rules: WriteRules, planned: Mapping[FileGroup, Instant], *, are_apart: bool
) -> frozenset[FileGroup]:
    """The file groups that two actions changed so that one of them would undo the other."""
    if other.keeps_rows:
        return (mine.rewritten | mine.replaced) & other.touched

    shared = _named(mine.touched, rules) & _named(other.touched, rules)
    # By their ids: two file groups of one bucket would never be read as one.
    only_logs = (mine.appended - mine.rewritten) & (other.appended - other.rewritten)
    if rules.shares_logs and are_apart:
        shared -= _named(only_logs, rules)
    elif rules.appends_freely:
        ordered = (group for group in only_logs if not _turns_order(mine, other, planned.get(group)))
        shared -= _named(frozenset(ordered), rules)
    return shared


def _turns_order(mine: Change, other: Change, service: Instant | None) -> bool:
    """Whether a pending compaction would turn the order of two logs of a file group.

    Logs are merged in the order in which their writes began. If the compaction was planned after `other`, which began
    after `mine`, then it takes the log of `other` only, and the log of `mine` comes to lie upon it.
    """
    return service is not None and mine.requested < other.requested < service.requested


def _named(groups: frozenset[FileGroup], rules: WriteRules) -> frozenset[FileGroup]:
    """File groups by what says that two are the same: their ids, or the buckets in their ids."""
    if not rules.by_bucket:
        return groups
    return frozenset((partition, file_id[:_BUCKET_DIGITS]) for partition, file_id in groups)
