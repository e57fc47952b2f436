"""Taking a metadata table back to where it stood at a commit of its data table.

Later deltacommits are undone by a restore of the metadata table's own. A deltacommit after it says what has become of
the data table's files meanwhile, because cleans are not taken back. Where this cannot be done, the metadata table must
be made anew.

Spec: format/metadata-table.md section 8, row `restore`. Seen: 0.15.0, 1.0.2 and 1.2.0, which also drop the indexes that
they do not correct (1.2.0 all but `files`, column statistics and the record index).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyhudi.format.metadata.groups import MetadataGroupId
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.action_files import encode_restore_metadata, encode_restore_plan
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import (
    InstantInfo,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
)
from pyhudi.metadata.kinds.registry import find_kind, is_listing
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.txn.action.run import ActionTable, Ending
from pyhudi.txn.undo.rollback_plan import delete_files, deletions, rollback_metadata, written_at
from pyhudi.versions import Rollback
from pyhudi.write.metadata import by_name


@dataclass(frozen=True, slots=True)
class MetadataRestore:
    """What going back undoes. `undone`: instants, newest first. `created`: newer partitions, which are deleted."""

    undone: tuple[Instant, ...]
    created: frozenset[str]


def plan_metadata_restore(
    table: MetadataTable, to: str, restore: str, *, kept: Collection[str], partitions: Collection[str]
) -> MetadataRestore | str:
    """What must be undone to go back to the data table's commit `to`; or, in words, why that cannot be done.

    `restore`: the requested time of the data table's restore. Later instants of the metadata table belong to it.
    `kept`: the actions that the restore leaves in the data table, such as cleans; their deltacommits stay.
    `partitions`: those that the data table names; a list request for each. The base files must be those of the time of
    `to`: undoing a compaction would lead back to slices that may have been cleaned.
    """
    when = table.timeline.effective_time
    writes = [i for i in table.timeline if i.comparable_action in WRITE_ACTIONS]
    at = next((i for i in writes if i.requested == to and i.is_completed), None)
    if at is None:
        return f"it has no deltacommit of '{to}' (any more)"

    later = [
        i
        for i in writes
        if i.requested < restore
        and i.requested not in kept
        and (not i.is_completed or (when(i), i.requested) > (when(at), to))
    ]

    if any(i.comparable_action != "deltacommit" for i in later):
        return f"it was compacted since '{to}'"

    undone = frozenset(i.requested for i in later)
    created = frozenset(partition for partition in partitions if _is_made_since(table, partition, undone))
    if any(map(is_listing, created)):
        return f"it was made after '{to}'"

    later.sort(key=lambda i: (not i.is_completed, when(i) if i.is_completed else "", i.requested), reverse=True)
    return MetadataRestore(tuple(later), created)


def _is_made_since(table: MetadataTable, partition: str, undone: Collection[str]) -> bool:
    """Whether a partition is there only since deltacommits that are to be undone. One list request.

    A partitioned record index gets new file groups with each data partition: losing those does not count.
    """
    stays: dict[str, bool] = {}
    for file in table.storage.list(partition):
        text = file.path.rpartition("/")[2]
        name = BaseFileName.parse(text) or LogFileName.parse(text)
        if name is not None:
            stays[name.file_id] = stays.get(name.file_id, False) or written_at(text) not in undone

    lost = [file_id for file_id, is_kept in stays.items() if not is_kept]
    return len(lost) == len(stays) or not all(_is_of_data_partition(partition, file_id) for file_id in lost)


def _is_of_data_partition(partition: str, file_id: str) -> bool:
    kind = find_kind(partition)
    if kind is None or not kind.has_groups_by_partition:
        return False
    group = MetadataGroupId.parse(file_id, partition=partition)
    return group is not None and group.data_partition is not None


def restore_deltacommits(
    table: MetadataTable,
    found: MetadataRestore,
    to: str,
    restore: str,
    *,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """Undo deltacommits, as a restore of the metadata table at a time of its own.

    Can be repeated: what an earlier attempt has undone is not there any more. Order: completed files go first, so that
    nobody takes a deltacommit for whole meanwhile. Requests: a listing; a delete for each log and instant.
    """
    storage, layout = table.storage, table.timeline.layout
    mine = next((i for i in table.timeline if i.action == "restore" and i.requested > restore), None)
    if mine is not None and mine.is_completed:
        return

    requested = mine.requested if mine is not None else issue_instant()

    infos = {i.requested: InstantInfo(i.requested, i.action) for i in found.undone}
    plan = RestorePlan(tuple(infos.values()), savepoint_to_restore=to)

    run = ActionTable(storage, layout, issue_instant, confirm).begin(
        requested, "restore", request=encode_restore_plan(plan)
    )  # fmt: skip

    confirm()
    storage.delete_many(layout.path(i) for i in found.undone if i.is_completed)

    by_blocks = layout.kind.rollback is Rollback.COMMAND_BLOCKS
    take_back = by_name.void_deltacommits if by_blocks else _delete_logs
    done = take_back(table, infos, rollback=requested)

    confirm()
    names = [(i.requested, i.action) for i in found.undone]
    names += [(requested, "logcompaction") for requested in infos.keys() & table.timeline.log_compactions]
    for state in ("INFLIGHT", "REQUESTED"):
        storage.delete_many(layout.path(Instant(target, action, state)) for target, action in names)

    metadata = RestoreMetadata(
        start_restore_time=requested, time_taken_in_millis=0, instants_to_rollback=tuple(infos),
        rollbacks={target: (done[target],) for target in infos}, restore_instant_info=plan.instants_to_rollback,
    )  # fmt: skip
    run.complete(Ending(encode_restore_metadata(metadata)))


def _delete_logs(
    table: MetadataTable, targets: Mapping[str, InstantInfo], *, rollback: str
) -> dict[str, RollbackMetadata]:
    """Delete the logs of deltacommits. Returns what was done, by target. A list request for each partition."""
    names: dict[str, dict[str, list[str]]] = {target: {} for target in targets}

    for partition in table.storage.list_folders(""):
        if partition.startswith("."):
            continue
        for file in table.storage.list(partition):
            name = LogFileName.parse(file.path.rpartition("/")[2])
            if name is not None and name.instant in targets:
                names[name.instant].setdefault(partition, []).append(name.format())

    plans = {target: RollbackPlan(targets[target], deletions(table.storage, gone)) for target, gone in names.items()}
    for plan in plans.values():
        delete_files(table.storage, plan)
    return {target: rollback_metadata(plan, rollback, {}) for target, plan in plans.items()}
