"""Rolling back a deltacommit of the metadata table when its data action is rolled back."""

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
from pyhudi.txn.action.run import ActionTable, Ending, delete_pending_states
from pyhudi.write.metadata.deltacommit import written_logs


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
