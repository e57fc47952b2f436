"""The services of a table when a user asks for them. Most of them also follow writes by themselves."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyhudi.api import frames
from pyhudi.api.access import attempt_number
from pyhudi.api.handle import TableHandle
from pyhudi.engine.local.executors import LocalSliceWork
from pyhudi.options.resolve import merge_options
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.archive.run import ArchiveResult, run_archive
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.services.chosen_plans import asked_plans
from pyhudi.services.clean.run import CleanJob, CleanResult, run_cleans
from pyhudi.services.clean.settings import TRIGGER_COMMITS, CleanSettings, FailedWrites
from pyhudi.services.compaction.inputs import CompactionKind, refuse_not_compactable
from pyhudi.services.compaction.run import (
    CompactionJob,
    CompactionResult,
    pending_compactions,
    run_compactions,
    schedule_compaction,
)
from pyhudi.txn.action.session import TableAccess
from pyhudi.write.file_settings import base_file_settings
from pyhudi.write.handles.slice_work import SliceWork
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ServiceCalls:
    """The calls about services that a table has, but for those in modules of their own."""

    _handle: TableHandle

    def clean(self, *, options: Mapping[str, object] | None = None) -> CleanResult:
        """Delete the files that neither a retained commit nor a savepoint nor a pending action needs any more.

        What is retained is what `hoodie.clean.*` says. A clean of any writer that was left pending is finished first.
        A new one waits for `hoodie.clean.trigger.max.commits` commits only where the call's own options say so.
        It runs after writes by itself, unless `hoodie.clean.automatic` is false.
        Raises: Conflict while another writer holds the table.
        """
        return clean(self._handle, options)

    def archive(self, *, options: Mapping[str, object] | None = None) -> ArchiveResult:
        """Move old instants from the active timeline into the history, the metadata table's too.

        How many stay is what `hoodie.keep.*` and `hoodie.archive.*` say. It runs after writes by itself, unless
        `hoodie.archive.automatic` is false. Raises: Conflict while another writer holds the table.
        """
        return archive(self._handle, options)

    def compact(
        self,
        *,
        instants: Iterable[str] | None = None,
        options: Mapping[str, object] | None = None,
        spark: "SparkSession | None" = None,
    ) -> CompactionResult:
        """Merge the logs of a merge-on-read table into base files: what is pending first, then what is there now.

        Which file slices it takes is what `hoodie.compaction.*` says; it does not wait for a trigger. Writers and
        readers go on meanwhile: the table is held at the beginning and the end only. A compaction that dies stays
        pending, and is done anew by the next call. It runs after writes by itself where `hoodie.compact.inline` is
        true. `instants`: carry out the pending ones of these requested times only, and plan nothing. `spark`: the
        session whose cluster it runs on; in this process where that runs on this machine only, or for None.
        Raises: Invalid for a table without logs; NotFound for an instant that is not pending; Conflict while another
        process compacts or holds it.
        """
        return compact(self._handle, CompactionKind.BASE, options, spark, instants=instants)

    def schedule_compaction(self, *, options: Mapping[str, object] | None = None) -> CompactionResult:
        """Plan a compaction and leave it pending, for whoever runs the next one: pyhudi or Apache Hudi.

        Raises: as `compact`.
        """
        return schedule(self._handle, CompactionKind.BASE, options)

    def log_compact(
        self, *, options: Mapping[str, object] | None = None, spark: "SparkSession | None" = None
    ) -> CompactionResult:
        """Merge the log files of slices that have many into one each; base files stay as they are.

        How many is what `hoodie.log.compaction.blocks.threshold` says. Otherwise as `compact`.
        Raises: as `compact`; Unsupported where a record is made of several (custom mergers, partial-update modes).
        """
        return compact(self._handle, CompactionKind.LOG, options, spark)


def clean(handle: TableHandle, options: Mapping[str, object] | None) -> CleanResult:
    """As `HudiTable.clean`."""
    _, merged, settings = handle.prepare(options)
    job = clean_job(handle, handle.access, settings, CleanSettings.from_options(merged))
    waits = TRIGGER_COMMITS in merge_options(write=options, opened=None, table={})
    return handle.told("clean", lambda: run_cleans(job, is_asked=not waits))


def clean_job(handle: TableHandle, access: TableAccess, settings: WriteSettings, clean: CleanSettings) -> CleanJob:
    """What cleans go by."""
    undoes_dead = clean.failed_writes is not FailedWrites.NEVER
    return CleanJob(
        clean,
        open_session=lambda: handle.session(settings, clean, "clean", access=access, undoes_dead=undoes_dead),
        go_on=lambda: handle.session(settings, clean, "clean", access=access, goes_on=True),
        clock=access.clock,
    )


def archive(handle: TableHandle, options: Mapping[str, object] | None) -> ArchiveResult:
    """As `HudiTable.archive`."""
    _, merged, settings = handle.prepare(options)
    what = ArchiveSettings.from_options(merged)
    open_session, clock = (lambda: handle.session(settings, what.clean, "archive")), handle.access.clock
    return handle.told("archive", lambda: run_archive(open_session, what, clock))


def compact(
    handle: TableHandle,
    kind: CompactionKind,
    options: Mapping[str, object] | None,
    spark: "SparkSession | None",
    *,
    instants: Iterable[str] | None = None,
) -> CompactionResult:
    """As `HudiTable.compact`, or `HudiTable.log_compact`."""
    job = asked_job(handle, kind, options, spark)
    only = None
    if instants is not None:
        pending = pending_compactions(handle.access.snapshot().timeline, kind)
        only = asked_plans(pending, instants, uri=handle.access.location.uri, service=kind.value)
    service = "compaction" if kind is CompactionKind.BASE else "logcompaction"
    return handle.told(service, lambda: run_compactions(job, is_asked=True, plans=only is None, only=only))


def schedule(handle: TableHandle, kind: CompactionKind, options: Mapping[str, object] | None) -> CompactionResult:
    """As `HudiTable.schedule_compaction`."""
    return schedule_compaction(asked_job(handle, kind, options, None), is_asked=True)


def compaction_job(
    handle: TableHandle,
    kind: CompactionKind,
    access: TableAccess,
    settings: WriteSettings,
    after: AfterCommitSettings,
    work: SliceWork,
) -> CompactionJob:
    """What a compaction goes by. `work`: where its slices are compacted, as `slice_work` says."""
    return CompactionJob(
        kind, after.compaction, base_file_settings(settings), settings.logs,
        open_session=lambda: handle.session(settings, after.clean, kind.value, access=access),
        work=work, clock=access.clock, new_attempt=lambda: attempt_number(access.new_uuid),
    )  # fmt: skip


def slice_work(handle: TableHandle, access: TableAccess, cluster: Any | None) -> SliceWork:
    """Where slices are compacted: on a Spark cluster (`frames.as_cluster`), or in this process without one."""
    work: SliceWork = LocalSliceWork(handle.executor, access.storage)
    return work if cluster is None else frames.spark_engine().SparkSliceWork(cluster)


def asked_job(
    handle: TableHandle, kind: CompactionKind, options: Mapping[str, object] | None, spark: "SparkSession | None"
) -> CompactionJob:
    """What a compaction goes by that a user asks for. `spark`: the session whose cluster it runs on, if any."""
    refuse_not_compactable(handle.access.snapshot())
    _, merged, settings = handle.prepare(options)
    access = handle.access_through(spark)
    work = slice_work(handle, access, frames.as_cluster(spark))
    return compaction_job(handle, kind, access, settings, AfterCommitSettings.from_options(merged), work)
