"""The services of a table when a user asks for them. Most of them also follow writes by themselves."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyhudi.api import frames
from pyhudi.api.access import attempt_number
from pyhudi.api.handle import TableHandle
from pyhudi.engine.local.executors import LocalSliceWork
from pyhudi.metrics.measuring import told
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.archive.run import ArchiveResult, run_archive
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.services.clean.run import CleanJob, CleanResult, run_cleans
from pyhudi.services.clean.settings import CleanSettings, FailedWrites
from pyhudi.services.compaction.inputs import CompactionKind, refuse_not_compactable
from pyhudi.services.compaction.run import CompactionJob, CompactionResult, run_compactions, schedule_compaction
from pyhudi.txn.action.session import TableAccess
from pyhudi.write.handles.slice_work import SliceWork
from pyhudi.write.operation import base_file_settings
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def clean(handle: TableHandle, options: Mapping[str, object] | None) -> CleanResult:
    """As `HudiTable.clean`."""
    _, merged, settings = handle.prepare(options)
    job = clean_job(handle, handle.access, settings, CleanSettings.from_options(merged))
    return told(handle.access.location.uri, "clean", lambda: run_cleans(job, is_asked=True))()


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
    return told(handle.access.location.uri, "archive", lambda: run_archive(open_session, what, clock))()


def compact(
    handle: TableHandle, kind: CompactionKind, options: Mapping[str, object] | None, spark: "SparkSession | None"
) -> CompactionResult:
    """As `HudiTable.compact`, or `HudiTable.log_compact`."""
    job = asked_job(handle, kind, options, spark)
    service = "compaction" if kind is CompactionKind.BASE else "logcompaction"
    return told(handle.access.location.uri, service, lambda: run_compactions(job, is_asked=True))()


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
    _, merged, settings = handle.prepare_rows(options)
    access = handle.access_through(spark)
    work = slice_work(handle, access, frames.as_cluster(spark))
    return compaction_job(handle, kind, access, settings, AfterCommitSettings.from_options(merged), work)
