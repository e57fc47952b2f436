"""The steps of a clean. Order: its plan, the deletion of files, participants such as the metadata table, completion.

Every step can be repeated. A clean that was stopped stays pending, and is carried out again from its plan. A clean is
never rolled back, because some of its files are gone. Files may be deleted without the table's guard; every other step
needs it.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyhudi.errors import Unsupported
from pyhudi.format.names import PARTITION_METAFILE, join
from pyhudi.format.timeline.action_files import encode_clean_metadata, encode_cleaner_plan
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import CleanerPlan, CleanMetadata, CleanPartitionMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.cleaned import planned_names
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.run import ActionRun, ActionTable, Ending, delete_pending_states
from pyhudi.txn.undo.data_files import only_data_files

log = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class CleanRun:
    """What carrying out a clean needs.

    The hold of the table's guard is confirmed before the first file is deleted and before the clean completes. For a
    metadata table, this is the hold of its data table's guard.
    """

    table: ActionTable
    timeline: Timeline
    clock: Clock


@dataclass(frozen=True, slots=True)
class DoneClean:
    """A clean that has completed."""

    requested: str
    completed: str
    metadata: CleanMetadata


def request_clean(run: CleanRun, plan: CleanerPlan) -> str:
    """Put a new clean on the timeline. Returns its requested time."""
    instant = Instant(run.table.issue_instant(), "clean", "REQUESTED")
    return run.table.request(instant, encode_cleaner_plan(plan)).requested


@dataclass(frozen=True, slots=True)
class BegunClean:
    """A clean that is inflight. `names`: partition -> the files that it deletes, those that it spares left out."""

    action: ActionRun
    plan: CleanerPlan
    names: Mapping[str, Sequence[str]]
    started_ms: int

    @property
    def requested(self) -> str:
        return self.action.requested

    @property
    def paths(self) -> list[str]:
        """The paths of the files that it deletes. Raises: as `only_data_files`."""
        paths = [join(partition, name) for partition, names in self.names.items() for name in names]
        return list(only_data_files(paths, named_by=f"the plan of clean '{self.requested}'"))


def carry_out_clean(
    run: CleanRun, requested: str, plan: CleanerPlan, *, still_needed: Mapping[str, set[str]] | None = None
) -> DoneClean:
    """Carry out a requested clean in one turn, or continue one that stopped halfway.

    A file that is gone already is no error. `still_needed`: as in `begin_clean`. Raises: as `begin_clean`; LockLost
    when the table is no longer ours.
    """
    begun = begin_clean(run, requested, plan, still_needed=still_needed)
    run.table.confirm()
    run.table.storage.delete_many(begun.paths)
    return complete_clean(run, begun)


def begin_clean(
    run: CleanRun, requested: str, plan: CleanerPlan, *, still_needed: Mapping[str, set[str]] | None = None
) -> BegunClean:
    """Say on the timeline that a requested clean deletes files from now on.

    `still_needed`: partition -> names of files in the plan that the table needs again, and that are therefore spared.
    Seen: the inflight file is a copy of the plan (0.15, 1.0.2). Spec: format/actions.md section 7.5.

    Raises: Unsupported for a plan that deletes the sources of a bootstrapped table.
    """
    _refuse_bootstrap_sources(requested, plan)
    started_ms, spared = run.clock.now_ms(), still_needed or {}
    names = {
        partition: [name for name in dict.fromkeys(files) if name not in spared.get(partition, ())]
        for partition, files in planned_names(plan).items()
    }
    action = run.table.begin(requested, "clean", inflight=encode_cleaner_plan(plan))
    return BegunClean(action, plan, names, started_ms)


def complete_clean(run: CleanRun, begun: BegunClean) -> DoneClean:
    """Complete a clean whose files are gone, in the turn `run`. Partitions that are empty now go first.

    Nobody can begin a write meanwhile, so an empty folder stays empty until it is deleted.
    Raises: LockLost when the table is no longer ours.
    """
    plan, names, requested = begun.plan, begun.names, begun.requested
    if plan.partitions_to_be_deleted:
        run.table.confirm()
    emptied = {p for p in plan.partitions_to_be_deleted or () if p and _remove_partition(run, p)}

    metadata = CleanMetadata(
        start_clean_time=requested,
        time_taken_in_millis=max(0, run.clock.now_ms() - begun.started_ms),
        total_files_deleted=sum(map(len, names.values())),
        earliest_commit_to_retain=plan.earliest_instant_to_retain.requested if plan.earliest_instant_to_retain else "",
        last_completed_commit=plan.last_completed_commit,
        partition_metadata={
            partition: _partition_metadata(plan, partition, names.get(partition, ()), partition in emptied)
            for partition in sorted({*names, *emptied})
        },
        extra_metadata=plan.extra_metadata or {},
    )
    ending = Ending(
        encode_clean_metadata(metadata), tell=lambda participant: participant.before_clean(requested, metadata)
    )  # fmt: skip

    completed = begun.action.on(run.table).complete(ending)
    assert completed.completed is not None
    return DoneClean(requested, completed.completed, metadata)


def forget_unplanned_clean(run: CleanRun, requested: str) -> None:
    """Remove a pending clean that has no plan. Such a clean has deleted nothing."""
    run.table.confirm()
    delete_pending_states(run.table.storage, run.table.layout, Instant(requested, "clean", "REQUESTED"))


def holds_nothing_but(storage: Storage, partition: str, names: Sequence[str]) -> bool:
    """Whether a partition's folder holds no files but these and its partition metadata file. One list request.

    Files of pending writes and of nested partitions count, whoever wrote them.
    """
    known = {join(partition, name) for name in names}
    files = (file.path for file in storage.list(partition, recursive=True))
    return all(path in known or _is_partition_metafile(partition, path) for path in files)


def _remove_partition(run: CleanRun, partition: str) -> bool:
    """Delete a partition's folder if it is empty and nobody may be about to write to it. Returns whether it is gone."""
    storage = run.table.storage
    if any(instant.comparable_action in WRITE_ACTIONS for instant in run.timeline.pending):
        log.info("partition '%s' stays, empty as it is: other writers are running", partition)
        return False
    if not holds_nothing_but(storage, partition, ()):
        log.warning("partition '%s' stays: expected it to be empty after the clean, found files", partition)
        return False
    storage.delete_prefix(partition)
    return True


def _is_partition_metafile(partition: str, path: str) -> bool:
    return path.startswith(join(partition, PARTITION_METAFILE))


def _partition_metadata(
    plan: CleanerPlan, partition: str, names: Sequence[str], is_deleted: bool
) -> CleanPartitionMetadata:
    return CleanPartitionMetadata(
        partition_path=partition,
        policy=plan.policy,
        delete_path_patterns=tuple(names),
        success_delete_files=tuple(names),
        is_partition_deleted=is_deleted,
    )


def _refuse_bootstrap_sources(requested: str, plan: CleanerPlan) -> None:
    for partition, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items():
        for info in infos:
            if info.is_bootstrap_base_file:
                raise Unsupported(
                    f"clean '{requested}': its plan deletes '{info.file_path}' of partition '{partition}', a source of "
                    "a bootstrapped table; let Apache Hudi finish it"
                )
