"""The calls of a table that run its services when asked; most of them also follow writes by themselves."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.api import frames
from pyhudi.api.writes import TableWrites
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.archive.run import ArchiveResult, run_archive
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.services.clean.run import CleanResult, run_clean
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.compaction.inputs import CompactionKind, refuse_not_compactable
from pyhudi.services.compaction.run import CompactionJob, CompactionResult, run_compactions, schedule_compaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableServices(TableWrites):
    """The services of `HudiTable`, which says how the table is reached."""

    def clean(self, *, options: Mapping[str, object] | None = None) -> CleanResult:
        """Delete the files that neither a retained commit nor a savepoint nor a pending action needs any more.

        What is retained is what `hoodie.clean.*` says. A clean of any writer that was left pending is finished first.
        It runs after writes by itself, unless `hoodie.clean.automatic` is false.
        Raises: Conflict while another writer holds the table.
        """
        _, merged, settings = self._prepare(options)
        clean = CleanSettings.from_options(merged)
        with self._session(self._access, settings, clean, "clean") as session:
            return run_clean(session, clean, is_asked=True)

    def archive(self, *, options: Mapping[str, object] | None = None) -> ArchiveResult:
        """Move old instants from the active timeline into the history, the metadata table's too.

        How many stay is what `hoodie.keep.*` and `hoodie.archive.*` say. It runs after writes by itself, unless
        `hoodie.archive.automatic` is false. Raises: Conflict while another writer holds the table.
        """
        _, merged, settings = self._prepare(options)
        archive = ArchiveSettings.from_options(merged)
        with self._session(self._access, settings, archive.clean, "archive") as session:
            return run_archive(session, archive)

    def compact(
        self, *, options: Mapping[str, object] | None = None, spark: "SparkSession | None" = None
    ) -> CompactionResult:
        """Merge the logs of a merge-on-read table into base files: what is pending first, then what is there now.

        Which file slices it takes is what `hoodie.compaction.*` says; it does not wait for a trigger. Writers and
        readers go on meanwhile: the table is held at the beginning and the end only. A compaction that dies stays
        pending, and is done anew by the next call. It runs after writes by itself where `hoodie.compact.inline` is
        true. `spark`: the session whose cluster it runs on; in this process where that runs on this machine only, or
        for None.
        Raises: Invalid for a table without logs; Conflict while another process compacts or holds it.
        """
        return run_compactions(self._job(CompactionKind.BASE, options, spark), is_asked=True)

    def schedule_compaction(self, *, options: Mapping[str, object] | None = None) -> CompactionResult:
        """Plan a compaction and leave it pending, for whoever runs the next one: pyhudi or Apache Hudi.

        Raises: as `compact`.
        """
        return schedule_compaction(self._job(CompactionKind.BASE, options, None), is_asked=True)

    def log_compact(
        self, *, options: Mapping[str, object] | None = None, spark: "SparkSession | None" = None
    ) -> CompactionResult:
        """Merge the log files of slices that have many into one each; base files stay as they are.

        How many is what `hoodie.log.compaction.blocks.threshold` says. Otherwise as `compact`.
        Raises: as `compact`; Unsupported where a record is made of several (custom mergers, partial-update modes).
        """
        return run_compactions(self._job(CompactionKind.LOG, options, spark), is_asked=True)

    def _job(
        self, kind: CompactionKind, options: Mapping[str, object] | None, spark: "SparkSession | None"
    ) -> CompactionJob:
        refuse_not_compactable(self._access.snapshot())
        _, merged, settings = self._prepare(options)
        access = self._access if spark is None else frames.spark_engine().session_access(self._access, spark)
        work = self._slice_work(access, frames.as_cluster(spark))
        return self._compaction_job(kind, access, settings, AfterCommitSettings.from_options(merged), work)
