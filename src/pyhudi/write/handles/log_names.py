"""The names of new logs, where a log's name tells the slice that it belongs to (`LogNaming.AFTER_SLICE`)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyhudi.format.names import LogFileName
from pyhudi.format.timeline.instant import Instant
from pyhudi.table.view.file_system_view import NewLog
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.pending import FileGroup
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import LogNaming
from pyhudi.write.place.plan import TaskKind, WritePlan


def name_logs(plan: WritePlan, snapshot: Snapshot, pending: Mapping[FileGroup, Instant]) -> WritePlan:
    """The plan with the names of the logs that it appends. It stays as it is where logs are named after their write.

    `pending`: file groups that services are about to rewrite. Requests: before version 8 a listing of each partition
    whose logs grow. The storage itself is listed, because a log of a dead writer takes a version, too.
    """
    if snapshot.config.version.log_naming is LogNaming.AFTER_WRITE:
        return plan
    listing = StorageListing(snapshot.storage)
    partitions = {task.partition for task in plan.tasks if task.kind is TaskKind.APPEND}
    stored = {partition: [file.name for file in listing.files(partition)] for partition in sorted(partitions)}

    tasks = []
    for task in plan.tasks:
        if task.kind is TaskKind.APPEND:
            assert task.base_instant is not None, "rows are appended to a slice that is there"
            group = task.partition, task.file_id
            log = next_log(
                stored[task.partition], task.file_id, slice_of_new_logs(task.base_instant, pending.get(group))
            )
            task = replace(task, log=log)
        tasks.append(task)
    return WritePlan(tuple(tasks))


def slice_of_new_logs(base_instant: str, service: Instant | None) -> str:
    """The slice that new logs belong to. Once a compaction is requested, it is the slice that the compaction makes.

    Unless the group has a newer base file, which counts before that of the compaction.
    """
    if service is None or service.action != "compaction":
        return base_instant
    return max(base_instant, service.requested)


def next_log(names: Iterable[str], file_id: str, base_instant: str) -> NewLog:
    """The name of the next log of a slice. `names`: of all files in its partition."""
    logs = [log for log in map(LogFileName.parse, names) if log is not None]
    own = sorted(
        (log for log in logs if (log.file_id, log.instant) == (file_id, base_instant)), key=lambda log: log.order
    )

    version = max((log.version for log in own), default=0) + 1
    return NewLog(base_instant, version, tuple(log.format() for log in own if not log.is_cdc))
