"""Events as metrics, under Apache Hudi's names where it has one. Pure.

Seen: 1.2.0 names a metric `{prefix}.{action}.{name}` (`HoodieMetrics`), and those of locks `{prefix}.lock....`
(`HoodieLockMetrics`). Its gauges hold the last value. The prefix is left to the exporters.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pyhudi.metrics.events import (
    Backlog,
    Event,
    LockAsked,
    LockFreed,
    Replanned,
    ServiceDone,
    ServiceFailed,
    VerdictGiven,
    WriteDone,
    WriteFailed,
)

_OF_SERVICES = {
    ("clean", "files_deleted"): "numFilesDeleted",
    ("archive", "archived"): "numInstantsArchived",
    ("compaction", "rows"): "totalRecordsWritten",
    ("compaction", "size_bytes"): "totalBytesWritten",
    ("logcompaction", "rows"): "totalRecordsWritten",
    ("logcompaction", "size_bytes"): "totalBytesWritten",
}
_BACKLOG = {"compaction": "Compaction", "clustering": "Clustering", "clean": "Clean", "rollback": "Rollback"}


@dataclass(frozen=True, slots=True)
class Metric:
    """A value of a metric. `name`: without a prefix. `is_counter`: the value is added; else it takes the old one's
    place."""

    name: str
    value: int
    is_counter: bool = False


def metrics_of(event: Event) -> Iterator[Metric]:
    """What an event changes in the metrics of its table."""
    match event:
        case WriteDone():
            yield from _of_write(event)
        case WriteFailed():
            yield Metric("write.failure.counter", 1, is_counter=True)
        case Replanned():
            yield Metric("write.retry.counter", 1, is_counter=True)
        case VerdictGiven():
            outcome = "failure" if event.conflict else "success"
            yield Metric(f"conflict_resolution.{outcome}.counter", 1, is_counter=True)
        case LockAsked():
            yield Metric("lock.request.latency", event.waited_ms)
            if event.is_taken:
                yield Metric("lock.acquire.attempts", 1, is_counter=True)
            yield Metric(f"lock.acquire.{'success' if event.is_taken else 'failure'}", 1, is_counter=True)
        case LockFreed():
            yield Metric("lock.acquire.duration", event.held_ms)
        case ServiceDone():
            yield Metric(f"{event.service}.duration", event.duration_ms)
            for name, value in event.figures.items():
                yield Metric(f"{event.service}.{_OF_SERVICES.get((event.service, name), name)}", value)
        case ServiceFailed():
            yield Metric(f"{event.service}.failure.counter", 1, is_counter=True)
        case Backlog():
            yield from _of_backlog(event)


def _of_write(event: WriteDone) -> Iterator[Metric]:
    gauges = {
        "duration": event.duration_ms,
        "totalRecordsWritten": event.inserted + event.updated,
        "totalInsertRecordsWritten": event.inserted,
        "totalUpdateRecordsWritten": event.updated,
        "totalRecordsDeleted": event.deleted,
        "totalBytesWritten": event.size_bytes,
        "files": event.files,
        "replacedFileGroups": event.replaced,
        **{f"phase.{name}": spent_ms for name, spent_ms in event.phases_ms.items()},
    }
    for name, value in gauges.items():
        yield Metric(f"{event.action}.{name}", value)
    yield Metric(f"{event.action}.success.counter", 1, is_counter=True)


def _of_backlog(event: Backlog) -> Iterator[Metric]:
    for action, name in _BACKLOG.items():
        found = event.pending.get(action)
        yield Metric(f"{action}.pending{name}InstantCount", found.count if found else 0)
        yield Metric(f"{action}.oldestPendingAge", found.age_ms if found else 0)
        if found:
            yield Metric(f"{action}.earliestInflight{name}Instant", int(found.earliest[:17]))
