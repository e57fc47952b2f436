"""Carrying out a bootstrap: both of its commits, its index and the metadata table, and then the table is there.

The table's guard is held from beginning to end. Nobody else can see the table until its properties are put, last of
all. So a crash leaves no table, and the next bootstrap begins anew. Spec: format/bootstrap.md sections 1 to 5.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Final

from pyhudi.format.bootstrap.index import FILE_IDS_FILE, PARTITIONS_FILE
from pyhudi.format.bootstrap.writing import encode_file_ids_file, encode_partitions_file
from pyhudi.format.timeline.records import CommitMetadata, WriteStat
from pyhudi.services.bootstrap.folder import clear_folder, confirm_claim, show_table
from pyhudi.services.bootstrap.plan import BootstrapPlan
from pyhudi.storage.protocol import Storage
from pyhudi.storage.withheld import WithheldStorage
from pyhudi.table.view.bootstrap import BOOTSTRAP_INSTANT
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.service_action import stats_by_partition
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.action.write import OneTurn, begin_write, rolled_back_on_failure
from pyhudi.txn.conflicts.verdict import Mine, Proceed, TableState, Verdict
from pyhudi.write.handles.skeleton import SkeletonTarget, write_skeletons
from pyhudi.write.handles.slice_work import SliceWork
from pyhudi.write.input.source import PreparedWrite
from pyhudi.write.operation import run_write
from pyhudi.write.settings import WriteSettings
from pyhudi.write.stated_schema import StatedColumns

log = logging.getLogger("pyhudi")

FULL_INSTANT: Final = "00000000000002"
"""The instant of base files that hold whole rows. Spec: format/bootstrap.md section 1."""

OnProgress = Callable[[int, int], None]
"""Told of how many source files are done, and of how many there are."""


@dataclass(frozen=True)
class BootstrapJob:
    """What a bootstrap goes by.

    `storage`: of the table; `withheld`: the same, with the properties kept back. `token`: of the claim. `target`: what
    skeletons share. `schema_text`: the table's columns. `folder`: the source, as the properties have it. `work`: runs
    the skeletons' tasks; `wave`: so many tasks of it at a time, between which progress is told; 0: all. `prepare`: the
    rows that are written whole, checked against the table. `make_metadata`: makes the metadata table.
    """

    storage: Storage
    withheld: WithheldStorage
    token: str
    open_session: Callable[[], AbstractContextManager[WriteSession]]
    plan: BootstrapPlan
    target: SkeletonTarget
    schema_text: str
    folder: str
    settings: WriteSettings
    extra_metadata: Mapping[str, str]
    work: SliceWork
    wave: int
    prepare: Callable[[Snapshot], AbstractContextManager[PreparedWrite]]
    make_metadata: Callable[[WriteSession], None]
    on_progress: OnProgress


def run_bootstrap(job: BootstrapJob) -> None:
    """Make the table, whole, in a folder that was claimed.

    Raises: what a task raises, a Conflict or LockLost; then the folder is cleared. OutcomeUnknown: nothing is touched.
    """
    with job.open_session() as session:
        confirm_claim(job.storage, job.token)
        try:
            done = 0
            if job.plan.tasks:
                _write_skeletons(job, session)
                done = job.plan.skeleton_count
            if job.plan.full:
                _write_rows(job, _now(session), done)
            job.make_metadata(_now(session))
            session.hold.confirm()
        except Exception:
            clear_folder(job.storage, session.hold)
            raise
        show_table(job.withheld, job.storage)
    log.info("%s: bootstrapped from %s", job.storage.location.uri, job.folder)


def _now(session: WriteSession) -> WriteSession:
    return replace(session, snapshot=session.access.snapshot())


def _write_skeletons(job: BootstrapJob, session: WriteSession) -> None:
    """The commit by metadata only. Seen: its requested and inflight files are empty (0.15.0, 1.0.2, 1.2.0)."""
    action = "deltacommit" if session.snapshot.config.is_merge_on_read else "commit"
    with ExitStack() as life:
        write = begin_write(OneTurn(session), session, action, b"", life, requested=BOOTSTRAP_INSTANT)
        with rolled_back_on_failure(write):
            write.put_inflight(b"")
            stats = _run_tasks(job)

            epoch_ms, indexed = job.target.epoch_ms, job.plan.indexed
            storage = session.access.storage
            storage.put(PARTITIONS_FILE, encode_partitions_file(job.folder, indexed, epoch_ms=epoch_ms))
            storage.put(FILE_IDS_FILE, encode_file_ids_file(job.folder, indexed, epoch_ms=epoch_ms))

            extra = {**job.extra_metadata, **StatedColumns(job.schema_text).extra_metadata}
            metadata = CommitMetadata(stats_by_partition(stats), "BOOTSTRAP", extra)
            with write.completing(metadata, _proceed):
                pass


def _run_tasks(job: BootstrapJob) -> list[WriteStat]:
    tasks, total = job.plan.tasks, job.plan.skeleton_count + len(job.plan.full)
    size = job.wave or len(tasks)
    stats: list[WriteStat] = []
    for start in range(0, len(tasks), size):
        stats += job.work.run(write_skeletons, job.target, tasks[start : start + size])
        log.info(
            "%s: %s of %s source files are bootstrapped", job.storage.location.uri, f"{len(stats):,}", f"{total:,}"
        )
        job.on_progress(len(stats), total)
    return stats


def _write_rows(job: BootstrapJob, session: WriteSession, done: int) -> None:
    """The commit by full records: a bulk insert. Spec: format/bootstrap.md section 5."""
    with job.prepare(session.snapshot) as prepared:
        run_write(
            OneTurn(session), prepared, job.settings, extra_metadata=job.extra_metadata, then=lambda _: None,
            requested=FULL_INSTANT,
        )  # fmt: skip
    total = done + len(job.plan.full)
    job.on_progress(total, total)


def _proceed(mine: Mine, now: TableState) -> Verdict:
    """Nobody else sees the table yet."""
    return Proceed()
