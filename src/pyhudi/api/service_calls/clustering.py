"""Clustering as calls of a table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyhudi.api import frames
from pyhudi.api.access import attempt_number
from pyhudi.api.handle import TableHandle
from pyhudi.api.service_calls.jobs import slice_work
from pyhudi.options.arguments import several_texts
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.chosen_plans import asked_plans
from pyhudi.services.clustering.run import ClusteringJob, ClusteringResult, run_clusterings, schedule_clustering
from pyhudi.services.clustering.trigger import pending_clusterings
from pyhudi.txn.action.session import TableAccess
from pyhudi.write.file_settings import base_file_settings
from pyhudi.write.handles.slice_work import SliceWork
from pyhudi.write.place.replacement import find_partitions
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ClusteringCalls:
    """The calls about clustering that a table has."""

    _handle: TableHandle

    def cluster(
        self,
        *,
        partitions: Iterable[str] | None = None,
        options: Mapping[str, object] | None = None,
        spark: "SparkSession | None" = None,
    ) -> ClusteringResult:
        """Write the rows of small file groups anew into larger ones, and sort them: what is pending first, then what is
        there now.

        Which file slices it takes, and how rows are sorted, is what `hoodie.clustering.plan.strategy.*` and
        `hoodie.layout.optimize.strategy` say; it does not wait for a trigger. `partitions`: only these, by their paths
        as they are stored; None: as the options say. Writers and readers go on meanwhile: the table is held at the
        beginning and the end only. Rows keep the time of their last write, so that incremental queries do not show them
        again. A clustering that dies stays pending, and is done anew by the next call. It runs after writes by itself
        where `hoodie.clustering.inline` is true. `spark`: the session whose cluster it runs on; in this process where
        that runs on this machine only, or for None.
        A table with rings of buckets (the engine CONSISTENT_HASHING) is resized instead: large buckets are split, small
        neighbours merged, as `hoodie.bucket.index.*` says.
        Raises: NotFound for a path that is no partition; Invalid for a column that rows cannot be sorted by;
        Unsupported for a table with a fixed number of buckets; Conflict while another process clusters or holds it, or
        where a write that completed meanwhile changed one of its file groups.
        """
        job = _asked_job(self._handle, partitions, options, spark)
        return self._handle.told("clustering", lambda: run_clusterings(job, is_asked=True))

    def schedule_clustering(
        self, *, partitions: Iterable[str] | None = None, options: Mapping[str, object] | None = None
    ) -> ClusteringResult:
        """Plan a clustering and leave it pending, for whoever runs the next one: pyhudi or Apache Hudi.

        Until then upserts and deletes of its file groups are refused, unless `hoodie.clustering.updates.strategy` lets
        them pass. Raises: as `cluster`.
        """
        return schedule_clustering(_asked_job(self._handle, partitions, options, None), is_asked=True)

    def run_clusterings(
        self,
        *,
        instants: Iterable[str] | None = None,
        options: Mapping[str, object] | None = None,
        spark: "SparkSession | None" = None,
    ) -> ClusteringResult:
        """Carry out what is planned, by pyhudi or Apache Hudi, and plan nothing new.

        `instants`: the plans of these requested times; None: all. A plan whose file groups have changed since is taken
        off the timeline. Raises: NotFound for an instant that is not pending; else as `cluster`.
        """
        job, only = _asked_job(self._handle, None, options, spark), None
        if instants is not None:
            access = self._handle.access
            pending = pending_clusterings(access.snapshot())
            only = asked_plans(pending, instants, uri=access.location.uri, service="clustering")
        return self._handle.told("clustering", lambda: run_clusterings(job, is_asked=True, plans=False, only=only))


def clustering_job(
    handle: TableHandle,
    access: TableAccess,
    settings: WriteSettings,
    after: AfterCommitSettings,
    work: SliceWork,
    partitions: Sequence[str] | None = None,
) -> ClusteringJob:
    """What a clustering goes by. `work`: where its groups are clustered, as `slice_work` says."""
    return ClusteringJob(
        after.clustering, base_file_settings(settings), settings.bucket_options,
        open_session=lambda: handle.session(settings, after.clean, "clustering", access=access),
        work=work, clock=access.clock, new_attempt=lambda: attempt_number(access.new_uuid),
        new_uuid=access.new_uuid, partitions=partitions,
    )  # fmt: skip


def _asked_job(
    handle: TableHandle,
    partitions: Iterable[str] | None,
    options: Mapping[str, object] | None,
    spark: "SparkSession | None",
) -> ClusteringJob:
    wanted = None if partitions is None else several_texts(partitions, what="partitions", of="paths")
    snapshot, merged, settings = handle.prepare(options)
    chosen = None if wanted is None else find_partitions(snapshot.listing.partitions(), wanted)
    access = handle.access_through(spark)
    work = slice_work(handle, access, frames.as_cluster(spark))
    return clustering_job(handle, access, settings, AfterCommitSettings.from_options(merged), work, chosen)
