"""Cleaning the metadata table: slices from before its compactions go, once no reader can still be at them."""

import logging
from collections.abc import Callable, Collection
from datetime import tzinfo

from pyhudi.errors import HudiError, LockLost
from pyhudi.format.timeline.instant import Instant
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.services.clean.execution import CleanRun, carry_out_clean, forget_unplanned_clean, request_clean
from pyhudi.services.clean.planning import plan_clean
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.table.view.cleaned import pending_cleans, read_pending_plan
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.run import ActionTable
from pyhudi.txn.locks.hold import Hold

log = logging.getLogger("pyhudi")


def clean_metadata_table(
    table: MetadataTable,
    settings: CleanSettings,
    zone: tzinfo,
    partitions: Collection[str],
    *,
    is_due: bool,
    issue_instant: Callable[[], str],
    clock: Clock,
    hold: Hold,
) -> None:
    """Finish cleans that died, or delete the slices of these partitions that the settings no longer retain.

    `is_due`: the metadata table was compacted just now. Only a compaction adds a slice. Without one, and without a
    pending clean, no request is made. A failed clean does not fail the write that runs it: the clean stays pending, or
    comes with the next compaction. Spec: format/metadata-table.md section 11.

    Raises: LockLost when the table is no longer ours: then the write has failed, too.
    """
    actions = ActionTable(table.storage, table.timeline.layout, issue_instant, hold.confirm)
    run = CleanRun(actions, table.timeline, clock)

    try:
        pending = pending_cleans(table.timeline)
        for instant in pending:
            _finish(run, instant)

        if is_due and not pending:
            snapshot = Snapshot(table.storage, table.config, zone, table.timeline, StorageListing(table.storage))
            plan = plan_clean(snapshot, settings, now_ms=clock.now_ms(), is_asked=True, partitions=sorted(partitions))
            if not isinstance(plan, str):
                carry_out_clean(run, request_clean(run, plan), plan)
    except LockLost:
        raise
    except HudiError as error:
        log.warning("%s: the metadata table was not cleaned: %s", table.storage.location.uri, error)


def _finish(run: CleanRun, instant: Instant) -> None:
    """Carry out a clean that died. Its plan stays right: only making the metadata table anew restores anything."""
    plan = read_pending_plan(run.table.storage, run.timeline, instant)
    if plan is None:
        forget_unplanned_clean(run, instant.requested)
    else:
        carry_out_clean(run, instant.requested, plan)
