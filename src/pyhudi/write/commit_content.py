"""What the timeline files of a write say of its files: those that it plans, and those that it has written."""

from collections.abc import Sequence
from dataclasses import replace

from pyhudi.format.names import LogFileName, join
from pyhudi.format.timeline.records import CommitMetadata, WriteStat
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.write.handles.target import WriteStatus
from pyhudi.write.input.source import Operation
from pyhudi.write.place.plan import WritePlan


def inflight_content(layout: TimelineLayout, operation: Operation, plan: WritePlan) -> bytes:
    """What the inflight file of an operation holds."""
    return layout.encode_commit(CommitMetadata(_workload(plan), operation.value, {}))


def _workload(plan: WritePlan) -> dict[str, tuple[WriteStat, ...]]:
    """The workload profile that an inflight file states. Spec: format/actions.md section 1, step 4."""
    stats: dict[str, list[WriteStat]] = {}
    for task in plan.tasks:
        of = stats.setdefault(task.partition, [WriteStat(file_id="", prev_commit="null")])
        if task.base_instant is not None:
            of.append(WriteStat(file_id=task.file_id, prev_commit=task.base_instant, num_update_writes=task.updates))
    inserts: dict[str, int] = {}
    for task in plan.tasks:
        inserts[task.partition] = inserts.get(task.partition, 0) + task.inserts
    return {
        partition: (WriteStat(file_id="", prev_commit="null", num_inserts=inserts[partition]), *of[1:])
        for partition, of in stats.items()
    }


def write_stats(
    statuses: Sequence[WriteStatus], plan: WritePlan, *, keeps_changes: bool, requested: str
) -> dict[str, tuple[WriteStat, ...]]:
    """The commit's statement of each file. Spec: format/actions.md section 1.1.

    `keeps_changes`: the table has change data. Seen: up to version 6 a log's statement names the base file and the logs
    beside which it lies. Later ones do so on tables with change data alone, for readers find the rows before by them.
    `requested`: of the write. Seen: from version 8 on, what is logged for a pending resizing names it as the commit
    before, too (1.2.0).
    """
    stats: dict[str, list[WriteStat]] = {}
    tasks = [*plan.tasks, *plan.doubled]
    slices = {task.number: (task.base_file or "", task.log.beside) for task in tasks if task.log is not None}
    if keeps_changes:
        slices = {
            task.number: (task.base_file or "", tuple(reversed(task.slice_logs)))
            for task in plan.tasks
            if task.base_instant is not None
        } | slices
    base_instants = {task.number: task.base_instant for task in plan.tasks if keeps_changes and task.log is None}
    if not any(task.log is not None for task in plan.tasks):
        base_instants |= {task.number: requested for task in plan.doubled}
    for status in sorted(statuses, key=lambda s: (s.partition, s.file_id, s.log_version or 0)):
        stat = WriteStat(
            file_id=status.file_id, path=join(status.partition, status.file_name),
            prev_commit=status.previous_instant or "null", num_writes=status.writes, num_deletes=status.deletes,
            num_update_writes=status.updates, num_inserts=status.inserts, total_write_bytes=status.size_bytes,
            partition_path=status.partition, file_size_in_bytes=status.size_bytes,
            prev_base_file=status.previous_file,
            cdc_stats=_change_stats(status),
        )  # fmt: skip
        if status.log_version is not None:
            name = LogFileName.parse(status.file_name)
            assert name is not None
            base_file, beside = slices.get(status.task_number, ("", ()))
            stat = replace(
                stat, prev_commit=base_instants.get(status.task_number) or name.instant,
                log_version=name.version, log_offset=0, base_file=base_file,
                log_files=(*beside, status.file_name),
            )  # fmt: skip
        stats.setdefault(status.partition, []).append(stat)
    return {partition: tuple(of) for partition, of in stats.items()}


def _change_stats(status: WriteStatus) -> dict[str, int] | None:
    """The path and the bytes of a file's change log."""
    if status.change_log is None:
        return None
    return {join(status.partition, status.change_log): status.change_log_bytes}
