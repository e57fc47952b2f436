"""Rolling back a deltacommit of the metadata table: when its data action is rolled back, or when there is none."""

from collections.abc import Callable

from pyhudi.format.timeline.action_files import encode_rollback_metadata, encode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.run import ActionTable, Ending, delete_pending_states
from pyhudi.versions import Rollback
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.deltacommit import remove_logs, written_logs


def roll_back_deltacommit(
    table: MetadataTable,
    target: Instant,
    rollback: str,
    *,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """Delete what a deltacommit wrote in every partition, and its instant. A rollback replaces it on the timeline.

    Order: the completed file goes first, so that no reader takes the deltacommit for whole meanwhile.
    """
    storage, layout = table.storage, table.timeline.layout
    confirm()
    if target.is_completed:
        storage.delete(layout.path(target))

    names = dict(written_logs(table, target.requested))
    root = storage.location.uri.rstrip("/")
    paths = {partition: tuple(f"{root}/{name}" for name in files) for partition, files in names.items()}

    info = InstantInfo(target.requested, "deltacommit")
    plan = RollbackPlan(
        info, tuple(RollbackRequest(partition, files_to_be_deleted=files) for partition, files in paths.items())
    )
    run = ActionTable(storage, layout, issue_instant, confirm).begin(
        rollback, "rollback", request=encode_rollback_plan(plan)
    )  # fmt: skip

    confirm()
    for files in names.values():
        storage.delete_many(files)

    done = RollbackMetadata(
        start_rollback_time=rollback, time_taken_in_millis=0, total_files_deleted=sum(map(len, paths.values())),
        commits_rollback=(target.requested,),
        partition_metadata={p: RollbackPartitionMetadata(p, files) for p, files in paths.items()},
        instants_rollback=(info,),
    )  # fmt: skip

    already = any(i.requested == rollback and i.is_completed for i in table.timeline)
    if not already:
        run.complete(Ending(encode_rollback_metadata(done)))
    delete_pending_states(storage, layout, Instant(target.requested, "deltacommit", "INFLIGHT"))


def remove_unknown_deltacommits(
    table: MetadataTable,
    read_data_timeline: Callable[[], Timeline],
    *,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> bool:
    """Take off pending deltacommits of actions that the data table does not know. Returns whether there were any.

    A writer stood still until another had taken its lease and rolled its action back. It logged here before it learnt
    that. No rollback of the data table finds its deltacommit any more.

    An index that is being built stays: the data table has its plan, or its instant here has a suffix. The data timeline
    is read after this one, so that an action that has begun meanwhile is known.
    Requests: none where no deltacommit is pending. Order: the instant goes last, so that a crash leaves it to be found.
    """
    pending = [i for i in table.timeline.pending if i.action == "deltacommit" and by_name.is_of_data(i.requested)]
    if not pending:
        return False

    data = read_data_timeline()
    known = {i.requested for i in data}
    known |= {
        i.requested
        for i in data.history.instants(requested_from=pending[0].requested, requested_until=pending[-1].requested)
    }
    dead = [i for i in pending if i.requested not in known]
    for instant in dead:
        if table.timeline.layout.kind.rollback is Rollback.COMMAND_BLOCKS:
            by_name.void_deltacommit(
                table, instant, instant.requested, issue_instant=issue_instant, confirm=confirm
            )  # fmt: skip
        else:
            confirm()
            remove_logs(table, instant.requested)
            delete_pending_states(table.storage, table.timeline.layout, instant)
    return bool(dead)
